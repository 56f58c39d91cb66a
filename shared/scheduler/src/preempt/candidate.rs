//! Who may be evicted, and what it costs.

use std::collections::BTreeMap;

use osprey_model::id::JobId;

use super::receipt::{Opened, Receipt};
use crate::quota::is_loan;
use crate::rules::{NEAR_DONE_PERCENT_MAX, PreemptionRules, Rules, Victims};
use crate::snapshot::{Running, Snapshot};

/// A job that may be evicted: all of its runs, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub job: JobId,
    pub tier: u16,
    /// The team that has borrowed what it holds; `None` for one that is no loan.
    pub loan_of: Option<u16>,
    /// Its runs, by their places in the snapshot: one, or the children of an array.
    pub runs: Vec<usize>,
    /// Work that no checkpoint holds, in GPU-milliseconds.
    pub lost_gpu_ms: u64,
    /// What of its work is kept, in milliseconds.
    pub kept_ms: u64,
    /// What its eviction counts, the least first: what it costs in GPU-milliseconds (work that is lost, its restart, and what
    /// the policy says besides), or less for each millisecond that it would go on.
    pub cost: u64,
}

/// What an eviction counts where the run that is left decides: far more than any run, so that fewer victims always count
/// less, and little enough to be added up.
const LONGEST_LEFT_MS: u64 = 1 << 48;

impl Candidate {
    /// GPUs that its runs hold, of all nodes.
    pub fn gpus(&self, snapshot: &Snapshot) -> u64 {
        let runs = self.runs.iter().filter_map(|run| snapshot.running.get(*run));
        runs.flat_map(|running| &running.holds).map(|hold| u64::from(hold.gpus)).sum()
    }

    pub fn receipt(&self, evicted_for: JobId, opened: Opened) -> Receipt {
        let Self { job, tier, lost_gpu_ms, kept_ms, .. } = *self;
        Receipt { job, tier, evicted_for, opened, lost_gpu_ms, kept_ms }
    }
}

/// Why a run isn't evicted, whoever asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spared {
    /// It isn't known to run.
    NotLanded,
    /// It leaves already.
    Leaves,
    /// It has run for less than its tier's minimum.
    MinimumRun,
    /// It is nearly done.
    NearDone,
    /// It has been evicted as often as its tier allows.
    EvictedEnough,
}

/// Everybody who may be evicted, by job.
pub(super) fn candidates(snapshot: &Snapshot, rules: &Rules, now_ms: i64) -> Vec<Candidate> {
    let mut jobs: BTreeMap<JobId, Vec<usize>> = BTreeMap::new();
    for (place, running) in snapshot.running.iter().enumerate() {
        jobs.entry(running.job).or_default().push(place);
    }
    jobs.into_iter().filter_map(|(job, runs)| candidate(job, runs, snapshot, rules, now_ms)).collect()
}

/// A job, unless one of its runs is spared.
fn candidate(job: JobId, runs: Vec<usize>, snapshot: &Snapshot, rules: &Rules, now_ms: i64) -> Option<Candidate> {
    let of = runs.first().and_then(|place| snapshot.running.get(*place))?;
    let loan_of = of.charge.team.filter(|_| is_loan(of, snapshot));
    let mut candidate =
        Candidate { job, tier: of.tier, loan_of, runs: Vec::new(), lost_gpu_ms: 0, kept_ms: u64::MAX, cost: 0 };
    let (mut cost_gpu_ms, mut left_ms) = (rules.preemption.eviction_gpu_ms, 0);
    for running in runs.iter().filter_map(|place| snapshot.running.get(*place)) {
        if spared(running, rules, now_ms).is_some() {
            return None;
        }
        let gpus = running.holds.iter().map(|hold| u64::from(hold.gpus)).sum::<u64>();
        let work = Work::of(running, &rules.preemption, now_ms);
        candidate.lost_gpu_ms = candidate.lost_gpu_ms.saturating_add(work.lost_ms.saturating_mul(gpus));
        let cost_ms = work.lost_ms.saturating_add(rules.preemption.restart_ms);
        cost_gpu_ms = cost_gpu_ms.saturating_add(cost_ms.saturating_mul(gpus));
        left_ms = left_ms.max(left_of(running, rules, now_ms));
        candidate.kept_ms = candidate.kept_ms.min(running.done_ms.saturating_add(work.worked_ms - work.lost_ms));
    }
    candidate.cost = match rules.preemption.victims {
        Victims::Cheapest => cost_gpu_ms,
        Victims::LongestLeft => LONGEST_LEFT_MS.saturating_sub(left_ms).max(1),
    };
    Some(Candidate { runs, ..candidate })
}

/// How long a run is expected to go on, in milliseconds; 0 for one that is overdue.
fn left_of(running: &Running, rules: &Rules, now_ms: i64) -> u64 {
    let usual_ms = running.started_ms.saturating_add_unsigned(rules.unknown_ms);
    u64::try_from(running.expected_end_ms.unwrap_or(usual_ms).saturating_sub(now_ms)).unwrap_or(0)
}

/// Why a run isn't evicted.
pub(super) fn spared(running: &Running, rules: &Rules, now_ms: i64) -> Option<Spared> {
    if running.leaves_for.is_some() {
        return Some(Spared::Leaves);
    }
    if !running.has_landed || running.holds.is_empty() {
        return Some(Spared::NotLanded);
    }
    let tier = rules.tiers.get(usize::from(running.tier));
    let ran_ms = u64::try_from(now_ms.saturating_sub(running.started_ms)).unwrap_or(0);
    if tier.is_some_and(|tier| ran_ms < tier.minimum_run_ms) {
        return Some(Spared::MinimumRun);
    }
    if tier.and_then(|tier| tier.evictions_per_job).is_some_and(|most| running.evictions >= most) {
        return Some(Spared::EvictedEnough);
    }
    is_near_done(running, &rules.preemption, now_ms).then_some(Spared::NearDone)
}

/// Whether a job has done most of its work, as it says itself or as far as anybody knows. One that is overdue by as much as it would have been
/// spared for isn't near its end any more: nobody knows when that is.
fn is_near_done(running: &Running, rules: &PreemptionRules, now_ms: i64) -> bool {
    let near = u128::from(rules.near_done_percent.min(NEAR_DONE_PERCENT_MAX));
    if running.percent.is_some_and(|percent| u128::from(percent) >= near) {
        return true;
    }
    let Some(end_ms) = running.expected_end_ms else { return false };
    let work = Work::of(running, rules, now_ms);
    let run_ms = u64::try_from(end_ms.saturating_sub(work.from_ms)).unwrap_or(0);
    let all = u128::from(running.done_ms) + u128::from(run_ms);
    let done = u128::from(running.done_ms) + u128::from(work.worked_ms);
    (all * near..=all * (200 - near)).contains(&(done * 100))
}

/// What a run has done.
struct Work {
    /// When it began to work.
    from_ms: i64,
    worked_ms: u64,
    /// The part of it that no checkpoint holds.
    lost_ms: u64,
}

impl Work {
    fn of(running: &Running, rules: &PreemptionRules, now_ms: i64) -> Self {
        let restart_ms = if running.evictions > 0 { rules.restart_ms } else { 0 };
        let from_ms = running.started_ms.saturating_add_unsigned(restart_ms);
        let since = |at_ms: i64| u64::try_from(now_ms.saturating_sub(at_ms)).unwrap_or(0);
        let worked_ms = since(from_ms);
        let lost_ms = match (running.saved_ms, running.saves_every_ms) {
            (Some(saved_ms), _) => since(saved_ms).min(worked_ms),
            (None, Some(every_ms)) => worked_ms.checked_rem(every_ms).unwrap_or(0),
            (None, None) => worked_ms,
        };
        Self { from_ms, worked_ms, lost_ms }
    }
}
