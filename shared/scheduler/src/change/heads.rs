//! Without the jobs that it waits behind.

use osprey_model::id::JobId;

use super::bound::needed;
use super::trial::Trial;
use super::{Change, Verified};
use crate::reason::WaitReason;

/// Most jobs that are told: whoever waits behind more of them waits for its turn.
const HEADS_MAX: usize = 4;

/// The first jobs without which it starts, and none of which could stay.
pub(super) fn gone(trial: &mut Trial<'_>) -> Vec<Verified> {
    let mut jobs = Vec::new();
    let mut reason = trial.question.reason;
    while let (Some(head), true) = (head(reason), jobs.len() < HEADS_MAX) {
        jobs.push(head);
        match trial.outcome(&Change::Without { jobs: jobs.clone() }) {
            Some(Ok(_)) => {
                let jobs = needed(jobs, HEADS_MAX * HEADS_MAX, |jobs| {
                    trial.starts(&Change::Without { jobs: jobs.to_vec() }).is_some()
                });
                return trial.verified(Change::Without { jobs }).into_iter().collect();
            }
            Some(Err(next)) => reason = next,
            None => break,
        }
    }
    Vec::new()
}

fn head(reason: WaitReason) -> Option<JobId> {
    match reason {
        WaitReason::BehindHead { head } | WaitReason::WouldDelay { head, .. } => Some(head),
        _ => None,
    }
}
