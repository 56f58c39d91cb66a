//! The log of a run: one JSON object a line, in the state directory. Standard output and error stay for people.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Mutex;

use tracing_subscriber::EnvFilter;

use crate::error::{CliError, ErrorCode, cause};

/// Name of the file.
pub const FILE: &str = "osprey.log";

/// Writes what the functions say to `osprey.log` in `dir`; `OSPREY_LOG` says how much, `info` without it.
///
/// # Errors
/// When the file can't be written.
pub fn to_file(dir: &Path) -> Result<(), CliError> {
    let path = dir.join(FILE);
    let file = OpenOptions::new().create(true).append(true).open(&path).map_err(|error| {
        CliError::new(ErrorCode::StateUnusable, format!("`{}` can't be written: {}", path.display(), cause(&error)))
    })?;
    let filter = EnvFilter::try_from_env("OSPREY_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt().json().with_env_filter(filter).with_writer(Mutex::new(file)).finish();
    // A second run in one process, as in tests, keeps the first one's log.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(())
}
