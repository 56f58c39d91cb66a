//! The local Batch itself: a state directory, opened.

use std::fs::File;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::bell;
use crate::change::Change;
use crate::error::{BatchError, OpenError};
use crate::gang::node_id;
use crate::job::JobRow;
use crate::options::Options;
use crate::store::Store;

/// A Batch on this machine. Cheap to share: clones see the same store, and any thread may call.
#[derive(Clone)]
pub struct LocalBatch {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub store: Store,
    pub options: Options,
    pub dir: PathBuf,
    /// `batch/jobs`, where attempts have their files.
    pub jobs: PathBuf,
    /// Wakes the engine, whichever process has it.
    pub bell: PathBuf,
    pub working_directory: PathBuf,
    /// Set by each call that changes something, so that the engine of this process runs a cycle.
    pub changed: AtomicBool,
}

impl LocalBatch {
    /// Opens the state directory `dir`, creating it and `batch.db` and `batch/` in it where they are missing. Other
    /// files in it are left alone. Starts nothing: see [`Self::engine`].
    ///
    /// # Errors
    /// One sentence each for a directory that can't be written, a full disk, and a database of a newer version.
    pub fn open(dir: &Path, options: Options) -> Result<Self, OpenError> {
        let asked = dir;
        let io = |error: std::io::Error| OpenError::io(asked, &error);
        std::fs::create_dir_all(dir).map_err(io)?;
        let dir = dir.canonicalize().map_err(io)?;
        let jobs = dir.join("batch").join("jobs");
        let file = dir.join("batch.db");
        // Requests and logs may hold secrets: both are for this user alone.
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&jobs).map_err(io)?;
        File::options().create(true).append(true).mode(0o600).open(&file).map_err(io)?;
        let store = Store::open(&dir, &file)?;
        let working_directory = match &options.working_directory {
            Some(directory) => directory.clone(),
            None => std::env::current_dir().map_err(io)?,
        };
        let changed = AtomicBool::new(true);
        let bell = bell::path(&jobs);
        Ok(Self { inner: Arc::new(Inner { store, options, dir, jobs, bell, working_directory, changed }) })
    }

    /// The settings it was opened with.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// The log file of one attempt, `attempt` from 1: standard output and standard error together. It exists once
    /// the command has started. A multi-node job's is that of its main node.
    #[must_use]
    pub fn log_path(&self, job_id: &str, attempt: u32) -> PathBuf {
        let node = self.inner.store.read(|db| JobRow::by_id(db, job_id)).ok().flatten();
        let node = node.filter(JobRow::is_gang).and_then(|job| job.main_node);
        let id = node.map_or_else(|| job_id.to_owned(), |node| node_id(job_id, node));
        crate::files::AttemptFiles::new(&self.inner.jobs, &id, i64::from(attempt)).log()
    }

    /// Runs a mutation in one transaction, and wakes the engine.
    pub(crate) fn change<T, E: From<rusqlite::Error>>(
        &self,
        f: impl FnOnce(Change<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let value = self.change_quietly(f)?;
        self.inner.changed.store(true, Ordering::Release);
        bell::ring(&self.inner.bell);
        Ok(value)
    }

    /// Runs a mutation in one transaction after which there is nothing new to schedule.
    pub(crate) fn change_quietly<T, E: From<rusqlite::Error>>(
        &self,
        f: impl FnOnce(Change<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let options = &self.inner.options;
        self.inner.store.write(|db| f(Change { db, now_ms: options.clock.now_ms(), options }))
    }

    /// Runs a query.
    pub(crate) fn view<T>(&self, f: impl FnOnce(Change<'_>) -> Result<T, BatchError>) -> Result<T, BatchError> {
        let options = &self.inner.options;
        self.inner.store.read(|db| f(Change { db, now_ms: options.clock.now_ms(), options }))
    }
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
