//! What takes away one obstacle of a job, and nothing else.

use osprey_policy::share::{Limit, TeamUse};
use osprey_scheduler::WaitReason;
use osprey_scheduler::rules::Headroom;
use osprey_scheduler::snapshot::{Gate, Landing, Node, UNCOUNTED};

use crate::facts::Facts;
use crate::turn::Turn;

/// Everything that stands in a job's way and isn't room: people, rules, other jobs in line, dispatches in flight. With the
/// obstacle of the reason itself left where it is, the job must not start.
///
/// Where the obstacle is another job, or is left over by what is kept for others, what stands in *their* way stays: only quotas are
/// lifted, since whoever is over one holds up nobody. Whoever borrows goes on to: that it comes after all others is its turn.
pub fn all_but(reason: &WaitReason, turn: &Turn) -> Turn {
    let mut turn = turn.clone();
    if is_of_others(reason) {
        let is_lifted = |limit: &Limit| !limit.is_of_time() || !turn.rules.quota.borrowing;
        let limits: Vec<Limit> = Limit::ALL.into_iter().filter(is_lifted).collect();
        limits.into_iter().for_each(|limit| raise(limit, &mut turn));
        return turn;
    }
    let is = |code: &[&str]| code.contains(&reason.code());
    if !is(&["PoolPaused"]) && turn.snapshot.gate == Gate::Paused {
        turn.snapshot.gate = Gate::Open;
    }
    if !is(&["TierPaused"]) {
        turn.snapshot.drained.clear();
    }
    if !is(&["NotYet"]) {
        release(&mut turn);
    }
    for limit in Limit::ALL {
        if !matches!(reason, WaitReason::OverQuota { limit: own, .. } if *own == limit) {
            raise(limit, &mut turn);
        }
    }
    // Where others' work leaves too little, what is too little counts what is reserved.
    if !is(&["Reserved", "ForeignWork"]) {
        turn.rules.quota.reserves.iter_mut().for_each(|reserve| (reserve.share_percent, reserve.gpus) = (0, None));
    }
    if !is(&["Headroom"]) {
        turn.rules.headroom = Headroom::Gpus(0);
    }
    land(&mut turn);
    alone(&turn)
}

fn is_of_others(reason: &WaitReason) -> bool {
    use WaitReason::{BehindHead, HeadroomNodes, InFlight, WouldDelay};
    matches!(reason, BehindHead { .. } | WouldDelay { .. } | InFlight { .. } | HeadroomNodes { .. })
}

/// Nobody else is in line.
pub fn alone(turn: &Turn) -> Turn {
    let mut turn = turn.clone();
    let job = turn.job;
    turn.snapshot.queued.retain(|queued| queued.job == job);
    turn
}

/// Exactly what the reason names, and the jobs that something is kept for: they would be the first to take what is taken away,
/// and what is kept for them comes later in the order than nearly everything else.
pub fn only(reason: &WaitReason, turn: &Turn, facts: &Facts<'_>) -> Turn {
    let mut turn = alone(turn);
    match reason {
        WaitReason::PoolPaused | WaitReason::NoCapacity { .. } => turn.snapshot.gate = Gate::Open,
        WaitReason::TierPaused => turn.snapshot.drained.clear(),
        WaitReason::NotYet { until_ms } => turn.now_ms = *until_ms,
        WaitReason::NoNodes | WaitReason::LargerThanPool { .. } | WaitReason::NoSuchNode { .. } => {
            together(&mut turn, facts)
        }
        WaitReason::ForeignWork { .. } => {
            turn.snapshot.nodes.iter_mut().for_each(|node| (node.foreign_gpus, node.foreign_vcpus) = (0, 0));
        }
        WaitReason::AlreadyRuns => {
            let job = turn.job;
            turn.snapshot.running.retain(|running| running.job != job);
        }
        WaitReason::NoRoom { gpus, free } => {
            as_many_children(&mut turn, facts);
            turn.snapshot.nodes.push(Node::new(gpus - free));
        }
        WaitReason::Scattered { .. } => together(&mut turn, facts),
        WaitReason::NoVcpus { .. } => turn.snapshot.nodes.iter_mut().for_each(|node| node.vcpus = UNCOUNTED),
        WaitReason::Headroom { .. } | WaitReason::HeadroomNodes { .. } => turn.rules.headroom = Headroom::Gpus(0),
        WaitReason::Reserved { .. } => {
            let own = turn.queued().and_then(|job| job.charge.reserve);
            let others = (0_u16..).zip(&mut turn.rules.quota.reserves).filter(|(place, _)| own != Some(*place));
            others.for_each(|(_, reserve)| (reserve.share_percent, reserve.gpus) = (0, None));
        }
        WaitReason::OverQuota { limit, .. } => raise(*limit, &mut turn),
        // They have gone.
        WaitReason::BehindHead { .. } | WaitReason::WouldDelay { .. } => {}
        WaitReason::InFlight { .. } => land(&mut turn),
    }
    turn
}

fn release(turn: &mut Turn) {
    let now_ms = turn.now_ms;
    turn.queued_mut().into_iter().for_each(|job| job.not_before_ms = now_ms);
}

/// No such limit any more.
fn raise(limit: Limit, turn: &mut Turn) {
    let each = |change: fn(&mut TeamUse), turn: &mut Turn| turn.snapshot.teams.iter_mut().for_each(change);
    match limit {
        Limit::TeamGpus => each(|team| team.gpus_max.clear(), turn),
        Limit::GpuHoursDay => each(|team| team.day.limit_gpu_ms = None, turn),
        Limit::GpuHoursWeek => each(|team| team.week.limit_gpu_ms = None, turn),
        Limit::UserGpus => turn.rules.quota.reserves.iter_mut().for_each(|reserve| reserve.user_percent = None),
    }
}

/// Dispatches in flight have landed where they were planned, and so does the job.
fn land(turn: &mut Turn) {
    turn.snapshot.landing = Landing::AsPlanned;
    turn.snapshot.running.iter_mut().for_each(|running| running.has_landed = true);
}

/// An array that starts as one asks for no more children in a larger pool.
fn as_many_children(turn: &mut Turn, facts: &Facts<'_>) {
    let count = facts.count();
    let array = turn.queued_mut().and_then(|job| job.array.as_mut()).filter(|array| !array.singly);
    array.into_iter().for_each(|array| array.waiting = count);
}

/// As many free nodes more as the job needs, each as large as the largest or as it needs.
fn together(turn: &mut Turn, facts: &Facts<'_>) {
    as_many_children(turn, facts);
    let largest = turn.snapshot.nodes.iter().map(|node| node.gpus).max().unwrap_or(0);
    let Some(job) = turn.queued().copied() else { return };
    let each = if job.shape.nodes > 1 { largest.max(job.shape.gpus) } else { job.shape.gpus };
    let count = if job.shape.nodes > 1 { job.shape.nodes } else { facts.count() };
    turn.snapshot.nodes.extend((0..count).map(|_| Node::new(each)));
}
