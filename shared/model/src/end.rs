//! How an attempt ended: reason texts first, exit codes last.
//!
//! An exit code says little: a lost host gives none, a time-out 137 or none, a killed container 137, 1, 2 or even 0.
//! The texts are those that Batch and ECS are known to send; letter case is ignored, since it varies.

use serde::{Deserialize, Serialize};

use crate::event::{BatchStatus, JobDetail};

/// The classes of ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndClass {
    /// It did what it should.
    Succeeded,
    /// Its host went away: a Spot reclaim, a drained or terminated instance.
    HostLost,
    /// Osprey stopped it for more urgent work.
    Preempted,
    /// It used more memory than it asked for.
    OutOfMemory,
    /// It could not be started, and may start elsewhere or later.
    StartFailureTransient,
    /// It could not be started, and never will be.
    StartFailurePermanent,
    /// It ran into its time limit.
    Timeout,
    /// It exited with a code other than 0, or in a way nobody explains.
    ExitCode,
    /// Its request can't work.
    Misconfigured,
    /// It waited longer than allowed for capacity.
    Capacity,
    /// A person stopped it.
    Cancelled,
    /// A job that it depended on inside Batch failed.
    DependencyFailed,
    /// A child of the array failed; the children say how.
    ArrayChildFailed,
}

impl EndClass {
    /// Whether it counts as a failure of the job and lowers its priority.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(
            self,
            Self::OutOfMemory | Self::StartFailurePermanent | Self::Timeout | Self::ExitCode | Self::Misconfigured
        )
    }

    /// Whether it counts against the interruption budget. An eviction doesn't: Osprey chose it, and the job pays nothing
    /// for it.
    #[must_use]
    pub fn is_interruption(self) -> bool {
        matches!(self, Self::HostLost | Self::StartFailureTransient | Self::Capacity)
    }

    /// The word in records, metrics and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::HostLost => "host_lost",
            Self::Preempted => "preempted",
            Self::OutOfMemory => "out_of_memory",
            Self::StartFailureTransient => "start_failure_transient",
            Self::StartFailurePermanent => "start_failure_permanent",
            Self::Timeout => "timeout",
            Self::ExitCode => "exit_code",
            Self::Misconfigured => "misconfigured",
            Self::Capacity => "capacity",
            Self::Cancelled => "cancelled",
            Self::DependencyFailed => "dependency_failed",
            Self::ArrayChildFailed => "array_child_failed",
        }
    }
}

/// What the record knows that Batch doesn't: who stopped the attempt, if we did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoppedBy {
    /// Nobody of ours.
    Nobody,
    /// An eviction row was written before the call.
    Eviction,
    /// A person, through Osprey.
    Person,
}

/// The token that starts the reason of every TerminateJob and CancelJob of ours.
pub const STOP_TOKEN: &str = "OSPREY";
/// The words that start the reason of the TerminateJob of an eviction.
pub const EVICTION_TOKEN: &str = "OSPREY preempt";

/// Classifies a job that ended.
///
/// A reason that starts with our token counts as ours only when the record agrees: anybody who may stop a job can
/// write the same text. An eviction is one only by both, its row and its own words.
#[must_use]
pub fn classify(detail: &JobDetail, stopped_by: StoppedBy) -> EndClass {
    if detail.status == BatchStatus::Succeeded {
        return EndClass::Succeeded;
    }
    let reasons: Vec<String> = detail.reasons().iter().map(|r| r.to_lowercase()).collect();
    if let Some(class) = ours(&reasons, stopped_by) {
        return class;
    }
    if let Some(class) = reasons.iter().find_map(|reason| class_of_text(reason)) {
        return class;
    }
    if detail.is_cancelled == Some(true) || detail.is_terminated == Some(true) || is_callers_text(&reasons) {
        return EndClass::Cancelled;
    }
    EndClass::ExitCode
}

/// Whether a job that succeeded was nevertheless killed for its memory: ECS reports exit 0 in that case at times.
#[must_use]
pub fn succeeded_out_of_memory(detail: &JobDetail) -> bool {
    detail.status == BatchStatus::Succeeded
        && detail.reasons().iter().any(|r| r.to_lowercase().contains("outofmemoryerror"))
}

fn ours(reasons: &[String], stopped_by: StoppedBy) -> Option<EndClass> {
    let said = |token: &str| reasons.iter().any(|reason| reason.starts_with(&token.to_lowercase()));
    if !said(STOP_TOKEN) {
        return None;
    }
    let is_eviction = stopped_by == StoppedBy::Eviction && said(EVICTION_TOKEN);
    Some(if is_eviction { EndClass::Preempted } else { EndClass::Cancelled })
}

/// Texts at the start of a reason, in the order they are looked for: the more telling first.
const STARTS: &[(&str, EndClass)] = &[
    ("host ec2", EndClass::HostLost),
    ("your spot task was interrupted", EndClass::HostLost),
    ("task stopped during instance draining", EndClass::HostLost),
    ("job attempt duration exceeded timeout", EndClass::Timeout),
    ("dependent job failed", EndClass::DependencyFailed),
    ("array child job failed", EndClass::ArrayChildFailed),
    ("container overrides length", EndClass::Misconfigured),
    ("misconfiguration:", EndClass::Misconfigured),
    ("capacity:", EndClass::Capacity),
    ("jobqueue deleted", EndClass::Capacity),
    ("agent", EndClass::StartFailureTransient),
];

/// Texts of the container agent when a container can't start.
const START_FAILURES: &[&str] = &[
    "cannotpullcontainererror",
    "cannotpullcontainer",
    "resourceinitializationerror",
    "cannotstartcontainererror",
    "cannotcreatecontainererror",
    "dockertimeouterror",
    "cgrouperror",
];

/// What makes a start failure permanent: trying elsewhere won't help.
const PERMANENT: &[&str] = &[
    "not found",
    "access denied",
    "accessdenied",
    "permission denied",
    "exec format error",
    "does not exist",
    "no such file",
    "not authorized",
    "denied for",
];

fn class_of_text(reason: &str) -> Option<EndClass> {
    if reason.contains("outofmemoryerror") {
        return Some(EndClass::OutOfMemory);
    }
    if let Some(rest) = reason.split("jobstatetimelimit action due to reason: ").nth(1) {
        return class_of_text(rest);
    }
    if let Some((_, class)) = STARTS.iter().find(|(start, _)| reason.starts_with(start)) {
        return Some(*class);
    }
    START_FAILURES.iter().any(|text| reason.contains(text)).then(|| start_failure(reason))
}

fn start_failure(reason: &str) -> EndClass {
    if PERMANENT.iter().any(|text| reason.contains(text)) {
        EndClass::StartFailurePermanent
    } else {
        EndClass::StartFailureTransient
    }
}

/// A status reason that Batch would not write itself is the reason given to TerminateJob or CancelJob.
fn is_callers_text(reasons: &[String]) -> bool {
    reasons.first().is_some_and(|first| {
        !first.starts_with("essential container in task exited") && !first.starts_with("task failed to start")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{AttemptDetail, ContainerDetail};

    fn failed(status_reason: &str, container_reason: &str, exit_code: Option<i64>) -> JobDetail {
        let text = |t: &str| (!t.is_empty()).then(|| t.to_owned());
        JobDetail {
            status: BatchStatus::Failed,
            status_reason: text(status_reason),
            attempts: vec![AttemptDetail {
                status_reason: text(status_reason),
                container: ContainerDetail { exit_code, reason: text(container_reason), ..Default::default() },
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    #[test]
    fn ends_are_classified_by_their_texts_before_their_exit_codes() {
        use EndClass::*;
        let exited = "Essential container in task exited";
        let cases: &[(&str, &str, &str, Option<i64>, EndClass)] = &[
            ("a non-zero exit is an exit code", exited, "", Some(1), ExitCode),
            ("a lost host has no exit code", "Host EC2 (instance i-0737c70432d64f82a) terminated.", "", None, HostLost),
            ("a lost host with 143 is still lost", "Host EC2 (instance i-1) terminated.", "", Some(143), HostLost),
            ("Fargate Spot has words of its own", "Your Spot Task was interrupted.", "", None, HostLost),
            ("a drained instance is a lost host", "Task stopped during instance draining", "", None, HostLost),
            (
                "out of memory with 137",
                exited,
                "OutOfMemoryError: Container killed due to memory usage",
                Some(137),
                OutOfMemory,
            ),
            (
                "out of memory in lower case with 1",
                exited,
                "OutOfMemoryError: container killed due to memory usage",
                Some(1),
                OutOfMemory,
            ),
            ("137 alone is an exit code", exited, "", Some(137), ExitCode),
            ("a time-out with 137", "Job attempt duration exceeded timeout", "", Some(137), Timeout),
            ("a time-out without a code", "Job attempt duration exceeded timeout", "", None, Timeout),
            (
                "an image that isn't there",
                "Task failed to start",
                "CannotPullContainerError: pull image manifest: not found",
                None,
                StartFailurePermanent,
            ),
            (
                "a registry that is busy",
                "Task failed to start",
                "CannotPullContainerError: i/o timeout",
                None,
                StartFailureTransient,
            ),
            (
                "secrets that can't be read now",
                "Task failed to start",
                "ResourceInitializationError: unable to pull secrets",
                None,
                StartFailureTransient,
            ),
            (
                "no program of that name",
                "Task failed to start",
                "CannotStartContainerError: `trian`: no such file or directory",
                None,
                StartFailurePermanent,
            ),
            (
                "a program that may not be run",
                "Task failed to start",
                "CannotStartContainerError: `./train.sh`: permission denied",
                None,
                StartFailurePermanent,
            ),
            ("nobody says why it failed to start", "Task failed to start", "", None, ExitCode),
            ("the agent was lost", exited, "AGENT disconnected", None, StartFailureTransient),
            (
                "no capacity for too long",
                "Canceled by JobStateTimeLimit action due to reason: CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
                "",
                None,
                Capacity,
            ),
            (
                "a request that can never be placed",
                "Canceled by JobStateTimeLimit action due to reason: MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
                "",
                None,
                Misconfigured,
            ),
            ("overrides too long", "Container Overrides length must be at most 8192", "", None, Misconfigured),
            ("an upstream that failed", "Dependent Job failed", "", None, DependencyFailed),
            ("a child that failed", "Array Child Job failed", "", None, ArrayChildFailed),
            ("a queue that was deleted", "JobQueue deleted", "", None, Capacity),
            ("a person's own words", "not needed any more", "", Some(137), Cancelled),
            ("our token without our row is a person", "OSPREY preempt", "", Some(143), Cancelled),
            ("no reason at all", "", "", Some(2), ExitCode),
        ];
        for (sentence, status, container, code, want) in cases {
            let got = classify(&failed(status, container, *code), StoppedBy::Nobody);
            assert_eq!(got, *want, "{sentence}");
        }
    }

    #[test]
    fn our_token_and_our_row_together_are_a_preemption() {
        let detail = failed("OSPREY preempt victim-of=x", "", Some(143));
        assert_eq!(classify(&detail, StoppedBy::Eviction), EndClass::Preempted);
        assert_eq!(classify(&detail, StoppedBy::Person), EndClass::Cancelled);
        assert_eq!(classify(&failed("bye", "", Some(143)), StoppedBy::Eviction), EndClass::Cancelled);
        let by_a_person = failed("OSPREY stopped by a person: enough", "", Some(143));
        assert_eq!(classify(&by_a_person, StoppedBy::Eviction), EndClass::Cancelled);
    }

    #[test]
    fn a_job_that_succeeded_out_of_memory_stays_succeeded_and_can_be_warned_of() {
        let mut detail = failed("Essential container in task exited", "OutOfMemoryError: Container killed", Some(0));
        detail.status = BatchStatus::Succeeded;
        assert_eq!(classify(&detail, StoppedBy::Nobody), EndClass::Succeeded);
        assert!(succeeded_out_of_memory(&detail));
    }

    #[test]
    fn no_class_is_both_a_failure_and_an_interruption() {
        use EndClass::*;
        for class in [
            Succeeded,
            HostLost,
            Preempted,
            OutOfMemory,
            StartFailureTransient,
            StartFailurePermanent,
            Timeout,
            ExitCode,
            Misconfigured,
            Capacity,
            Cancelled,
            DependencyFailed,
            ArrayChildFailed,
        ] {
            assert!(!(class.is_failure() && class.is_interruption()), "{class:?}");
        }
    }
}
