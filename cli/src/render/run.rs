//! The opening and the closing of a local run, for people.

use std::path::Path;

use osprey_policy::Policy;

use super::policy::counted;
use super::table::Columns;
use crate::local::account::{Fate, Place, Summary};
use crate::local::run::Plan;

/// What is about to happen, in one line.
#[must_use]
pub fn opening(plan: &Plan) -> String {
    let cluster = &plan.cluster;
    let usize_of = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let speed = if (plan.speed - 1.0).abs() < f64::EPSILON { String::new() } else { format!(", speed {}", plan.speed) };
    format!(
        "{} of `{}` on {} of {} ({} Spot){speed}; state in `{}`",
        counted(plan.entries.len(), "line"),
        plan.file.display(),
        counted(usize_of(cluster.nodes), "node"),
        counted(usize_of(cluster.gpus_per_node), "GPU"),
        cluster.spot_nodes,
        plan.dir.display(),
    )
}

/// That an earlier run goes on.
#[must_use]
pub fn resuming(jobs: usize, open: usize) -> String {
    format!("goes on from an earlier run: {} on record, {open} open", counted(jobs, "job"))
}

/// What came of it, and what to look at next.
#[must_use]
pub fn closing(summary: &Summary, fates: &[Fate], policy: &Policy, dir: &Path) -> String {
    let parts = [totals(summary), tiers(summary, policy), next(fates, dir)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn totals(summary: &Summary) -> String {
    let Summary { jobs, succeeded, failed, refused, dead_letters, requeued, host_lost, preempted, duplicates, .. } =
        summary;
    let mut columns = Columns::new(&[">LINES", ">SUCCEEDED", ">FAILED", ">REFUSED", ">DEAD LETTERS", ">DUPLICATES"]);
    columns.row([jobs, succeeded, failed, refused, dead_letters, duplicates].map(ToString::to_string));
    format!(
        "{}\n\n{requeued} requeued, {host_lost} hosts lost, {preempted} preempted, in {:.1} s",
        columns.render(),
        summary.elapsed_seconds
    )
}

fn tiers(summary: &Summary, policy: &Policy) -> String {
    let mut columns = Columns::new(&["TIER", ">JOBS", ">MEDIAN WAIT", ">LONGEST WAIT"]);
    let seconds = |wait: Option<f64>| wait.map_or_else(|| "-".to_owned(), |wait| format!("{wait:.1}s"));
    let known = policy.tiers().iter().filter_map(|tier| summary.tiers.get_key_value(&tier.name));
    for (tier, waits) in known {
        columns.row([
            tier.to_string(),
            waits.jobs.to_string(),
            seconds(waits.median_wait_seconds),
            seconds(waits.max_wait_seconds),
        ]);
    }
    if summary.tiers.is_empty() { String::new() } else { columns.render() }
}

fn next(fates: &[Fate], dir: &Path) -> String {
    let dir = dir.display();
    let first = |place| fates.iter().filter(|fate| fate.place == Some(place)).find_map(|fate| fate.job.as_ref());
    let mut rows = vec![("all jobs:", format!("osprey jobs --local {dir}"))];
    for (what, place) in
        [("why refused:", Place::Refused), ("why failed:", Place::Failed), ("one job:", Place::Succeeded)]
    {
        rows.extend(first(place).map(|job| (what, format!("osprey describe {} --local {dir}", job.id))));
    }
    if fates.iter().any(|fate| fate.place == Some(Place::DeadLetter)) {
        rows.push(("dead letters:", format!("osprey dead-letters list --local {dir}")));
    }
    rows.into_iter().map(|(what, command)| format!("{what:<14}{command}")).collect::<Vec<_>>().join("\n")
}
