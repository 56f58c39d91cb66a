//! What a change changes of a snapshot and of the rules.

use std::collections::BTreeSet;

use osprey_model::id::JobId;
use osprey_policy::share::{DAY_MS, WEEK_DAYS, midnight};

use super::{Change, Question, quota};
use crate::rules::{Headroom, Reserve, Rules};
use crate::snapshot::{Array, Gate, Node, Queued, Running, Shape, Snapshot};

/// Changes a snapshot and the rules as if it were so.
pub(super) fn apply(change: &Change, question: &Question<'_>, snapshot: &mut Snapshot, rules: &mut Rules) {
    match change {
        Change::Gpus { to, .. } => job(question, snapshot, |job| job.shape = *to),
        Change::Children { to, .. } => {
            job(question, snapshot, |job| job.array = job.array.map(|array| Array { waiting: *to, ..array }));
        }
        Change::Vcpus { to, .. } => job(question, snapshot, |job| job.shape.vcpus = *to),
        Change::ExpectedMs { to, .. } => job(question, snapshot, |job| job.expected_ms = Some(*to)),
        Change::Priority { to, .. } => job(question, snapshot, |job| {
            job.priority = *to;
            let tier = tier(*to, job.tier, rules);
            if tier != job.tier {
                (job.tier, job.charge.reserve) = (tier, reserve(tier, job.charge.reserve, rules));
            }
        }),
        // What another pool does is asked of that pool.
        Change::Pool { .. } => {}
        Change::Quota { unit, to, .. } => quota::raise(*unit, *to, question, snapshot, rules),
        Change::Headroom { to, .. } => rules.headroom = Headroom::Gpus(*to),
        Change::Reserve { reserve, to, .. } => {
            if let Some(reserve) = rules.quota.reserves.get_mut(usize::from(*reserve)) {
                match &mut reserve.gpus {
                    Some(gpus) => *gpus = *to,
                    None => reserve.share_percent = *to,
                }
            }
        }
        Change::Ends { jobs, .. } => end(jobs, question, snapshot, rules),
        Change::Without { jobs } => snapshot.queued.retain(|queued| !jobs.contains(&queued.job)),
        Change::Resume | Change::Capacity => snapshot.gate = Gate::Open,
        Change::ResumeTier => {
            let own = snapshot.queued.iter().find(|queued| queued.job == question.job).map(|queued| queued.tier);
            snapshot.drained.retain(|tier| Some(*tier) != own);
        }
        Change::Release { .. } => job(question, snapshot, |job| job.not_before_ms = question.now_ms),
        Change::ForeignEnds { node, .. } => foreign_ends(*node, snapshot),
        Change::MoreNodes { from, to, each } => {
            let Shape { gpus, vcpus, .. } = *each;
            snapshot.nodes.extend((*from..*to).map(|_| Node { vcpus, ..Node::new(gpus) }));
        }
    }
}

fn job(question: &Question<'_>, snapshot: &mut Snapshot, change: impl FnOnce(&mut Queued)) {
    if let Some(queued) = snapshot.queued.iter_mut().find(|queued| queued.job == question.job) {
        change(queued);
    }
}

/// The tier of a number, for a job of another one. What is preemptible stays so.
pub(super) fn tier(number: u32, own: u16, rules: &Rules) -> u16 {
    if rules.tiers.get(usize::from(own)).is_some_and(|tier| tier.at_least.is_none()) {
        return own;
    }
    let reached = (0_u16..).zip(&rules.tiers).find(|(_, tier)| tier.at_least.is_some_and(|least| number >= least));
    reached.map_or(own, |(place, _)| place)
}

/// The reserve that a job may take from once it is of another tier. One that is for no tier stays as it is, and one that is
/// for some kinds of work counts only where the job is of it already: else nobody knows here that it is of that kind.
fn reserve(tier: u16, own: Option<u16>, rules: &Rules) -> Option<u16> {
    let name = &rules.tiers.get(usize::from(tier))?.name;
    let mut reserves = (0_u16..).zip(&rules.quota.reserves);
    let is_for = |place: u16, reserve: &Reserve| {
        let is_own = own == Some(place);
        if reserve.tiers.is_empty() {
            is_own
        } else {
            reserve.tiers.contains(name) && (reserve.workloads.is_empty() || is_own)
        }
    };
    reserves.find(|(place, reserve)| is_for(*place, reserve)).map(|(place, _)| place)
}

/// Takes away running jobs, and what they hold of their teams' quotas.
fn end(jobs: &[JobId], question: &Question<'_>, snapshot: &mut Snapshot, rules: &Rules) {
    let jobs: BTreeSet<JobId> = jobs.iter().copied().collect();
    let (ended, running): (Vec<Running>, Vec<Running>) =
        std::mem::take(&mut snapshot.running).into_iter().partition(|running| jobs.contains(&running.job));
    snapshot.running = running;
    for running in ended {
        let Some(team) = running.charge.team.and_then(|team| snapshot.teams.get_mut(usize::from(team))) else {
            continue;
        };
        let gpus = running.shape.all_gpus().saturating_mul(running.children.max(1));
        let tier = rules.tiers.get(usize::from(running.tier)).map(|tier| &tier.name);
        if let Some(held) = tier.and_then(|tier| team.gpus.get_mut(tier)) {
            *held = held.saturating_sub(gpus);
        }
        let now_ms = question.now_ms;
        let end_ms = running.expected_end_ms.unwrap_or(running.started_ms.saturating_add_unsigned(rules.unknown_ms));
        let left_ms = u64::try_from(end_ms.saturating_sub(now_ms)).unwrap_or(0);
        let until_midnight_ms = (midnight(now_ms) + DAY_MS).saturating_sub(now_ms).unsigned_abs();
        let promised = |budget: &mut crate::snapshot::Budget, ms: u64| {
            budget.promised_gpu_ms = budget.promised_gpu_ms.saturating_sub(ms.saturating_mul(gpus.into()));
        };
        promised(&mut team.day, left_ms.min(until_midnight_ms));
        promised(&mut team.week, left_ms.min(WEEK_DAYS.unsigned_abs() * DAY_MS.unsigned_abs()));
    }
}

fn foreign_ends(node: Option<u32>, snapshot: &mut Snapshot) {
    for (number, known) in (0_u32..).zip(&mut snapshot.nodes) {
        if node.is_none_or(|node| node == number) {
            (known.foreign_gpus, known.foreign_vcpus) = (0, 0);
        }
    }
}
