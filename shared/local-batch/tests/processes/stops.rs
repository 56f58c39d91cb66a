//! CancelJob and TerminateJob.

use std::time::Duration;

use osprey_model::request::{ArrayProperties, JobDependency, SubmitJobRequest};

use crate::support::{ending, options, shell, world};

const CHECKPOINTS: &str = "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.02; done";

#[test]
fn a_terminated_job_gets_sigterm_and_ends_with_the_callers_reason() {
    let mut world = world("terminate", 1, options(1.0));
    let id = world.submit(&shell("exec sleep 30"));
    world.until_status(&id, "RUNNING");
    world.batch.terminate_job(&id, "make room").unwrap();
    let job = world.end_of(&id);
    assert_eq!(ending(&job), "FAILED | 143 | make room | -");
    assert_eq!(job["isTerminated"], true);
    assert_eq!(job["attempts"][0]["statusReason"], "make room");
}

#[test]
fn a_checkpointing_job_saves_on_sigterm_and_is_failed_all_the_same() {
    let mut world = world("checkpoint", 1, options(1.0));
    let id = world.submit(&shell(CHECKPOINTS));
    world.until("the trap is set", |world| world.log(&id, 1).contains("ready"));
    world.batch.terminate_job(&id, "make room").unwrap();
    assert_eq!(ending(&world.end_of(&id)), "FAILED | 0 | make room | -");
    assert!(world.log(&id, 1).ends_with("saved\n"), "{}", world.log(&id, 1));
}

#[test]
fn a_job_that_ignores_sigterm_gets_sigkill_after_the_grace() {
    let mut options = options(10.0);
    options.grace_ms = 3_000;
    let mut world = world("stubborn", 1, options);
    let id = world.submit(&shell("trap '' TERM; echo ready; sleep 30"));
    world.until("the trap is set", |world| world.log(&id, 1).contains("ready"));
    let asked = std::time::Instant::now();
    world.batch.terminate_job(&id, "make room").unwrap();
    assert_eq!(ending(&world.end_of(&id)), "FAILED | 137 | make room | -");
    assert!(asked.elapsed() >= Duration::from_millis(300), "{:?}", asked.elapsed());
}

#[test]
fn a_stop_that_an_engine_began_is_finished_by_the_next_one() {
    let mut options = options(10.0);
    options.grace_ms = 5_000;
    let mut world = world("stop-crash", 1, options.clone());
    let id = world.submit(&shell("trap 'echo again' TERM; echo ready; while :; do sleep 0.02; done"));
    world.until("the trap is set", |world| world.log(&id, 1).contains("ready"));
    world.batch.terminate_job(&id, "make room").unwrap();
    world.until("SIGTERM has come", |world| world.log(&id, 1).contains("again"));
    world.crash();
    world.restart(1, options);
    assert_eq!(ending(&world.end_of(&id)), "FAILED | 137 | make room | -");
}

#[test]
fn before_it_starts_a_job_is_cancelled_at_once_and_has_no_attempts() {
    let mut world = world("cancel", 1, options(1.0));
    let first = world.submit(&shell("exec sleep 30"));
    let second = world.submit(&shell("true"));
    let third = world.submit(&shell("true"));
    world.until_status(&first, "RUNNING");
    assert_eq!(world.status(&second), "RUNNABLE");
    world.batch.cancel_job(&second, "not needed").unwrap();
    world.batch.terminate_job(&third, "nor this").unwrap();
    for (id, reason) in [(&second, "not needed"), (&third, "nor this")] {
        let job = world.job(id);
        assert_eq!(ending(&job), format!("FAILED | - | {reason} | -"));
        assert_eq!(job["attempts"], serde_json::json!([]));
    }
    assert_eq!(world.job(&second)["isCancelled"], true);
    world.batch.cancel_job(&first, "too late").unwrap();
    assert_eq!(world.status(&first), "RUNNING");
    world.batch.terminate_job(&first, "end").unwrap();
    world.end_of(&first);
}

#[test]
fn calls_about_unknown_jobs_are_refused_by_name() {
    let world = world("unknown", 1, options(1.0));
    let error = world.batch.terminate_job("no-such-job", "x").unwrap_err();
    assert_eq!((error.status, error.message.as_str()), (400, "Job no-such-job not found."));
    let error = world.batch.cancel_job("no-such-job", "").unwrap_err();
    assert_eq!(error.message, "reason must be specified.");
}

#[test]
fn a_job_that_waits_for_another_is_stopped_when_that_one_has_ended() {
    let mut world = world("cancel-pending", 1, options(1.0));
    let first = world.submit(&shell("exec sleep 30"));
    let after = |script: &str, ids: &[&String]| {
        let one = |id: &&String| JobDependency { job_id: Some((*id).clone()), kind: None };
        SubmitJobRequest { depends_on: Some(ids.iter().map(one).collect()), ..shell(script) }
    };
    let cancelled = world.submit(&after("true", &[&first]));
    let terminated = world.submit(&after("true", &[&first]));
    let behind = world.submit(&after("true", &[&cancelled]));
    let array = ArrayProperties { size: Some(2) };
    let array = world.submit(&SubmitJobRequest { array_properties: Some(array), ..after("true", &[&first]) });
    world.until_status(&array, "PENDING");
    world.batch.cancel_job(&cancelled, "not needed").unwrap();
    world.batch.terminate_job(&cancelled, "a later reason").unwrap();
    world.batch.terminate_job(&terminated, "nor this").unwrap();
    world.batch.cancel_job(&array, "nor these").unwrap();
    world.until_status(&first, "RUNNING");
    for (id, flag) in [(&cancelled, "isCancelled"), (&terminated, "isTerminated"), (&array, "isCancelled")] {
        assert_eq!((&world.job(id)["status"], &world.job(id)[flag]), (&"PENDING".into(), &true.into()));
    }
    world.batch.terminate_job(&first, "end").unwrap();
    for (id, reason) in [(&cancelled, "not needed"), (&terminated, "nor this"), (&array, "nor these")] {
        assert_eq!(ending(&world.end_of(id)), format!("FAILED | - | {reason} | -"));
    }
    assert_eq!(ending(&world.end_of(&behind)), "FAILED | - | Dependent Job failed | -");
    assert_eq!(ending(&world.job(&format!("{array}:1"))), "FAILED | - | nor these | -");
    let good = world.submit(&shell("sleep 0.2"));
    let waits = world.submit(&after("true", &[&good]));
    world.batch.cancel_job(&waits, "changed my mind").unwrap();
    assert_eq!(ending(&world.end_of(&waits)), "FAILED | - | changed my mind | -");
    assert_eq!(world.status(&good), "SUCCEEDED");
}
