//! What has become of the live attempts, read from their files and from `/proc`.
//!
//! This is also how an engine finds its way after a crash: an attempt with a living supervisor is simply watched on,
//! one with an end file has ended however long ago, one that nobody has claimed is launched again (the claim lets only
//! one supervisor run it), and one whose supervisor is dead has lost its host, after what is left of it was killed.

use crate::attempt::{AttemptRow, AttemptState};
use crate::batch::Inner;
use crate::files::{AttemptFiles, Exit, Started};
use crate::process::{kill_all, marked};
use crate::supervise::MARK;

/// How closely to look. The end of a command is cheap to see; whether its supervisor lives isn't.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Care {
    /// Only files.
    Quick,
    /// Processes too.
    Thorough,
}

/// What has changed about an attempt.
#[derive(Clone, Debug)]
pub(crate) enum Seen {
    /// Nothing, or nothing that can be said yet.
    Nothing,
    /// No supervisor has claimed it.
    Unclaimed,
    /// Its command runs.
    Started(Started),
    /// Its command has ended; when it was so quick that it wasn't seen running, both at once.
    Ended(Exit),
    /// Supervisor and command are gone and left no word.
    Lost,
}

/// Looks at one attempt.
pub(crate) fn look(inner: &Inner, attempt: &AttemptRow, care: Care) -> Seen {
    let files = AttemptFiles::new(&inner.jobs, &attempt.job_id, attempt.number);
    if let Some(exit) = files.read_exit() {
        return Seen::Ended(exit);
    }
    if attempt.state == AttemptState::Starting
        && let Some(started) = files.read_started()
    {
        return Seen::Started(started);
    }
    if care == Care::Quick {
        return Seen::Nothing;
    }
    let Some(claim) = files.read_claim() else { return Seen::Unclaimed };
    if claim.supervisor.is_some_and(|supervisor| supervisor.is_alive()) {
        return Seen::Nothing;
    }
    // The supervisor may have written the end between the first look and its death.
    match files.read_exit() {
        Some(exit) => Seen::Ended(exit),
        None => after_supervisor(&files, attempt),
    }
}

/// Kills what a dead supervisor has left behind; the attempt is lost once nothing is left.
fn after_supervisor(files: &AttemptFiles, attempt: &AttemptRow) -> Seen {
    let mut left = marked(MARK, &attempt.token, None);
    if let Some(started) = files.read_started()
        && started.command.is_alive()
    {
        started.command.signal_group(rustix::process::Signal::KILL);
        left.push(started.command.pid);
    }
    if left.is_empty() {
        return Seen::Lost;
    }
    kill_all(&left);
    Seen::Nothing
}
