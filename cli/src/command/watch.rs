//! `osprey watch`: a live view of the pools, the queues and what happens.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use clap::Args;

use super::{Exit, Place};
use crate::error::{CliError, ErrorCode};
use crate::local::signal;
use crate::ui::Ui;
use crate::watch::look::Look;
use crate::watch::reader::Reader;
use crate::watch::terminal;

/// Milliseconds between two readings of a local pipeline.
const LOCAL_MS: u64 = 1_000;
/// The same of a stack, where each takes requests.
const AWS_MS: u64 = 5_000;
/// How long the view may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(2);

/// Watch the pools, who waits in them, what starts, ends and is evicted, and why the selected job waits.
///
/// `?` shows the keys, `q` leaves. It only reads. NO_COLOR turns colours off; every sign can be told from others without
/// them. On AWS a reading takes a request for each thousand jobs that have not ended, some for each pool, and one for each
/// job that has changed or is new; `osprey queue` prints the same pools once.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey watch --local
  osprey watch --local my-state --every 0.5
  osprey watch --stack osprey --every 10

Exit code 2 when standard input or output is no terminal.")]
pub struct WatchArgs {
    /// Seconds between two readings; 1 for a local pipeline and 5 for a stack without it
    #[arg(long, value_name = "SECONDS", value_parser = every)]
    every: Option<Duration>,
    #[command(flatten)]
    place: Place,
}

fn every(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|seconds| (0.2..=3_600.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "give seconds, from 0.2 to 3600".to_owned())
}

/// Watches.
pub fn watch(args: &WatchArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let unfit = |message: &str| {
        Err(CliError::new(ErrorCode::Usage, message).help("`osprey queue` prints the pools and their queues once"))
    };
    if ui.is_json() {
        return unfit("this view is drawn on a terminal and has no JSON");
    }
    if !ui.is_live() || !io::stdin().is_terminal() {
        return unfit("standard input or output is no terminal, and this view is drawn on one");
    }
    let usual = if args.place.aws.is_given() { AWS_MS } else { LOCAL_MS };
    let every = args.every.unwrap_or(Duration::from_millis(usual));
    let reader = Reader::start(args.place.clone(), every)?;
    let asked = signal::listen(Some(PATIENCE))?;
    terminal::show(&reader, Look { has_colours: ui.wants_colours() }, &asked)?;
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_between_readings_have_limits() {
        assert_eq!(every("0.5"), Ok(Duration::from_millis(500)));
        for text in ["0", "-1", "soon", "NaN", "3601"] {
            assert!(every(text).is_err(), "{text}");
        }
    }
}
