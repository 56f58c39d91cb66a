//! Ctrl-C: the first asks the run to stop, the second ends the process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::CliError;

/// Exit code of a process that Ctrl-C ended, as shells expect it.
const EXIT_INTERRUPTED: i32 = 130;

/// Listens for Ctrl-C and SIGTERM from now on; the answer becomes true at the first.
///
/// # Errors
/// When the system doesn't let us listen.
pub fn listen() -> Result<Arc<AtomicBool>, CliError> {
    let failed = |error: std::io::Error| CliError::failed(format!("signals can't be listened for: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(failed)?;
    let (mut interrupt, mut terminate) = {
        let _guard = runtime.enter();
        (signal(SignalKind::interrupt()).map_err(failed)?, signal(SignalKind::terminate()).map_err(failed)?)
    };
    let asked = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&asked);
    let wait = move || {
        runtime.block_on(async move {
            next(&mut interrupt, &mut terminate).await;
            flag.store(true, Ordering::Release);
            next(&mut interrupt, &mut terminate).await;
            std::process::exit(EXIT_INTERRUPTED);
        });
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(failed)?;
    Ok(asked)
}

/// Either signal.
async fn next(interrupt: &mut Signal, terminate: &mut Signal) {
    let mut first = std::pin::pin!(interrupt.recv());
    let mut second = std::pin::pin!(terminate.recv());
    std::future::poll_fn(|context| {
        if first.as_mut().poll(context).is_ready() || second.as_mut().poll(context).is_ready() {
            return std::task::Poll::Ready(());
        }
        std::task::Poll::Pending
    })
    .await;
}
