//! The acceptance table of the default policy, number for number, as `osprey priority --output json` gives it.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::Checked;

/// Environment, workload, GPUs, preemptible, failures; priority and tier.
type Row = (&'static str, &'static str, u32, bool, u32, u64, &'static str);

const TABLE: [Row; 10] = [
    ("production", "inference", 1, false, 0, 1200, "critical"),
    ("production", "inference", 8, false, 0, 1150, "critical"),
    ("production", "training", 8, false, 0, 950, "production"),
    ("dev", "inference", 1, false, 0, 700, "experimental"),
    ("dev", "training", 8, false, 0, 450, "experimental"),
    ("dev", "training", 8, false, 3, 420, "experimental"),
    ("dev", "training", 1, false, 60, 0, "experimental"),
    // "any": the two ends.
    ("production", "inference", 1, true, 0, 0, "preemptible"),
    ("production", "training", 8, true, 7, 0, "preemptible"),
    ("production", "batch", 4, true, 60, 0, "preemptible"),
];

/// How a job says what it is.
#[derive(Clone, Copy, Debug)]
enum Given {
    Tags,
    Variables,
    OddSpellings,
}

fn request(row: Row, given: Given) -> Value {
    let (environment, workload, gpus, preemptible, ..) = row;
    let mut pairs = vec![("environment", environment.to_owned()), ("workload", workload.to_owned())];
    if preemptible {
        pairs.extend([("preemptible", "true".to_owned()), ("checkpoint-interval", "10m".to_owned())]);
    }
    let resources = json!([
        { "type": "GPU", "value": gpus.to_string() },
        { "type": "VCPU", "value": "4" },
        { "type": "MEMORY", "value": "8192" },
    ]);
    let mut container = json!({ "command": ["true"], "resourceRequirements": resources });
    let mut tags = json!({});
    for (key, value) in pairs {
        match given {
            Given::Tags => put(&mut tags, key, &value),
            Given::OddSpellings => {
                let key = if key == "environment" { "Env".to_owned() } else { key.to_uppercase().replace('-', "_") };
                put(&mut tags, &key, &format!(" {} ", value.to_uppercase().replace("10M", "10 m")));
            }
            Given::Variables => {
                let variable = format!("OSPREY_{}", key.to_uppercase().replace('-', "_"));
                let variable = json!({ "name": variable, "value": value });
                match container.get_mut("environment").and_then(Value::as_array_mut) {
                    Some(variables) => variables.push(variable),
                    None => put(&mut container, "environment", &Value::from(vec![variable])),
                }
            }
        }
    }
    json!({ "jobName": "row", "jobDefinition": "train:1", "containerOverrides": container, "tags": tags })
}

fn put(object: &mut Value, key: &str, value: &(impl Clone + Into<Value>)) {
    if let Some(members) = object.as_object_mut() {
        members.insert(key.to_owned(), value.clone().into());
    }
}

/// The answer of `osprey priority --output json` to one request.
fn priority(request: &Value, failures: u32) -> Result<Value, Box<dyn std::error::Error>> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_osprey-under-test"))
        .args(["priority", "-", "--output", "json", "--lineage", &json!({ "failures": failures }).to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    child.stdin.take().ok_or("no standard input")?.write_all(request.to_string().as_bytes())?;
    Ok(serde_json::from_slice(&child.wait_with_output()?.stdout)?)
}

/// Number, tier and whether the job was admitted, in words.
fn outcome(row: Row, given: Given) -> Result<String, Box<dyn std::error::Error>> {
    let answer = priority(&request(row, given), row.4)?;
    let member = |name: &str| answer.get(name).unwrap_or(&Value::Null);
    Ok(format!("{} {} admitted={}", member("priority"), member("tier"), member("admitted")))
}

#[test]
fn the_table_comes_out_for_tags_for_variables_and_for_odd_spellings() -> Checked {
    for row in TABLE {
        let (.., priority, tier) = row;
        for given in [Given::Tags, Given::Variables, Given::OddSpellings] {
            let want = format!("{priority} \"{tier}\" admitted=true");
            assert_eq!(outcome(row, given)?, want, "{row:?} by {given:?}");
        }
    }
    Ok(())
}

#[test]
fn the_steps_add_up_to_the_number() -> Checked {
    let row = ("dev", "training", 8, false, 3, 420, "experimental");
    let answer = priority(&request(row, Given::Tags), row.4)?;
    let steps = answer.get("steps").and_then(Value::as_array).ok_or("no steps")?;
    let mut running = 0;
    for step in steps {
        let contribution = step.get("contribution").and_then(Value::as_i64).ok_or("no contribution")?;
        running += contribution;
        assert_eq!(step.get("priority_after").and_then(Value::as_i64), Some(running), "{step}");
        assert_eq!(step.get("matched") == Some(&Value::Bool(true)), contribution != 0, "{step}");
    }
    assert_eq!(running, 420);
    Ok(())
}
