//! What can go wrong: calls answer as Batch does, opening and running say one sentence.

use std::path::{Path, PathBuf};

use serde::Serialize;

/// The name of an error in Batch's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ErrorCode {
    /// The request is wrong; the same request fails again.
    ClientException,
    /// The service failed; the same request may work later.
    ServerException,
    /// The caller is too fast.
    TooManyRequestsException,
}

/// The answer of a call that was refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BatchError {
    /// HTTP status: 400, 429 or 500.
    pub status: u16,
    /// Name of the error.
    pub code: ErrorCode,
    /// A sentence; AWS's own where it is known.
    pub message: String,
}

impl BatchError {
    /// The request is wrong (400).
    pub fn client(message: impl Into<String>) -> Self {
        Self { status: 400, code: ErrorCode::ClientException, message: message.into() }
    }

    /// The service failed (500).
    pub fn server(message: impl Into<String>) -> Self {
        Self { status: 500, code: ErrorCode::ServerException, message: message.into() }
    }
}

impl From<rusqlite::Error> for BatchError {
    fn from(error: rusqlite::Error) -> Self {
        Self::server(store_sentence(&error))
    }
}

impl From<serde_json::Error> for BatchError {
    fn from(error: serde_json::Error) -> Self {
        Self::server(format!("the store of the local Batch holds a broken record: {error}"))
    }
}

/// Why the local Batch can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory may not be written.
    #[error("state directory `{}` can't be written: it is read-only for this user", .dir.display())]
    ReadOnly {
        /// The directory.
        dir: PathBuf,
    },
    /// No space is left.
    #[error("state directory `{}` can't be written: its disk is full", .dir.display())]
    Full {
        /// The directory.
        dir: PathBuf,
    },
    /// A newer version wrote the database.
    #[error("`{}` was written by a newer version (schema {found}, this one knows up to {known}): use that version or another directory", .file.display())]
    Newer {
        /// The database.
        file: PathBuf,
        /// Its schema version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// The database isn't one, or is damaged.
    #[error("`{}` can't be used as the database of the local Batch: {detail}", .file.display())]
    Store {
        /// The database.
        file: PathBuf,
        /// What SQLite says.
        detail: String,
    },
    /// Any other failure of the file system.
    #[error("state directory `{}` can't be used: {detail}", .dir.display())]
    Io {
        /// The directory.
        dir: PathBuf,
        /// What the system says.
        detail: String,
    },
}

impl OpenError {
    pub(crate) fn io(dir: &Path, error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        let dir = dir.to_owned();
        match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { dir },
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::Full { dir },
            _ => Self::Io { dir, detail: plain(error) },
        }
    }

    pub(crate) fn store(dir: &Path, file: &Path, error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        match error.sqlite_error_code() {
            Some(Code::ReadOnly | Code::CannotOpen | Code::PermissionDenied) => Self::ReadOnly { dir: dir.to_owned() },
            Some(Code::DiskFull) => Self::Full { dir: dir.to_owned() },
            _ => Self::Store { file: file.to_owned(), detail: error.to_string() },
        }
    }
}

/// Why the engine can't start or go on.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Another engine holds the lock.
    #[error("another process already runs the jobs of state directory `{}`", .dir.display())]
    AlreadyRunning {
        /// The directory.
        dir: PathBuf,
    },
    /// The store failed; the engine may be ticked again later.
    #[error("{detail}")]
    Store {
        /// What happened.
        detail: String,
    },
    /// The file system failed.
    #[error("{what}: {detail}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system says.
        detail: String,
    },
}

impl EngineError {
    pub(crate) fn io(what: impl Into<String>, error: &std::io::Error) -> Self {
        Self::Io { what: what.into(), detail: plain(error) }
    }
}

impl From<rusqlite::Error> for EngineError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store { detail: store_sentence(&error) }
    }
}

impl From<BatchError> for EngineError {
    fn from(error: BatchError) -> Self {
        Self::Store { detail: error.message }
    }
}

fn store_sentence(error: &rusqlite::Error) -> String {
    use rusqlite::ErrorCode as Code;
    match error.sqlite_error_code() {
        Some(Code::DiskFull) => "the store of the local Batch can't be written: its disk is full".to_owned(),
        Some(Code::ReadOnly) => "the store of the local Batch can't be written: it is read-only".to_owned(),
        Some(Code::DatabaseBusy | Code::DatabaseLocked) => {
            "the store of the local Batch is busy with another process".to_owned()
        }
        _ => format!("the store of the local Batch failed: {error}"),
    }
}

/// The system's sentence without its number and capital letter.
pub(crate) fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}
