//! What is refused at the door, with the exact message.

use osprey_model::request::*;
use serde_json::json;

use super::{QueueOrder, doom, for_queue, request};

fn good() -> serde_json::Value {
    json!({"jobName": "train", "jobQueue": "q", "jobDefinition": "d"})
}

fn verdict(change: &serde_json::Value) -> String {
    let mut body = good();
    let members = change.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(members);
    match request(&serde_json::from_value(body).unwrap()) {
        Ok(()) => "accepted".to_owned(),
        Err(error) => {
            assert_eq!((error.status, error.code), (400, crate::ErrorCode::ClientException));
            error.message
        }
    }
}

#[test]
fn names_and_sizes_have_batchs_limits() {
    let cases = [
        (json!({}), "accepted"),
        (json!({"jobName": "a".repeat(128)}), "accepted"),
        (json!({"jobName": "a".repeat(129)}), "Job name must be at most 128 characters"),
        (json!({"jobName": ""}), "Job name must not be empty"),
        (json!({"jobName": "-a"}), "Job name should match valid pattern, ^[a-zA-Z0-9][a-zA-Z0-9_-]*$"),
        (json!({"jobName": "a b"}), "Job name should match valid pattern, ^[a-zA-Z0-9][a-zA-Z0-9_-]*$"),
        (json!({"parameters": {"x": "y".repeat(47 * 1024)}}), "Job size must be less than 30 KiB, got 48 KiB"),
        (json!({"arrayProperties": {"size": 10_000}}), "accepted"),
        (json!({"arrayProperties": {"size": 1}}), "Array size must be between 2 and 10000, got 1"),
        (json!({"arrayProperties": {"size": 10_001}}), "Array size must be between 2 and 10000, got 10001"),
        (json!({"timeout": {"attemptDurationSeconds": 60}}), "accepted"),
        (
            json!({"timeout": {"attemptDurationSeconds": 59}}),
            "attemptDurationSeconds must be at least 60 seconds, got 59",
        ),
        (json!({"schedulingPriorityOverride": 9_999}), "accepted"),
        (json!({"schedulingPriorityOverride": 10_000}), "schedulingPriorityOverride must be between 0 and 9999"),
        (json!({"shareIdentifier": "teamA*"}), "accepted"),
        (
            json!({"shareIdentifier": "team-a"}),
            "shareIdentifier must be at most 255 alphanumeric characters, optionally followed by *",
        ),
    ];
    for (change, want) in cases {
        assert_eq!(verdict(&change), want, "{change}");
    }
}

#[test]
fn containers_have_batchs_limits() {
    let overrides = |body: serde_json::Value| verdict(&json!({"containerOverrides": body}));
    assert_eq!(overrides(json!({"command": ["a", ""]})), "Container command must not contain empty strings");
    assert_eq!(
        overrides(json!({"instanceType": "p4d.24xlarge"})),
        "instanceType is only valid for multi-node parallel jobs"
    );
    assert_eq!(
        overrides(json!({"environment": [{"name": "AWS_BATCH_JOB_ID", "value": "x"}]})),
        "Environment variable name AWS_BATCH_JOB_ID must not start with AWS_BATCH, which is reserved"
    );
    assert_eq!(overrides(json!({"environment": [{"value": "x"}]})), "Environment variable name must not be empty");
    assert_eq!(
        overrides(json!({"environment": [{"name": "A=B", "value": "x"}]})),
        "Environment variable \"A=B\" contains invalid characters"
    );
    let node = json!({"targetNodes": "0:", "containerOverrides": {"command": [""]}});
    assert_eq!(
        verdict(&json!({"nodeOverrides": {"numNodes": 2, "nodePropertyOverrides": [node]}})),
        "Container command must not contain empty strings",
        "nodes are containers too"
    );
}

#[test]
fn dependencies_have_batchs_limits() {
    let depends = |array: bool, body: serde_json::Value| {
        let size = if array { json!({"size": 2}) } else { json!({}) };
        verdict(&json!({"dependsOn": body, "arrayProperties": size}))
    };
    let many: Vec<_> = (0..21).map(|n| json!({"jobId": n.to_string()})).collect();
    assert_eq!(depends(false, json!(many)), "Job dependencies must be at most 20, got 21");
    assert_eq!(depends(false, json!([{}])), "Dependency must have a jobId");
    assert_eq!(
        depends(false, json!([{"type": "SEQUENTIAL"}])),
        "Dependency type SEQUENTIAL or N_TO_N is only valid for array jobs"
    );
    assert_eq!(depends(true, json!([{"type": "SEQUENTIAL"}])), "accepted");
    assert_eq!(
        depends(true, json!([{"type": "SEQUENTIAL", "jobId": "x"}])),
        "Dependency type SEQUENTIAL must not have a jobId"
    );
    assert_eq!(
        depends(true, json!([{"type": "AFTER", "jobId": "x"}])),
        "Dependency type must be one of [N_TO_N, SEQUENTIAL], got AFTER"
    );
}

#[test]
fn retry_strategies_have_batchs_limits() {
    let retry = |body: serde_json::Value| verdict(&json!({"retryStrategy": body}));
    let rule = |body: serde_json::Value| retry(json!({"attempts": 2, "evaluateOnExit": [body]}));
    assert_eq!(retry(json!({"attempts": 11})), "retryStrategy attempts must be between 1 and 10");
    assert_eq!(
        retry(json!({"evaluateOnExit": [{"onReason": "*", "action": "EXIT"}]})),
        "retryStrategy attempts is required with evaluateOnExit"
    );
    let many: Vec<_> = (0..6).map(|_| json!({"onReason": "*", "action": "EXIT"})).collect();
    assert_eq!(
        retry(json!({"attempts": 2, "evaluateOnExit": many})),
        "evaluateOnExit must have at most 5 rules, got 6"
    );
    assert_eq!(rule(json!({"onStatusReason": "Host EC2*", "action": "retry"})), "accepted");
    assert_eq!(
        rule(json!({"onStatusReason": "Host EC2 (*", "action": "RETRY"})),
        "onStatusReason may contain only letters, digits, periods, colons, whitespace and a trailing *, at most 512 \
         characters"
    );
    assert_eq!(
        rule(json!({"onExitCode": "1a", "action": "RETRY"})),
        "onExitCode may contain only digits and a trailing *, at most 512 characters"
    );
    assert_eq!(
        rule(json!({"onExitCode": "1", "action": "AGAIN"})),
        "evaluateOnExit action must be one of [RETRY, EXIT], got AGAIN"
    );
}

#[test]
fn tags_have_batchs_limits() {
    let tags = |count: usize| (0..count).map(|n| (n.to_string(), json!("x"))).collect::<serde_json::Map<_, _>>();
    assert_eq!(verdict(&json!({"tags": tags(50)})), "accepted");
    assert_eq!(verdict(&json!({"tags": tags(51)})), "Tags must be at most 50, got 51");
    assert_eq!(
        verdict(&json!({"tags": {"k": "v".repeat(257)}})),
        "Tag value of \"k\" must have at most 256 characters"
    );
    assert_eq!(verdict(&json!({"tags": {"": "v"}})), "Tag key \"\" must have 1 to 128 characters");
    assert_eq!(
        verdict(&json!({"tags": {"aws:x": "v"}})),
        "Tag key \"aws:x\" must not start with aws:, which is reserved"
    );
}

#[test]
fn share_and_priority_go_with_fair_share_queues_only() {
    let say = |order, share, over, definition| match for_queue(order, share, over, definition) {
        Ok(()) => "accepted".to_owned(),
        Err(error) => error.message,
    };
    use QueueOrder::{FairShare, Fifo};
    assert_eq!(say(FairShare, Some("a"), Some(1), None), "accepted");
    assert_eq!(say(FairShare, Some("a"), None, Some(1)), "accepted");
    assert_eq!(say(FairShare, None, Some(1), None), "shareIdentifier must be specified.");
    assert_eq!(
        say(FairShare, Some("a"), None, None),
        "Either schedulingPriority in job definition or schedulingPriorityOverride should be specified."
    );
    assert_eq!(say(Fifo, None, None, Some(5)), "accepted");
    assert_eq!(
        say(Fifo, Some("a"), None, None),
        "shareIdentifier must not be specified for a job queue without a fair-share scheduling policy."
    );
    assert_eq!(
        say(Fifo, None, Some(5), None),
        "schedulingPriorityOverride must not be specified for a job queue without a fair-share scheduling policy."
    );
}

#[test]
fn what_ecs_would_refuse_later_is_accepted_and_doomed() {
    let long = SubmitJobRequest {
        container_overrides: Some(ContainerOverrides {
            command: Some(vec!["x".repeat(8_192)]),
            ..ContainerOverrides::default()
        }),
        ..SubmitJobRequest::default()
    };
    assert_eq!(doom(&long, 0).as_deref(), Some("Container Overrides length must be at most 8192"));
    let tags = (0..30).map(|n| (n.to_string(), String::new())).collect();
    let mut tagged = SubmitJobRequest { tags: Some(tags), ..SubmitJobRequest::default() };
    assert_eq!(doom(&tagged, 30), None);
    tagged.propagate_tags = Some(true);
    assert_eq!(doom(&tagged, 30).as_deref(), Some("Combined job and job definition tags must be at most 50, got 60"));
}
