//! The opening and the closing of a local run, for people.

use std::path::Path;

use osprey_model::message::words;
use osprey_policy::Policy;

use super::news;
use super::policy::counted;
use super::table::Columns;
use crate::local::account::{Fate, Place, Summary, What};
use crate::local::run::Plan;

/// Most actions that the closing names.
const ACTIONS_MAX: usize = 20;

/// What is about to happen, in one line.
#[must_use]
pub fn opening(plan: &Plan) -> String {
    let cluster = &plan.cluster;
    let what = match &plan.file {
        Some(file) => format!("{} of `{}`", counted(plan.entries.len(), "line"), file.display()),
        None => "what the state holds".to_owned(),
    };
    let speed = if (plan.speed - 1.0).abs() < f64::EPSILON { String::new() } else { format!(", speed {}", plan.speed) };
    format!(
        "{what} on {} of {} ({} Spot){speed}; state in `{}`",
        words::counted(u64::from(cluster.nodes), "node"),
        words::counted(u64::from(cluster.gpus_per_node), "GPU"),
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
    let parts = [totals(summary, fates), tiers(summary, policy), actions(fates), next(fates, dir)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn totals(summary: &Summary, fates: &[Fate]) -> String {
    let Summary { jobs, succeeded, failed, refused, dead_letters, requeued, host_lost, preempted, duplicates, .. } =
        summary;
    let what = if fates.iter().any(|fate| fate.line.is_some()) { ">LINES" } else { ">JOBS" };
    let mut columns = Columns::new(&[what, ">SUCCEEDED", ">FAILED", ">REFUSED", ">DEAD LETTERS", ">DUPLICATES"]);
    columns.row([jobs, succeeded, failed, refused, dead_letters, duplicates].map(ToString::to_string));
    let whose = if *host_lost == 1 { "its" } else { "their" };
    let lost = format!("{} lost {whose} host", words::counted(u64::from(*host_lost), "attempt"));
    let fallback = match summary.fallbacks {
        0 => String::new(),
        some => format!(
            "\nwarning: the policy could not be evaluated for {}; the fallback priority stands",
            counted(some, "job")
        ),
    };
    format!(
        "{}\n\n{requeued} requeued, {lost}, {preempted} preempted, in {:.1} s{fallback}",
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

/// Lines that were actions, and what became of them.
fn actions(fates: &[Fate]) -> String {
    let mut lines: Vec<String> =
        fates.iter().filter(|fate| matches!(fate.what, What::Action(_))).filter_map(news::line).collect();
    let more = lines.len().saturating_sub(ACTIONS_MAX);
    lines.truncate(ACTIONS_MAX);
    if more > 0 {
        lines.push(format!("… and {} more", counted(more, "action")));
    }
    lines.join("\n")
}

fn next(fates: &[Fate], dir: &Path) -> String {
    let dir = dir.display();
    let first = |place| fates.iter().filter(|fate| fate.place() == Some(place)).find_map(Fate::job);
    let mut rows = vec![("all jobs:", format!("osprey jobs --local {dir}"))];
    for (what, place) in
        [("why refused:", Place::Refused), ("why failed:", Place::Failed), ("one job:", Place::Succeeded)]
    {
        rows.extend(first(place).map(|job| (what, format!("osprey describe {} --local {dir}", job.id))));
    }
    if fates.iter().any(|fate| fate.place() == Some(Place::DeadLetter)) {
        rows.push(("dead letters:", format!("osprey dead-letters list --local {dir}")));
    }
    rows.into_iter().map(|(what, command)| format!("{what:<14}{command}")).collect::<Vec<_>>().join("\n")
}
