//! What the end of a process means for a job: a pure function over what was seen and what was asked for.

use crate::attempt::StopCause;
use crate::files::Outcome;

/// Status reason of a command that ran to its end, well or not.
const EXITED: &str = "Essential container in task exited";
/// Container reason of a command that used too much memory.
const OUT_OF_MEMORY: &str = "OutOfMemoryError: Container killed due to memory usage";
/// Exit code of a command that SIGKILL ended.
const KILLED: i64 = 137;

/// How an attempt ended, in Batch's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub exit_code: Option<i64>,
    pub reason: Option<String>,
    pub status_reason: String,
    /// Whether the job has succeeded.
    pub success: bool,
    /// Whether Batch's own retries may follow.
    pub retryable: bool,
}

/// A stop that was asked for and whose signal was sent before the process ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop<'a> {
    pub cause: StopCause,
    pub reason: &'a str,
}

/// Puts an end into Batch's words. A stop that came too late to be signalled isn't given: then the process ended by
/// itself, and may well have succeeded, as on AWS.
pub(crate) fn classify(outcome: &Outcome, stop: Option<Stop<'_>>) -> End {
    let exit_code = match outcome {
        Outcome::Code(code) => Some(i64::from(*code)),
        Outcome::Signal(signal) => Some(128 + i64::from(*signal)),
        Outcome::OutOfMemory => Some(KILLED),
        Outcome::NotStarted(_) => None,
    };
    let failed = |status_reason: &str| End {
        exit_code,
        reason: None,
        status_reason: status_reason.to_owned(),
        success: false,
        retryable: true,
    };
    match (stop.map(|s| (s.cause, s.reason)), outcome) {
        (Some((StopCause::Terminated, reason)), _) => End { retryable: false, ..failed(reason) },
        (Some((StopCause::TimedOut, reason)), _) => End { retryable: false, ..failed(reason) },
        (Some((StopCause::HostLost, reason)), _) => End { exit_code: None, ..failed(reason) },
        (Some((StopCause::MainEnded, _)), _) => End { success: exit_code == Some(0), ..failed(EXITED) },
        (Some((StopCause::Memory, _)), _) => {
            End { exit_code: Some(KILLED), reason: Some(OUT_OF_MEMORY.to_owned()), ..failed(EXITED) }
        }
        (None, Outcome::NotStarted(reason)) => {
            End { reason: Some(format!("CannotStartContainerError: {reason}")), ..failed("Task failed to start") }
        }
        (None, Outcome::OutOfMemory) => End { reason: Some(OUT_OF_MEMORY.to_owned()), ..failed(EXITED) },
        // A SIGKILL of somebody else is an end like any other: on AWS too 137 alone doesn't mean memory.
        (None, _) => End { success: exit_code == Some(0), ..failed(EXITED) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(outcome: &Outcome, stop: Option<(StopCause, &str)>) -> String {
        let end = classify(outcome, stop.map(|(cause, reason)| Stop { cause, reason }));
        let code = end.exit_code.map_or("none".to_owned(), |code| code.to_string());
        let again = if end.retryable { "may run again" } else { "final" };
        let well = if end.success { "succeeded" } else { "failed" };
        format!("{well}, {code}, {}, {}, {again}", end.status_reason, end.reason.unwrap_or("-".to_owned()))
    }

    #[test]
    fn every_kind_of_end_has_batchs_words() {
        use Outcome::{Code, NotStarted, OutOfMemory, Signal};
        use StopCause::{HostLost, MainEnded, Memory, Terminated, TimedOut};
        let oom = "OutOfMemoryError: Container killed due to memory usage";
        let host = "Host EC2 (instance i-0) terminated.";
        let exited = "Essential container in task exited";
        let cases = [
            (Code(0), None, format!("succeeded, 0, {exited}, -, may run again")),
            (Code(3), None, format!("failed, 3, {exited}, -, may run again")),
            (Signal(11), None, format!("failed, 139, {exited}, -, may run again")),
            (Signal(9), None, format!("failed, 137, {exited}, -, may run again")),
            (Code(137), None, format!("failed, 137, {exited}, -, may run again")),
            (OutOfMemory, None, format!("failed, 137, {exited}, {oom}, may run again")),
            (OutOfMemory, Some((TimedOut, "too long")), "failed, 137, too long, -, final".to_owned()),
            (Signal(9), Some((Memory, "")), format!("failed, 137, {exited}, {oom}, may run again")),
            (Signal(15), Some((Terminated, "make room")), "failed, 143, make room, -, final".to_owned()),
            (Code(0), Some((Terminated, "make room")), "failed, 0, make room, -, final".to_owned()),
            (Signal(9), Some((TimedOut, "too long")), "failed, 137, too long, -, final".to_owned()),
            (Signal(9), Some((MainEnded, "")), format!("failed, 137, {exited}, -, may run again")),
            (Code(0), Some((MainEnded, "")), format!("succeeded, 0, {exited}, -, may run again")),
            (Code(0), Some((HostLost, host)), format!("failed, none, {host}, -, may run again")),
            (
                NotStarted("exec: \"x\": executable file not found in $PATH".to_owned()),
                None,
                "failed, none, Task failed to start, CannotStartContainerError: exec: \"x\": executable file not found \
                 in $PATH, may run again"
                    .to_owned(),
            ),
        ];
        for (outcome, stop, want) in cases {
            assert_eq!(shown(&outcome, stop), want);
        }
    }
}
