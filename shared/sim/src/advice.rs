//! What the product says beside its numbers: when priorities are of no use, and when nothing but hardware helps.

use crate::metrics::{Metrics, percentile};
use crate::schedule::Schedule;
use crate::workload::{Job, Workload};

/// Below this many GPUs a plain queue with backfill is less to look after: the order gains as much as elsewhere, for few
/// jobs.
const GPUS_FOR_QUEUE: u32 = 8;
/// Below this many GPUs priorities decide about few jobs.
const GPUS_FOR_PRIORITIES: u32 = 20;
/// Jobs shorter than this wait longer for a decision than priorities can save them, in milliseconds.
const SHORT_MS: u64 = 600_000;
/// Urgent jobs shorter than this are requests to a service, in milliseconds.
const REQUEST_MS: u64 = 60_000;
/// Jobs that arrive faster than this leave no time for a search, in seconds between two.
const ARRIVALS_SECONDS: f64 = 5.0;
/// Run times that differ by less than this, over their mean, are alike.
const ALIKE: f64 = 0.1;
/// A wait that says that the cluster is too small, in seconds.
const LONG_WAIT_SECONDS: f64 = 10_800.0;
/// Utilisation that says that no order will make room.
const FULL: f64 = 0.95;
/// Utilisation from which on fragments and restarts eat what a larger load would gain.
const NEARLY_FULL: f64 = 0.85;

/// A strategy's result, as far as advice looks at it.
#[derive(Clone, Copy, Debug)]
pub struct Result<'r> {
    /// The strategy's name.
    pub strategy: &'r str,
    /// Its schedule.
    pub schedule: &'r Schedule,
    /// Its numbers.
    pub metrics: &'r Metrics,
}

/// Advice, one sentence each, the most basic first.
#[must_use]
pub fn advice(workload: &Workload, gpus: u32, dive_above: u32, results: &[Result<'_>]) -> Vec<String> {
    if workload.jobs.is_empty() {
        return Vec::new();
    }
    let found = [
        small(gpus),
        short(workload),
        requests(workload, dive_above),
        alike(workload),
        arrivals(workload),
        together(workload, gpus, dive_above),
        hardware(workload, dive_above, results),
    ];
    found.into_iter().flatten().collect()
}

/// The cluster is too small for priorities to matter.
fn small(gpus: u32) -> Option<String> {
    match gpus {
        gpus if gpus < GPUS_FOR_QUEUE => Some(format!(
            "the cluster has {gpus} GPUs: below {GPUS_FOR_QUEUE}, one queue with backfill is less to look after, and \
                 its few jobs can be ordered by hand"
        )),
        gpus if gpus < GPUS_FOR_PRIORITIES => Some(format!(
            "the cluster has {gpus} GPUs: below {GPUS_FOR_PRIORITIES}, priorities decide about few jobs and are hardly \
             worth their upkeep"
        )),
        _ => None,
    }
}

fn short(workload: &Workload) -> Option<String> {
    let share = share(&workload.jobs, |job| job.duration_ms < SHORT_MS);
    (share > 0.5).then(|| {
        format!(
            "{:.0} % of the jobs run for less than 10 minutes: starting them costs as much as ordering them gains; put \
             short ones together into arrays",
            share * 100.0
        )
    })
}

fn requests(workload: &Workload, dive_above: u32) -> Option<String> {
    let urgent: Vec<Job> = workload.jobs.iter().filter(|job| job.priority > dive_above).cloned().collect();
    (share(&urgent, |job| job.duration_ms < REQUEST_MS) > 0.5).then(|| {
        "most urgent jobs run for less than a minute: answers that somebody waits for belong on an endpoint that is \
         always on, and not into a queue"
            .to_owned()
    })
}

fn alike(workload: &Workload) -> Option<String> {
    let first = workload.jobs.first()?;
    let runs: Vec<f64> = workload.jobs.iter().map(|job| job.duration_ms as f64).collect();
    let count = runs.len() as f64;
    let mean = runs.iter().sum::<f64>() / count;
    let deviation = (runs.iter().map(|run| (run - mean).powi(2)).sum::<f64>() / count).sqrt();
    let is_alike = workload.jobs.iter().all(|job| job.gpus == first.gpus) && deviation < ALIKE * mean;
    (runs.len() > 1 && is_alike).then(|| {
        "all jobs have one size and nearly one run time: every order gives the same mean, so take turns among teams \
         instead"
            .to_owned()
    })
}

fn arrivals(workload: &Workload) -> Option<String> {
    let gaps = workload.jobs.len().checked_sub(1).filter(|gaps| *gaps >= 10)?;
    let gap = workload.jobs.last()?.submit_ms as f64 / 1000.0 / gaps as f64;
    (gap < ARRIVALS_SECONDS).then(|| {
        format!(
            "a job arrives every {gap:.1} s: a search for the best placement isn't done in time; `backfill` decides \
             within milliseconds"
        )
    })
}

/// Urgent jobs that want more at once than there is.
fn together(workload: &Workload, gpus: u32, dive_above: u32) -> Option<String> {
    let urgent = workload.jobs.iter().filter(|job| job.priority > dive_above);
    let mut changes: Vec<(u64, i64)> = urgent
        .flat_map(|job| {
            let gpus = i64::from(job.gpus);
            [(job.submit_ms, gpus), (job.submit_ms.saturating_add(job.duration_ms), -gpus)]
        })
        .collect();
    changes.sort_unstable();
    let running = changes.iter().scan(0, |gpus, (_, change)| {
        *gpus += change;
        Some(*gpus)
    });
    let peak = running.max()?;
    let has = i64::from(gpus);
    (peak > has).then(|| {
        format!(
            "urgent jobs want up to {peak} GPUs at once and the cluster has {has}: some of them wait, whatever the order"
        )
    })
}

/// The best of the strategies leaves a long wait on a full cluster.
fn hardware(workload: &Workload, dive_above: u32, results: &[Result<'_>]) -> Option<String> {
    let wait = |result: &Result<'_>| standard_wait_seconds(workload, result.schedule, dive_above);
    let best = results.iter().min_by(|a, b| wait(a).total_cmp(&wait(b)))?;
    let (hours, full) = (wait(best) / 3600.0, best.metrics.utilisation_backlogged);
    let percent = full * 100.0;
    if wait(best) > LONG_WAIT_SECONDS && full > FULL {
        Some(format!(
            "with `{}`, the best here, standard jobs still wait {hours:.1} h at the median while {percent:.0} % of the \
             GPUs are busy: buy capacity, not policy",
            best.strategy
        ))
    } else if wait(best) > LONG_WAIT_SECONDS && full > NEARLY_FULL {
        Some(format!(
            "standard jobs wait {hours:.1} h at the median with {percent:.0} % of the GPUs busy: above 85 to 90 % \
             fragments and restarts eat most of what a better order gains"
        ))
    } else {
        None
    }
}

/// Median wait of the jobs that aren't urgent.
fn standard_wait_seconds(workload: &Workload, schedule: &Schedule, dive_above: u32) -> f64 {
    let pairs = workload.jobs.iter().zip(&schedule.outcomes).filter(|(job, _)| job.priority <= dive_above);
    let waits = pairs.filter_map(|(job, outcome)| {
        Some(outcome.end_ms?.saturating_sub(job.submit_ms).saturating_sub(job.duration_ms) as f64 / 1000.0)
    });
    let mut waits: Vec<f64> = waits.collect();
    waits.sort_unstable_by(f64::total_cmp);
    percentile(&waits, 0.5)
}

fn share(jobs: &[Job], is: impl Fn(&Job) -> bool) -> f64 {
    if jobs.is_empty() {
        return 0.0;
    }
    jobs.iter().filter(|job| is(job)).count() as f64 / jobs.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cluster, Placement};
    use crate::replay::{self, Setting};
    use crate::strategy::Reference;

    fn told(nodes: u32, jobs: Vec<Job>) -> Vec<String> {
        let workload = Workload::new(jobs, Vec::new(), Vec::new());
        let cluster = Cluster { nodes, gpus_per_node: 4, placement: Placement::Count };
        let schedule = replay::run(&workload, Reference::Fifo, 800, &Setting::of(&cluster));
        let metrics = Metrics::of(&workload, &schedule, 800);
        advice(&workload, cluster.gpus(), 800, &[Result { strategy: "fifo", schedule: &schedule, metrics: &metrics }])
    }

    fn job(number: u64, minutes: u64, gpus: u32, priority: u32) -> Job {
        let (id, submit_ms) = (number.to_string(), number * 60_000);
        Job { id, submit_ms, duration_ms: minutes * 60_000, gpus, priority, ..Job::default() }
    }

    #[track_caller]
    fn assert_told(advice: &[String], want: &[&str]) {
        let begins = |(told, want): (&String, &&str)| told.starts_with(want);
        assert!(advice.len() == want.len() && advice.iter().zip(want).all(begins), "{advice:?}");
    }

    #[test]
    fn nothing_is_said_where_priorities_help() {
        assert_told(&told(8, (0..20).map(|n| job(n, 20 + n, 4, 500)).collect()), &[]);
        assert_told(&told(1, Vec::new()), &[]);
    }

    #[test]
    fn a30_b27_a_cluster_too_small_is_told_by_its_size() {
        let jobs = || vec![job(0, 20, 1, 500), job(1, 90, 2, 500)];
        assert_told(&told(1, jobs()), &["the cluster has 4 GPUs: below 8,"]);
        assert_told(&told(4, jobs()), &["the cluster has 16 GPUs: below 20,"]);
        assert_told(&told(5, jobs()), &[]);
    }

    #[test]
    fn a30_b28_b29_b30_jobs_too_short_alike_or_too_many_are_told() {
        let short = vec![job(0, 9, 1, 500), job(1, 5, 2, 500), job(2, 90, 1, 500)];
        assert_told(&told(8, short), &["67 % of the jobs run for less than 10 minutes"]);
        assert_told(&told(8, (0..5).map(|n| job(n, 60, 8, 500)).collect()), &["all jobs have one size"]);
        let quick = (0..20).map(|n| Job { submit_ms: n * 4_000, ..job(n, 20 + n * 5, 1, 500) }).collect();
        assert_told(&told(8, quick), &["a job arrives every 4.0 s"]);
        let requests = vec![job(0, 0, 1, 900), job(1, 90, 2, 500), job(2, 90, 1, 500)];
        assert_told(&told(8, requests), &["most urgent jobs run for less than a minute"]);
    }

    #[test]
    fn d16_urgent_jobs_that_want_more_than_there_is_are_told() {
        let jobs = vec![job(0, 60, 16, 900), job(1, 30, 8, 900), job(90, 30, 16, 900)];
        assert_told(&told(5, jobs), &["urgent jobs want up to 24 GPUs at once and the cluster has 20"]);
    }

    #[test]
    fn c33_long_waits_on_a_full_cluster_call_for_hardware() {
        let jobs = (0..40).map(|n| job(n, 60 + n * 10, 20, 500)).collect();
        assert_told(&told(5, jobs), &["with `fifo`, the best here, standard jobs still wait"]);
    }
}
