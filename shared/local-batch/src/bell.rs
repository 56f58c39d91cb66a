//! The bell: a named pipe, `batch/bell`, with which supervisors and calls of any process wake the engine.
//!
//! It carries no news, only that there may be some: the store and the attempts' files say what. A ring that gets lost,
//! or a file system without named pipes, costs time only, since the engine looks by itself too.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

/// Name of the pipe in `batch`.
const FILE: &str = "bell";
/// Rings that are taken off at once; those beyond are taken off by the next wait.
const RINGS_MAX: usize = 4_096;

/// Where the bell of a state directory is.
pub(crate) fn path(jobs: &Path) -> PathBuf {
    jobs.with_file_name(FILE)
}

/// Rings, if anybody listens. Never waits, and a full pipe has rung already.
pub(crate) fn ring(path: &Path) {
    let pipe = OpenOptions::new().write(true).custom_flags(non_blocking()).open(path);
    // Without an engine there is nobody to wake.
    let _ = pipe.and_then(|mut pipe| pipe.write(b"."));
}

/// `O_NONBLOCK` as the standard library wants it.
fn non_blocking() -> i32 {
    OFlags::NONBLOCK.bits().cast_signed()
}

/// The bell as the engine hears it.
#[derive(Debug)]
pub(crate) struct Bell {
    pipe: File,
}

impl Bell {
    /// Makes the pipe where it is missing, and listens from now on.
    ///
    /// # Errors
    /// When there can be no named pipe.
    pub fn listen(path: &Path) -> io::Result<Self> {
        match mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        // Open for writing too, so that it never counts as closed while nobody rings.
        let pipe = OpenOptions::new().read(true).write(true).custom_flags(non_blocking()).open(path)?;
        Ok(Self { pipe })
    }

    /// Waits until it rings, at most for `limit`; rings since the last wait count.
    pub fn wait(&self, limit: Duration) {
        let limit = Timespec::try_from(limit).ok();
        let mut fds = [PollFd::new(&self.pipe, PollFlags::IN)];
        // Interrupted or failed, the engine looks a little early.
        if poll(&mut fds, limit.as_ref()).is_ok_and(|ready| ready > 0) {
            let mut rings = [0; RINGS_MAX];
            let _ = (&self.pipe).read(&mut rings);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_ring_before_or_during_a_wait_ends_it() {
        let path = std::env::temp_dir().join(format!("local-batch-bell-{}", std::process::id()));
        ring(&path);
        let bell = Bell::listen(&path).unwrap();
        let wait = |limit_ms| {
            let started = Instant::now();
            bell.wait(Duration::from_millis(limit_ms));
            started.elapsed().as_millis()
        };
        assert!(wait(20) >= 20, "nobody has rung");
        ring(&path);
        ring(&path);
        assert!(wait(10_000) < 5_000);
        assert!(wait(20) >= 20, "both rings were taken off");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(30));
                ring(&path);
            });
            assert!(wait(10_000) < 5_000);
        });
        Bell::listen(&path).unwrap();
        std::fs::remove_file(path).unwrap();
    }
}
