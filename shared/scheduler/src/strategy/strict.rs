//! Strict order: nobody passes a job that doesn't fit.

use crate::decide::Cycle;
use crate::reason::WaitReason;
use crate::snapshot::Queued;

/// Starts jobs in order until one doesn't fit.
pub(crate) fn walk<'s>(cycle: &mut Cycle<'s>, queue: &[&'s Queued]) {
    let mut head = None;
    for job in queue {
        if let Some(reason) = cycle.ineligible(job) {
            cycle.wait(job.job, reason);
        } else if let Some(head) = head {
            cycle.wait(job.job, WaitReason::BehindHead { head });
        } else if !cycle.start(job) {
            head = Some(job.job);
            cycle.wait(job.job, cycle.no_room(job));
        }
    }
}
