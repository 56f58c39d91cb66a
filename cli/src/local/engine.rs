//! The local Batch's engine on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use osprey_local_batch::{Engine, EngineError, LocalBatch};

use crate::error::{CliError, ErrorCode};

/// Longest sleep between two ticks; calls of other processes are looked for at least so often.
const SLEEP_MAX: Duration = Duration::from_millis(10);
/// Sleep after a tick that failed.
const SLEEP_AFTER_FAILURE: Duration = Duration::from_millis(200);
/// Ticks that may fail one after the other before the run is given up: half a minute.
const FAILURES_MAX: u32 = 150;

/// The engine, ticking until it is stopped. Jobs that run then go on running.
pub struct EngineThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), EngineError>>>,
}

impl EngineThread {
    /// Becomes the engine of the local Batch.
    ///
    /// # Errors
    /// When another process is.
    pub fn start(batch: &LocalBatch) -> Result<Self, CliError> {
        let mut engine = batch.engine().map_err(|error| unusable(&error))?;
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("batch".to_owned())
            .spawn(move || tick(&mut engine, &asked))
            .map_err(|error| CliError::failed(format!("no thread can be started: {error}")))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Says why the engine has given up, once it has.
    ///
    /// # Errors
    /// The engine's last failure.
    pub fn check(&mut self) -> Result<(), CliError> {
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

fn tick(engine: &mut Engine, stop: &AtomicBool) -> Result<(), EngineError> {
    let mut failures = 0;
    while !stop.load(Ordering::Acquire) {
        match engine.tick() {
            Ok(due) => {
                failures = 0;
                std::thread::sleep(due.min(SLEEP_MAX));
            }
            Err(error) => {
                failures += 1;
                if failures >= FAILURES_MAX {
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
