//! Heads that hold up their queue, and their time limits.

use serde_json::{Value, json};

use super::*;
use crate::Scaling;
use crate::event::tests::Stage;

fn limit(reason: &str, seconds: i64) -> JobStateTimeLimit {
    JobStateTimeLimit {
        reason: reason.to_owned(),
        state: "RUNNABLE".to_owned(),
        max_time_seconds: seconds,
        action: "CANCEL".to_owned(),
    }
}

fn vcpus(amount: &str) -> Value {
    json!({"containerOverrides": {"resourceRequirements": [{"type": "VCPU", "value": amount}]}})
}

fn blocked_events(stage: &Stage) -> Vec<Value> {
    let events = stage.batch.fetch_events(1_000).unwrap();
    let bodies = events.into_iter().map(|event| event.body);
    bodies.filter(|body| body["detail-type"] == "Batch Job Queue Blocked").collect()
}

#[test]
fn limits_are_checked_one_by_one() {
    let stage = Stage::new("limits");
    let right = limit(LIMIT_REASONS[0], 600);
    let cases = [
        (limit("BAD", 600), "reason must be one of ["),
        (limit(LIMIT_REASONS[0], 599), "maxTimeSeconds must be between 600 and 86400, got 599"),
        (limit(LIMIT_REASONS[0], 86_401), "maxTimeSeconds must be between 600 and 86400, got 86401"),
        (JobStateTimeLimit { state: "PENDING".to_owned(), ..right.clone() }, "state must be RUNNABLE, got PENDING"),
        (JobStateTimeLimit { action: "TERMINATE".to_owned(), ..right.clone() }, "action must be CANCEL, got TERMINATE"),
    ];
    for (limit, want) in cases {
        let error = stage.batch.set_time_limits("tier-low-spot", &[limit]).unwrap_err();
        assert!(error.message.starts_with(want), "{}", error.message);
    }
    assert!(stage.batch.set_time_limits("nowhere", &[]).is_err());
    stage.batch.set_time_limits("tier-low-spot", std::slice::from_ref(&right)).unwrap();
    let queue = stage.batch.describe_job_queues(&[]).unwrap().pop().unwrap();
    assert_eq!(queue.job_state_time_limit_actions, [right]);
}

#[test]
fn a_head_that_is_blocked_for_the_reason_of_a_limit_is_cancelled_when_its_time_is_up() {
    let stage = Stage::new("limit");
    let reason = "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT";
    stage.batch.set_time_limits("tier-low-spot", &[limit(LIMIT_REASONS[0], 600), limit(reason, 900)]).unwrap();
    let (head, next) = (stage.submit(&vcpus("5000")), stage.submit(&vcpus("5000")));
    let behind = stage.submit(&json!({}));
    assert_eq!(stage.cycle(), Some(900_000));
    assert!(stage.job(&head)["statusReason"].as_str().unwrap().starts_with(reason));
    assert_eq!(stage.job(&next)["statusReason"], Value::Null, "only the head is judged");
    stage.pass(899_999);
    stage.cycle();
    assert_eq!(stage.job(&head)["status"], "RUNNABLE");
    stage.pass(1);
    assert_eq!(stage.cycle(), Some(900_000), "the next head's time begins when it becomes the head");
    let job = stage.job(&head);
    let want = format!("Canceled by JobStateTimeLimit action due to reason: {reason}");
    assert_eq!((&job["status"], &job["statusReason"]), (&json!("FAILED"), &json!(want)));
    assert_eq!((&job["attempts"], &job["isCancelled"]), (&json!([]), &json!(false)));
    assert_eq!(stage.last_event_of(&head)["detail"]["statusReason"], want.as_str());
    stage.pass(900_000);
    assert_eq!(stage.cycle(), None);
    assert_eq!(stage.job(&behind)["status"], "STARTING");
}

#[test]
fn a_blocked_head_has_one_event_with_its_job_and_its_queue() {
    let stage = Stage::new("blocked");
    let head = stage.submit(&vcpus("5000"));
    stage.cycle();
    stage.submit(&json!({}));
    stage.cycle();
    let events = blocked_events(&stage);
    assert_eq!(events.len(), 1);
    let job = &stage.job(&head)["jobArn"];
    assert_eq!(events[0]["resources"][0], *job);
    assert_eq!(events[0]["resources"][1], "arn:aws:batch:us-east-1:123456789012:job-queue/tier-low-spot");
    assert_eq!(events[0]["detail"]["status"], "RUNNABLE");
    assert!(events[0]["detail"]["statusReason"].as_str().unwrap().starts_with("MISCONFIGURATION:"));
    stage.batch.cancel_job(&head, "too wide").unwrap();
    stage.cycle();
    assert_eq!(blocked_events(&stage).len(), 1);
}

#[test]
fn a_full_queue_waits_its_turn_and_one_without_instances_is_blocked() {
    let stage = Stage::new("capacity");
    let (first, second) = (stage.submit(&vcpus("1024")), stage.submit(&vcpus("1024")));
    stage.cycle();
    assert_eq!(stage.job(&first)["status"], "STARTING");
    assert_eq!(stage.job(&second)["statusReason"], Value::Null);
    assert_eq!(blocked_events(&stage), Vec::<Value>::new());
    stage.play(None, &crate::files::Outcome::Code(0));
    stage.play(None, &crate::files::Outcome::Code(0));
    stage.batch.set_scaling("spot-ce", Some(Scaling::default())).unwrap();
    stage.batch.limit_capacity("spot-ce", Some(0)).unwrap();
    let third = stage.submit(&json!({}));
    stage.cycle();
    let reason = stage.job(&third)["statusReason"].as_str().unwrap().to_owned();
    assert!(reason.starts_with("CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - "), "{reason}");
    stage.batch.limit_capacity("spot-ce", None).unwrap();
    stage.cycle();
    assert_eq!(stage.job(&third)["status"], "STARTING");
}
