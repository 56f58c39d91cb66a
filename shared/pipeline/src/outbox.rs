//! "Osprey Job State Change": what other systems hear of a job.
//!
//! The write that changes a job's state also writes the event, all or nothing; then the event is put on the bus, and its
//! row is removed. When either is lost, `watch` finds the row and puts the event again. So an event is never lost, may
//! come twice, and says by its `version` which of two is the newer one.
//!
//! Not every state is told. Waiting, queued at first, claimed and submitted follow each other within moments, and each
//! event costs three write units.

use osprey_model::end::EndClass;
use osprey_model::id::{BatchJobId, JobId, PoolName, TierName};
use osprey_model::job::{End, Job, JobState};
use osprey_ports::events::PUT_EVENTS_MAX;
use osprey_ports::{CallError, Expect, Item, Key, OutgoingEvent, PutEvents, QueryItems, SortQuery, Write, WriteItems};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::{key, repository};

/// The kind of these events.
pub const DETAIL_TYPE: &str = "Osprey Job State Change";
/// An event that is still in the outbox after so long wasn't put by whoever wrote it, milliseconds.
pub const LEFT_MS: i64 = 30_000;
/// Most events that one round puts again.
const ROUND_MAX: usize = 500;

/// What an event says. The members are an interface (`docs/events.md`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobStateChange {
    /// The stable id.
    pub job_id: JobId,
    /// `jobName`.
    pub job_name: String,
    /// The state before; `None` for a job that is new.
    pub previous_state: Option<JobState>,
    /// The state now.
    pub state: JobState,
    /// Goes up with every change of the job.
    pub version: u64,
    /// When it changed, milliseconds since 1970.
    pub changed_at: i64,
    /// Number of the newest attempt; 0 before the first.
    pub attempt: u32,
    /// The newest attempt's job in AWS Batch.
    pub batch_job_id: Option<BatchJobId>,
    /// Tier.
    pub tier: TierName,
    /// Priority.
    pub priority: u32,
    /// Pool.
    pub pool: PoolName,
    /// Team.
    pub team: Option<String>,
    /// How the newest attempt that ended did.
    pub last_end: Option<EndClass>,
    /// Why the job ended, for one that did not succeed.
    pub end: Option<End>,
}

/// An event and its row.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    key: Key,
    detail: String,
}

impl Entry {
    /// The event of a change that is written if the job is as `expect`ed; `None` for one that isn't told.
    #[must_use]
    pub fn of(before: Option<&Job>, after: &Job, expect: Expect) -> Option<Self> {
        if !is_told(before.map(|job| job.state), after.state) {
            return None;
        }
        let version = match expect {
            Expect::Version(version) => version.saturating_add(1),
            Expect::Absent | Expect::Any => 1,
        };
        let run = after.run.as_ref().or_else(|| before.and_then(|job| job.run.as_ref()));
        let change = JobStateChange {
            job_id: after.id,
            job_name: after.name.clone(),
            previous_state: before.map(|job| job.state),
            state: after.state,
            version,
            changed_at: after.updated_at,
            attempt: after.attempt,
            batch_job_id: run.map(|run| run.id.clone()),
            tier: after.tier.clone(),
            priority: after.priority,
            pool: after.pool.clone(),
            team: after.team.clone(),
            last_end: after.last_end,
            end: after.end.clone(),
        };
        Some(Self { key: key::outbox(after.updated_at, after.id, version), detail: repository::json(&change) })
    }

    /// The write that goes with the change.
    #[must_use]
    pub fn write(&self) -> Write {
        Write::Put { item: Item::new(self.key.clone(), self.detail.clone()), expect: Expect::Any }
    }
}

/// Whether a change is told.
fn is_told(before: Option<JobState>, after: JobState) -> bool {
    if before == Some(after) {
        return false;
    }
    match after {
        JobState::Running
        | JobState::Held
        | JobState::Succeeded
        | JobState::Failed
        | JobState::Refused
        | JobState::Dead => true,
        // A job comes back: after an attempt, or because a person said so.
        JobState::Queued => matches!(
            before,
            Some(JobState::Submitted | JobState::Running | JobState::Held | JobState::Failed | JobState::Dead)
        ),
        JobState::Waiting | JobState::Claimed | JobState::Submitted => false,
    }
}

/// Puts the event of a change that was just written, if it is told. When that fails, `watch` does it.
pub async fn put<P: PutEvents + WriteItems + Sync>(ports: &P, before: Option<&Job>, after: &Job, expect: Expect) {
    let Some(entry) = Entry::of(before, after, expect) else { return };
    if let Err(failure) = put_all(ports, std::slice::from_ref(&entry)).await {
        tracing::warn!(error = failure.story(), "an event could not be put; it is put later.");
    }
}

async fn put_all<P: PutEvents + WriteItems + Sync>(ports: &P, entries: &[Entry]) -> Result<(), Failure> {
    let event = |entry: &Entry| OutgoingEvent { detail_type: DETAIL_TYPE, detail: entry.detail.clone() };
    let events: Vec<OutgoingEvent> = entries.iter().map(event).collect();
    ports.put_events(&events).await.map_err(Failure::call("PutEvents"))?;
    let delete = |entry: &Entry| Write::Delete { key: entry.key.clone(), expect: Expect::Any };
    Ok(ports.write_items(&entries.iter().map(delete).collect::<Vec<_>>()).await?)
}

/// Puts the events that have been left for a while; answers how many.
///
/// # Errors
/// When the store or the bus fails; what is left stays. An event that the bus refuses doesn't keep the others back.
pub async fn put_left<P: PutEvents + QueryItems + WriteItems + Sync>(ports: &P, now: i64) -> Result<usize, Failure> {
    let query = SortQuery { partition: key::OUTBOX.to_owned(), prefix: String::new(), after: None, limit: ROUND_MAX };
    let page = ports.query_items(&query).await?;
    let until = key::sortable(now.saturating_sub(LEFT_MS));
    let left = page.items.into_iter().filter(|item| item.key.sort < until);
    let left: Vec<Entry> = left.map(|item| Entry { key: item.key, detail: item.body }).collect();
    let (mut told, mut refusal) = (0_usize, None);
    for some in left.chunks(PUT_EVENTS_MAX) {
        // A call with one event that the bus refuses is refused whole.
        let calls = match put_all(ports, some).await {
            Ok(()) => {
                told = told.saturating_add(some.len());
                continue;
            }
            Err(failure) if is_refusal(&failure) => some.chunks(1),
            Err(failure) => return Err(failure),
        };
        for one in calls {
            match put_all(ports, one).await {
                Ok(()) => told = told.saturating_add(1),
                Err(failure) if is_refusal(&failure) => refusal = Some(failure),
                Err(failure) => return Err(failure),
            }
        }
    }
    refusal.map_or(Ok(told), Err)
}

fn is_refusal(failure: &Failure) -> bool {
    matches!(failure, Failure::Call { source: CallError::Refused(_), .. })
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Mutex;
    use std::task::{Context, Poll, Waker};

    use osprey_ports::{Page, StoreError};

    use super::*;

    /// A bus that refuses events that say "bad" and throttles once it has taken `takes`, and the rows of an outbox.
    struct Place {
        rows: Mutex<Vec<Item>>,
        put: Mutex<Vec<String>>,
        takes: usize,
    }

    impl PutEvents for Place {
        async fn put_events(&self, events: &[OutgoingEvent]) -> Result<(), CallError> {
            let mut put = self.put.lock().unwrap();
            if put.len() >= self.takes {
                return Err(CallError::Throttled);
            }
            if events.iter().any(|event| event.detail.contains("bad")) {
                return Err(CallError::Refused("no event".to_owned()));
            }
            put.extend(events.iter().map(|event| event.detail.clone()));
            Ok(())
        }
    }

    impl QueryItems for Place {
        async fn query_items(&self, query: &SortQuery) -> Result<Page, StoreError> {
            let rows = self.rows.lock().unwrap();
            let items = rows.iter().filter(|row| row.key.partition == query.partition).cloned().collect();
            Ok(Page { items, more: false })
        }
    }

    impl WriteItems for Place {
        async fn write_items(&self, writes: &[Write]) -> Result<(), StoreError> {
            for write in writes {
                let Write::Delete { key, .. } = write else { panic!("only rows that were put are removed: {write:?}") };
                self.rows.lock().unwrap().retain(|row| row.key != *key);
            }
            Ok(())
        }
    }

    /// A round over rows of these texts, one a second; what it answered, what was put, and what is left.
    fn round(rows: &[&str], takes: usize, now: i64) -> (Result<usize, Failure>, Vec<String>, Vec<String>) {
        let id = JobId::of_message(&osprey_model::id::MessageId::new("m"));
        let row = |(at, text): (i64, &&str)| Item::new(key::outbox(at * 1_000, id, 1), *text);
        let place = Place { rows: Mutex::new((0_i64..).zip(rows).map(row).collect()), put: Mutex::default(), takes };
        let mut left = pin!(put_left(&place, now));
        let answer = match left.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => answer,
            Poll::Pending => panic!("nothing here waits"),
        };
        let rows = place.rows.lock().unwrap().iter().map(|row| row.body.clone()).collect();
        (answer, place.put.lock().unwrap().clone(), rows)
    }

    #[test]
    fn what_was_left_is_put_and_what_was_just_written_is_left_to_its_writer() {
        let texts = ["a", "b", "c"];
        let (answer, put, left) = round(&texts, 99, LEFT_MS + 1_500);
        assert_eq!((answer, put, left), (Ok(2), vec!["a".to_owned(), "b".to_owned()], vec!["c".to_owned()]));
    }

    #[test]
    fn an_event_that_the_bus_refuses_keeps_no_other_back() {
        let mut texts = vec!["a"; 25];
        texts[3] = "bad";
        let (answer, put, left) = round(&texts, 99, LEFT_MS * 10);
        assert!(matches!(answer, Err(Failure::Call { source: CallError::Refused(_), .. })), "{answer:?}");
        assert_eq!((put.len(), left), (24, vec!["bad".to_owned()]));
    }

    #[test]
    fn a_bus_that_has_enough_is_asked_no_more() {
        let (answer, put, left) = round(&["a"; 25], 10, LEFT_MS * 10);
        assert!(matches!(answer, Err(Failure::Call { source: CallError::Throttled, .. })), "{answer:?}");
        assert_eq!((put.len(), left.len()), (10, 15));
    }

    #[test]
    fn what_follows_within_moments_is_not_told() {
        use JobState::{Claimed, Dead, Held, Queued, Refused, Running, Submitted, Succeeded, Waiting};
        for (before, after, told) in [
            (None, Queued, false),
            (None, Waiting, false),
            (None, Refused, true),
            (Some(Waiting), Queued, false),
            (Some(Queued), Claimed, false),
            (Some(Claimed), Submitted, false),
            (Some(Claimed), Queued, false),
            (Some(Submitted), Running, true),
            (Some(Running), Running, false),
            (Some(Running), Succeeded, true),
            (Some(Submitted), Queued, true),
            (Some(Running), Queued, true),
            (Some(Dead), Queued, true),
            (Some(Held), Queued, true),
            (Some(Queued), Held, true),
        ] {
            assert_eq!(is_told(before, after), told, "{before:?} to {after:?}");
        }
    }
}
