//! Blocked heads: what is said of a job that holds up its queue, and how long it may.
//!
//! Only the head of a queue, and only when it waits for more than its turn. Source: the user guide, "Jobs stuck in a
//! RUNNABLE status", and the API reference, `JobStateTimeLimitAction`.

use std::collections::BTreeMap;

use osprey_model::event::BatchStatus;
use rusqlite::params;
use serde::{Deserialize, Serialize};

use crate::arn::name_of;
use crate::batch::LocalBatch;
use crate::change::Change;
use crate::error::BatchError;
use crate::job::JobRow;
use crate::schedule::Wait;

/// Shortest time limit, in seconds.
pub const LIMIT_SECONDS_MIN: i64 = 600;
/// Longest time limit, in seconds.
pub const LIMIT_SECONDS_MAX: i64 = 86_400;
/// What a time limit may be about.
pub const LIMIT_REASONS: [&str; 4] = [
    "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
    "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE",
    "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
    "MISCONFIGURATION:SERVICE_ROLE_PERMISSIONS",
];

/// One of `jobStateTimeLimitActions`: a head that is blocked for this reason for so long is cancelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobStateTimeLimit {
    /// One of [`LIMIT_REASONS`]; it must begin the status reason of the job.
    pub reason: String,
    /// Always `RUNNABLE`.
    pub state: String,
    /// 600 to 86,400 seconds.
    pub max_time_seconds: i64,
    /// Always `CANCEL`.
    pub action: String,
}

/// The status reason of a head that can't be placed; none for one that waits its turn.
pub(crate) fn reason(wait: Wait) -> Option<&'static str> {
    match wait {
        Wait::Busy => None,
        Wait::NodeTooSmall => Some(
            "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - The job requires more resources than any node of the compute \
             environments of its job queue has.",
        ),
        Wait::TooFewNodes => Some(
            "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE - The job requires more nodes than any of the compute \
             environments of its job queue has.",
        ),
        Wait::NoCapacity => Some(
            "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - No more instances can be had in the compute environments of \
             the job queue.",
        ),
    }
}

fn check(limit: &JobStateTimeLimit) -> Result<(), BatchError> {
    let refuse = |message: String| Err(BatchError::client(message));
    if !LIMIT_REASONS.contains(&limit.reason.as_str()) {
        return refuse(format!("reason must be one of [{}], got {}", LIMIT_REASONS.join(", "), limit.reason));
    }
    if limit.state != "RUNNABLE" {
        return refuse(format!("state must be RUNNABLE, got {}", limit.state));
    }
    if limit.action != "CANCEL" {
        return refuse(format!("action must be CANCEL, got {}", limit.action));
    }
    if !(LIMIT_SECONDS_MIN..=LIMIT_SECONDS_MAX).contains(&limit.max_time_seconds) {
        let (min, max) = (LIMIT_SECONDS_MIN, LIMIT_SECONDS_MAX);
        return refuse(format!("maxTimeSeconds must be between {min} and {max}, got {}", limit.max_time_seconds));
    }
    Ok(())
}

impl LocalBatch {
    /// Sets the time limits of a queue in place of those it had.
    ///
    /// # Errors
    /// A ClientException when the queue is unknown or a limit is out of range.
    pub fn set_time_limits(&self, name_or_arn: &str, limits: &[JobStateTimeLimit]) -> Result<(), BatchError> {
        limits.iter().try_for_each(check)?;
        self.change(|change| {
            let known = change.queue(name_of(name_or_arn))?;
            let known = known.ok_or_else(|| BatchError::client(format!("{name_or_arn} does not exist")))?;
            change.db.execute(
                "UPDATE job_queue SET time_limits = ?2 WHERE name = ?1",
                params![known.job_queue_name, serde_json::to_string(limits)?],
            )?;
            Ok(())
        })
    }
}

/// A blocked head as the store knows it.
struct Head {
    queue: String,
    job: i64,
    reason: String,
    since: i64,
    limits: Vec<JobStateTimeLimit>,
}

impl Head {
    /// When its time is up, and for what reason.
    fn due(&self) -> Option<(i64, &str)> {
        let matching = self.limits.iter().filter(|limit| self.reason.starts_with(&limit.reason));
        let due = |limit: &JobStateTimeLimit| self.since.saturating_add(limit.max_time_seconds.saturating_mul(1_000));
        matching.map(|limit| (due(limit), limit.reason.as_str())).min()
    }
}

impl Change<'_> {
    fn known_heads(&self) -> rusqlite::Result<Vec<Head>> {
        let mut statement = self.db.prepare_cached(
            "SELECT h.queue, h.job, h.reason, h.since, q.time_limits
             FROM queue_head h JOIN job_queue q ON q.name = h.queue ORDER BY h.queue",
        )?;
        let heads = statement.query_map([], |row| {
            let limits = serde_json::from_str(row.get_ref(4)?.as_str()?).unwrap_or_default();
            Ok(Head { queue: row.get(0)?, job: row.get(1)?, reason: row.get(2)?, since: row.get(3)?, limits })
        })?;
        heads.collect()
    }

    /// Writes down which heads are blocked now, and why; one that is so anew has an event, but no transition.
    pub fn note_heads(&self, heads: &BTreeMap<String, (i64, &'static str)>) -> rusqlite::Result<()> {
        let known = self.known_heads()?;
        for head in &known {
            if heads.get(&head.queue) != Some(&(head.job, head.reason.as_str())) {
                self.db.prepare_cached("DELETE FROM queue_head WHERE queue = ?1")?.execute(params![head.queue])?;
                self.say_of_waiting(head.job, None)?;
            }
        }
        for (queue, (job, reason)) in heads {
            if !known.iter().any(|head| head.queue == *queue && head.job == *job && head.reason == *reason) {
                self.db
                    .prepare_cached("INSERT INTO queue_head (queue, job, reason, since) VALUES (?1, ?2, ?3, ?4)")?
                    .execute(params![queue, job, reason, self.now_ms])?;
                self.say_of_waiting(*job, Some(reason))?;
                if let Some(job) = JobRow::by_seq(self.db, *job)? {
                    self.emit_blocked(&job)?;
                }
            }
        }
        Ok(())
    }

    fn say_of_waiting(&self, job: i64, reason: Option<&str>) -> rusqlite::Result<()> {
        self.db
            .prepare_cached("UPDATE job SET status_reason = ?2 WHERE seq = ?1 AND status = 'RUNNABLE'")?
            .execute(params![job, reason])?;
        Ok(())
    }

    /// Cancels the heads whose time is up. Answers whether there were any.
    pub fn enforce_time_limits(&self) -> rusqlite::Result<bool> {
        let mut any = false;
        for head in self.known_heads()? {
            let Some((_, reason)) = head.due().filter(|(at, _)| *at <= self.now_ms) else { continue };
            let Some(mut job) = JobRow::by_seq(self.db, head.job)? else { continue };
            if job.status != BatchStatus::Runnable {
                continue;
            }
            let reason = format!("Canceled by JobStateTimeLimit action due to reason: {reason}");
            self.settling(|ended| {
                self.finish(&mut job, BatchStatus::Failed, Some(reason))?;
                ended.push_back(job);
                Ok(())
            })?;
            any = true;
        }
        Ok(any)
    }

    /// When the time of the next head is up.
    pub fn next_time_limit(&self) -> rusqlite::Result<Option<i64>> {
        Ok(self.known_heads()?.iter().filter_map(|head| head.due().map(|(at, _)| at)).min())
    }
}

#[cfg(test)]
#[path = "head_tests.rs"]
mod tests;
