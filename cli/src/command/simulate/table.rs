//! The tables for people: strategies side by side, then tiers, teams and sizes.

use osprey_model::pool::CapacityType;
use osprey_sim::metrics::{self, GroupMetrics};
use osprey_sim::scenario::PoolSpec;
use osprey_sim::schedule::Schedule;
use osprey_sim::workload::Workload;

use super::answer::{Answer, Outcome, Summary};
use super::spread::Spread;
use crate::render::policy::counted;
use crate::render::table::Columns;
use crate::render::time;

/// All tables.
#[must_use]
pub fn render(answer: &Answer) -> String {
    let summaries = answer.summaries();
    let mut parts = vec![heading(answer), strategies(&summaries), interrupted(&summaries)];
    if answer.seeds() == 1 {
        let outcomes = answer.outcomes();
        parts.push(groups("TIER", outcomes, metrics::by_tier));
        parts.push(groups("TEAM", outcomes, metrics::by_team));
        parts.push(groups("SIZE", outcomes, metrics::by_size));
    } else {
        parts.push(format!("means over {}, ± is the 95 % confidence interval", counted(answer.seeds(), "seed")));
    }
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn heading(answer: &Answer) -> String {
    let Some(source) = answer.source() else { return String::new() };
    let described = &source.described;
    if let Some(scenario) = &described.scenario {
        let pools: Vec<String> = scenario.pools.iter().map(|pool| in_words(pool, usize_of(pool.nodes))).collect();
        let jobs = counted(source.workload.jobs.len(), "job");
        return format!("{jobs} of `{}` on {}", source.name, pools.join(" and "));
    }
    let cluster = described.cluster;
    format!(
        "{} of `{}` on {} of {}",
        counted(source.workload.jobs.len(), "job"),
        source.name,
        counted(usize_of(cluster.nodes), "node"),
        counted(usize_of(cluster.gpus_per_node), "GPU"),
    )
}

fn in_words(pool: &PoolSpec, nodes: usize) -> String {
    let spot = if pool.capacity == CapacityType::Spot { "Spot " } else { "" };
    let nodes = if nodes == 1 { format!("1 {spot}node") } else { format!("{nodes} {spot}nodes") };
    format!("{nodes} of {} (`{}`)", counted(usize_of(pool.gpus_per_node), "GPU"), pool.name)
}

fn usize_of(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn strategies(summaries: &[Summary]) -> String {
    let mut columns = Columns::new(&[
        "STRATEGY",
        ">MEAN WAIT",
        ">MEDIAN",
        ">P95",
        ">P99",
        ">URGENT WAIT",
        ">MEAN COMPLETION",
        ">UTIL",
        ">BACKLOGGED",
        ">FRAGMENTED",
        ">PREEMPTED/100",
        ">LOST GPU-H",
    ]);
    for summary in summaries {
        let duration = |name: &str| seconds(summary.get(name));
        let share = |name: &str| percent(summary.get(name));
        columns.row([
            summary.strategy.to_owned(),
            duration("mean_wait_seconds"),
            duration("median_wait_seconds"),
            duration("p95_wait_seconds"),
            duration("p99_wait_seconds"),
            duration("urgent_mean_wait_seconds"),
            duration("mean_completion_seconds"),
            share("utilisation"),
            share("utilisation_backlogged"),
            share("fragmentation"),
            number(summary.get("preemptions_per_100_jobs")),
            number(summary.get("lost_gpu_hours")),
        ]);
    }
    columns.render()
}

/// What was interrupted, where something was.
fn interrupted(summaries: &[Summary]) -> String {
    let names = ["host_losses", "failures", "unfinished_jobs"];
    if summaries.iter().all(|summary| names.iter().all(|name| summary.get(name).mean <= 0.0)) {
        return String::new();
    }
    let mut columns = Columns::new(&["STRATEGY", ">HOSTS LOST", ">FAILURES", ">NEVER DONE"]);
    for summary in summaries {
        let [hosts, failures, undone] = names.map(|name| count(summary.get(name)));
        columns.row([summary.strategy.to_owned(), hosts, failures, undone]);
    }
    columns.render()
}

fn count(Spread { mean, half }: Spread) -> String {
    if half > 0.0 { format!("{mean:.1} ±{half:.1}") } else { format!("{mean}") }
}

/// One table of groups: a row each, and the mean and 95th percentile of the wait under each strategy.
fn groups(heading: &str, outcomes: &[Outcome], of: fn(&Workload, &Schedule) -> Vec<GroupMetrics>) -> String {
    let found: Vec<Vec<GroupMetrics>> =
        outcomes.iter().map(|outcome| of(&outcome.workload, &outcome.schedule)).collect();
    let Some(longest) = found.iter().max_by_key(|groups| groups.len()).filter(|groups| groups.len() > 1) else {
        return String::new();
    };
    let mut headings = vec![heading.to_owned(), ">JOBS".to_owned(), ">GPU-H".to_owned()];
    for outcome in outcomes {
        let name = outcome.strategy.to_uppercase();
        headings.extend([format!(">{name} MEAN"), ">P95".to_owned()]);
    }
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut columns = Columns::new(&headings);
    for group in longest {
        let mut cells = vec![group.name.clone(), group.jobs.to_string(), format!("{:.0}", group.gpu_hours)];
        for groups in &found {
            let same = groups.iter().find(|other| other.name == group.name);
            let cell =
                |value: fn(&GroupMetrics) -> f64| same.map_or_else(|| "-".to_owned(), |group| short(value(group)));
            cells.extend([cell(|group| group.mean_wait_seconds), cell(|group| group.p95_wait_seconds)]);
        }
        columns.row(cells);
    }
    columns.render()
}

fn seconds(Spread { mean, half }: Spread) -> String {
    if half > 0.0 { format!("{} ±{}", short(mean), short(half)) } else { short(mean) }
}

#[expect(clippy::cast_possible_truncation, reason = "seconds of a simulation")]
fn short(seconds: f64) -> String {
    time::short((seconds * 1000.0).round() as i64)
}

fn percent(Spread { mean, half }: Spread) -> String {
    if half > 0.0 { format!("{:.1}% ±{:.1}", mean * 100.0, half * 100.0) } else { format!("{:.1}%", mean * 100.0) }
}

fn number(Spread { mean, half }: Spread) -> String {
    if half > 0.0 { format!("{mean:.1} ±{half:.1}") } else { format!("{mean:.1}") }
}
