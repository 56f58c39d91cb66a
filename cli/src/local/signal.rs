//! Ctrl-C: the first asks the run to stop, the second ends the process at once.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::CliError;

/// Exit code of a process that Ctrl-C ended, as shells expect it.
const EXIT_INTERRUPTED: i32 = 130;

/// Listens for Ctrl-C, SIGTERM and the end of the terminal from now on; the answer becomes true at the first. A program that
/// has not ended by itself for so long after it, where a patience is given, is ended: reading keys from a terminal that has
/// gone never returns.
///
/// # Errors
/// When the system doesn't let us listen.
pub fn listen(patience: Option<Duration>) -> Result<Arc<AtomicBool>, CliError> {
    let failed = |error: std::io::Error| CliError::failed(format!("signals can't be listened for: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(failed)?;
    let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
    // Under `nohup` the end of the terminal is to be ignored.
    if !is_ignored(SignalKind::hangup(), &std::fs::read_to_string("/proc/self/status").unwrap_or_default()) {
        kinds.push(SignalKind::hangup());
    }
    let mut signals = {
        let _guard = runtime.enter();
        kinds.into_iter().map(signal).collect::<Result<Vec<Signal>, _>>().map_err(failed)?
    };
    let asked = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&asked);
    let wait = move || {
        runtime.block_on(async move {
            next(&mut signals).await;
            flag.store(true, Ordering::Release);
            if let Some(patience) = patience {
                std::thread::sleep(patience);
                std::process::exit(EXIT_INTERRUPTED);
            }
            next(&mut signals).await;
            std::process::exit(EXIT_INTERRUPTED);
        });
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(failed)?;
    Ok(asked)
}

/// Whether this process was started with a signal ignored, by the text of `/proc/self/status`.
fn is_ignored(kind: SignalKind, status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let bit = u32::try_from(kind.as_raw_value()).ok().and_then(|number| number.checked_sub(1));
    bit.is_some_and(|bit| mask.checked_shr(bit).is_some_and(|rest| rest & 1 == 1))
}

/// Any of the signals.
async fn next(signals: &mut [Signal]) {
    std::future::poll_fn(|context| {
        // Each is asked, so that each wakes this.
        let ready =
            signals.iter_mut().filter_map(|signal| Pin::new(signal).poll_recv(context).is_ready().then_some(()));
        if ready.count() > 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_is_ignored_from_the_start_is_seen() {
        let status = "Name:\tosprey\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000000000\n";
        assert!(is_ignored(SignalKind::hangup(), status));
        assert!(!is_ignored(SignalKind::terminate(), status));
        assert!(!is_ignored(SignalKind::hangup(), ""));
    }
}
