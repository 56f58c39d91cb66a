//! Tags of each kind of holder, and definitions that are taken out of use.

use serde_json::json;

use super::Tags;
use crate::arn::name_of;
use crate::event::tests::Stage;

fn tags(pairs: &[(&str, &str)]) -> Tags {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn arn_of(stage: &Stage, kind: &str) -> String {
    let batch = &stage.batch;
    match kind {
        "queue" => batch.describe_job_queues(&[]).unwrap()[0].job_queue_arn.clone(),
        "environment" => batch.describe_compute_environments(&[]).unwrap()[0].compute_environment_arn.clone(),
        _ => batch.describe_job_definitions(&[]).unwrap()[0].job_definition_arn.clone(),
    }
}

#[test]
fn whatever_has_an_arn_takes_tags_and_gives_them_back() {
    let stage = Stage::new("tags");
    let id = stage.submit(&json!({"jobName": "a", "tags": {"team": "vision"}}));
    let job = stage.batch.describe_jobs(&[id]).unwrap()[0]["jobArn"].as_str().unwrap().to_owned();
    for arn in [job, arn_of(&stage, "queue"), arn_of(&stage, "environment"), arn_of(&stage, "definition")] {
        let before = stage.batch.resource_tags(&arn).unwrap();
        stage.batch.tag_resource(&arn, &tags(&[("a", "1"), ("b", "2")])).unwrap();
        stage.batch.untag_resource(&arn, &["b".to_owned(), "nothing".to_owned()]).unwrap();
        let mut want = before;
        want.insert("a".to_owned(), "1".to_owned());
        assert_eq!(stage.batch.resource_tags(&arn).unwrap(), want, "{arn}");
    }
}

#[test]
fn what_has_no_tags_is_refused() {
    let stage = Stage::new("no-tags");
    let id = stage.submit(&json!({"jobName": "a", "arrayProperties": {"size": 2}}));
    let job = stage.batch.describe_jobs(&[id]).unwrap()[0]["jobArn"].as_str().unwrap().to_owned();
    let cases = [
        ("train".to_owned(), "train is not a valid resource ARN".to_owned()),
        (format!("{job}:0"), "ARNs of child jobs of array jobs are not supported".to_owned()),
        (format!("{job}0"), format!("{job}0 does not exist")),
    ];
    for (arn, want) in cases {
        assert_eq!(stage.batch.resource_tags(&arn).unwrap_err().message, want);
    }
    let many: Tags = (0..49).map(|n| (n.to_string(), String::new())).collect();
    assert_eq!(stage.batch.tag_resource(&job, &many).unwrap_err().message, "Tags must be at most 50, got 51");
}

#[test]
fn a_deregistered_revision_takes_no_jobs_and_stays_to_be_seen() {
    let stage = Stage::new("deregister");
    let arn = arn_of(&stage, "definition");
    stage.batch.deregister_job_definition(name_of(&arn)).unwrap();
    stage.batch.deregister_job_definition(&arn).unwrap();
    let seen = stage.batch.describe_job_definitions(std::slice::from_ref(&arn)).unwrap();
    assert_eq!(seen[0].status.as_deref(), Some("INACTIVE"));
    let refusal = |name: &str| stage.batch.deregister_job_definition(name).unwrap_err().message;
    assert_eq!(refusal("train"), "train must have a revision");
    assert_eq!(refusal("train:9"), "train:9 does not exist");
}
