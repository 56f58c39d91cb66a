//! State-change events in EventBridge's shape, and the outbox they wait in.
//!
//! An event is written in the transaction of its transition, so a crash can't lose it; it stays until it is
//! acknowledged, so a consumer that dies sees it again. Delay, duplicates and loss are drawn from the seed, the job's
//! number and its transition, so the same history gives the same choices however the jobs interleave.

use jiff::Timestamp;
use osprey_model::event::JOB_STATE_CHANGE;
use rusqlite::params;
use serde_json::{Value, json};

use crate::batch::LocalBatch;
use crate::change::Change;
use crate::detail::Reader;
use crate::error::BatchError;
use crate::job::JobRow;

/// An event that is due.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingEvent {
    /// Number in the outbox, to acknowledge it by; a duplicate has another one.
    pub id: i64,
    /// The event, exactly as EventBridge would send it.
    pub body: Value,
}

/// `detail-type` of the event about a head that is blocked.
pub const QUEUE_BLOCKED: &str = "Batch Job Queue Blocked";

/// Namespace of the envelope ids, which are the same for a duplicate.
const EVENT_NAMESPACE: uuid::Uuid = uuid::Uuid::from_u128(0x6f73_7072_6579_4576_8262_0000_0000_0002);

impl LocalBatch {
    /// At most `max` events whose time has come, by due time. They come again until [`Self::ack_events`].
    ///
    /// # Errors
    /// Failures of the store.
    pub fn fetch_events(&self, max: usize) -> Result<Vec<PendingEvent>, BatchError> {
        self.view(|change| {
            let mut statement = change
                .db
                .prepare_cached("SELECT id, body FROM event WHERE due_at <= ?1 ORDER BY due_at, id LIMIT ?2")?;
            let limit = i64::try_from(max).unwrap_or(i64::MAX);
            let rows = statement.query_map(params![change.now_ms, limit], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
            })?;
            let mut events = Vec::new();
            for row in rows {
                let (id, body) = row?;
                events.push(PendingEvent { id, body: serde_json::from_str(&body)? });
            }
            Ok(events)
        })
    }

    /// Acknowledges events by their numbers; unknown numbers are ignored.
    ///
    /// # Errors
    /// Failures of the store.
    pub fn ack_events(&self, ids: &[i64]) -> Result<(), BatchError> {
        if ids.is_empty() {
            return Ok(());
        }
        self.inner.store.write(|db| {
            let mut statement = db.prepare_cached("DELETE FROM event WHERE id = ?1")?;
            for id in ids {
                statement.execute(params![id])?;
            }
            Ok(())
        })
    }

    /// When the next event is due, in virtual milliseconds since 1970; `None` when the outbox is empty.
    ///
    /// # Errors
    /// Failures of the store.
    pub fn next_event_due_ms(&self) -> Result<Option<i64>, BatchError> {
        self.view(|change| {
            let mut statement = change.db.prepare_cached("SELECT min(due_at) FROM event")?;
            Ok(statement.query_row([], |row| row.get(0))?)
        })
    }
}

impl Change<'_> {
    /// Writes the event of the transition that `job` has just made.
    pub fn emit(&self, job: &JobRow) -> rusqlite::Result<()> {
        let settings = &self.options.events;
        let draw = |choice| drawn(settings.seed, [job.seq, job.transitions, choice]);
        if fraction(draw(0)) < settings.loss_rate {
            return Ok(());
        }
        let body = self.body(job, JOB_STATE_CHANGE, &[self.arns().job(&job.id)])?;
        self.put_event(&body, draw(1))?;
        if fraction(draw(2)) < settings.duplicate_rate {
            self.put_event(&body, draw(3))?;
        }
        Ok(())
    }

    /// Writes the event of a head that has become blocked.
    pub fn emit_blocked(&self, job: &JobRow) -> rusqlite::Result<()> {
        let settings = &self.options.events;
        let draw = |choice| drawn(settings.seed, [job.seq, job.transitions, choice]);
        if fraction(draw(4)) < settings.loss_rate {
            return Ok(());
        }
        let resources = [self.arns().job(&job.id), self.arns().queue(&job.queue)];
        self.put_event(&self.body(job, QUEUE_BLOCKED, &resources)?, draw(5))
    }

    fn put_event(&self, body: &str, random: u64) -> rusqlite::Result<()> {
        let range = &self.options.events.delay_ms;
        let width = u64::try_from(range.end().saturating_sub(*range.start())).unwrap_or(0);
        let extra = i64::try_from(random % width.saturating_add(1)).unwrap_or(0);
        let due = self.now_ms.saturating_add((*range.start()).max(0)).saturating_add(extra);
        self.db.prepare_cached("INSERT INTO event (due_at, body) VALUES (?1, ?2)")?.execute(params![due, body])?;
        Ok(())
    }

    fn body(&self, job: &JobRow, kind: &str, resources: &[String]) -> rusqlite::Result<String> {
        let mut name = format!("{}/{}", job.id, job.transitions);
        if kind != JOB_STATE_CHANGE {
            name = format!("{name}/{kind}/{}", job.status_reason.as_deref().unwrap_or_default());
        }
        let time = Timestamp::from_millisecond(self.now_ms).unwrap_or_default();
        let event = json!({
            "version": "0",
            "id": uuid::Uuid::new_v5(&EVENT_NAMESPACE, name.as_bytes()).to_string(),
            "detail-type": kind,
            "source": "aws.batch",
            "account": self.options.account,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "region": self.options.region,
            "resources": resources,
            "detail": self.detail(job, Reader::Event)?,
        });
        Ok(event.to_string())
    }
}

/// A number drawn from a seed and what the choice is about (SplitMix64's finish over each word).
pub(crate) fn drawn<const N: usize>(seed: u64, about: [i64; N]) -> u64 {
    about.iter().fold(seed, |state, word| {
        let mut z = (state ^ word.cast_unsigned()).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

/// A drawn number as a fraction from 0 up to, not including, 1.
#[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
pub(crate) fn fraction(random: u64) -> f64 {
    (random >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
#[path = "event_tests.rs"]
pub(crate) mod tests;
