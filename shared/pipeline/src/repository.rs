//! Job records: reading them, and the one way of changing them.

use osprey_model::id::JobId;
use osprey_model::job::{Job, JobState};
use osprey_ports::{Expect, GetItem, Item, Key, PutEvents, QueryItems, SortQuery, StoreError, Write, WriteItems};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::Settings;
use crate::failure::Failure;
use crate::{account, key, line, outbox, waits};

/// Bytes of most items.
const BYTES_USUAL: usize = 1024;

/// Tries of one change before the message is left for another time.
pub const TRIES_MAX: u32 = 8;

/// A job that stands in a pool's line for so long is looked at, whatever its pool's cycles do, milliseconds.
const IN_LINE_MS_MAX: i64 = 86_400_000;

/// A job as read, with the version that a change expects.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The job.
    pub job: Job,
    /// The version of its state item.
    pub version: u64,
}

/// Reads a job.
///
/// # Errors
/// When the store fails, or the item can't be read or breaks a rule.
pub async fn load<P: GetItem + Sync>(ports: &P, id: JobId) -> Result<Option<Loaded>, Failure> {
    let Some(item) = ports.get_item(&key::job(id)).await? else { return Ok(None) };
    let job: Job = read(&item)?;
    job.check()?;
    Ok(Some(Loaded { job, version: item.version }))
}

/// A change that was decided on a snapshot of the job.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The job after it.
    pub job: Job,
    /// What is written with it, all or nothing.
    pub with: Vec<Write>,
}

impl Change {
    /// A change of the job alone.
    #[must_use]
    pub fn of(job: Job) -> Self {
        Self { job, with: Vec::new() }
    }

    /// The same change, of a job that no cycle has to do with any more when it is neither queued nor dispatched.
    fn settled(mut self) -> Self {
        self.job.scheduled &= self.job.state == JobState::Queued || self.job.state.is_dispatched();
        self
    }
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq)]
pub enum Changed {
    /// It was written: the job before and after it.
    Written {
        /// Before.
        before: Box<Job>,
        /// After.
        after: Box<Job>,
    },
    /// There was nothing to change.
    Unchanged(Box<Job>),
    /// There is no such job.
    Missing,
}

/// Changes a job: reads it, lets `decide` look at it, and writes under the condition that nobody else did meanwhile;
/// again when somebody did. `decide` returns `None` when there is nothing to change.
///
/// # Errors
/// When the store fails, the change breaks a rule, or others were faster at every try. A conflict on a write in
/// [`Change::with`] counts as "somebody was faster": the next look at the job shows why.
pub async fn change<P, F>(ports: &P, settings: &Settings, id: JobId, decide: F) -> Result<Changed, Failure>
where
    P: GetItem + WriteItems + PutEvents + Sync,
    F: Fn(&Job) -> Option<Change> + Send + Sync,
{
    change_loaded(ports, settings, id, None, decide).await
}

/// Changes a job as [`change`] does, by a caller that has just read it: the first look needs no reading.
///
/// # Errors
/// As [`change`].
pub async fn change_loaded<P, F>(
    ports: &P,
    settings: &Settings,
    id: JobId,
    mut in_hand: Option<Loaded>,
    decide: F,
) -> Result<Changed, Failure>
where
    P: GetItem + WriteItems + PutEvents + Sync,
    F: Fn(&Job) -> Option<Change> + Send + Sync,
{
    for _ in 0..TRIES_MAX {
        let read = match in_hand.take() {
            Some(loaded) => Some(loaded),
            None => load(ports, id).await?,
        };
        let Some(loaded) = read else { return Ok(Changed::Missing) };
        let Some(change) = decide(&loaded.job) else { return Ok(Changed::Unchanged(Box::new(loaded.job))) };
        let change = change.settled();
        let after = change.job.clone();
        match write(ports, settings, &loaded, change).await {
            Ok(()) => return Ok(Changed::Written { before: Box::new(loaded.job), after: Box::new(after) }),
            Err(Failure::Store(StoreError::Conflict { .. })) => {}
            Err(failure) => return Err(failure),
        }
    }
    Err(Failure::Contended(id))
}

/// Writes a change under the condition that the job is still as loaded, and tells it.
///
/// # Errors
/// [`StoreError::Conflict`] when it isn't, and whatever else the store says.
pub async fn write<P: WriteItems + PutEvents + Sync>(
    ports: &P,
    settings: &Settings,
    loaded: &Loaded,
    change: Change,
) -> Result<(), Failure> {
    write_within(ports, settings, loaded, change, None).await
}

/// Writes a change as [`write()`] does, under the most GPUs that the job's team may hold in its tier, where there is such.
///
/// # Errors
/// As [`write()`]; when the team would hold more, the conflict is that of write [`CAP`].
pub async fn write_within<P: WriteItems + PutEvents + Sync>(
    ports: &P,
    settings: &Settings,
    loaded: &Loaded,
    change: Change,
    team_gpus_max: Option<u32>,
) -> Result<(), Failure> {
    let change = change.settled();
    let (before, after) = (&loaded.job, &change.job);
    if !(before.state.may_become(after.state) || before.state == after.state && !after.state.is_final()) {
        let rule = "a state changes only along the edges of the lifecycle";
        return Err(osprey_model::job::Broken { job: after.id, rule }.into());
    }
    let expect = Expect::Version(loaded.version);
    let mut writes = within(Some(before), after, settings, expect, team_gpus_max)?;
    writes.extend(change.with);
    ports.write_items(&writes).await?;
    outbox::put(ports, Some(before), after, expect).await;
    Ok(())
}

/// The writes that put a job where `before` was: its state item first, then what moves along with it, the event that
/// tells others of it among that. Whoever has written them calls [`outbox::put`], or leaves the event to `watch`.
///
/// # Errors
/// When the job breaks a rule.
pub fn writes(before: Option<&Job>, after: &Job, settings: &Settings, expect: Expect) -> Result<Vec<Write>, Failure> {
    within(before, after, settings, expect, None)
}

/// Where in a transaction the counter of a team's GPUs is, when the change takes some.
pub const CAP: usize = 1;

fn within(
    before: Option<&Job>,
    after: &Job,
    settings: &Settings,
    expect: Expect,
    team_gpus_max: Option<u32>,
) -> Result<Vec<Write>, Failure> {
    let mut writes = vec![Write::Put { item: item(after, settings)?, expect }];
    writes.extend(account::writes(before, after, team_gpus_max));
    writes.extend(line::writes(before, after));
    writes.extend(waits::end(before, after));
    writes.extend(outbox::Entry::of(before, after, expect).map(|event| event.write()));
    Ok(writes)
}

/// The state item of a job.
fn item(job: &Job, settings: &Settings) -> Result<Item, Failure> {
    job.check()?;
    let mut item = Item::new(key::job(job.id), json(job));
    item.indexes.push(key::listing(key::JOBS, job.created_at, job.id));
    if let (Some(team), Some(_)) = (&job.team, &job.run) {
        item.indexes.push(key::running(team, job.gpus, job.id));
    }
    item.indexes.extend(due_at(job, settings).map(|at| key::due_job(at, job)));
    Ok(item)
}

/// When `watch` has to look at a job, milliseconds since 1970; `None` for one that waits for nobody.
#[must_use]
pub fn due_at(job: &Job, settings: &Settings) -> Option<i64> {
    match job.state {
        // Cycles of its pool look at it.
        JobState::Queued if job.scheduled => Some(job.updated_at.saturating_add(IN_LINE_MS_MAX)),
        JobState::Queued => Some(job.not_before),
        JobState::Waiting => {
            Some(job.updated_at.saturating_add(settings.waiting_ms.min(settings.unknown_dependency_ms)))
        }
        JobState::Claimed => Some(job.updated_at.saturating_add(settings.list_interval_ms)),
        JobState::Submitted | JobState::Running => {
            let wait =
                if job.stop.is_some() || job.evict.is_some() { settings.stop_repeat_ms } else { settings.silence_ms };
            Some(job.updated_at.saturating_add(wait))
        }
        JobState::Held | JobState::Succeeded | JobState::Failed | JobState::Refused | JobState::Dead => None,
    }
}

/// The body of an item, as JSON.
///
/// # Errors
/// When it can't be read.
pub fn read<T: DeserializeOwned>(item: &Item) -> Result<T, Failure> {
    serde_json::from_str(&item.body).map_err(|fault| Failure::Corrupt {
        item: format!("{} / {}", item.key.partition, item.key.sort),
        fault: fault.to_string(),
    })
}

/// A value as JSON. Our records have text keys only, so this can't fail; an impossible failure gives an empty object,
/// which [`read`] then refuses.
pub fn json<T: Serialize>(value: &T) -> String {
    // Room for what most items are, so that the text isn't moved while it grows.
    let mut text = Vec::with_capacity(BYTES_USUAL);
    let written = serde_json::to_writer(&mut text, value).ok().and_then(|()| String::from_utf8(text).ok());
    written.unwrap_or_else(|| "{}".to_owned())
}

/// Every item of a partition whose sort key starts with `prefix`, in order.
///
/// # Errors
/// When the store fails.
pub async fn all<P: QueryItems + Sync>(ports: &P, partition: String, prefix: &str) -> Result<Vec<Item>, Failure> {
    let mut items: Vec<Item> = Vec::new();
    loop {
        let after = items.last().map(|item| item.key.sort.clone());
        let query = SortQuery { partition: partition.clone(), prefix: prefix.to_owned(), after, limit: 500 };
        let page = ports.query_items(&query).await?;
        let more = page.more && !page.items.is_empty();
        items.extend(page.items);
        if !more {
            return Ok(items);
        }
    }
}

/// Puts an item that must not be there yet.
#[must_use]
pub fn create(key: Key, body: String) -> Write {
    Write::Put { item: Item::new(key, body), expect: Expect::Absent }
}
