//! Where runs are: `.osprey/run-DATE-TIME` unless told otherwise, and `.osprey/latest` leads to the newest of this
//! directory, wherever its state is.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::command::LATEST;
use crate::error::{CliError, ErrorCode, cause};

/// The folder of all runs that nobody gave a folder.
const RUNS: &str = ".osprey";
/// Runs that may begin in one second.
const RUNS_PER_SECOND_MAX: u32 = 100;

/// Creates a folder for a run that begins now.
///
/// # Errors
/// When nothing can be created here.
pub fn fresh(now: Timestamp) -> Result<PathBuf, CliError> {
    let runs = Path::new(RUNS);
    let unusable = |error: io::Error| {
        CliError::new(ErrorCode::StateUnusable, format!("no folder can be created in `{RUNS}`: {}", cause(&error)))
            .help("name a folder with `--state DIR`")
    };
    fs::create_dir_all(runs).map_err(unusable)?;
    let name = now.strftime("run-%Y%m%d-%H%M%S").to_string();
    for number in 1..=RUNS_PER_SECOND_MAX {
        let name = if number == 1 { name.clone() } else { format!("{name}-{number}") };
        match fs::create_dir(runs.join(&name)) {
            Ok(()) => return Ok(runs.join(name)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(unusable(error)),
        }
    }
    Err(CliError::failed(format!("{RUNS_PER_SECOND_MAX} runs began in this second")))
}

/// Makes `.osprey/latest` lead to a state directory. It is a convenience: where nothing can be written here, a run goes
/// on without.
pub fn follow(dir: &Path) {
    let target = match dir.strip_prefix(RUNS) {
        Ok(own) => own.to_owned(),
        Err(_) => dir.canonicalize().unwrap_or_else(|_| dir.to_owned()),
    };
    if let Err(error) = fs::create_dir_all(RUNS).and_then(|()| point_latest_to(&target)) {
        tracing::warn!(%error, "`.osprey/latest` can't be set.");
    }
}

/// Renaming is atomic: there is always a newest run.
fn point_latest_to(target: &Path) -> io::Result<()> {
    let new = Path::new(RUNS).join(format!("latest.{}", std::process::id()));
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    symlink(target, &new)?;
    fs::rename(new, LATEST)
}

/// The folder itself in place of `.osprey/latest`, which may lead elsewhere soon.
#[must_use]
pub fn resolved(dir: &Path) -> PathBuf {
    match fs::read_link(dir) {
        Ok(target) if dir == Path::new(LATEST) => named(&Path::new(RUNS).join(target)),
        _ => dir.to_owned(),
    }
}

/// A path as somebody here would write it.
fn named(path: &Path) -> PathBuf {
    let here = std::env::current_dir().and_then(|here| here.canonicalize()).unwrap_or_default();
    path.strip_prefix(&here).map_or_else(|_| path.to_owned(), Path::to_owned)
}
