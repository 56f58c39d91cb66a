//! What to do when a round of the pipeline fails, such as on a full disk: say so, try again, and give up in the end.

use std::time::Duration;

use crate::error::{CliError, ErrorCode};
use crate::ui::Ui;

/// Rounds that may fail one after the other: about a minute, in which a person may make room.
const FAILURES_MAX: u32 = 300;
/// Failures after which it is told; fewer are over before anybody could read of them.
const TOLD_AFTER: u32 = 3;
/// Pause after a round that failed.
const PAUSE: Duration = Duration::from_millis(200);

/// Counts failures of one streak.
#[derive(Debug, Default)]
pub struct Patience {
    failures: u32,
    is_told: bool,
}

impl Patience {
    /// A round went well.
    pub fn restored(&mut self, ui: &mut Ui) {
        if self.is_told {
            ui.note("the pipeline goes on");
        }
        *self = Self::default();
    }

    /// A round failed: waits a little.
    ///
    /// # Errors
    /// The failure itself, when nobody is left to write to or it was one too many.
    pub fn tried(&mut self, error: CliError, ui: &mut Ui) -> Result<(), CliError> {
        self.failures += 1;
        if self.failures > FAILURES_MAX || error.code == ErrorCode::BrokenPipe {
            return Err(error);
        }
        tracing::warn!(error = error.message, "a round of the pipeline failed.");
        if self.failures >= TOLD_AFTER && !self.is_told {
            self.is_told = true;
            let seconds = (PAUSE * (FAILURES_MAX - self.failures)).as_secs();
            ui.note(&format!("{}; trying again for {seconds} s, and jobs that run go on", error.message));
        }
        std::thread::sleep(PAUSE);
        Ok(())
    }
}
