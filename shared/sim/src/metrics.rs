//! What is said of a schedule in numbers.

use serde::Serialize;

use crate::schedule::{Outcome, Schedule};
use crate::workload::{Job, Workload};

/// The numbers of one schedule. Times are seconds.
///
/// Wait is completion without run time, so time out after a preemption counts. Completion runs from submission to end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Metrics {
    /// Jobs that ended.
    pub jobs: usize,
    /// Mean wait.
    pub mean_wait_seconds: f64,
    /// Median wait.
    pub median_wait_seconds: f64,
    /// 95th percentile of the wait.
    pub p95_wait_seconds: f64,
    /// 99th percentile of the wait.
    pub p99_wait_seconds: f64,
    /// Longest wait.
    pub max_wait_seconds: f64,
    /// Mean completion.
    pub mean_completion_seconds: f64,
    /// Median completion.
    pub median_completion_seconds: f64,
    /// 95th percentile of the completion.
    pub p95_completion_seconds: f64,
    /// 99th percentile of the completion.
    pub p99_completion_seconds: f64,
    /// From the first submission to the last end.
    pub makespan_seconds: f64,
    /// Work of the jobs over what the cluster could do in the makespan, 0 to 1.
    pub utilisation: f64,
    /// GPUs held over GPUs there while at least one job waited, 0 to 1; 0 when no job ever waited.
    pub utilisation_backlogged: f64,
    /// GPUs free on partly held nodes over GPUs there while at least one job waited, 0 to 1. 0 where GPUs are counted:
    /// then there are no nodes that could be partly held.
    pub fragmentation: f64,
    /// Times that a job was stopped for others.
    pub preemptions: u64,
    /// The same for each 100 jobs.
    pub preemptions_per_100_jobs: f64,
    /// Work done and lost, with the cost of restarts.
    pub lost_gpu_hours: f64,
    /// Mean wait of jobs whose derived priority is above the threshold; 0 without such jobs.
    pub urgent_mean_wait_seconds: f64,
    /// Times that a job lost its host.
    #[serde(skip)]
    pub host_losses: u64,
    /// Times that a job failed.
    #[serde(skip)]
    pub failures: u64,
    /// Jobs that started and never ended.
    #[serde(skip)]
    pub unfinished: usize,
}

/// The numbers of some of the jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GroupMetrics {
    /// What they have in common.
    pub name: String,
    /// How many they are.
    pub jobs: usize,
    /// Their work.
    pub gpu_hours: f64,
    /// Mean wait.
    pub mean_wait_seconds: f64,
    /// Median wait.
    pub median_wait_seconds: f64,
    /// 95th percentile of the wait.
    pub p95_wait_seconds: f64,
    /// Longest wait.
    pub max_wait_seconds: f64,
    /// Mean completion.
    pub mean_completion_seconds: f64,
    /// Times that one of them was stopped for others.
    pub preemptions: u64,
}

/// A job that ended, with its times in seconds.
struct Ended<'w> {
    job: &'w Job,
    outcome: &'w Outcome,
    wait: f64,
    completion: f64,
}

const GPU_MS_PER_HOUR: f64 = 3_600_000.0;

impl Metrics {
    /// Sums up a schedule. Jobs above `dive_above` are urgent.
    #[must_use]
    pub fn of(workload: &Workload, schedule: &Schedule, dive_above: u32) -> Self {
        let ended = ended(workload, schedule);
        let waits = sorted(ended.iter().map(|ended| ended.wait));
        let completions = sorted(ended.iter().map(|ended| ended.completion));
        let makespan_ms = schedule.outcomes.iter().filter_map(|outcome| outcome.end_ms).max().unwrap_or(0);
        let urgent: Vec<f64> =
            ended.iter().filter(|ended| ended.job.priority > dive_above).map(|ended| ended.wait).collect();
        let work: u128 = ended.iter().map(|ended| u128::from(ended.job.duration_ms) * u128::from(ended.job.gpus)).sum();
        let sums = &schedule.sums;
        let preemptions = schedule.preemptions();
        let total =
            |count: fn(&Outcome) -> u32| schedule.outcomes.iter().map(|outcome| u64::from(count(outcome))).sum();
        Self {
            jobs: ended.len(),
            mean_wait_seconds: mean(&waits),
            median_wait_seconds: percentile(&waits, 0.5),
            p95_wait_seconds: percentile(&waits, 0.95),
            p99_wait_seconds: percentile(&waits, 0.99),
            max_wait_seconds: percentile(&waits, 1.0),
            mean_completion_seconds: mean(&completions),
            median_completion_seconds: percentile(&completions, 0.5),
            p95_completion_seconds: percentile(&completions, 0.95),
            p99_completion_seconds: percentile(&completions, 0.99),
            makespan_seconds: seconds(makespan_ms),
            utilisation: ratio(work as f64, sums.capacity_gpu_ms as f64),
            utilisation_backlogged: ratio(sums.backlogged_gpu_ms as f64, sums.backlogged_capacity_gpu_ms as f64),
            fragmentation: ratio(sums.stranded_gpu_ms as f64, sums.backlogged_capacity_gpu_ms as f64),
            preemptions,
            preemptions_per_100_jobs: ratio(100.0 * preemptions as f64, ended.len() as f64),
            lost_gpu_hours: sums.lost_gpu_ms as f64 / GPU_MS_PER_HOUR,
            urgent_mean_wait_seconds: mean(&urgent),
            host_losses: total(|outcome| outcome.host_losses),
            failures: total(|outcome| outcome.failures),
            unfinished: workload.jobs.len() - ended.len(),
        }
    }
}

/// One line for each tier that has jobs, the most urgent first.
#[must_use]
pub fn by_tier(workload: &Workload, schedule: &Schedule) -> Vec<GroupMetrics> {
    let tiers = (0_u16..).zip(&workload.tiers);
    groups(workload, schedule, tiers.map(|(tier, name)| (name.clone(), move |job: &Job| job.tier == tier)))
}

/// One line for each team, in the order of the workload; the jobs that name none come last.
#[must_use]
pub fn by_team(workload: &Workload, schedule: &Schedule) -> Vec<GroupMetrics> {
    let named = (0_u16..).zip(&workload.teams).map(|(team, name)| (name.clone(), Some(team)));
    let all = named.chain([("-".to_owned(), None)]);
    groups(workload, schedule, all.map(|(name, team)| (name, move |job: &Job| job.team == team)))
}

/// Sizes that behave alike: one GPU, part of a node, a node, a few nodes, many.
const SIZES: [(&str, u32, u32); 5] =
    [("1 GPU", 1, 1), ("2-4 GPUs", 2, 4), ("5-8 GPUs", 5, 8), ("9-32 GPUs", 9, 32), ("33+ GPUs", 33, u32::MAX)];

/// One line for each class of sizes that has jobs.
#[must_use]
pub fn by_size(workload: &Workload, schedule: &Schedule) -> Vec<GroupMetrics> {
    let sizes = SIZES.iter();
    groups(
        workload,
        schedule,
        sizes.map(|(name, from, to)| ((*name).to_owned(), |job: &Job| (*from..=*to).contains(&job.gpus))),
    )
}

fn groups<K: Fn(&Job) -> bool>(
    workload: &Workload,
    schedule: &Schedule,
    groups: impl Iterator<Item = (String, K)>,
) -> Vec<GroupMetrics> {
    let ended = ended(workload, schedule);
    groups.filter_map(|(name, is_in)| group(name, ended.iter().filter(|ended| is_in(ended.job)))).collect()
}

fn group<'e, 'w: 'e>(name: String, members: impl Iterator<Item = &'e Ended<'w>>) -> Option<GroupMetrics> {
    let members: Vec<&Ended<'_>> = members.collect();
    if members.is_empty() {
        return None;
    }
    let waits = sorted(members.iter().map(|ended| ended.wait));
    let completions: Vec<f64> = members.iter().map(|ended| ended.completion).collect();
    let gpu_ms = members.iter().map(|ended| ended.job.duration_ms as f64 * f64::from(ended.job.gpus)).sum::<f64>();
    Some(GroupMetrics {
        name,
        jobs: members.len(),
        gpu_hours: gpu_ms / GPU_MS_PER_HOUR,
        mean_wait_seconds: mean(&waits),
        median_wait_seconds: percentile(&waits, 0.5),
        p95_wait_seconds: percentile(&waits, 0.95),
        max_wait_seconds: percentile(&waits, 1.0),
        mean_completion_seconds: mean(&completions),
        preemptions: members.iter().map(|ended| u64::from(ended.outcome.preemptions)).sum(),
    })
}

fn ended<'w>(workload: &'w Workload, schedule: &'w Schedule) -> Vec<Ended<'w>> {
    let pairs = workload.jobs.iter().zip(&schedule.outcomes);
    let ended = pairs.filter_map(|(job, outcome)| {
        let completion_ms = outcome.end_ms?.saturating_sub(job.submit_ms);
        let wait_ms = completion_ms.saturating_sub(job.duration_ms);
        Some(Ended { job, outcome, wait: seconds(wait_ms), completion: seconds(completion_ms) })
    });
    ended.collect()
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The mean; 0 of nothing.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    ratio(values.iter().sum(), values.len() as f64)
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The value at rank (n − 1)·q of sorted values, between two ranks in proportion; 0 of nothing.
#[must_use]
pub fn percentile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let rank = last as f64 * q.clamp(0.0, 1.0);
    let below = floor(rank).min(last);
    let at = |index: usize| sorted.get(index).copied().unwrap_or(0.0);
    let above = (below + 1).min(last);
    at(below) + (at(above) - at(below)) * (rank - below as f64)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank of a list in memory, never negative"
)]
fn floor(rank: f64) -> usize {
    rank as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Sums;

    #[test]
    fn percentiles_lie_between_ranks_in_proportion() {
        let values = [1.0, 2.0, 4.0, 8.0];
        for (q, want) in [(0.0, 1.0), (0.5, 3.0), (0.95, 7.4), (1.0, 8.0)] {
            assert!((percentile(&values, q) - want).abs() < 1e-9, "{q}");
        }
        assert!(percentile(&[], 0.5).abs() < f64::EPSILON);
    }

    #[test]
    fn a_schedule_is_summed_up() {
        let job = |gpus, priority, tier| Job { gpus, priority, tier, duration_ms: 10_000, ..Job::default() };
        let workload = Workload {
            jobs: vec![job(4, 900, 0), job(8, 500, 1)],
            tiers: vec!["production".to_owned(), "experimental".to_owned()],
            teams: Vec::new(),
        };
        let outcome = |start, end, preemptions| Outcome {
            start_ms: Some(start),
            end_ms: Some(end),
            preemptions,
            ..Outcome::default()
        };
        let sums = Sums {
            capacity_gpu_ms: 176_000,
            backlogged_ms: 10_000,
            backlogged_capacity_gpu_ms: 80_000,
            backlogged_gpu_ms: 40_000,
            stranded_gpu_ms: 20_000,
            lost_gpu_ms: 7_200_000,
        };
        let outcomes = vec![outcome(0, 10_000, 0), outcome(10_000, 22_000, 1)];
        let schedule = Schedule { outcomes, sums, segments: Vec::new() };
        let metrics = Metrics::of(&workload, &schedule, 800);
        let close = |got: f64, want: f64| assert!((got - want).abs() < 1e-9, "{got} {want}");
        assert_eq!((metrics.jobs, metrics.preemptions), (2, 1));
        close(metrics.mean_wait_seconds, 6.0);
        close(metrics.max_wait_seconds, 12.0);
        close(metrics.urgent_mean_wait_seconds, 0.0);
        close(metrics.makespan_seconds, 22.0);
        close(metrics.utilisation, 120.0 / 176.0);
        close(metrics.utilisation_backlogged, 0.5);
        close(metrics.fragmentation, 0.25);
        close(metrics.lost_gpu_hours, 2.0);
        let tiers = by_tier(&workload, &schedule);
        assert_eq!(
            tiers.iter().map(|group| (group.name.as_str(), group.jobs)).collect::<Vec<_>>(),
            [("production", 1), ("experimental", 1)]
        );
        assert_eq!(by_size(&workload, &schedule).len(), 2);
        assert_eq!(by_team(&workload, &schedule).first().map(|group| group.name.as_str()), Some("-"));
    }
}
