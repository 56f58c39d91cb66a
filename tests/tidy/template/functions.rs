//! Functions: each folder has its resource, and time-outs, queues and responses go together.

use osprey_pipeline::context::Settings;
use osprey_tests::root;
use serde_json::{Value, json};

use super::{at, parse, resolved, resources, target, template};
use crate::{Checked, assert_none, list, text};

/// A queue must hide a message for so many times the function's time-out: AWS's own advice, since a batch may be tried
/// again after a throttle.
const VISIBILITY_TIMES: i64 = 6;

fn folders() -> std::io::Result<Vec<String>> {
    let entries = std::fs::read_dir(root().join("functions"))?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

// B26: functions of Lambda around queues, a table and schedules; AWS Batch runs the jobs.
fn offences(template: &Value, folders: &[String]) -> Vec<String> {
    let functions = resources(template, "AWS::Serverless::Function");
    let code = |folder: &str| format!("target/lambda/{folder}/bootstrap.zip");
    let mut found: Vec<String> = folders
        .iter()
        .filter(|folder| !functions.values().any(|function| text(function, "CodeUri") == code(folder)))
        .map(|folder| format!("functions/{folder} has no resource"))
        .collect();
    for (name, function) in &functions {
        let folder = resolved(template, at(function, "/FunctionName")).replacen("osprey-", "", 1);
        if !folders.contains(&folder) || text(function, "CodeUri") != code(&folder) {
            found.push(format!("{name} is not of functions/{folder}"));
        }
        if at(template, &format!("/Resources/{name}/Metadata/SkipBuild")) != &json!(true) {
            found.push(format!("{name} would be built by SAM"));
        }
        found.extend(triggers(template, function).into_iter().map(|offence| format!("{name}: {offence}")));
    }
    found
}

fn timeout(template: &Value, function: &Value) -> i64 {
    let own = at(function, "/Timeout").as_i64();
    own.or(at(template, "/Globals/Function/Timeout").as_i64()).unwrap_or(3)
}

fn triggers(template: &Value, function: &Value) -> Vec<String> {
    let queues = resources(template, "AWS::SQS::Queue");
    let needed = VISIBILITY_TIMES * timeout(template, function);
    let mut found = Vec::new();
    for event in at(function, "/Events").as_object().into_iter().flat_map(|events| events.values()) {
        let properties = at(event, "/Properties");
        let queue = target(at(properties, "/Queue"));
        let hidden = queues.get(queue).and_then(|queue| at(queue, "/VisibilityTimeout").as_i64()).unwrap_or(30);
        if hidden < needed {
            found.push(format!("{queue} hides a message for {hidden} s, and {needed} s are needed"));
        }
        if list(properties, "FunctionResponseTypes") != [json!("ReportBatchItemFailures")] {
            found.push(format!("one bad message of {queue} brings all of its batch back"));
        }
        if at(properties, "/ScalingConfig/MaximumConcurrency").is_null() {
            found.push(format!("{queue} may take all of the account's concurrency"));
        }
    }
    found
}

#[test]
fn every_function_has_its_resource() -> Checked {
    assert_none("template.yaml", &offences(&template()?, &folders()?));
    Ok(())
}

#[test]
fn no_function_outlives_what_a_claim_allows() -> Checked {
    let template = template()?;
    let limit = Settings::default().send_limit_ms / 1000;
    for (name, function) in resources(&template, "AWS::Serverless::Function") {
        assert!(timeout(&template, function) <= limit, "{name} may run longer than {limit} s after its claim");
    }
    Ok(())
}

#[test]
fn ratios_that_are_off_are_found() -> Checked {
    let whole = crate::read("template.yaml")?;
    for (from, to, want) in [
        ("VisibilityTimeout: 360", "VisibilityTimeout: 359", "hides a message for 359 s, and 360 s are needed"),
        ("    Timeout: 60", "    Timeout: 61", "366 s are needed"),
        ("[ReportBatchItemFailures]", "[]", "brings all of its batch back"),
        ("CodeUri: target/lambda/submit/", "CodeUri: target/lambda/submits/", "functions/submit has no resource"),
        ("{ SkipBuild: true }", "{}", "would be built by SAM"),
    ] {
        let found = offences(&parse(&whole.replacen(from, to, 1))?, &folders()?);
        assert!(found.iter().any(|offence| offence.contains(want)), "{want}: {found:?}");
    }
    Ok(())
}
