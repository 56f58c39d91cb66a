//! A job on two nodes through a whole local run: it starts on both or on none, and ends in one place.

use std::fs;

use serde_json::{Value, json};

use crate::Checked;
use crate::local::{Folder, said};

/// Writes its start and its end into a ledger, each with name and node.
const SCRIPT: &str = "tests/interrupted/job.sh";

fn needs(gpus: &str) -> Value {
    let needs = [("GPU", gpus), ("VCPU", "1"), ("MEMORY", "256")];
    needs.iter().map(|(kind, value)| json!({ "type": kind, "value": value })).collect()
}

#[test]
fn a_job_on_two_nodes_starts_on_both_or_on_none_and_ends_once() -> Checked {
    let folder = Folder::new("nodes")?;
    let path = |name: &str| folder.0.join(name).display().to_string();
    let command = |name: &str, seconds: &str| json!([SCRIPT, path("ledger"), name, seconds, "0"]);
    let container = json!({ "image": "busybox", "resourceRequirements": needs("2") });
    let range = json!({ "targetNodes": "0:1", "container": container });
    let definition = json!({ "jobDefinitionName": "pair", "type": "multinode",
        "nodeProperties": { "numNodes": 2, "mainNode": 1, "nodeRangeProperties": [range] } });
    fs::write(path("definitions.json"), definition.to_string())?;
    let id = "00000000-0000-4000-8000-0000000000d1";
    let overrides = json!({ "targetNodes": "0:1", "containerOverrides": { "command": command("pair", "0.5") } });
    let jobs = [
        json!({ "jobName": "holder", "jobDefinition": "any",
            "containerOverrides": { "command": command("holder", "1"), "resourceRequirements": needs("1") } }),
        json!({ "jobName": "pair", "jobDefinition": "pair", "tags": { "osprey:job-id": id },
            "nodeOverrides": { "nodePropertyOverrides": [overrides] } }),
    ];
    fs::write(path("jobs.jsonl"), jobs.map(|job| format!("{job}\n")).concat())?;
    let cluster = ["--nodes", "2", "--gpus-per-node", "2", "--spot-nodes", "0", "--definitions"];
    let (jobs, definitions, state) = (path("jobs.jsonl"), path("definitions.json"), folder.state());
    let run = [&["local", "run", &jobs, "--output", "json"], &cluster[..], &[&definitions, "--state", &state]].concat();
    let summary = said(&run)?;
    assert!(summary.contains(r#"{"jobs":2,"succeeded":2,"failed":0,"refused":0,"dead_letters":0,"#), "{summary}");

    let ledger = fs::read_to_string(path("ledger"))?;
    let mut told: Vec<String> =
        ledger.lines().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(told.drain(..2).collect::<Vec<_>>(), ["start holder", "done holder"], "{ledger}");
    let mut starts: Vec<String> = told.drain(..2).collect();
    starts.sort();
    assert_eq!(starts, ["start pair@0", "start pair@1"], "{ledger}");
    assert_eq!(told.iter().filter(|line| *line == "done pair@1").count(), 1, "{ledger}");
    assert!(told.len() <= 2, "the other node ends at the same time, or is stopped with the main one: {ledger}");

    let record: Value = serde_json::from_str(&said(&["describe", id, "--output", "json", "--local", &state])?)?;
    let ends: Vec<&Value> = record["attempts"].as_array().into_iter().flatten().map(|one| &one["end_class"]).collect();
    assert_eq!((&record["state"], &record["gpus"], ends), (&json!("succeeded"), &json!(4), vec![&json!("succeeded")]));
    Ok(())
}
