//! The one SQLite file of a state directory, shared by the store, the queues and the clock.
//!
//! Write-ahead log with `synchronous=NORMAL`: what was acknowledged survives a kill of the process (the pages are in
//! the operating system's hands by then), and the file is whole after a loss of power, though the last writes may be
//! missing. Every write is one `BEGIN IMMEDIATE` transaction, so several processes can use the file at once.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use osprey_ports::{CallError, StoreError};
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Params, Row, Transaction, TransactionBehavior, params,
};

use crate::schema;

/// SQLite's name for a database without a file.
const IN_MEMORY: &str = ":memory:";
/// Statements kept; more than this crate has.
const STATEMENTS_KEPT: usize = 64;

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// How long a write waits for another process before it is given up as throttled.
    pub busy_timeout: Duration,
    /// Most pages of 4 KiB that the file may grow to; `None` for no limit but the disk's.
    pub pages_max: Option<u32>,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self { busy_timeout: Duration::from_secs(10), pages_max: None }
    }
}

/// An open database. Every call blocks for as long as SQLite needs.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    connection: Mutex<Connection>,
    /// Latest virtual time that was told to anybody in this process, in microseconds, and how much of it is on disk.
    told: AtomicI64,
    saved: AtomicI64,
}

impl Database {
    /// Opens the file, and creates it with its tables when there is none.
    ///
    /// # Errors
    ///
    /// A sentence when the file can't be opened or written, is none of ours, or was written by a newer version.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_with(path, &DatabaseOptions::default())
    }

    /// Opens the file with options.
    ///
    /// # Errors
    ///
    /// As [`Database::open`].
    pub fn open_with(path: &Path, options: &DatabaseOptions) -> Result<Self, OpenError> {
        let failed = |error: rusqlite::Error| OpenError(explain(path, &error));
        let mut connection = connect(path, options).map_err(failed)?;
        schema::prepare(&mut connection).map_err(|fault| match fault {
            Fault::Sql(error) => failed(error),
            Fault::Refused(newer) => OpenError(newer.sentence(path)),
        })?;
        Ok(Self {
            path: path.to_owned(),
            connection: Mutex::new(connection),
            told: AtomicI64::new(i64::MIN),
            saved: AtomicI64::new(i64::MIN),
        })
    }

    /// A database without a file, gone when it is dropped; for tests.
    ///
    /// # Errors
    ///
    /// When there is no memory.
    pub fn in_memory() -> Result<Self, OpenError> {
        Self::open(Path::new(IN_MEMORY))
    }

    /// Where the file is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads.
    pub(crate) fn read<T, R>(&self, work: impl FnOnce(&Connection) -> Result<T, Fault<R>>) -> Result<T, Failure<R>> {
        work(&self.connection()).map_err(|fault| self.failure(fault))
    }

    /// Does `work` in one transaction: all of it or, when it gives an error, nothing.
    pub(crate) fn write<T, R>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Fault<R>>,
    ) -> Result<T, Failure<R>> {
        let mut connection = self.connection();
        let (answer, mark) = (|| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let answer = work(&transaction)?;
            let mark = self.save_told(&transaction)?;
            Ok(transaction.commit().map(|()| (answer, mark)))
        })()
        .map_err(|fault| self.failure(fault))?
        .map_err(|error| self.commit_failure(&error))?;
        self.saved.fetch_max(mark, Ordering::Relaxed);
        Ok(answer)
    }

    /// Notes that somebody was told this virtual time; the next write saves it.
    pub(crate) fn note_told(&self, microseconds: i64) {
        self.told.fetch_max(microseconds, Ordering::Relaxed);
    }

    /// Saves the latest virtual time together with what was written at it, so that a clock that is opened again
    /// never runs behind a time that is on record.
    fn save_told(&self, transaction: &Transaction<'_>) -> rusqlite::Result<i64> {
        let told = self.told.load(Ordering::Relaxed);
        if told > self.saved.load(Ordering::Relaxed) {
            transaction.run(
                "INSERT INTO meta (name, value) VALUES (?1, ?2)
                 ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)",
                params![schema::CLOCK_TOLD, told],
            )?;
        }
        Ok(told)
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic inside a transaction rolls it back when it unwinds, so the connection is sound.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failure<R>(&self, fault: Fault<R>) -> Failure<R> {
        match fault {
            Fault::Refused(refusal) => Failure::Refused(refusal),
            Fault::Sql(error) if is_busy(&error) => Failure::Busy,
            Fault::Sql(error) => Failure::Unusable(explain(&self.path, &error)),
        }
    }

    /// An input or output error while a commit record is written is the one case where the outcome isn't known.
    fn commit_failure<R>(&self, error: &rusqlite::Error) -> Failure<R> {
        match error.sqlite_error_code() {
            Some(ErrorCode::SystemIoFailure) => Failure::Unknown(explain(&self.path, error)),
            _ if is_busy(error) => Failure::Busy,
            _ => Failure::Unusable(explain(&self.path, error)),
        }
    }
}

/// Calls with statements that are kept, since parsing one takes longer than running it.
pub(crate) trait Statements {
    /// Runs a change, and says how many rows it touched.
    fn run(&self, sql: &str, parameters: impl Params) -> rusqlite::Result<usize>;
    /// The first row, if any.
    fn first<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        row: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>>;
    /// All rows.
    fn all<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>>;
}

impl Statements for Connection {
    fn run(&self, sql: &str, parameters: impl Params) -> rusqlite::Result<usize> {
        self.prepare_cached(sql)?.execute(parameters)
    }

    fn first<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        row: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        self.prepare_cached(sql)?.query_row(parameters, row).optional()
    }

    fn all<T>(
        &self,
        sql: &str,
        parameters: impl Params,
        row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.prepare_cached(sql)?.query_map(parameters, row)?.collect()
    }
}

/// Requests hold environment variables, so the file is for its owner alone; SQLite gives its log files the same mode.
/// A file that is there keeps its mode, and one that can't be made is told by SQLite.
fn create_private(path: &Path) {
    let _ = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
}

fn connect(path: &Path, options: &DatabaseOptions) -> rusqlite::Result<Connection> {
    if path != Path::new(IN_MEMORY) {
        create_private(path);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(options.busy_timeout)?;
    if let Some(pages) = options.pages_max {
        connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
    }
    switch_to_wal(&connection, options.busy_timeout)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY;")?;
    Ok(connection)
}

/// SQLite does not call its busy handler while it changes the journal mode, so several first openers have to try again.
fn switch_to_wal(connection: &Connection, patience: Duration) -> rusqlite::Result<()> {
    let start = Instant::now();
    loop {
        match connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())) {
            Err(error) if is_busy(&error) && start.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

/// A database that couldn't be opened; one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OpenError(pub String);

impl From<Failure<OpenError>> for OpenError {
    fn from(failure: Failure<OpenError>) -> Self {
        match failure {
            Failure::Refused(error) => error,
            Failure::Busy => Self("the database is in use by another process that doesn't let go of it".to_owned()),
            Failure::Unusable(sentence) | Failure::Unknown(sentence) => Self(sentence),
        }
    }
}

/// What may go wrong inside a transaction: SQLite, or our own refusal.
#[derive(Debug)]
pub(crate) enum Fault<R> {
    Sql(rusqlite::Error),
    Refused(R),
}

impl<R> From<rusqlite::Error> for Fault<R> {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

/// What the caller of a transaction has to know.
#[derive(Debug)]
pub(crate) enum Failure<R> {
    /// Refused by us; nothing was written.
    Refused(R),
    /// Another process held the file for too long; nothing was written.
    Busy,
    /// The file can't be used; nothing was written.
    Unusable(String),
    /// It may have been written.
    Unknown(String),
}

impl From<Failure<StoreError>> for StoreError {
    fn from(failure: Failure<StoreError>) -> Self {
        match failure {
            Failure::Refused(error) => error,
            Failure::Busy => Self::Throttled,
            Failure::Unusable(sentence) => Self::Unusable(sentence),
            Failure::Unknown(sentence) => Self::Unknown(sentence),
        }
    }
}

impl From<Failure<CallError>> for CallError {
    fn from(failure: Failure<CallError>) -> Self {
        match failure {
            Failure::Refused(error) => error,
            Failure::Busy => Self::Throttled,
            Failure::Unusable(sentence) => Self::Refused(sentence),
            Failure::Unknown(sentence) => Self::Unknown(sentence),
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Why a file can't be used: SQLite itself hardly tells these apart.
fn denied(file: &Path) -> String {
    let path = file.display();
    let cause = match OpenOptions::new().read(true).write(true).open(file).map_err(|error| error.kind()) {
        Ok(_) => "its folder can't be written to, and the database needs other files beside it",
        Err(ErrorKind::PermissionDenied) => "permission denied: it is for its owner, who has to be able to write it",
        Err(ErrorKind::ReadOnlyFilesystem) => "its file system is read-only",
        Err(_) => return format!("`{path}` can't be opened or created"),
    };
    format!("`{path}` can't be used: {cause}")
}

/// One sentence for a person.
fn explain(file: &Path, error: &rusqlite::Error) -> String {
    let path = file.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => format!("the disk that holds `{path}` is full"),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => denied(file),
        Some(ErrorCode::DatabaseCorrupt) => format!("`{path}` is damaged"),
        Some(ErrorCode::NotADatabase) => format!("`{path}` is no database"),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            format!("`{path}` is in use by another process that doesn't let go of it")
        }
        _ => format!("`{path}` can't be used: {error}"),
    }
}
