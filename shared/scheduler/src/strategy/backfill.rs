//! EASY: the first job that doesn't fit has a reservation, and what can't delay it may start before it.

use osprey_model::id::JobId;

use crate::decide::Cycle;
use crate::plan::Reservation;
use crate::reason::WaitReason;
use crate::room::Room;
use crate::snapshot::{Hold, Queued};

/// The head's reservation while the rest of the queue is looked at.
struct Kept<'s> {
    head: JobId,
    at_ms: i64,
    /// What is free at that time, without what the head takes.
    spare: Room<'s>,
}

/// Starts jobs in order; behind the first that doesn't fit, those that can't delay it.
pub(crate) fn walk<'s>(cycle: &mut Cycle<'s>, queue: &[&'s Queued]) {
    let mut kept: Option<Kept<'s>> = None;
    for job in queue {
        if let Some(reason) = cycle.ineligible(job) {
            cycle.wait(job.job, reason);
            continue;
        }
        match &mut kept {
            None if cycle.start(job) => {}
            None => {
                cycle.wait(job.job, cycle.no_room(job));
                kept = Some(reserve(cycle, job));
            }
            Some(kept) => behind(cycle, kept, job),
        }
    }
}

/// Keeps GPUs for a job from the earliest time on at which enough is expected to have ended.
fn reserve<'s>(cycle: &mut Cycle<'s>, head: &Queued) -> Kept<'s> {
    let mut spare = cycle.room.clone();
    let (mut at_ms, mut found) = (i64::MAX, None);
    for (end_ms, held) in ends(cycle) {
        // Everything that ends at that time counts, not only what makes the head fit.
        if found.is_some() && end_ms > at_ms {
            break;
        }
        spare.give(held);
        at_ms = end_ms;
        found = spare.place(head.gpus);
    }
    // INVARIANT: the empty pool could hold the head, so something was found.
    let holds: Vec<Hold> = found.map_or_else(Vec::new, Vec::from);
    spare.take(&holds);
    cycle.plan.reservations.push(Reservation { job: head.job, at_ms, holds });
    Kept { head: head.job, at_ms, spare }
}

/// When what runs, and what this cycle started, is expected to end; the earliest first.
fn ends<'c>(cycle: &'c Cycle<'_>) -> Vec<(i64, &'c [Hold])> {
    let running = &cycle.snapshot.running;
    // An overdue job may end at any moment, which is later than now.
    let running = running.iter().map(|job| (job.expected_end_ms.max(cycle.now_ms + 1), job.holds.as_slice()));
    let started = cycle.started.iter().zip(&cycle.plan.starts);
    let started = started.map(|(job, start)| (end_of(cycle.now_ms, job), start.holds.as_slice()));
    let mut ends: Vec<(i64, &[Hold])> = running.chain(started).collect();
    ends.sort_unstable_by_key(|(end_ms, _)| *end_ms);
    ends
}

/// When a job that starts now is expected to end: later than now, however short it is.
fn end_of(now_ms: i64, job: &Queued) -> i64 {
    now_ms.saturating_add_unsigned(job.expected_ms.max(1))
}

/// Starts a job behind the head if it fits and can't delay it.
fn behind<'s>(cycle: &mut Cycle<'s>, kept: &mut Kept<'s>, job: &'s Queued) {
    let Some(place) = cycle.room.place(job.gpus) else {
        return cycle.wait(job.job, cycle.no_room(job));
    };
    let ends_at_ms = end_of(cycle.now_ms, job);
    if ends_at_ms > kept.at_ms {
        if !kept.spare.has(place.holds()) {
            let reason = WaitReason::WouldDelay { head: kept.head, reserved_at_ms: kept.at_ms, ends_at_ms };
            return cycle.wait(job.job, reason);
        }
        kept.spare.take(place.holds());
    }
    cycle.start_at(job, place);
}
