//! Whether the named reason is the binding one.
//!
//! Several things may stand in a job's way at once. The reason that is named has to be one whose removal is *necessary*, and of
//! those the first in the order of `docs/REASONS.md`. Of the job at its turn (`turn`) it is asked:
//!
//! 1. *It is so.* What the reason says is counted from the snapshot, not asked of the decision: the first thing that the job lacks
//!    (`facts`) is what is named, with the same numbers.
//! 2. *It stands.* A decision about the pool as it is then says the same. (A head that waits for what is reserved may be kept a place
//!    earlier then, when jobs of the reserve have started behind it.)
//! 3. *It is necessary.* With everything else taken away that isn't room (`lift::all_but`: people, limits, what is kept, other
//!    jobs, dispatches in flight) the job doesn't start as long as what is named is there.
//! 4. *It binds.* With exactly what is named taken away (`lift::only`) the job starts, or waits for something that comes later in
//!    the order, or for the next of the same kind: another job that is before it, another limit of its quota.
//!
//! Some things are narrower than they look. Where capacity can't be had, `NoCapacity` stands in place of whatever of `NoRoom`,
//! `NoVcpus` and `Scattered` it would be, and comes where that does; so does `ForeignWork`. Of the reasons that come after `WouldDelay` it is taken that
//! what is kept for others is kept: without those the job might find another place. `ForeignWork` is said only of a job whose turn it would be to be kept a place; of
//! others behind it, which lack GPUs as well, `NoRoom` is as true. `WouldDelay` is about the *place* that is kept: that the
//! other job might be kept another one at the same time is no matter, since a cycle decides about it before. And
//! `Headroom`, `Reserved` and quotas are asked of what is free in all, so they are named also where no node would have room.

use osprey_policy::share::Limit;
use osprey_scheduler::plan::Reservation;
use osprey_scheduler::snapshot::{Landing, Node, NodeState, Running, UNCOUNTED};
use osprey_scheduler::{Strategy, WaitReason, decide};

use crate::case::{Case, outcome};
use crate::facts::Facts;
use crate::lift;
use crate::turn::{Turn, turns};

/// What is wrong about the reason of a job.
///
/// # Errors
/// With the first of the questions that isn't answered as it should be.
pub fn untrue(case: &Case) -> Result<(), String> {
    let mut first = None;
    for turn in turns(case) {
        match at_turn(case, &turn) {
            Ok(()) => return Ok(()),
            Err(fault) => first = first.or(Some(fault)),
        }
    }
    Err(first.unwrap_or_default())
}

fn at_turn(case: &Case, turn: &Turn) -> Result<(), String> {
    let facts = Facts::of(turn).ok_or("the job isn't in line")?;
    is_so(case, turn, &facts)?;
    let again = decided(turn);
    if !stands(case, turn, again) {
        return Err(format!("at its turn the decision says {again:?}"));
    }
    let without = lift::all_but(&case.reason, turn);
    if decided(&without).is_ok() {
        return Err("it isn't necessary: the job starts without everything else".to_owned());
    }
    let next = decided(&lift::only(&case.reason, turn, &facts));
    match next {
        Ok(()) => Ok(()),
        Err(Some(next)) if comes_after(&case.reason, &next) => Ok(()),
        Err(next) => Err(format!("it doesn't bind: without it the job waits for {next:?}")),
    }
}

/// Whether a decision says the same at the job's turn. What is kept for others is no matter of room and limits: where what starts
/// after them would let those start, the job is asked about alone.
fn stands(case: &Case, turn: &Turn, again: Result<(), Option<WaitReason>>) -> bool {
    let is_same = |again| match (case.reason, again) {
        (
            WaitReason::WouldDelay { head, reserved_at_ms, ends_at_ms },
            Err(Some(WaitReason::WouldDelay { head: now, reserved_at_ms: at_ms, ends_at_ms: ends_ms })),
        ) => head == now && ends_at_ms == ends_ms && at_ms <= reserved_at_ms,
        (reason, again) => again == Err(Some(reason)),
    };
    let is_of_itself = rank(&case.reason) <= rank(&WaitReason::Scattered { gpus: 0, free: 0 });
    is_same(again) || is_of_itself && is_same(decided(&lift::alone(turn)))
}

fn decided(turn: &Turn) -> Result<(), Option<WaitReason>> {
    outcome(&decide(&turn.snapshot, &turn.rules, turn.now_ms), turn.job).map(|_| ())
}

/// The order of `docs/REASONS.md`.
fn rank(reason: &WaitReason) -> u32 {
    match reason {
        WaitReason::PoolPaused => 0,
        WaitReason::TierPaused => 1,
        WaitReason::NoNodes => 2,
        WaitReason::NotYet { .. } => 3,
        WaitReason::LargerThanPool { .. } => 4,
        WaitReason::NoSuchNode { .. } => 5,
        WaitReason::BehindHead { .. } => 6,
        WaitReason::OverQuota { limit, .. } => match limit {
            Limit::TeamGpus => 7,
            Limit::UserGpus => 8,
            Limit::GpuHoursDay => 9,
            Limit::GpuHoursWeek => 10,
        },
        WaitReason::NoCapacity { .. } => 11,
        WaitReason::ForeignWork { .. } => 12,
        WaitReason::NoRoom { .. } => 13,
        WaitReason::Reserved { .. } => 14,
        WaitReason::Headroom { .. } => 15,
        WaitReason::NoVcpus { .. } => 16,
        WaitReason::Scattered { .. } => 17,
        WaitReason::WouldDelay { .. } => 18,
        WaitReason::InFlight { .. } => 19,
        WaitReason::HeadroomNodes { .. } => 20,
        WaitReason::AlreadyRuns => 21,
    }
}

fn comes_after(reason: &WaitReason, next: &WaitReason) -> bool {
    let is_of_room = rank(reason) < rank(&WaitReason::Scattered { gpus: 0, free: 0 });
    let is_any_room = matches!(next, WaitReason::NoCapacity { .. } | WaitReason::ForeignWork { .. });
    rank(next) > rank(reason) || is_of_room && is_any_room
}

/// Whether what the reason says can be counted from the pool.
fn is_so(case: &Case, turn: &Turn, facts: &Facts<'_>) -> Result<(), String> {
    let (lacks, reason) = (facts.lacks(), case.reason);
    let is = match reason {
        WaitReason::BehindHead { .. } => return is_behind(case, turn),
        WaitReason::WouldDelay { .. } if lacks.is_none() => return would_delay(case, turn, facts),
        WaitReason::InFlight { dispatches } => {
            let flying = turn.snapshot.running.iter().filter(|running| !running.has_landed);
            let flying: u32 = flying.map(|running| running.children.max(1)).sum();
            lacks.is_none() && turn.snapshot.landing == Landing::Anywhere && dispatches == flying
        }
        WaitReason::HeadroomNodes { nodes, empty, kept } => lacks.is_none() && empty < kept + nodes,
        WaitReason::ForeignWork { .. } => return foreign(turn, facts),
        reason => lacks == Some(reason),
    };
    if is { Ok(()) } else { Err(format!("it isn't so: what it lacks first is {lacks:?}")) }
}

/// A head is the first in line that waits and isn't one of those that hold up nobody.
fn is_behind(case: &Case, turn: &Turn) -> Result<(), String> {
    let WaitReason::BehindHead { head } = case.reason else { return Ok(()) };
    if matches!(turn.rules.strategy, Strategy::Backfill | Strategy::Osprey) {
        return Err("nobody is held up by a head in this order".to_owned());
    }
    let before = case.plan.waiting.iter().take_while(|waiting| waiting.job != case.job);
    let holds_up = |reason: &WaitReason| match reason {
        WaitReason::Reserved { gpus, open, .. } => gpus <= open,
        reason => rank(reason) > 10 && !matches!(reason, WaitReason::ForeignWork { .. } | WaitReason::AlreadyRuns),
    };
    let first = before.into_iter().find(|waiting| holds_up(&waiting.reason)).map(|waiting| waiting.job);
    if first == Some(head) { Ok(()) } else { Err(format!("the first in line that doesn't fit is {first:?}")) }
}

/// Work of others keeps the job out for good: it fits when that has gone, and not when only ours has.
fn foreign(turn: &Turn, facts: &Facts<'_>) -> Result<(), String> {
    let mut without = turn.clone();
    without.snapshot.running.clear();
    let ours = Facts::of(&without).is_some_and(|facts| facts.fits() && facts.gpus() <= turn.snapshot.gpus());
    without.snapshot.nodes.iter_mut().for_each(|node| (node.foreign_gpus, node.foreign_vcpus) = (0, 0));
    let all = Facts::of(&without).is_some_and(|facts| facts.fits());
    let (kept, _) = facts.reserved();
    match (ours && kept == 0, all) {
        (true, _) => Err("it fits once all of ours has ended".to_owned()),
        (false, false) => Err("it doesn't fit without others' work either".to_owned()),
        (false, true) => Ok(()),
    }
}

/// GPUs are kept for the head at that time, and wherever the job has room now it is in the way of what is kept.
fn would_delay(case: &Case, turn: &Turn, facts: &Facts<'_>) -> Result<(), String> {
    let WaitReason::WouldDelay { head, reserved_at_ms, ends_at_ms } = case.reason else { return Ok(()) };
    let Some(job) = turn.queued() else { return Ok(()) };
    let ends_ms = |begins_ms: i64| job.expected_ms.map(|run_ms| begins_ms.saturating_add_unsigned(run_ms.max(1)));
    if ends_at_ms.is_some_and(|ends_at_ms| ends_at_ms <= reserved_at_ms) {
        return Err("it ends before the head is to start".to_owned());
    }
    if !begins(turn).any(|begins_ms| ends_ms(begins_ms) == ends_at_ms) {
        return Err(format!("it would end at {:?}", ends_ms(turn.now_ms)));
    }
    let kept = case.plan.reservations.iter().find(|kept| kept.job == head);
    if kept.map(|kept| kept.at_ms) != Some(reserved_at_ms) {
        return Err(format!("what is kept for the head is {kept:?}"));
    }
    let plain = turn.snapshot.landing == Landing::AsPlanned && turn.rules.quota.reserves.is_empty();
    if !plain || facts.takes_whole() || facts.count() > 1 {
        return Ok(());
    }
    let stays = turn.snapshot.queued.iter().filter(|queued| queued.job != turn.job).map(|queued| queued.job);
    let stays: Vec<_> = stays.collect();
    let kept: Vec<&Reservation> = case.plan.reservations.iter().filter(|kept| stays.contains(&kept.job)).collect();
    let shape = job.shape;
    let nodes = (0_u32..).zip(&facts.free).filter(|(_, free)| free.gpus >= shape.gpus && free.vcpus >= shape.vcpus);
    for (node, _) in nodes {
        if !is_in_the_way(turn, &kept, node) {
            return Err(format!("on node {node} it is in nobody's way"));
        }
    }
    Ok(())
}

/// When a job may begin that starts now: when its node is ready.
fn begins(turn: &Turn) -> impl Iterator<Item = i64> {
    turn.snapshot.nodes.iter().map(|node| ready_ms(turn, node))
}

fn ready_ms(turn: &Turn, node: &Node) -> i64 {
    match node.state {
        NodeState::Starting { ready_ms } => ready_ms.max(turn.now_ms),
        NodeState::Absent { start_up_ms } => turn.now_ms.saturating_add_unsigned(start_up_ms),
        NodeState::Up | NodeState::Closed => turn.now_ms,
    }
}

/// Whether the job on a node, until it ends, leaves too little of it for what is kept there.
fn is_in_the_way(turn: &Turn, kept: &[&Reservation], node: u32) -> bool {
    let Some(job) = turn.queued() else { return false };
    let Some(known) = usize::try_from(node).ok().and_then(|node| turn.snapshot.nodes.get(node)) else { return false };
    let begins_ms = ready_ms(turn, known);
    let ends_ms = job.expected_ms.map_or(i64::MAX, |run_ms| begins_ms.saturating_add_unsigned(run_ms.max(1)));
    let here = |kept: &Reservation| kept.holds.iter().any(|hold| hold.node == node);
    kept.iter().filter(|kept| here(kept) && kept.at_ms < ends_ms).any(|kept_then| {
        let (gpus, vcpus) = left(turn, kept, node, kept_then.at_ms);
        let counted = known.vcpus != UNCOUNTED;
        gpus < i64::from(job.shape.gpus) || counted && vcpus < i64::from(job.shape.vcpus)
    })
}

/// What a node has left at a time beside what runs then and what is kept then.
fn left(turn: &Turn, kept: &[&Reservation], node: u32, at_ms: i64) -> (i64, i64) {
    let Some(known) = usize::try_from(node).ok().and_then(|node| turn.snapshot.nodes.get(node)) else { return (0, 0) };
    let unknown_ms = turn.rules.unknown_ms;
    let end_ms = |running: &Running| {
        let end_ms = running.expected_end_ms.unwrap_or(running.started_ms.saturating_add_unsigned(unknown_ms));
        end_ms.max(turn.now_ms + 1)
    };
    let run_ms = |kept: &Reservation| {
        let queued = turn.snapshot.queued.iter().find(|queued| queued.job == kept.job);
        queued.and_then(|queued| queued.expected_ms).unwrap_or(unknown_ms).max(1)
    };
    let runs =
        turn.snapshot.running.iter().filter(|running| end_ms(running) > at_ms).flat_map(|running| &running.holds);
    let kept =
        kept.iter().filter(|kept| kept.at_ms <= at_ms && at_ms < kept.at_ms.saturating_add_unsigned(run_ms(kept)));
    let holds = runs.chain(kept.flat_map(|kept| &kept.holds)).filter(|hold| hold.node == node);
    let has = |amount: u32, foreign: u32| i64::from(amount) - i64::from(foreign);
    let all = (has(known.gpus, known.foreign_gpus), has(known.vcpus, known.foreign_vcpus));
    holds.fold(all, |sum, hold| (sum.0 - i64::from(hold.gpus), sum.1 - i64::from(hold.vcpus)))
}
