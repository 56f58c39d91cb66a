//! Messages of the internal queue: they refer to records and assert nothing of their own.

use osprey_model::id::JobId;
use osprey_ports::{QueueKind, SendMessage};
use serde::{Deserialize, Serialize};

use crate::repository;

/// A message that only Osprey writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "internal", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Internal {
    /// A job's time has come.
    Dispatch {
        /// The job.
        job_id: JobId,
    },
    /// A dead letter is to be sent through again.
    Redrive {
        /// The dead letter.
        dead_letter_id: JobId,
    },
}

/// The longest delay of a message, seconds; a limit of SQS.
const DELAY_SECONDS_MAX: i64 = 900;

/// Sends a wake-up for a job at `at`, if that is near enough for the queue. One that is lost, or too far away, costs
/// only time: `watch` looks at every job whose time has come.
pub async fn wake<P: SendMessage + Sync>(ports: &P, job_id: JobId, at: i64, now: i64) {
    let delay = at.saturating_sub(now).max(0).saturating_add(999) / 1000;
    if delay > DELAY_SECONDS_MAX {
        return;
    }
    let seconds = u32::try_from(delay).unwrap_or(0);
    let body = repository::json(&Internal::Dispatch { job_id });
    if let Err(error) = ports.send_message(QueueKind::Internal, &body, seconds).await {
        tracing::warn!(%job_id, %error, "a wake-up could not be sent.");
    }
}
