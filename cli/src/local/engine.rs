//! The local Batch's engine on a thread of its own.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use osprey_local_batch::{Engine, EngineError, LocalBatch};

use crate::error::{CliError, ErrorCode};
use crate::ui::Ui;

/// Sleep after a tick that failed.
const SLEEP_AFTER_FAILURE: Duration = Duration::from_millis(200);
/// Ticks that may fail one after the other before the run is given up: a minute, in which a person may make room.
const FAILURES_MAX: u32 = 300;
/// Failures after which it is told; fewer are over before anybody could read of them.
const TOLD_AFTER: u32 = 3;

/// The engine, ticking until it is stopped. Jobs that run then go on running.
pub struct EngineThread {
    stop: Arc<AtomicBool>,
    trouble: Arc<Trouble>,
    is_told: bool,
    thread: Option<JoinHandle<Result<(), EngineError>>>,
}

/// What keeps the engine from going on, as long as something does.
#[derive(Debug, Default)]
struct Trouble {
    failures: AtomicU32,
    newest: Mutex<String>,
}

impl Trouble {
    /// Counts a failure; answers how many there have been one after the other.
    fn again(&self, error: &EngineError) -> u32 {
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = error.to_string();
        self.failures.fetch_add(1, Ordering::AcqRel) + 1
    }

    fn newest(&self) -> String {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl EngineThread {
    /// Becomes the engine of the local Batch.
    ///
    /// # Errors
    /// When another process is.
    pub fn start(batch: &LocalBatch) -> Result<Self, CliError> {
        let mut engine = batch.engine().map_err(|error| unusable(&error))?;
        let stop = Arc::new(AtomicBool::new(false));
        let trouble = Arc::new(Trouble::default());
        let (asked, told) = (Arc::clone(&stop), Arc::clone(&trouble));
        let thread = std::thread::Builder::new()
            .name("batch".to_owned())
            .spawn(move || tick(&mut engine, &asked, &told))
            .map_err(|error| CliError::failed(format!("no thread can be started: {error}")))?;
        Ok(Self { stop, trouble, is_told: false, thread: Some(thread) })
    }

    /// Says on standard error what keeps the engine from going on, and that it goes on; fails once it has given up.
    ///
    /// # Errors
    /// The engine's last failure.
    pub fn check(&mut self, ui: &mut Ui) -> Result<(), CliError> {
        let failures = self.trouble.failures.load(Ordering::Acquire);
        if failures >= TOLD_AFTER && !self.is_told {
            self.is_told = true;
            let seconds = (SLEEP_AFTER_FAILURE * (FAILURES_MAX - TOLD_AFTER)).as_secs();
            let what = self.trouble.newest();
            ui.note(&format!("{what}; the local Batch tries again for {seconds} s, and jobs that run go on"));
        } else if failures == 0 && self.is_told {
            self.is_told = false;
            ui.note("the local Batch goes on");
        }
        let is_over = self.thread.as_ref().is_some_and(JoinHandle::is_finished);
        if is_over { self.join() } else { Ok(()) }
    }

    fn join(&mut self) -> Result<(), CliError> {
        match self.thread.take().map(JoinHandle::join) {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(unusable(&error)),
            Some(Err(_)) => Err(CliError::failed("the local Batch broke: a fault of Osprey")),
        }
    }
}

impl Drop for EngineThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let _ = self.join();
    }
}

fn tick(engine: &mut Engine, stop: &AtomicBool, trouble: &Trouble) -> Result<(), EngineError> {
    while !stop.load(Ordering::Acquire) {
        match engine.tick() {
            Ok(due) => {
                trouble.failures.store(0, Ordering::Release);
                engine.wait(due);
            }
            Err(error) => {
                if trouble.again(&error) >= FAILURES_MAX {
                    return Err(error);
                }
                tracing::warn!(%error, "a tick of the local Batch failed.");
                std::thread::sleep(SLEEP_AFTER_FAILURE);
            }
        }
    }
    Ok(())
}

fn unusable(error: &EngineError) -> CliError {
    CliError::new(ErrorCode::StateUnusable, error.to_string())
}
