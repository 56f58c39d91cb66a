//! The sample backlog is what its generator makes of the sample of real jobs, and holds what the issue asks for.

use osprey_tests::backlog::from_csv;
use serde_json::Value;

use crate::{Checked, read, text};

fn lines() -> std::io::Result<Vec<String>> {
    Ok(read("events/backlog.jsonl")?.lines().map(str::to_owned).collect())
}

fn jobs() -> std::io::Result<Vec<Value>> {
    Ok(lines()?.iter().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// The amount of one resource that a job asks for.
fn amount(job: &Value, kind: &str) -> u64 {
    let asked = crate::list(job.get("containerOverrides").unwrap_or(&Value::Null), "resourceRequirements");
    let asked = asked.iter().find(|requirement| text(requirement, "type") == kind);
    asked.and_then(|requirement| text(requirement, "value").parse().ok()).unwrap_or(0)
}

fn tag<'a>(job: &'a Value, key: &str) -> Option<&'a str> {
    job.get("tags")?.get(key)?.as_str()
}

#[test]
fn the_file_is_what_the_generator_makes() -> Checked {
    let made = from_csv(&read("events/backlog.csv")?)?;
    assert!(made == read("events/backlog.jsonl")?, "run `cargo run -p osprey-tests --bin backlog`");
    Ok(())
}

#[test]
fn a_bad_row_is_named() {
    let sample = "id,…\n31,86313,3860,4,experimental,inference,0,7,\n";
    assert_eq!(from_csv(sample).map(|backlog| backlog.lines().count()), Ok(1));
    for bad in ["31,0,x,4,e,i,0,7,", "31,0,1,4,e,i,0,8,", "31,0,1,4,e,i,0,7", "31,0,1,4,e,i,0,7,,"] {
        assert_eq!(from_csv(&format!("id,…\n{bad}\n")), Err(format!("line 2 can't be read: {bad}")));
    }
}

#[test]
fn sixty_lines_and_one_of_them_cut_off() -> Checked {
    let lines = lines()?;
    assert_eq!(lines.len(), 60);
    assert!(lines.iter().all(|line| !line.trim().is_empty()));
    assert_eq!(jobs()?.len(), 59);
    Ok(())
}

#[test]
fn one_job_comes_twice_to_the_letter() -> Checked {
    let lines = lines()?;
    let repeated: Vec<_> = lines.iter().filter(|line| lines.iter().filter(|other| other == line).count() > 1).collect();
    assert_eq!(repeated.len(), 2);
    assert!(repeated.iter().all(|line| line.contains("osprey:job-id")));
    Ok(())
}

#[test]
fn dependencies_go_three_deep_and_name_jobs_of_the_file() -> Checked {
    let jobs = jobs()?;
    let depth_of = |job: &Value| {
        let (mut job, mut depth) = (job, 0);
        while let Some(parent) = crate::list(job, "dependsOn").first().map(|parent| text(parent, "jobId")) {
            job = jobs.iter().find(|other| tag(other, "osprey:job-id") == Some(parent))?;
            depth += 1;
        }
        Some(depth)
    };
    let depths: Option<Vec<i32>> = jobs.iter().map(depth_of).collect();
    assert_eq!(depths.and_then(|depths| depths.into_iter().max()), Some(3));
    Ok(())
}

#[test]
fn every_job_says_how_long_it_runs() -> Checked {
    let says = |job: &&Value| job.to_string().to_lowercase().replace('_', "-").contains("expected-duration");
    assert_eq!(jobs()?.iter().filter(says).count(), 59);
    Ok(())
}

#[test]
fn gpus_fit_a_node_of_eight() -> Checked {
    let counts: std::collections::BTreeSet<u64> = jobs()?.iter().map(|job| amount(job, "GPU")).collect();
    // 0 is the job without GPUs, and the one whose overrides are misspelt; 7 is the one to be refused.
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [0, 1, 4, 7, 8]);
    Ok(())
}

#[test]
fn preemptible_jobs_say_how_often_they_checkpoint() -> Checked {
    let jobs = jobs()?;
    let intervals: Vec<_> = jobs
        .iter()
        .filter(|job| tag(job, "preemptible") == Some("true"))
        .map(|job| tag(job, "checkpoint-interval"))
        .collect();
    assert!(intervals.len() >= 4 && intervals.iter().all(Option::is_some), "{intervals:?}");
    assert_eq!(intervals.iter().filter(|interval| **interval == Some("1h")).count(), 1);
    assert_eq!(jobs.iter().filter(|job| tag(job, "osprey:local-reclaim-after").is_some()).count(), 2);
    Ok(())
}

#[test]
fn production_inference_is_among_them() -> Checked {
    let urgent = jobs()?
        .into_iter()
        .filter(|job| tag(job, "environment") == Some("production") && tag(job, "workload-type") == Some("inference"));
    assert!(urgent.count() >= 3);
    Ok(())
}
