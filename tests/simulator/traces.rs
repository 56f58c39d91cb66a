//! The traces beside this file, and what is expected of them.

use std::fmt::Write as _;

use osprey_sim::cluster::{Cluster, Placement};
use osprey_sim::schedule::Schedule;
use osprey_sim::trace::{Entry, csv};
use osprey_sim::workload::{Job, Workload};

/// What a test that reads files gives back.
pub type Checked = Result<(), Box<dyn std::error::Error>>;

/// One line of `traces/expected.csv`.
pub struct Expected {
    pub strategy: String,
    pub placement: Placement,
    pub trace: String,
    pub jobs: usize,
    pub sha256: String,
}

/// A file beside this one.
pub fn file(name: &str) -> std::io::Result<String> {
    std::fs::read_to_string(osprey_tests::root().join("tests/simulator/traces").join(name))
}

/// Names and lines of `traces/expected.csv`.
pub fn all_expected() -> Result<Vec<(String, Expected)>, Box<dyn std::error::Error>> {
    file("expected.csv")?.lines().skip(1).map(expected_of).collect()
}

fn expected_of(line: &str) -> Result<(String, Expected), Box<dyn std::error::Error>> {
    let [name, trace, strategy, placement, jobs, sha256] = *line.split(',').collect::<Vec<_>>() else {
        return Err(format!("not a line of expected.csv: {line}").into());
    };
    let expected = Expected {
        strategy: strategy.to_owned(),
        placement: if placement == "node" { Placement::Node } else { Placement::Count },
        trace: trace.to_owned(),
        jobs: jobs.parse()?,
        sha256: sha256.to_owned(),
    };
    Ok((name.to_owned(), expected))
}

/// The cluster that a trace was cut from.
pub fn cluster(trace: &str, placement: Placement) -> Cluster {
    let nodes = match trace {
        "itp_c10" => 2,
        "itp_c06" => 12,
        _ => 32,
    };
    Cluster { nodes, gpus_per_node: 8, placement }
}

/// A trace with the priorities that the expected schedules were made with.
pub fn workload(trace: &str) -> Result<Workload, Box<dyn std::error::Error>> {
    let text = file(&format!("{trace}_meta.csv"))?;
    let trace = csv::read(&text, Some("priority_python")).map_err(|bad| bad.message)?;
    if let Some(bad) = trace.bad.first() {
        return Err(format!("line {}: {}", bad.line, bad.message).into());
    }
    Ok(Workload::new(trace.entries.iter().map(job).collect(), Vec::new(), Vec::new()))
}

fn job(entry: &Entry) -> Job {
    Job {
        id: entry.id.clone(),
        submit_ms: entry.submit_ms,
        duration_ms: entry.duration_ms,
        gpus: entry.gpus,
        priority: entry.priority.unwrap_or(0),
        row_priority: entry.priority.unwrap_or(0),
        ..Job::default()
    }
}

/// The schedule as `id,start,end` in whole seconds, one job a line, in the order of the ids.
pub fn canonical(workload: &Workload, schedule: &Schedule) -> Result<String, Box<dyn std::error::Error>> {
    let mut text = String::new();
    for (job, outcome) in workload.jobs.iter().zip(&schedule.outcomes) {
        let (Some(start), Some(end)) = (outcome.start_ms, outcome.end_ms) else {
            return Err(format!("job {} never ran", job.id).into());
        };
        if start % 1000 != 0 || end % 1000 != 0 {
            return Err(format!("job {} has times that are no whole seconds", job.id).into());
        }
        writeln!(text, "{},{},{}", job.id, start / 1000, end / 1000)?;
    }
    Ok(text)
}
