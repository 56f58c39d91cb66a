//! Step 8, strict order: nobody passes a job that doesn't fit.

use crate::decide::Cycle;
use crate::eligible::Eligible;
use crate::reason::WaitReason;
use crate::snapshot::Queued;

/// Starts jobs in order until one doesn't fit.
pub(crate) fn walk(cycle: &mut Cycle<'_>, queue: &[&Queued]) {
    let mut eligible = Eligible::new(cycle.snapshot, cycle.now_ms);
    let mut head = None;
    for job in queue {
        if let Some(reason) = eligible.refuses(job) {
            cycle.wait(job, reason);
        } else if let Some(head) = head {
            cycle.wait(job, WaitReason::BehindHead { head });
        } else if let Err(reason) = super::start_all(cycle, job, 0) {
            head = (!reason.holds_up_nobody()).then_some(job.job);
            cycle.wait(job, reason);
        }
    }
}
