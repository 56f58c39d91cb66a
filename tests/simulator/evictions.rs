//! What the default policy promises of preemption, on the traces: one strategy, no other setting.

use osprey_policy::Policy;
use osprey_scheduler::{Rules, Strategy};
use osprey_sim::cluster::Placement;
use osprey_sim::decided::Production;
use osprey_sim::estimates::{Believed, Estimates};
use osprey_sim::machine::Costs;
use osprey_sim::metrics::Metrics;
use osprey_sim::replay::{self, Setting};
use osprey_sim::workload::Workload;

use crate::traces::{Checked, cluster, file};

/// Urgent mean wait, evictions for each 100 jobs, mean completion and longest wait: at most so much, in seconds.
type Marks = (f64, f64, f64, f64);

fn metrics(
    trace: &str,
    placement: Placement,
    strategy: Strategy,
    estimates: Estimates,
) -> Result<Metrics, Box<dyn std::error::Error>> {
    let policy = Policy::load(osprey_policy::DEFAULT).map_err(|errors| format!("{errors:?}"))?.policy;
    let workload = workload(trace, &policy)?;
    let believed: Believed = estimates.of(&workload, policy.estimates(), 1);
    let rules = Rules { strategy, ..Rules::of(&policy, &"local".into()) };
    let cluster = cluster(trace, placement);
    let costs = Costs { restart_ms: 60_000, ..Costs::REFERENCE };
    let setting = Setting { costs, ..Setting::of(&cluster) };
    let schedule = replay::run_decided(&workload, Production { rules: vec![rules], believed, teams: None }, &setting);
    Ok(Metrics::of(&workload, &schedule, policy.order().dive_above))
}

/// A trace with number and tier of its column.
fn workload(trace: &str, policy: &Policy) -> Result<Workload, Box<dyn std::error::Error>> {
    let mut workload = crate::traces::workload(trace)?;
    let text = file(&format!("{trace}_meta.csv"))?;
    let read = osprey_sim::trace::csv::read(&text, Some("priority_python")).map_err(|bad| bad.message)?;
    for job in &mut workload.jobs {
        let entry = read.entries.iter().find(|entry| entry.id == job.id).ok_or("a job of the trace")?;
        let tier = &policy.tier_of(job.priority, entry.metadata.preemptible == Some(true)).name;
        let place = policy.tiers().iter().position(|other| other.name == *tier).unwrap_or(0);
        job.tier = u16::try_from(place)?;
    }
    Ok(workload)
}

fn holds(trace: &str, placement: Placement, marks: Marks) -> Checked {
    let found = metrics(trace, placement, Strategy::Osprey, Estimates::Exact)?;
    let values = (
        found.urgent_mean_wait_seconds,
        found.preemptions_per_100_jobs,
        found.mean_completion_seconds,
        found.max_wait_seconds,
    );
    let is_within = values.0 <= marks.0 && values.1 <= marks.1 && values.2 <= marks.2 && values.3 <= marks.3;
    assert!(is_within, "{trace}: {values:?} is beyond {marks:?}");
    Ok(())
}

/// B31: three evictions for each 100 jobs.
#[test]
fn urgent_work_waits_minutes_at_few_evictions_where_gpus_are_counted() -> Checked {
    holds("itp_mix256", Placement::Count, (222.0, 3.0, 47_000.0, 1_250_000.0))?;
    holds("itp_c06", Placement::Count, (400.0, 8.0, 70_000.0, 1_600_000.0))
}

#[test]
fn urgent_work_waits_minutes_at_few_evictions_on_nodes_of_eight() -> Checked {
    holds("itp_mix256", Placement::Node, (250.0, 3.5, 50_000.0, 1_350_000.0))?;
    holds("itp_c06", Placement::Node, (400.0, 8.0, 75_000.0, 1_600_000.0))
}

#[test]
fn estimates_that_are_off_by_a_factor_of_two_cost_little() -> Checked {
    let exact = metrics("itp_mix256", Placement::Count, Strategy::Osprey, Estimates::Exact)?;
    let noisy = metrics("itp_mix256", Placement::Count, Strategy::Osprey, Estimates::Noise)?;
    let (exact, noisy) = (exact.mean_completion_seconds, noisy.mean_completion_seconds);
    assert!(noisy <= exact * 1.1, "{noisy} s instead of {exact} s");
    Ok(())
}

#[test]
fn backfill_keeps_its_marks_and_evicts_nobody() -> Checked {
    let found = metrics("itp_mix256", Placement::Count, Strategy::Backfill, Estimates::Exact)?;
    let values = (found.urgent_mean_wait_seconds, found.mean_completion_seconds, found.preemptions);
    assert!(values.0 <= 2_500.0 && values.1 <= 60_000.0 && values.2 == 0, "{values:?}");
    Ok(())
}
