//! Ends Osprey by force at random moments, starts it again on the same state, and checks that every job ends in its
//! place, and none succeeds twice.
//!
//! `cargo run --release -p osprey-tests --bin interrupted -- [--serve] [--rounds N] [--first R] [--osprey PROGRAM]`
//!
//! Without `--serve` a round ends `osprey local run` on the sample backlog; with it, `osprey local serve` while clients
//! submit to it over SQS, over Batch's REST and from other terminals. A round is its number: the same number stops at
//! the same moments. A failing round keeps its state.

mod moments;
mod runs;
mod serve;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use std::{env, fs, process, thread};

/// Rounds at a time. The jobs sleep, so that two cores carry several.
const AT_A_TIME: usize = 4;

/// What is ended by force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `osprey local run`.
    Run,
    /// `osprey local serve`.
    Serve,
}

#[derive(Debug, PartialEq, Eq)]
struct Options {
    kind: Kind,
    rounds: u64,
    first: u64,
    osprey: PathBuf,
}

fn main() -> ExitCode {
    let options = match options(env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            say(&message);
            return ExitCode::from(2);
        }
    };
    if !options.osprey.is_file() {
        say(&missing(&options.osprey));
        return ExitCode::from(2);
    }
    let started = Instant::now();
    let next = AtomicU64::new(options.first);
    let failed = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let round = next.fetch_add(1, Ordering::Relaxed);
                    if round >= options.first.saturating_add(options.rounds) {
                        return;
                    }
                    failed.fetch_add(u64::from(!run(round, &options)), Ordering::Relaxed);
                }
            });
        }
    });
    let (failed, seconds) = (failed.into_inner(), started.elapsed().as_secs());
    say(&format!("interrupted: {} passed, {failed} failed, in {seconds} s", options.rounds - failed));
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The program beside this one: both are built into the same folder, wherever that is.
fn beside() -> Result<PathBuf, String> {
    let own = env::current_exe().map_err(|error| format!("where this program is can't be told: {error}"))?;
    Ok(own.with_file_name("osprey"))
}

fn missing(osprey: &Path) -> String {
    format!("there is no program `{}`; build it by `cargo build --release`, or name one by --osprey", osprey.display())
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let osprey = beside()?;
    let mut options = Options { kind: Kind::Run, rounds: 20, first: 1, osprey };
    while let Some(flag) = arguments.next() {
        if flag == "--serve" {
            options.kind = Kind::Serve;
            continue;
        }
        let value = arguments.next().ok_or(format!("{flag} needs a value"))?;
        let number = || value.parse().map_err(|_| format!("{flag} takes a number, not `{value}`"));
        match flag.as_str() {
            "--rounds" => options.rounds = number()?,
            "--first" => options.first = number()?,
            "--osprey" => options.osprey = PathBuf::from(value),
            _ => return Err(format!("unknown flag `{flag}`; there are --serve, --rounds, --first and --osprey")),
        }
    }
    Ok(options)
}

/// One line on standard output; a closed pipe is nobody's loss.
fn say(line: &str) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

fn run(round: u64, options: &Options) -> bool {
    let folder = env::temp_dir().join(format!("osprey-interrupted-{}-{round}", process::id()));
    let started = Instant::now();
    let outcome = fs::create_dir_all(&folder).map_err(|error| error.to_string()).and_then(|()| match options.kind {
        Kind::Run => runs::round(round, &options.osprey, &folder),
        Kind::Serve => serve::round(round, &options.osprey, &folder),
    });
    let seconds = started.elapsed().as_secs();
    match outcome {
        Ok(story) => {
            say(&format!("round {round}: {story}; all in their places after {seconds} s"));
            // What can't be removed is left to the operating system's own cleaning of temporary files.
            let _ = fs::remove_dir_all(&folder);
            true
        }
        Err(problem) => {
            say(&format!("round {round}: {problem}"));
            say(&format!("  state: {}", folder.display()));
            say(&format!("  again: {}", again(round, options.kind)));
            false
        }
    }
}

fn again(round: u64, kind: Kind) -> String {
    let serve = if kind == Kind::Serve { "--serve " } else { "" };
    format!("cargo run --release -p osprey-tests --bin interrupted -- {serve}--first {round} --rounds 1")
}

/// What a round keeps in its folder.
fn said(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Options, String> {
        options(words.iter().map(|word| (*word).to_owned()))
    }

    #[test]
    fn options_are_read_and_unknown_ones_refused() {
        let options = parsed(&["--serve", "--rounds", "3", "--first", "7", "--osprey", "x"]).unwrap();
        assert_eq!(options, Options { kind: Kind::Serve, rounds: 3, first: 7, osprey: PathBuf::from("x") });
        assert_eq!(parsed(&[]).unwrap().kind, Kind::Run);
        assert_eq!(parsed(&[]).unwrap().osprey.parent(), env::current_exe().unwrap().parent());
        assert_eq!(parsed(&["--rounds", "x"]).unwrap_err(), "--rounds takes a number, not `x`");
        assert!(parsed(&["--seeds", "1"]).unwrap_err().starts_with("unknown flag `--seeds`; "));
        assert_eq!(parsed(&["--rounds"]).unwrap_err(), "--rounds needs a value");
    }

    #[test]
    fn a_program_that_isnt_there_is_told_before_the_first_round() {
        assert_eq!(
            missing(Path::new("no/osprey")),
            "there is no program `no/osprey`; build it by `cargo build --release`, or name one by --osprey"
        );
    }
}
