//! The files of an attempt, `batch/jobs/ID/NUMBER.*`, through which engine and supervisor speak.
//!
//! * `.pid` says which supervisor runs the attempt. It is made by linking a finished file, which fails when the name
//!   exists: of any number of supervisors started for one attempt, one runs the command.
//! * `.run` says which process the command is, and when it started.
//! * `.exit` says how it ended. It is renamed into place, so a crash of any process leaves it whole or absent. It isn't
//!   synced: when the whole machine goes down every command has ended anyway, and an end that didn't reach the disk
//!   reads as one that wasn't written.
//! * `.log` is the command's standard output and standard error.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::bell;
use crate::process::Identity;

/// Where an attempt has its files.
#[derive(Clone, Debug)]
pub struct AttemptFiles {
    dir: PathBuf,
    number: i64,
}

/// Content of `.pid`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The supervisor; `None` when the engine has given the attempt up, so that nobody runs it any more.
    pub supervisor: Option<Identity>,
}

/// Content of `.run`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The command, which leads its process group.
    pub command: Identity,
    /// Real milliseconds since 1970.
    pub started_real_ms: i64,
}

/// Content of `.exit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// How it ended.
    pub outcome: Outcome,
    /// Start in real milliseconds since 1970; `None` when the command didn't start.
    pub started_real_ms: Option<i64>,
    /// End in real milliseconds since 1970.
    pub ended_real_ms: i64,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// The kernel, which had no memory left, killed it or a part of it.
    OutOfMemory,
    /// It couldn't be started, and why.
    NotStarted(String),
}

impl AttemptFiles {
    /// Files of one attempt of a job below `jobs`.
    #[must_use]
    pub fn new(jobs: &Path, job_id: &str, number: i64) -> Self {
        Self::in_dir(jobs.join(job_id), number)
    }

    /// Files of one attempt in the job's own directory.
    #[must_use]
    pub fn in_dir(dir: PathBuf, number: i64) -> Self {
        Self { dir, number }
    }

    /// The job's directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Wakes the engine, which then looks at the files.
    pub fn ring(&self) {
        if let Some(jobs) = self.dir.parent() {
            bell::ring(&bell::path(jobs));
        }
    }

    /// Whether the job's directory was deleted.
    #[must_use]
    pub fn are_gone(&self) -> bool {
        !self.dir.exists()
    }

    fn named(&self, suffix: &str) -> PathBuf {
        self.dir.join(format!("{}.{suffix}", self.number))
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.named("log")
    }

    /// Takes the attempt; `false` when somebody else has it.
    ///
    /// # Errors
    /// Failures of the file system other than that the claim exists.
    pub fn claim(&self, claim: &Claim) -> io::Result<bool> {
        let draft = self.named(&format!("pid-{}", std::process::id()));
        fs::write(&draft, serde_json::to_vec(claim)?)?;
        let linked = fs::hard_link(&draft, self.named("pid"));
        fs::remove_file(&draft)?;
        match linked {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Who has the attempt.
    #[must_use]
    pub fn read_claim(&self) -> Option<Claim> {
        read(&self.named("pid"))
    }

    /// Writes down that the command runs.
    ///
    /// # Errors
    /// Failures of the file system.
    pub fn put_started(&self, started: &Started) -> io::Result<()> {
        self.put("run", started)
    }

    /// The command, once it runs.
    #[must_use]
    pub fn read_started(&self) -> Option<Started> {
        read(&self.named("run"))
    }

    /// Writes down the end.
    ///
    /// # Errors
    /// Failures of the file system.
    pub fn put_exit(&self, exit: &Exit) -> io::Result<()> {
        self.put("exit", exit)
    }

    /// The end, once it has come.
    #[must_use]
    pub fn read_exit(&self) -> Option<Exit> {
        read(&self.named("exit"))
    }

    fn put(&self, suffix: &str, value: &impl Serialize) -> io::Result<()> {
        let draft = self.named(&format!("{suffix}-new"));
        fs::write(&draft, serde_json::to_vec(value)?)?;
        fs::rename(&draft, self.named(suffix))
    }
}

/// A file that is missing or isn't what it should be counts as missing: whoever writes it does so in one step.
fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_can_be_claimed_once() {
        let dir = std::env::temp_dir().join(format!("local-batch-claim-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let files = AttemptFiles::in_dir(dir.clone(), 1);
        let claim = Claim { supervisor: Identity::own() };
        assert!(files.claim(&claim).unwrap());
        assert!(!files.claim(&Claim { supervisor: None }).unwrap());
        assert_eq!(files.read_claim(), Some(claim));
        fs::remove_dir_all(dir).unwrap();
    }
}
