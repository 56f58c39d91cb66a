//! Ways of walking down the queue.

pub(crate) mod backfill;
pub(crate) mod osprey;
pub(crate) mod strict;

use crate::decide::Cycle;
use crate::reason::WaitReason;
use crate::snapshot::Queued;

/// Starts a job; of an array whose children start one by one, as many as fit. Says why the job, or the rest of it, waits.
fn start_all(cycle: &mut Cycle<'_>, job: &Queued, headroom: u32) -> Result<(), WaitReason> {
    parts(job).try_for_each(|part| cycle.start(job, part, headroom))
}

/// What of a job is started at once: the children of an array one by one, or the job itself.
fn parts(job: &Queued) -> impl Iterator<Item = Option<u32>> {
    let children = job.array.filter(|array| array.singly).map(|array| array.waiting.max(1));
    (0..children.unwrap_or(1)).map(move |child| children.map(|_| child))
}
