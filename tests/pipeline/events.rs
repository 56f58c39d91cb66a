//! Every sample event of Batch is read, and each end is classified as it should be.

use osprey_model::end::EndClass::{self, *};
use osprey_model::end::{StoppedBy, classify, succeeded_out_of_memory};
use osprey_model::event::{BatchEvent, BatchStatus, JOB_STATE_CHANGE};
use osprey_model::id::JobId;

type Checked = Result<(), Box<dyn std::error::Error>>;

/// Samples of a job that hasn't ended, with their states.
const GOING: [(&str, BatchStatus); 4] = [
    ("batch-runnable.json", BatchStatus::Runnable),
    ("batch-starting.json", BatchStatus::Starting),
    ("batch-running.json", BatchStatus::Running),
    ("batch-requeued-by-batch.json", BatchStatus::Runnable),
];

/// Samples of a job that has ended, with the class of the end and the exit code.
const ENDED: [(&str, EndClass, Option<i64>); 24] = [
    ("batch-succeeded.json", Succeeded, Some(0)),
    ("batch-succeeded-oom.json", Succeeded, Some(0)),
    ("batch-succeeded-after-batch-retry.json", Succeeded, Some(0)),
    ("batch-failed-exit-1.json", ExitCode, Some(1)),
    ("batch-failed-spot-ec2.json", HostLost, None),
    ("batch-failed-spot-fargate.json", HostLost, None),
    ("batch-failed-terminated-by-caller.json", Cancelled, Some(143)),
    ("batch-failed-preempted.json", Preempted, Some(137)),
    ("batch-failed-cancelled.json", Cancelled, None),
    ("batch-failed-oom.json", OutOfMemory, Some(137)),
    ("batch-failed-oom-lowercase-exit1.json", OutOfMemory, Some(1)),
    ("batch-failed-cannot-pull-not-found.json", StartFailurePermanent, None),
    ("batch-failed-cannot-pull-transient.json", StartFailureTransient, None),
    ("batch-failed-resource-initialization.json", StartFailureTransient, None),
    ("batch-failed-timeout.json", Timeout, Some(137)),
    ("batch-failed-timeout-no-exit.json", Timeout, None),
    ("batch-failed-dependency.json", DependencyFailed, None),
    ("batch-failed-time-limit-capacity.json", Capacity, None),
    ("batch-failed-time-limit-misconfiguration.json", Misconfigured, None),
    ("batch-failed-overrides-too-long.json", Misconfigured, None),
    ("batch-failed-queue-deleted.json", Capacity, None),
    ("batch-failed-array-child.json", HostLost, None),
    ("batch-failed-array-parent.json", ArrayChildFailed, None),
    ("batch-foreign-failed.json", ExitCode, Some(1)),
];

fn event(name: &str) -> Result<BatchEvent, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(osprey_tests::root().join("events").join(name))?;
    serde_json::from_str(&text).map_err(|error| format!("{name}: {error}").into())
}

fn job_id(event: &BatchEvent) -> Option<JobId> {
    event.detail.tags.get("osprey:job-id").and_then(|text| JobId::parse(text))
}

#[test]
fn jobs_that_go_on_are_in_their_states() -> Checked {
    for (name, status) in GOING {
        let event = event(name)?;
        assert_eq!((event.detail_type.as_str(), event.detail.status), (JOB_STATE_CHANGE, status), "{name}");
        assert!(!event.detail.status.is_final(), "{name}");
        assert!(job_id(&event).is_some(), "{name}");
    }
    Ok(())
}

#[test]
fn ends_are_classified() -> Checked {
    for (name, class, exit_code) in ENDED {
        let event = event(name)?;
        // Without an eviction row nothing counts as preempted, whatever the reason says.
        let stopped_by = if class == Preempted { StoppedBy::Eviction } else { StoppedBy::Nobody };
        assert_eq!(classify(&event.detail, stopped_by), class, "{name}");
        assert_eq!(event.detail.exit_code(), exit_code, "{name}");
        assert!(event.detail.status.is_final(), "{name}");
    }
    Ok(())
}

#[test]
fn our_token_counts_only_with_an_eviction_row() -> Checked {
    let event = event("batch-failed-preempted.json")?;
    assert_eq!(classify(&event.detail, StoppedBy::Nobody), Cancelled);
    Ok(())
}

#[test]
fn a_job_out_of_memory_that_succeeded_is_noticed() -> Checked {
    for (name, _, _) in ENDED {
        assert_eq!(succeeded_out_of_memory(&event(name)?.detail), name == "batch-succeeded-oom.json", "{name}");
    }
    Ok(())
}

#[test]
fn ours_and_parts_and_others_are_told_apart() -> Checked {
    for (name, _, _) in ENDED {
        let event = event(name)?;
        assert_eq!(job_id(&event).is_some(), name != "batch-foreign-failed.json", "{name}");
        assert_eq!(event.detail.is_part(), name == "batch-failed-array-child.json", "{name}");
        assert_eq!(event.detail.tags.get("resourceArn"), Some(&event.detail.job_arn), "{name}");
    }
    Ok(())
}

#[test]
fn other_events_of_batch_are_no_state_changes() -> Checked {
    for (name, resources) in [("batch-queue-blocked.json", 2), ("batch-service-job-succeeded.json", 1)] {
        let event = event(name)?;
        assert_ne!(event.detail_type, JOB_STATE_CHANGE, "{name}");
        assert_eq!(event.resources.len(), resources, "{name}");
    }
    Ok(())
}
