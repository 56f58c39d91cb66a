//! The order in which a fair-share queue starts jobs, and what a disabled environment holds back.

use serde_json::{Value, json};

use crate::event::tests::Stage;
use crate::files::Outcome;
use crate::{ComputeEnvironmentUpdate, JobQueueUpdate, State};

/// A job that needs the whole node, so that one runs at a time.
fn whole(name: &str, share: &str, priority: i64) -> Value {
    json!({
        "jobName": name, "shareIdentifier": share, "schedulingPriorityOverride": priority,
        "containerOverrides": {"resourceRequirements": [{"type": "VCPU", "value": "1024"}]}
    })
}

/// Names in the order their jobs started, ending each before the next.
fn order(stage: &Stage, jobs: usize) -> String {
    (0..jobs).for_each(|_| stage.play(None, &Outcome::Code(0)));
    let events = stage.batch.fetch_events(1_000).unwrap();
    let started = events.iter().filter(|event| event.body["detail"]["status"] == "STARTING");
    let names: Vec<&str> = started.filter_map(|event| event.body["detail"]["jobName"].as_str()).collect();
    names.join(" ")
}

#[test]
fn inside_a_share_priority_decides_and_then_the_order_of_submission() {
    let stage = Stage::new("priority");
    for (name, priority) in [("low", 1), ("high", 9), ("high-later", 9), ("middle", 5)] {
        stage.submit(&whole(name, "TeamA", priority));
    }
    assert_eq!(order(&stage, 4), "high high-later middle low");
}

#[test]
fn shares_that_have_used_less_come_first_whatever_the_priorities() {
    let stage = Stage::new("shares");
    for (name, share, priority) in
        [("a1", "A", 9), ("a2", "A", 9), ("a3", "A", 9), ("b1", "B", 1), ("b2", "B", 1), ("c1", "C", 5)]
    {
        stage.submit(&whole(name, share, priority));
    }
    // Nothing is remembered with a decay of 0 s, so only names decide once everything has ended.
    assert_eq!(order(&stage, 6), "a1 a2 a3 b1 b2 c1");
    let policy = crate::FairShare { share_decay_seconds: 600, ..Default::default() };
    stage.batch.ensure_scheduling_policy("tiers", &policy).unwrap();
    let before = order(&stage, 0);
    for (name, share) in [("a1", "A"), ("a2", "A"), ("b1", "B"), ("b2", "B"), ("c1", "C")] {
        stage.submit(&whole(name, share, 1));
    }
    let all = order(&stage, 5);
    assert_eq!(all.strip_prefix(&before).unwrap(), " a1 b1 c1 a2 b2");
}

#[test]
fn a_disabled_environment_holds_jobs_back_and_a_disabled_queue_only_new_ones() {
    let stage = Stage::new("disabled");
    let id = stage.submit(&json!({}));
    let disabled = ComputeEnvironmentUpdate { state: Some(State::Disabled), ..Default::default() };
    stage.batch.update_compute_environment("spot-ce", &disabled).unwrap();
    let update = JobQueueUpdate { state: Some(State::Disabled), ..Default::default() };
    stage.batch.update_job_queue("tier-low-spot", &update).unwrap();
    stage.cycle();
    let status = || stage.batch.describe_jobs(std::slice::from_ref(&id)).unwrap()[0]["status"].clone();
    assert_eq!(status(), "RUNNABLE");
    let enabled = ComputeEnvironmentUpdate { state: Some(State::Enabled), ..Default::default() };
    stage.batch.update_compute_environment("spot-ce", &enabled).unwrap();
    stage.cycle();
    assert_eq!(status(), "STARTING");
    let refused = stage.batch.submit_job(
        &serde_json::from_value(json!({
            "jobName": "x", "jobQueue": "tier-low-spot", "jobDefinition": "train"
        }))
        .unwrap(),
    );
    assert_eq!(refused.unwrap_err().message, "JobQueue tier-low-spot is DISABLED.");
}

#[test]
fn everything_that_fits_starts_in_one_go_even_beside_a_blocked_queue() {
    let stage = Stage::new("window");
    let order = vec![crate::ComputeEnvironmentOrder { order: 1, compute_environment: "spot-ce".to_owned() }];
    let blocked = crate::JobQueueRequest {
        job_queue_name: "blocked".to_owned(),
        priority: 9,
        compute_environment_order: order,
        ..Default::default()
    };
    stage.batch.create_job_queue(&blocked).unwrap();
    let wide = json!({
        "jobName": "wide", "jobQueue": "blocked", "jobDefinition": "train",
        "containerOverrides": {"resourceRequirements": [{"type": "GPU", "value": "1"}]}
    });
    stage.batch.submit_job(&serde_json::from_value(wide).unwrap()).unwrap();
    (0..100).for_each(|_| drop(stage.submit(&json!({}))));
    stage.cycle();
    let nodes = stage.batch.describe_nodes().unwrap();
    assert_eq!(nodes[0].jobs.len(), 100);
}

#[test]
fn many_starts_in_one_go_keep_the_order_of_the_shares() {
    let stage = Stage::new("turns");
    let small = |share: &str| {
        json!({"shareIdentifier": share,
            "containerOverrides": {"resourceRequirements": [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "4"}]}})
    };
    // B has three times the weight of A, so it is to start three jobs to one of A's, beyond any window.
    let share =
        |id: &str, weight: f64| crate::ShareWeight { share_identifier: id.to_owned(), weight_factor: Some(weight) };
    let shares = vec![share("A", 3.0), share("B", 1.0)];
    let policy = crate::FairShare { share_distribution: shares, ..Default::default() };
    stage.batch.ensure_scheduling_policy("tiers", &policy).unwrap();
    (0..100).for_each(|_| drop(stage.submit(&small("A"))));
    (0..300).for_each(|_| drop(stage.submit(&small("B"))));
    stage.cycle();
    let events = stage.batch.fetch_events(1_000).unwrap();
    let started = events.iter().filter(|event| event.body["detail"]["status"] == "STARTING");
    let shares: Vec<&str> = started.filter_map(|event| event.body["detail"]["shareIdentifier"].as_str()).collect();
    assert_eq!(shares.len(), 400);
    for (n, four) in shares.chunks(4).enumerate() {
        assert_eq!(four.iter().filter(|share| **share == "A").count(), 1, "turn {n}: {four:?}");
    }
}

#[test]
fn a_share_beyond_the_most_is_refused_until_another_has_ended() {
    let stage = Stage::new("most-shares");
    let first = stage.submit(&json!({"shareIdentifier": "S0"}));
    (1..crate::share::SHARES_MAX).for_each(|n| drop(stage.submit(&json!({"shareIdentifier": format!("S{n}")}))));
    let asked = json!({"jobName": "x", "jobQueue": "tier-low-spot", "jobDefinition": "train",
        "shareIdentifier": "other", "schedulingPriorityOverride": 1});
    let asked = serde_json::from_value(asked).unwrap();
    let want = "JobQueue tier-low-spot has 500 active share identifiers, the most it can have";
    assert_eq!(stage.batch.submit_job(&asked).unwrap_err().message, want);
    stage.submit(&json!({"shareIdentifier": "S7"}));
    stage.batch.cancel_job(&first, "done").unwrap();
    stage.batch.submit_job(&asked).unwrap();
}

#[test]
fn a_reservation_keeps_vcpus_for_shares_to_come() {
    let stage = Stage::new("reservation");
    let policy = crate::FairShare { compute_reservation: 50, ..Default::default() };
    stage.batch.ensure_scheduling_policy("tiers", &policy).unwrap();
    let half = |share: &str| {
        stage.submit(&json!({"shareIdentifier": share,
            "containerOverrides": {"resourceRequirements": [{"type": "VCPU", "value": "512"}]}}))
    };
    let (first, second) = (half("A"), half("A"));
    stage.cycle();
    let status = |id: &String| stage.job(id)["status"].as_str().unwrap().to_owned();
    assert_eq!((status(&first), status(&second)), ("STARTING".to_owned(), "RUNNABLE".to_owned()));
    let small = stage.submit(&json!({"shareIdentifier": "B"}));
    stage.cycle();
    assert_eq!(status(&small), "STARTING", "with two shares only a quarter is kept");
    assert_eq!(status(&second), "RUNNABLE");
}
