//! Ways of walking down the queue.

pub(crate) mod backfill;
pub(crate) mod osprey;
pub(crate) mod strict;

use crate::decide::Cycle;
use crate::reason::WaitReason;
use crate::snapshot::Queued;

/// Starts a job; of an array whose children start one by one, as many as fit. Says why the job, or the rest of it, waits.
fn start_all(cycle: &mut Cycle<'_>, job: &Queued, headroom: u32) -> Result<(), WaitReason> {
    match job.array {
        Some(array) if array.singly => {
            (0..array.waiting.max(1)).try_for_each(|child| cycle.start(job, Some(child), headroom))
        }
        _ => cycle.start(job, None, headroom),
    }
}
