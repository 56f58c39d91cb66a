use osprey_model::id::{JobId, MessageId};
use osprey_model::job::{JobState, Run, Stop};
use osprey_model::request::EvaluateOnExit;

use super::*;

fn running() -> Job {
    let message = MessageId::new("m-1");
    Job {
        payload: "0".repeat(16),
        name: "train".to_owned(),
        state: JobState::Running,
        attempt: 1,
        tier: "production".into(),
        priority: 950,
        pool: "local".into(),
        policy: "0123456789ab".into(),
        gpus: 8,
        run: Some(Run {
            id: "b-1".into(),
            queue: "q".into(),
            submitted_at: 0,
            claimed_at: None,
            started_at: Some(0),
            node: None,
        }),
        ..Job::new(JobId::of_message(&message), message, 0)
    }
}

fn ended(job: &Job, class: EndClass) -> Ended<'_> {
    Ended {
        job,
        class,
        reasons: vec!["Essential container in task exited"],
        exit_code: Some(1),
        checkpoints: false,
        retry: None,
        memory_mib: 1000,
        gpu_ms: 80_500,
        now: 1_000_000,
    }
}

fn rules() -> RequeueRules {
    RequeueRules { jitter_percent: 0, ..RequeueRules::default() }
}

fn requeue(next: &Next) -> &Requeue {
    match next {
        Next::Requeue(requeue) => requeue,
        other => panic!("{other:?}"),
    }
}

#[test]
fn failures_back_off_and_then_die_saying_which_budget_ran_out() {
    let mut job = running();
    let mut delays = Vec::new();
    for _ in 0..3 {
        let verdict = after_end(&ended(&job, EndClass::ExitCode), &rules());
        delays.push(requeue(&verdict.next).not_before - 1_000_000);
        (job.counts, job.budget) = (verdict.counts, verdict.budget);
    }
    assert_eq!(delays, [5_000, 10_000, 20_000]);
    let verdict = after_end(&ended(&job, EndClass::ExitCode), &rules());
    assert_eq!(
        verdict.next,
        Next::Die(End::new(
            ReasonCode::FailuresExhausted,
            "failed 4 times where 3 retries are allowed: Essential container in task exited (exit code 1)"
        ))
    );
    assert_eq!(verdict.counts.wasted_gpu_ms, 322_000);
}

/// E15: a preemption or a lost host never adds to the failures.
#[test]
fn interruptions_have_a_budget_of_their_own_and_waste_nothing() {
    let mut job = running();
    for class in [EndClass::HostLost, EndClass::Preempted] {
        let verdict = after_end(&ended(&job, class), &rules());
        assert!(matches!(verdict.next, Next::Requeue(_)));
        (job.counts, job.budget) = (verdict.counts, verdict.budget);
    }
    assert_eq!(job.counts, Counts { host_losses: 1, preemptions: 1, ..Counts::default() });
    assert_eq!(job.budget, Budget { failures: 0, interruptions: 1 });
    job.budget.interruptions = 10;
    // However often a job was evicted, it comes back at once: Osprey chose that, and it costs the job nothing.
    assert_eq!(requeue(&after_end(&ended(&job, EndClass::Preempted), &rules()).next).not_before, 1_000_000);
    let verdict = after_end(&ended(&job, EndClass::HostLost), &rules());
    assert!(matches!(verdict.next, Next::Die(End { code: ReasonCode::InterruptionsExhausted, .. })));
}

#[test]
fn a_job_that_lost_two_hosts_goes_to_on_demand() {
    let mut job = running();
    assert!(!requeue(&after_end(&ended(&job, EndClass::HostLost), &rules()).next).avoid_spot);
    job.counts.host_losses = 1;
    assert!(requeue(&after_end(&ended(&job, EndClass::HostLost), &rules()).next).avoid_spot);
}

#[test]
fn memory_grows_by_half_up_to_the_cap_and_then_the_job_dies() {
    let mut job = running();
    let capped = RequeueRules { memory_cap_mib: Some(1200), ..rules() };
    assert_eq!(requeue(&after_end(&ended(&job, EndClass::OutOfMemory), &rules()).next).memory_mib, Some(1500));
    assert_eq!(requeue(&after_end(&ended(&job, EndClass::OutOfMemory), &capped).next).memory_mib, Some(1200));
    job.memory_mib = Some(1200);
    let mut at_cap = ended(&job, EndClass::OutOfMemory);
    at_cap.memory_mib = 1200;
    assert_eq!(
        after_end(&at_cap, &capped).next,
        Next::Die(End::new(
            ReasonCode::NotRetryable,
            "out of memory with 1200 MiB, and the policy's cap allows no more"
        ))
    );
}

#[test]
fn a_time_out_is_retried_only_with_checkpoints() {
    let job = running();
    let mut end = ended(&job, EndClass::Timeout);
    assert!(matches!(after_end(&end, &rules()).next, Next::Die(_)));
    end.checkpoints = true;
    assert!(matches!(after_end(&end, &rules()).next, Next::Requeue(_)));
}

#[test]
fn the_users_attempts_are_the_failure_budget_and_an_exit_rule_ends_it_at_once() {
    let job = running();
    let once = RetryStrategy { attempts: Some(1), evaluate_on_exit: None };
    let mut end = ended(&job, EndClass::ExitCode);
    end.retry = Some(&once);
    assert!(matches!(after_end(&end, &rules()).next, Next::Die(End { code: ReasonCode::FailuresExhausted, .. })));

    let rule = |status: &str, action: &str| EvaluateOnExit {
        on_status_reason: Some(status.to_owned()),
        action: action.to_owned(),
        ..EvaluateOnExit::default()
    };
    let spot_only = RetryStrategy {
        attempts: Some(5),
        evaluate_on_exit: Some(vec![rule("Host EC2*", "RETRY"), rule("*", "exit")]),
    };
    end.retry = Some(&spot_only);
    assert_eq!(
        after_end(&end, &rules()).next,
        Next::Die(End::new(
            ReasonCode::NotRetryable,
            "rule 2 of the job's retry strategy says EXIT: Essential container in task exited (exit code 1)"
        ))
    );
    end.class = EndClass::HostLost;
    end.reasons = vec!["Host EC2 (instance i-1) terminated."];
    assert!(matches!(after_end(&end, &rules()).next, Next::Requeue(_)));
}

#[test]
fn a_persons_wish_goes_before_everything_but_success() {
    let mut job = running();
    job.stop = Some(Stop { then: AfterStop::Fail, reason: "not needed".to_owned() });
    for class in [EndClass::ExitCode, EndClass::HostLost, EndClass::Cancelled] {
        let verdict = after_end(&ended(&job, class), &rules());
        assert_eq!(verdict.next, Next::Fail(End::new(ReasonCode::Cancelled, "not needed")), "{class:?}");
    }
    assert_eq!(after_end(&ended(&job, EndClass::Succeeded), &rules()).next, Next::Succeed);
    job.stop = Some(Stop { then: AfterStop::Hold, reason: String::new() });
    assert_eq!(after_end(&ended(&job, EndClass::Cancelled), &rules()).next, Next::Hold);
}

#[test]
fn ends_that_another_try_cant_mend_die_with_their_cause() {
    let job = running();
    for class in [EndClass::Misconfigured, EndClass::StartFailurePermanent] {
        let verdict = after_end(&ended(&job, class), &rules());
        assert!(matches!(verdict.next, Next::Die(End { code: ReasonCode::NotRetryable, .. })), "{class:?}");
    }
}

/// A22: exponential back-off, reproducible.
#[test]
fn a_delay_doubles_to_its_cap_with_a_jitter_that_comes_from_the_job_and_the_attempt() {
    let rules = RequeueRules::default();
    let delay = |tries, job: &str, attempt| delay_ms(&rules, tries, job, attempt);
    assert_eq!(delay(0, "a", 1), delay(0, "a", 1));
    assert_ne!(delay(0, "a", 1), delay(0, "b", 1));
    for tries in 0..60 {
        let full = (5_000_u64 << tries.min(40)).min(900_000) as i64;
        let got = delay(tries, "a", tries);
        assert!(got <= full && got >= full * 8 / 10, "{tries}: {got} of {full}");
    }
}
