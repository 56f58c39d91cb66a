//! What only the store can refuse, and what is kept.

use serde_json::{Value, json};

use crate::LocalBatch;
use crate::event::tests::Stage;

fn refusal(batch: &LocalBatch, body: &Value) -> String {
    let mut request = json!({"jobName": "x", "jobQueue": "tier-low-spot", "jobDefinition": "train",
        "shareIdentifier": "a", "schedulingPriorityOverride": 1});
    request.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
    batch.submit_job(&serde_json::from_value(request).unwrap()).unwrap_err().message
}

#[test]
fn unknown_names_are_refused_with_the_name() {
    let stage = Stage::new("submit");
    let cases = [
        (json!({"jobQueue": "nowhere"}), "JobQueue nowhere not found."),
        (json!({"jobQueue": null}), "jobQueue must be specified."),
        (json!({"jobDefinition": "nothing"}), "JobDefinition nothing not found."),
        (json!({"jobDefinition": "train:2"}), "JobDefinition train:2 not found."),
        (json!({"dependsOn": [{"jobId": "no-such-job"}]}), "Job no-such-job in dependsOn not found."),
        (json!({"shareIdentifier": null}), "shareIdentifier must be specified."),
        (
            json!({"schedulingPriorityOverride": null}),
            "Either schedulingPriority in job definition or schedulingPriorityOverride should be specified.",
        ),
        (
            json!({"containerOverrides": {"resourceRequirements": [{"type": "GPU", "value": "half"}]}}),
            "Invalid GPU value: half",
        ),
    ];
    for (body, want) in cases {
        assert_eq!(refusal(&stage.batch, &body), want);
    }
    let id = stage.submit(&json!({}));
    let pairs = json!({"arrayProperties": {"size": 2}, "dependsOn": [{"jobId": id, "type": "N_TO_N"}]});
    assert_eq!(refusal(&stage.batch, &pairs), format!("N_TO_N dependency {id} must be an array job of the same size"));
}

#[test]
fn names_and_arns_mean_the_same_and_every_field_is_kept() {
    let stage = Stage::new("kept");
    let arn = "arn:aws:batch:us-east-1:123456789012:";
    let change = json!({
        "jobQueue": format!("{arn}job-queue/tier-low-spot"), "jobDefinition": format!("{arn}job-definition/train:1"),
        "parameters": {"epochs": "3"}, "timeout": {"attemptDurationSeconds": 600},
        "containerOverrides": {"environment": [{"name": "A", "value": "b"}],
            "resourceRequirements": [{"type": "GPU", "value": "2"}]}
    });
    let id = stage.submit(&change);
    let job = stage.batch.describe_jobs(&[format!("{arn}job/{id}")]).unwrap().pop().unwrap();
    assert_eq!(job["jobId"], id);
    assert_eq!(job["shareIdentifier"], "TeamA");
    assert_eq!(job["schedulingPriority"], 4200);
    assert_eq!(job["tags"], json!({"team": "team-a", "tier": "low"}));
    assert_eq!(job["timeout"], json!({"attemptDurationSeconds": 600}));
    assert_eq!(job["parameters"], json!({"epochs": "3"}));
    assert_eq!(job["container"]["environment"], json!([{"name": "A", "value": "b"}]));
    let requirements = json!([
        {"value": "4", "type": "VCPU"}, {"value": "16384", "type": "MEMORY"}, {"value": "2", "type": "GPU"}]);
    assert_eq!(job["container"]["resourceRequirements"], requirements);
    assert_eq!((&job["isCancelled"], &job["isTerminated"]), (&json!(false), &json!(false)));
    let kept = stage.batch.submitted_request(&id).unwrap().unwrap();
    assert_eq!(kept["containerOverrides"], change["containerOverrides"]);
    assert_eq!(kept["jobQueue"], change["jobQueue"]);
}

#[test]
fn definitions_get_revisions_only_when_they_change() {
    let stage = Stage::new("definitions");
    let body = json!({"jobDefinitionName": "eval", "type": "container",
        "containerProperties": {"image": "x", "command": ["true"]}});
    let ensure = |body: &Value| {
        let definition = serde_json::from_value(body.clone()).unwrap();
        stage.batch.ensure_job_definition(&definition).unwrap().job_definition_arn
    };
    let arn = "arn:aws:batch:us-east-1:123456789012:job-definition/eval";
    assert_eq!((ensure(&body), ensure(&body)), (format!("{arn}:1"), format!("{arn}:1")));
    let mut other = body.clone();
    other["containerProperties"]["command"] = json!(["false"]);
    assert_eq!(ensure(&other), format!("{arn}:2"));
    let revisions = |name: &str| {
        let found = stage.batch.describe_job_definitions(&[name.to_owned()]).unwrap();
        found.iter().map(|definition| definition.revision).collect::<Vec<_>>()
    };
    assert_eq!((revisions("eval"), revisions("eval:1"), revisions(arn)), (vec![2, 1], vec![1], vec![2, 1]));
}

#[test]
fn an_array_of_the_largest_size_is_taken() {
    let stage = Stage::new("largest");
    let id = stage.submit(&json!({"arrayProperties": {"size": crate::validate::ARRAY_SIZE_MAX}}));
    stage.batch.cancel_job(&id, "enough").unwrap();
    let parent = stage.batch.describe_jobs(&[id]).unwrap().pop().unwrap();
    assert_eq!(parent["arrayProperties"]["statusSummary"]["FAILED"], 10_000);
    assert_eq!(parent["status"], "FAILED");
}
