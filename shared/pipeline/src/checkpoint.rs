//! The newest checkpoint that a job reported: the row `JOB#id` / `CHECKPOINT`. What a decision has to know of it is in the
//! job's record.

use osprey_model::job::{Job, Saved};
use osprey_ports::{Expect, GetItem, Item, Write};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::key;
use crate::repository::{self, Change};

/// A checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Where it is: the attempts that follow get this.
    pub uri: String,
    /// How much of its work the job had done, in percent, where it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u32>,
    /// When the report was sent, milliseconds since 1970.
    pub at: i64,
    /// The newest attempt by then.
    pub attempt: u32,
}

/// The change that takes in a report; `None` for one that is older than what is known.
#[must_use]
pub fn reported(job: &Job, uri: &str, percent: Option<u32>, sent_at: i64, now: i64) -> Option<Change> {
    // A sender's clock is SQS's; ours may be behind it.
    let at = sent_at.min(now);
    if job.saved.is_some_and(|saved| saved.at > at) {
        return None;
    }
    let checkpoint = Checkpoint { uri: uri.to_owned(), percent, at, attempt: job.attempt };
    let item = Item::new(key::checkpoint(job.id), repository::json(&checkpoint));
    let job = Job { saved: Some(Saved { at, percent }), ..job.clone() };
    Some(Change { job, with: vec![Write::Put { item, expect: Expect::Any }] })
}

/// Where the newest checkpoint of a job is; `None` for one that reported none.
///
/// # Errors
/// When the store fails.
pub async fn newest<P: GetItem + Sync>(ports: &P, job: &Job) -> Result<Option<Checkpoint>, Failure> {
    if job.saved.is_none() {
        return Ok(None);
    }
    ports.get_item(&key::checkpoint(job.id)).await?.as_ref().map(repository::read).transpose()
}

#[cfg(test)]
mod tests {
    use osprey_model::id::{JobId, MessageId};

    use super::*;

    #[test]
    fn reports_that_come_out_of_order_leave_the_newest() {
        let message = MessageId::new("m");
        let job = Job::new(JobId::of_message(&message), message, 0);
        let first = reported(&job, "s3://b/2", Some(40), 2_000, 9_000).unwrap();
        assert_eq!(first.job.saved, Some(Saved { at: 2_000, percent: Some(40) }));
        assert_eq!(reported(&first.job, "s3://b/1", Some(20), 1_000, 9_000), None);
        let next = reported(&first.job, "s3://b/3", None, 12_000, 9_000).unwrap();
        assert_eq!(next.job.saved, Some(Saved { at: 9_000, percent: None }), "no report is from the future");
    }
}
