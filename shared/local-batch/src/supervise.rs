//! The supervisor: the process between the engine and a command, as containerd's shim is.
//!
//! It claims the attempt, runs the command in a process group of its own, waits, and writes down the end. It asks
//! nothing of the engine and needs it no more once it has started, so an engine that dies loses no job and no exit
//! code. It has no standard input and writes nothing; being in a process group of its own, it doesn't see Ctrl-C.
//!
//! A command's end is the end of its whole family, as in a container: what it left running is killed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions};
use rustix::process::{getpid, kill_process_group, set_child_subreaper, wait, waitid};

use crate::clock::real_now_ms;
use crate::files::{AttemptFiles, Claim, Exit, Outcome, Started};
use crate::memory;
use crate::process::{Identity, kill_all, marked};

/// The variable that marks every process of one launch, so that a family can be found when its supervisor is gone.
pub const MARK: &str = "LOCAL_BATCH_LAUNCH";

/// Arguments of a supervisor.
struct Task {
    files: AttemptFiles,
    token: String,
    command: Vec<OsString>,
}

/// Writes the arguments that [`supervise`] reads.
#[must_use]
pub(crate) fn arguments(files: &AttemptFiles, number: i64, token: &str, command: &[String]) -> Vec<OsString> {
    let mut arguments = vec![files.dir().as_os_str().to_owned(), number.to_string().into(), token.into(), "--".into()];
    arguments.extend(command.iter().map(OsString::from));
    arguments
}

/// Runs one attempt: `DIRECTORY NUMBER TOKEN -- COMMAND…`, with the environment and the directory that the command is
/// to have. Answers the exit code of the supervisor itself: 0 when the end was written down or the attempt belongs to
/// somebody else, 2 for wrong arguments, 1 when the claim or the end couldn't be written.
pub fn supervise(args: impl IntoIterator<Item = OsString>) -> i32 {
    let Some(task) = parse(args) else { return 2 };
    match task.files.claim(&Claim { supervisor: Identity::own() }) {
        Ok(true) => {}
        Ok(false) => return 0,
        Err(_) => return 1,
    }
    let exit = run(&task);
    let is_told = put_exit(&task.files, &exit);
    task.files.ring();
    i32::from(!is_told)
}

/// Writes the end down. A disk that is full may have room again later, and an end that isn't written down would be taken
/// for a lost host and run again: so this waits for a day.
fn put_exit(files: &AttemptFiles, exit: &Exit) -> bool {
    const TRIES_MAX: u32 = 172_800;
    const PAUSE: Duration = Duration::from_millis(500);
    (0..TRIES_MAX).any(|_| {
        // Without its folder nobody will ever ask.
        files.put_exit(exit).is_ok() || files.are_gone() || {
            std::thread::sleep(PAUSE);
            false
        }
    })
}

fn parse(args: impl IntoIterator<Item = OsString>) -> Option<Task> {
    let mut args = args.into_iter();
    let dir = PathBuf::from(args.next()?);
    let number = args.next()?.to_str()?.parse().ok()?;
    let token = args.next()?.into_string().ok()?;
    (args.next()? == "--").then(|| Task { files: AttemptFiles::in_dir(dir, number), token, command: args.collect() })
}

fn run(task: &Task) -> Exit {
    let not_started = |reason: String| Exit {
        outcome: Outcome::NotStarted(reason),
        started_real_ms: None,
        ended_real_ms: real_now_ms(),
    };
    // Orphans of the command then become children of this process and can be collected.
    let _ = set_child_subreaper(Some(getpid()));
    let kernel_kills = memory::kernel_kills();
    let child = match start(task) {
        Ok(child) => child,
        Err(reason) => return not_started(reason),
    };
    let started_real_ms = real_now_ms();
    let pid = i32::try_from(child.id()).unwrap_or(0);
    if let Some(command) = Identity::of(pid) {
        // Without the file the engine can't stop the command, but it still learns how it ended.
        let _ = task.files.put_started(&Started { command, started_real_ms });
        task.files.ring();
    }
    let outcome = for_want_of_memory(outcome_of(child), kernel_kills);
    end_family(&task.token);
    Exit { outcome, started_real_ms: Some(started_real_ms), ended_real_ms: real_now_ms() }
}

/// An end by SIGKILL while the kernel killed somebody for want of memory is taken for one of these; a shell tells the
/// end of its child as 137.
fn for_want_of_memory(outcome: Outcome, kernel_kills_before: Option<u64>) -> Outcome {
    let is_kill = matches!(outcome, Outcome::Signal(9) | Outcome::Code(137));
    if is_kill && memory::kernel_kills() > kernel_kills_before { Outcome::OutOfMemory } else { outcome }
}

fn start(task: &Task) -> Result<Child, String> {
    let (program, arguments) = task.command.split_first().ok_or("no command specified")?;
    let log = task.files.log();
    let open = || File::options().create(true).append(true).open(&log);
    let output = open().and_then(|file| Ok((file.try_clone()?, file)));
    let (output, errors) = output.map_err(|error| format!("log file can't be written: {error}"))?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(output).stderr(errors).process_group(0);
    command.spawn().map_err(|error| refusal(program, &error))
}

/// The words of a container runtime, which people search for.
fn refusal(program: &OsStr, error: &io::Error) -> String {
    let program = program.to_string_lossy();
    match error.kind() {
        io::ErrorKind::NotFound if !program.contains('/') => {
            format!("exec: \"{program}\": executable file not found in $PATH")
        }
        io::ErrorKind::NotFound => format!("exec: \"{program}\": no such file or directory"),
        io::ErrorKind::PermissionDenied => format!("exec: \"{program}\": permission denied"),
        _ => format!("exec: \"{program}\": {}", crate::error::plain(error)),
    }
}

/// Waits for the command, kills what is left of its process group, and only then collects it: until it is collected
/// the number of its group can't belong to anybody else.
fn outcome_of(mut child: Child) -> Outcome {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
        {
        }
        let _ = kill_process_group(pid, Signal::KILL);
    }
    match child.wait() {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => Outcome::Code(code),
            (None, signal) => Outcome::Signal(signal.unwrap_or(0)),
        },
        Err(error) => Outcome::NotStarted(format!("the command was lost: {error}")),
    }
}

/// Kills what the command left behind in other process groups. A family of more than this many generations of
/// escapees is left to itself.
fn end_family(token: &str) {
    const ROUNDS_MAX: u32 = 50;
    for _ in 0..ROUNDS_MAX {
        match wait(WaitOptions::NOHANG) {
            // A child is still there and hasn't ended.
            Ok(None) => {
                kill_all(&marked(MARK, token, None));
                std::thread::sleep(Duration::from_millis(2));
            }
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}
