//! Failures of a command: a stable code, one sentence, and what to do about it. The exit code follows from the code.

use std::io;

use serde::Serialize;

use crate::command::Exit;

/// What kind of failure; stable in `--output json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ErrorCode {
    /// The arguments can't be read, or contradict each other.
    Usage,
    /// A file that isn't there or can't be read.
    FileUnreadable,
    /// A file without anything in it.
    FileEmpty,
    /// A file that can't be read as what it should be.
    InvalidInput,
    /// A policy with mistakes.
    InvalidPolicy,
    /// A state directory that can't be used.
    StateUnusable,
    /// Something that this version can't do there.
    NotAvailable,
    /// A stack that can't be reached: no credentials, no such stack, not allowed.
    AwsUnreachable,
    /// A job that nobody knows.
    UnknownJob,
    /// A job that was sent and that no pipeline has taken in yet.
    NotTakenIn,
    /// An id or a name, or the beginning of one, that several have.
    AmbiguousId,
    /// A dead letter that nobody knows.
    UnknownDeadLetter,
    /// A request that would be refused.
    Refused,
    /// A person stopped the command.
    Interrupted,
    /// Anything else that failed.
    Failed,
    /// Whoever read the output has gone.
    BrokenPipe,
}

/// A command that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CliError {
    /// Stable code.
    pub code: ErrorCode,
    /// Lower case, no final period, user input in backticks.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl CliError {
    /// An error without advice.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: None }
    }

    /// An error of no special kind.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Failed, message)
    }

    /// The same error with advice; empty advice is none.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into()).filter(|help| !help.is_empty());
        self
    }

    /// The exit code. A pipe that broke is nobody's failure: whoever read had enough.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self.code {
            ErrorCode::Usage => Exit::Usage,
            ErrorCode::Refused => Exit::Negative,
            ErrorCode::InvalidPolicy => Exit::Invalid,
            ErrorCode::BrokenPipe => Exit::Ok,
            _ => Exit::Failed,
        }
    }
}

impl From<io::Error> for CliError {
    /// An error of writing to standard output.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::new(ErrorCode::BrokenPipe, "the output was closed"),
            _ => Self::failed(format!("the output can't be written: {}", cause(&error))),
        }
    }
}

impl From<osprey_ports::StoreError> for CliError {
    fn from(error: osprey_ports::StoreError) -> Self {
        Self::new(ErrorCode::StateUnusable, error.to_string())
    }
}

impl From<osprey_ports::CallError> for CliError {
    fn from(error: osprey_ports::CallError) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<osprey_pipeline::failure::Failure> for CliError {
    fn from(failure: osprey_pipeline::failure::Failure) -> Self {
        Self::failed(failure.story())
    }
}

/// The cause of an input or output error in words, without the system's number.
#[must_use]
pub fn cause(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "the disk is full".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or_default().to_lowercase()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_that_says_nothing_is_none() {
        assert_eq!(CliError::failed("no").help("").help, None);
    }

    #[test]
    fn exit_codes_follow_from_the_code() {
        for (code, exit) in [
            (ErrorCode::Usage, Exit::Usage),
            (ErrorCode::InvalidPolicy, Exit::Invalid),
            (ErrorCode::UnknownJob, Exit::Failed),
            (ErrorCode::BrokenPipe, Exit::Ok),
        ] {
            assert_eq!(CliError::new(code, "").exit(), exit, "{code:?}");
        }
    }
}
