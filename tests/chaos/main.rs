//! `chaos`: seeds of the chaos harness on all cores.
//!
//! ```text
//! chaos --seeds N [--first S]        runs N seeds from S on; the last line is `chaos: N passed, M failed`
//! chaos --trace [--first S]          one seed as a story
//! chaos --breakages                  plants every breakage and says after how many seeds it was caught
//! chaos --breakage NAME …            any of the above with a breakage planted
//! ```

use std::io::Write as _;
use std::process::ExitCode;

use osprey_tests::chaos::{self, Breakage, Tally};

/// A run makes a hundred thousand short texts, and the allocator of the system took a quarter of its time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What was asked for.
struct Options {
    first: u64,
    seeds: u64,
    threads: usize,
    trace: bool,
    breakages: bool,
    planted: Option<Breakage>,
}

/// Seeds that are run when nobody says how many.
const SEEDS: u64 = 1_000;
/// What a usage error exits with.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let options = match Options::read(&arguments) {
        Ok(options) => options,
        Err(fault) => {
            say(&format!(
                "{fault}\nusage: chaos [--seeds N] [--first S] [--trace] [--breakages] [--breakage NAME] [--threads T]"
            ));
            return ExitCode::from(USAGE);
        }
    };
    let passed = if options.trace {
        trace(&options)
    } else if options.breakages {
        breakages(&options)
    } else {
        seeds(&options)
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Options {
    fn read(arguments: &[String]) -> Result<Self, String> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut options = Self { first: 0, seeds: SEEDS, threads, trace: false, breakages: false, planted: None };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--seeds" => options.seeds = number(value()?)?,
                "--first" => options.first = number(value()?)?,
                "--threads" => options.threads = usize::try_from(number(value()?)?).unwrap_or(1).max(1),
                "--trace" => options.trace = true,
                "--breakages" => options.breakages = true,
                "--breakage" => options.planted = Some(breakage(value()?)?),
                other => return Err(format!("unknown argument `{other}`")),
            }
        }
        Ok(options)
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no whole number"))
}

fn breakage(name: &str) -> Result<Breakage, String> {
    let known = || Breakage::ALL.iter().map(|(_, name, _)| *name).collect::<Vec<_>>().join(", ");
    Breakage::named(name).ok_or_else(|| format!("there is no breakage `{name}`; there are {}", known()))
}

/// Runs one seed and tells it.
fn trace(options: &Options) -> bool {
    let outcome = chaos::run_seed(options.first, options.planted, true);
    say(outcome.story.as_deref().unwrap_or_default());
    let settled = outcome.settled_ms.map_or("never".to_owned(), |ms| format!("{} s after faults stopped", ms / 1000));
    say(&format!("settled: {settled}; Batch jobs: {}; second ones: {}", outcome.batch_jobs, outcome.extras));
    say(&format!("hash: {:016x}", outcome.hash));
    say(&format!("seed {}: {}", options.first, outcome.violation.as_deref().unwrap_or("passed")));
    outcome.violation.is_none()
}

/// Runs many seeds.
fn seeds(options: &Options) -> bool {
    let began = std::time::Instant::now();
    let planted = options.planted;
    let tell = |seed: u64, violation: &str| {
        let breakage = planted.map(|planted| format!(" --breakage {}", planted.name())).unwrap_or_default();
        say(&format!(
            "seed {seed}: {violation}\n  replay: cargo run --release -p osprey-tests --bin chaos -- --first {seed} --trace{breakage}"
        ));
    };
    let tally = chaos::run_seeds(options.first, options.seeds, options.threads, planted, &tell);
    let Tally { passed, failed, jobs, batch_jobs, extras, planned, evictions, settled_ms_max, walked, hash } = tally;
    // The speed is no two times the same, and everything on standard output is.
    let speed = to_f64(passed + failed) / began.elapsed().as_secs_f64();
    drop(writeln!(std::io::stderr(), "{speed:.0} seeds/s on {} threads", options.threads));
    let settled = settled_ms_max / 1000;
    say(&format!(
        "{jobs} jobs, {batch_jobs} Batch jobs, {extras} second ones; settled at most {settled} s after faults stopped; hash {hash:016x}"
    ));
    let [plans, claims, moves] = planned;
    say(&format!(
        "{plans} plans of pools, {claims} claims under them, {moves} jobs that went to another pool's line, {evictions} evictions"
    ));
    let left = walked.left();
    say(&format!(
        "edges of the lifecycle that no job took: {}",
        if left.is_empty() { "none".to_owned() } else { left.join(", ") }
    ));
    say(&format!("chaos: {passed} passed, {failed} failed"));
    failed == 0
}

#[expect(clippy::cast_precision_loss, reason = "nobody runs 2⁵³ seeds")]
fn to_f64(number: u64) -> f64 {
    number as f64
}

/// Plants every breakage in turn.
fn breakages(options: &Options) -> bool {
    let mut all = true;
    say("| breakage | seeds until caught | within | by |\n|---|---|---|---|");
    for (breakage, name, within) in Breakage::ALL {
        match chaos::seeds_until_caught(breakage, options.first, within, options.threads) {
            Some((seeds, violation)) => say(&format!("| `{name}` | {seeds} | {within} | {violation} |")),
            None => {
                all = false;
                say(&format!("| `{name}` | not caught | {within} | |"));
            }
        }
    }
    all
}

/// Prints a line; nobody reads on when the pipe is closed.
fn say(line: &str) {
    drop(writeln!(std::io::stdout(), "{line}"));
}
