//! Spot hosts that go away.

use osprey_model::request::{EvaluateOnExit, RetryStrategy, SubmitJobRequest};

use crate::support::{options, shell, world};

fn on_spot(script: &str) -> SubmitJobRequest {
    SubmitJobRequest { job_queue: Some("spot".to_owned()), ..shell(script) }
}

fn lost(reason: &serde_json::Value) -> bool {
    let text = reason.as_str().unwrap_or_default();
    let id = text.strip_prefix("Host EC2 (instance i-").and_then(|rest| rest.strip_suffix(") terminated."));
    id.is_some_and(|id| id.len() == 17 && id.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[test]
fn a_reclaimed_node_takes_all_its_jobs_with_it_and_comes_back_as_another_instance() {
    let mut world = world("reclaim", 2, options(1.0));
    let saves = world.submit(&on_spot("trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.02; done"));
    let plain = world.submit(&on_spot("exec sleep 30"));
    let safe = world.submit(&shell("sleep 0.5"));
    world.until("the trap is set", |world| world.log(&saves, 1).contains("ready"));
    world.until_status(&plain, "RUNNING");
    let host = world.job(&plain)["container"]["containerInstanceArn"].clone();
    world.batch.reclaim_node("spot", 0).unwrap();
    for id in [&saves, &plain] {
        let job = world.end_of(id);
        assert!(lost(&job["statusReason"]), "{job}");
        assert_eq!(job["status"], "FAILED");
        assert_eq!(job["container"]["exitCode"], serde_json::Value::Null);
        assert!(job["attempts"][0]["container"].get("exitCode").is_none());
    }
    assert!(world.log(&saves, 1).ends_with("saved\n"), "{}", world.log(&saves, 1));
    assert_eq!(world.end_of(&safe)["status"], "SUCCEEDED");
    let next = world.run(&on_spot("true"));
    assert_eq!(next["status"], "SUCCEEDED");
    assert_ne!(next["container"]["containerInstanceArn"], host);
    assert_eq!(
        world.batch.reclaim_node("main", 0).unwrap_err().message,
        "Compute environment main is not of type SPOT"
    );
}

#[test]
fn a_tagged_job_loses_its_host_once_and_batchs_own_retry_then_passes() {
    let mut world = world("reclaim-tag", 1, options(10.0));
    let mut asked = on_spot("exec sleep 0.4");
    asked.tags = Some([("osprey:local-reclaim-after".to_owned(), "1s".to_owned())].into());
    let rule = |key: &str, action: &str| EvaluateOnExit {
        on_status_reason: Some(key.to_owned()),
        action: action.to_owned(),
        ..Default::default()
    };
    asked.retry_strategy = Some(RetryStrategy {
        attempts: Some(3),
        evaluate_on_exit: Some(vec![rule("Host EC2*", "RETRY"), rule("*", "EXIT")]),
    });
    let job = world.run(&asked);
    assert_eq!(job["status"], "SUCCEEDED");
    let attempts = job["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 2);
    assert!(lost(&attempts[0]["statusReason"]));
    let ran = attempts[0]["stoppedAt"].as_i64().unwrap() - attempts[0]["startedAt"].as_i64().unwrap();
    assert!(ran >= 1_000, "{ran}");

    let mut elsewhere = asked.clone();
    elsewhere.job_queue = Some("main".to_owned());
    assert_eq!(world.run(&elsewhere)["attempts"].as_array().unwrap().len(), 1, "On-Demand hosts stay");
}

#[test]
fn hosts_are_reclaimed_at_the_rate_that_is_asked_for() {
    let mut options = options(1_000.0);
    options.reclaims_per_node_hour = 60.0;
    options.grace_ms = 10_000;
    let mut world = world("reclaim-rate", 1, options);
    let job = world.run(&on_spot("exec sleep 30"));
    assert!(lost(&job["statusReason"]), "{job}");
}

#[test]
fn a_node_takes_no_job_before_its_start_up_delay_is_over() {
    let mut options = options(10.0);
    options.start_up_delay_ms = 2_000;
    let mut world = world("delay", 1, options);
    let job = world.run(&on_spot("true"));
    let waited = job["startedAt"].as_i64().unwrap() - job["createdAt"].as_i64().unwrap();
    assert!((1_800..5_000).contains(&waited), "{waited}");
}
