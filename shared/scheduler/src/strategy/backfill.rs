//! Step 8, backfill: a job that doesn't fit has a reservation, and what can't delay it may start before it (EASY).

use crate::decide::Cycle;
use crate::eligible::Eligible;
use crate::preempt;
use crate::priority::Standing;
use crate::reason::WaitReason;
use crate::snapshot::Queued;

/// Starts what fits in order. Every urgent job that doesn't fit reserves its earliest place; of the others the first one
/// does, unless something is reserved already.
pub(crate) fn walk(cycle: &mut Cycle<'_>, queue: &[&Queued]) {
    let mut eligible = Eligible::new(cycle.snapshot, cycle.now_ms);
    let mut borrowers = Vec::new();
    for job in queue {
        if let Some(reason) = eligible.refuses(job) {
            cycle.wait(job, reason);
            continue;
        }
        let standing = Standing::of(job, cycle.rules, cycle.now_ms);
        let headroom = cycle.headroom(job, standing);
        for (place, part) in super::parts(job).enumerate() {
            // Of an array that goes on beyond its quota, the children that would come last.
            if cycle.borrows(job) {
                borrowers.push((*job, place));
                break;
            }
            let started = cycle.start(job, part, headroom);
            if let Err(reason) = started.or_else(|reason| preempt::instead(cycle, job, part, standing, reason)) {
                let reason = blocked(cycle, job, standing, reason);
                cycle.wait(job, reason);
                break;
            }
        }
    }
    borrowers.into_iter().for_each(|(job, place)| borrow(cycle, job, place));
}

/// Starts a job of a team that is over its quota, from a child of an array on, if nobody else wants the GPUs. Nothing is kept for
/// it, and nobody goes for it.
fn borrow(cycle: &mut Cycle<'_>, job: &Queued, place: usize) {
    let standing = Standing::of(job, cycle.rules, cycle.now_ms);
    let headroom = cycle.headroom(job, standing);
    if let Err(reason) = super::parts(job).skip(place).try_for_each(|part| cycle.start(job, part, headroom)) {
        cycle.wait(job, reason);
    }
}

/// Reserves for a job that doesn't fit, if it is its turn, and says why it waits.
fn blocked(cycle: &mut Cycle<'_>, job: &Queued, standing: Standing, reason: WaitReason) -> WaitReason {
    let may_reserve = if standing.is_urgent { !cycle.kept.is_full() } else { cycle.kept.is_empty() };
    if !may_reserve || reason.holds_up_nobody() || cycle.reserve(job) {
        return reason;
    }
    // What doesn't fit once everything of ours has ended waits for work that isn't ours, if it fits without that.
    let nodes = &cycle.snapshot.nodes;
    let foreign = nodes.iter().fold(0_u32, |sum, node| sum.saturating_add(node.foreign_gpus));
    let is_there = foreign > 0 || nodes.iter().any(|node| node.foreign_vcpus > 0);
    if is_there && cycle.fits_without_foreign(job) {
        return WaitReason::ForeignWork { gpus: job.all_gpus(), foreign };
    }
    reason
}
