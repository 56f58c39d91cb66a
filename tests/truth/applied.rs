//! What a change changes, written from what its sentence says and not from what the search for changes tries.

use osprey_model::id::JobId;
use osprey_scheduler::change::{Change, Unit};
use osprey_scheduler::rules::Headroom;
use osprey_scheduler::snapshot::{Gate, Node, Queued, Running};
use osprey_scheduler::{Rules, Snapshot};

use crate::case::Case;
use crate::richer::reserve_of;

const DAY_MS: i64 = 86_400_000;
const HOUR_MS: u64 = 3_600_000;

/// The pool and the rules after a change, and nothing but it.
pub fn applied(change: &Change, case: &Case) -> (Snapshot, Rules) {
    let (mut snapshot, mut rules) = (case.moment.snapshot.clone(), case.moment.rules.clone());
    let at = snapshot.queued.iter().position(|queued| queued.job == case.job);
    match change {
        // Asked of another pool, which a single one can't show.
        Change::Pool { .. } => {}
        Change::Quota { unit, to, .. } => quota(*unit, *to, case, &mut snapshot, &mut rules),
        Change::Headroom { to, .. } => rules.headroom = Headroom::Gpus(*to),
        Change::Reserve { reserve, to, .. } => {
            let reserve = rules.quota.reserves.get_mut(usize::from(*reserve));
            reserve.into_iter().for_each(|reserve| match reserve.gpus {
                Some(_) => reserve.gpus = Some(*to),
                None => reserve.share_percent = *to,
            });
        }
        Change::Ends { jobs, .. } => jobs.iter().for_each(|job| end(*job, case, &mut snapshot, &rules)),
        Change::Without { jobs } => snapshot.queued.retain(|queued| !jobs.contains(&queued.job)),
        Change::Resume | Change::Capacity => snapshot.gate = Gate::Open,
        Change::ResumeTier => snapshot.drained.retain(|tier| *tier != case.queued().tier),
        Change::ForeignEnds { node, .. } => foreign_ends(*node, &mut snapshot),
        Change::MoreNodes { from, to, each } => {
            for _ in *from..*to {
                snapshot.nodes.push(Node { vcpus: each.vcpus, ..Node::new(each.gpus) });
            }
        }
        Change::Gpus { .. }
        | Change::Children { .. }
        | Change::Vcpus { .. }
        | Change::ExpectedMs { .. }
        | Change::Priority { .. }
        | Change::Release { .. } => {
            let job = at.and_then(|at| snapshot.queued.get_mut(at));
            job.into_iter().for_each(|job| asked(change, case.moment.now_ms, job, &rules));
        }
    }
    (snapshot, rules)
}

/// What is different of the job itself.
fn asked(change: &Change, now_ms: i64, job: &mut Queued, rules: &Rules) {
    match change {
        Change::Gpus { to, .. } => job.shape = *to,
        Change::Children { to, .. } => job.array.iter_mut().for_each(|array| array.waiting = *to),
        Change::Vcpus { to, .. } => job.shape.vcpus = *to,
        Change::ExpectedMs { to, .. } => job.expected_ms = Some(*to),
        Change::Release { .. } => job.not_before_ms = now_ms,
        Change::Priority { to, .. } => {
            job.priority = *to;
            let tier = tier(*to, job.tier, rules);
            if tier != job.tier {
                (job.tier, job.charge.reserve) = (tier, reserve_of(tier, rules));
            }
        }
        _ => {}
    }
}

/// The tier with the greatest threshold that a number reaches; what is preemptible stays so.
fn tier(number: u32, own: u16, rules: &Rules) -> u16 {
    if rules.tiers.get(usize::from(own)).is_some_and(|tier| tier.at_least.is_none()) {
        return own;
    }
    let reached = (0_u16..).zip(&rules.tiers).filter_map(|(place, tier)| Some((tier.at_least?, place)));
    reached
        .filter(|(at_least, _)| *at_least <= number)
        .max_by_key(|(at_least, _)| *at_least)
        .map_or(own, |(_, tier)| tier)
}

fn quota(unit: Unit, to: u64, case: &Case, snapshot: &mut Snapshot, rules: &mut Rules) {
    let job = case.queued();
    let team = job.charge.team.and_then(|team| snapshot.teams.get_mut(usize::from(team)));
    let number = u32::try_from(to).unwrap_or(u32::MAX);
    match unit {
        Unit::UserPercent => {
            let reserve = job.charge.reserve.and_then(|reserve| rules.quota.reserves.get_mut(usize::from(reserve)));
            reserve.into_iter().for_each(|reserve| reserve.user_percent = Some(number));
        }
        Unit::TeamGpus => {
            if let (Some(team), Some(tier)) = (team, rules.tiers.get(usize::from(job.tier))) {
                team.gpus_max.insert(tier.name.clone(), number);
            }
        }
        Unit::GpuHoursDay => team.into_iter().for_each(|team| team.day.limit_gpu_ms = Some(to * HOUR_MS)),
        Unit::GpuHoursWeek => team.into_iter().for_each(|team| team.week.limit_gpu_ms = Some(to * HOUR_MS)),
    }
}

/// A job has ended: what it holds is free, its team doesn't hold it any more, and what it was to use yet isn't promised.
pub fn end(job: JobId, case: &Case, snapshot: &mut Snapshot, rules: &Rules) {
    let ended: Vec<Running> = snapshot.running.iter().filter(|running| running.job == job).cloned().collect();
    snapshot.running.retain(|running| running.job != job);
    let now_ms = case.moment.now_ms;
    for running in ended {
        let Some(team) = running.charge.team.and_then(|team| snapshot.teams.get_mut(usize::from(team))) else {
            continue;
        };
        let gpus = running.shape.all_gpus() * running.children.max(1);
        let held = rules.tiers.get(usize::from(running.tier)).and_then(|tier| team.gpus.get_mut(&tier.name));
        held.into_iter().for_each(|held| *held = held.saturating_sub(gpus));
        let ends_ms = running.expected_end_ms.unwrap_or(running.started_ms.saturating_add_unsigned(rules.unknown_ms));
        let left_ms = ends_ms.saturating_sub(now_ms).max(0);
        let day_ms = left_ms.min(DAY_MS - now_ms.rem_euclid(DAY_MS));
        let week_ms = left_ms.min(7 * DAY_MS);
        for (budget, ms) in [(&mut team.day, day_ms), (&mut team.week, week_ms)] {
            budget.promised_gpu_ms = budget.promised_gpu_ms.saturating_sub(ms.unsigned_abs() * u64::from(gpus));
        }
    }
}

fn foreign_ends(node: Option<u32>, snapshot: &mut Snapshot) {
    for (number, known) in (0_u32..).zip(&mut snapshot.nodes) {
        if node.is_none() || node == Some(number) {
            (known.foreign_gpus, known.foreign_vcpus) = (0, 0);
        }
    }
}
