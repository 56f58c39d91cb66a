//! The state directory: the database, the lock of whoever runs the pipeline, and whatever else is in there.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the database file.
pub const DATABASE_FILE: &str = "osprey.db";
/// Name of the lock file. It is never removed; who holds the lock on it runs the pipeline.
pub const LOCK_FILE: &str = "osprey.lock";

/// How long a lock is tried for, and how often.
const LOCK_PATIENCE: Duration = Duration::from_millis(200);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// A state directory that exists. Files of others in it are left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDir {
    path: PathBuf,
}

impl StateDir {
    /// Opens the directory, and creates it (with its parents) when there is none.
    ///
    /// # Errors
    ///
    /// A sentence when it is a file, can't be created or can't be written to.
    pub fn open(path: &Path) -> Result<Self, StateError> {
        if path.exists() && !path.is_dir() {
            return Err(StateError(format!("the state directory `{}` is not a directory", path.display())));
        }
        fs::create_dir_all(path).map_err(|error| StateError::io("created", path, &error))?;
        let state = Self { path: path.to_owned() };
        state.lock_file().map(|_| state)
    }

    /// Opens a directory in which a pipeline has run, for commands that only look.
    ///
    /// # Errors
    ///
    /// A sentence when there is none.
    pub fn existing(path: &Path) -> Result<Self, StateError> {
        let state = Self { path: path.to_owned() };
        match fs::metadata(state.database_path()) {
            Ok(file) if file.is_file() => return Ok(state),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(StateError::io("read", path, &error));
            }
            _ => {}
        }
        let path = path.display();
        Err(StateError(format!("`{path}` is no state directory: there is no file `{DATABASE_FILE}` in it")))
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The database file.
    #[must_use]
    pub fn database_path(&self) -> PathBuf {
        self.path.join(DATABASE_FILE)
    }

    /// Takes the directory for a running pipeline, until the answer is dropped or the process ends, however it ends.
    ///
    /// # Errors
    ///
    /// A sentence that names the process which has it.
    pub fn lock(&self) -> Result<StateLock, StateError> {
        let mut file = self.lock_file()?;
        match lock_patiently(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(self.held_by_another(&mut file)),
            Err(TryLockError::Error(error)) => return Err(StateError::io("locked", &self.path, &error)),
        }
        write_pid(&mut file).map_err(|error| StateError::io("written to", &self.path, &error))?;
        Ok(StateLock { _file: file })
    }

    /// The process that runs a pipeline in the directory; `None` when none does. 0 for one that just starts.
    ///
    /// # Errors
    ///
    /// A sentence when the lock file can't be opened.
    pub fn holder(&self) -> Result<Option<u32>, StateError> {
        // Whoever only looks may have no right to write here.
        let mut file = match File::open(self.path.join(LOCK_FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|error| StateError::io("read", &self.path, &error))?,
        };
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Ok(Some(read_pid(&mut file).unwrap_or(0))),
            Ok(()) => Ok(None),
            Err(TryLockError::Error(error)) => Err(StateError::io("locked", &self.path, &error)),
        }
    }

    fn lock_file(&self) -> Result<File, StateError> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.path.join(LOCK_FILE))
            .map_err(|error| StateError::io("written to", &self.path, &error))
    }

    fn held_by_another(&self, file: &mut File) -> StateError {
        let path = self.path.display();
        let process = read_pid(file).map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
        StateError(format!(
            "{process} runs a pipeline in the state directory `{path}`: stop it, or choose another directory"
        ))
    }
}

/// The directory is ours while this lives.
#[derive(Debug)]
pub struct StateLock {
    _file: File,
}

/// A state directory that can't be used; one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StateError(pub String);

impl StateError {
    fn io(done: &str, path: &Path, error: &io::Error) -> Self {
        let path = path.display();
        Self(format!("the state directory `{path}` can't be {done}: {}", cause(error)))
    }
}

/// The cause in words, without the number of the system's error.
fn cause(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "its file system is read-only".to_owned(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "its disk is full".to_owned(),
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => "a part of it is a file".to_owned(),
        io::ErrorKind::NotFound => "nothing can be created there".to_owned(),
        _ => error.to_string().to_lowercase(),
    }
}

/// Tries for a moment, since whoever asks for the [`StateDir::holder`] has the lock for an instant too.
fn lock_patiently(file: &File) -> Result<(), TryLockError> {
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if start.elapsed() < LOCK_PATIENCE => std::thread::sleep(LOCK_PAUSE),
            other => return other,
        }
    }
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().and_then(|()| file.take(20).read_to_string(&mut text)).ok()?;
    text.trim().parse().ok()
}
