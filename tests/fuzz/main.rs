//! `fuzz`: throws mutated input at everything that reads what strangers write.
//!
//! ```text
//! fuzz [--target NAME] [--seconds N] [--seed S]   N seconds a target; the last line is `fuzz: N inputs, M faults`
//! fuzz --target NAME --file FILE                  one input again
//! ```
//!
//! A fault is a panic, an input that takes over a second of a core, or more than 512 MiB of memory. The input is kept in
//! `target/fuzz`. Inputs follow from the samples in `events/`, the policies that ship and `tests/fuzz/corpus`, by one
//! seed; there is no feedback from coverage, which needs another toolchain.

mod corpus;
mod mutate;
mod targets;

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use osprey_tests::chaos::random::Random;
use targets::Target;

/// Longest time that one input may take.
const INPUT_TIME_MAX: Duration = Duration::from_secs(1);

/// Most memory that the process may have held, in KiB.
const MEMORY_KIB_MAX: u64 = 512 * 1024;

/// Seconds a target when nobody says how many.
const SECONDS: u64 = 5;

/// What was asked for.
struct Options {
    targets: Vec<&'static str>,
    seconds: u64,
    seed: u64,
    file: Option<PathBuf>,
}

impl Options {
    fn read(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self { targets: Target::NAMES.to_vec(), seconds: SECONDS, seed: 1, file: None };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let value = rest.next().ok_or_else(|| format!("{argument} needs a value"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("`{value}` is no whole number"));
            match argument.as_str() {
                "--target" => {
                    let known = Target::NAMES.iter().find(|name| *name == value);
                    let name = known.ok_or_else(|| {
                        format!("there is no target `{value}`; there are {}", Target::NAMES.join(", "))
                    })?;
                    options.targets = vec![name];
                }
                "--seconds" => options.seconds = number()?,
                "--seed" => options.seed = number()?,
                "--file" => options.file = Some(PathBuf::from(value)),
                other => return Err(format!("unknown argument `{other}`")),
            }
        }
        if options.file.is_some() && options.targets.len() != 1 {
            return Err("--file needs --target".to_owned());
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let options = match Options::read(&arguments) {
        Ok(options) => options,
        Err(fault) => {
            say(&format!("{fault}\nusage: fuzz [--target NAME] [--seconds N] [--seed S] [--file FILE]"));
            return ExitCode::from(2);
        }
    };
    // A panic is told with its input, once; its backtrace comes with the replay.
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = match &options.file {
        Some(file) => again(&options, file),
        None => everything(&options),
    };
    match outcome {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(fault) => {
            say(&fault);
            ExitCode::from(2)
        }
    }
}

/// Runs one input again, without hiding its panic.
fn again(options: &Options, file: &std::path::Path) -> Result<u64, String> {
    let input = std::fs::read(file).map_err(|error| format!("`{}` can't be read: {error}", file.display()))?;
    drop(std::panic::take_hook());
    for name in &options.targets {
        Target::new(name)?.run(&input);
    }
    say("fuzz: 1 inputs, 0 faults");
    Ok(0)
}

fn everything(options: &Options) -> Result<u64, String> {
    let (mut inputs, mut faults) = (0, 0);
    for name in &options.targets {
        let told = one(name, options)?;
        say(&format!(
            "{name}: {} inputs, slowest {} ms, at most {} MiB so far, {} faults",
            told.inputs,
            told.slowest.as_millis(),
            peak_kib() / 1024,
            told.faults
        ));
        inputs += told.inputs;
        faults += told.faults;
    }
    if peak_kib() > MEMORY_KIB_MAX {
        say(&format!("more than {} MiB were held", MEMORY_KIB_MAX / 1024));
        faults += 1;
    }
    say(&format!("fuzz: {inputs} inputs, {faults} faults"));
    Ok(faults)
}

/// How a target fared.
struct Told {
    inputs: u64,
    faults: u64,
    slowest: Duration,
}

fn one(name: &'static str, options: &Options) -> Result<Told, String> {
    let corpus = corpus::of(name)?;
    let mut random = Random::fork(options.seed, name);
    let mut target = Target::new(name)?;
    let mut told = Told { inputs: 0, faults: 0, slowest: Duration::ZERO };
    let until = Instant::now() + Duration::from_secs(options.seconds);
    // The samples themselves come first.
    let mut samples = corpus.iter();
    while Instant::now() < until {
        let input = samples.next().cloned().unwrap_or_else(|| mutate::mutated(&corpus, &mut random));
        let began = cpu_time();
        let panicked = catch_unwind(AssertUnwindSafe(|| target.run(&input))).is_err();
        let took = cpu_time().saturating_sub(began);
        told.inputs += 1;
        told.slowest = told.slowest.max(took);
        if panicked || took > INPUT_TIME_MAX {
            told.faults += 1;
            keep(name, &input, if panicked { "panicked" } else { "took too long" })?;
            target = Target::new(name)?;
        }
    }
    Ok(told)
}

/// Keeps an input that showed a fault, and says how to run it again.
fn keep(name: &str, input: &[u8], what: &str) -> Result<(), String> {
    let folder = osprey_tests::root().join("target/fuzz");
    let digest = <sha2::Sha256 as sha2::Digest>::digest(input);
    let hash: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let file = folder.join(format!("{name}-{hash}"));
    let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&file, input));
    written.map_err(|error| format!("`{}` can't be written: {error}", file.display()))?;
    say(&format!("{name}: an input {what}: fuzz --target {name} --file target/fuzz/{name}-{hash}"));
    Ok(())
}

fn say(line: &str) {
    drop(writeln!(std::io::stdout(), "{line}"));
}

/// The time that this thread has had of a core: what others do on the machine doesn't count.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The most memory that this process has held, in KiB; 0 where the system doesn't say.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
