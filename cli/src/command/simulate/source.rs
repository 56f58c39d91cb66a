//! The jobs of a simulation: a trace, or made up.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::Args;
use osprey_policy::Policy;
use osprey_sim::intake::{Intake, Numbers};
use osprey_sim::synthetic::{PROFILES, Profile, Synthetic};
use osprey_sim::trace::{BadLine, Trace, batch, csv, requests, swf};
use osprey_sim::workload::Workload;

use super::cluster::Described;
use crate::error::{CliError, ErrorCode};
use crate::input;
use crate::render::policy::counted;
use crate::ui::Ui;

/// Most jobs to make up.
pub const JOBS_MAX: i64 = 10_000_000;
/// Lines told one by one; of the rest only the number is.
const LINES_TOLD: usize = 20;

/// Formats of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A header line, then one job a line.
    Csv,
    /// The Standard Workload Format.
    Swf,
    /// Lines of `osprey export`, or `SubmitJob` requests.
    Osprey,
    /// What `aws batch describe-jobs` and `list-jobs` print.
    Batch,
}

/// Flags about the jobs.
#[derive(Debug, Args)]
pub struct JobsArgs {
    /// The trace; made-up jobs without it
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Its format; by the ending of its name without it: `.swf`, `.jsonl` for what `osprey export` wrote or requests,
    /// `.json` for what `aws batch describe-jobs` printed, else CSV
    #[arg(long, value_enum, value_name = "csv|swf|osprey|batch", requires = "trace", hide_possible_values = true)]
    pub format: Option<Format>,
    /// The column of the number that a row says: it gives number and tier in place of the policy, and reference strategies
    /// order by it [default for references: the column `priority`]
    #[arg(long, value_name = "NAME", requires = "trace")]
    pub priority_column: Option<String>,
    /// Jobs to make up
    #[arg(long, value_name = "N", default_value_t = 100, conflicts_with = "trace",
          value_parser = clap::value_parser!(u32).range(1..=JOBS_MAX))]
    pub jobs: u32,
    /// The published cluster that made-up jobs look like: philly, helios, seren or pai
    #[arg(long, value_name = "NAME", default_value = "helios", conflicts_with = "trace", value_parser = profile)]
    pub profile: Profile,
    /// Work that arrives over work that the cluster can do
    #[arg(long, value_name = "SHARE", default_value = "0.8", conflicts_with = "trace", value_parser = load)]
    pub load: f64,
    /// Seed of everything that is left to chance
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
}

/// Jobs before a policy has seen them.
#[derive(Clone)]
pub struct Jobs {
    name: String,
    trace: Trace,
    noun: &'static str,
    numbers: Numbers,
}

impl Jobs {
    /// Reads or makes up the jobs.
    ///
    /// # Errors
    /// For a file that can't be read as what it should be.
    pub fn read(args: &JobsArgs, described: &Described, seed: u64) -> Result<Self, CliError> {
        let ((name, trace), noun) = match &args.trace {
            Some(path) => {
                let noun = if format(args, path) == Format::Batch { "job" } else { "line" };
                ((path.display().to_string(), read(path, args)?), noun)
            }
            None => (made_up(args, described, seed), "line"),
        };
        let numbers = if args.priority_column.is_some() { Numbers::Column } else { Numbers::Policy };
        Ok(Self { name, trace, noun, numbers })
    }
}

/// Where the jobs come from, and the jobs.
pub struct Source {
    /// The file, or what was made up.
    pub name: String,
    /// The seed of what was made up and of what happens.
    pub seed: u64,
    /// The cluster.
    pub described: Rc<Described>,
    /// The jobs.
    pub workload: Rc<Workload>,
    /// Lines that can't be used.
    pub bad: Vec<BadLine>,
    /// Jobs that aren't admitted.
    pub refused: Vec<BadLine>,
    /// The first line whose row says no number.
    pub unnumbered: Option<u64>,
    /// What the reader did to make the trace usable.
    pub notes: Vec<String>,
    /// What a bad line is called: Batch's JSON has no lines, and its jobs are counted.
    pub noun: &'static str,
}

impl Source {
    /// Reads or makes up the jobs, and takes them in.
    ///
    /// # Errors
    /// For a file that can't be read, or in which no line can be used.
    pub fn load(args: &JobsArgs, policy: &Policy, described: Described, seed: u64) -> Result<Self, CliError> {
        Self::of(Jobs::read(args, &described, seed)?, policy, described, seed)
    }

    /// Takes jobs in under a policy.
    ///
    /// # Errors
    /// When none of them can be run at all.
    pub fn of(jobs: Jobs, policy: &Policy, mut described: Described, seed: u64) -> Result<Self, CliError> {
        if let Some(scenario) = &mut described.scenario {
            scenario.seed = seed;
        }
        let Jobs { name, trace, noun, numbers } = jobs;
        let (cluster, scenario) = (described.cluster, described.scenario.as_ref());
        let taken = Intake { policy, cluster, scenario, numbers }.take(trace.entries);
        let mut bad = trace.bad;
        bad.extend(taken.bad);
        bad.sort_by_key(|bad| bad.line);
        if taken.workload.jobs.is_empty() {
            return Err(nothing(&name, noun, &bad));
        }
        let (workload, refused, unnumbered) = (Rc::new(taken.workload), taken.refused, taken.unnumbered);
        let described = Rc::new(described);
        Ok(Self { name, seed, described, workload, bad, refused, unnumbered, notes: trace.notes, noun })
    }

    /// Tells what didn't become part of the simulation as it was.
    pub fn tell(&self, ui: &mut Ui) {
        self.tell_bad(ui);
        told(&self.name, self.noun, &self.refused, "not admitted, and run by the reference strategies only", ui);
    }

    /// Tells what can't be used at all.
    pub fn tell_bad(&self, ui: &mut Ui) {
        for note in &self.notes {
            ui.note(&format!("{}: {note}", self.name));
        }
        told(&self.name, self.noun, &self.bad, "can't be used", ui);
    }
}

fn told(name: &str, noun: &str, lines: &[BadLine], what: &str, ui: &mut Ui) {
    if lines.is_empty() {
        return;
    }
    ui.note(&format!("{name}: {} {what}", counted(lines.len(), noun)));
    for BadLine { line, message } in lines.iter().take(LINES_TOLD) {
        ui.note(&format!("  {noun} {line}: {message}"));
    }
    let rest: Vec<String> = lines.iter().skip(LINES_TOLD).map(|bad| bad.line.to_string()).collect();
    if !rest.is_empty() {
        ui.note(&format!("  and {noun}s {}", rest.join(", ")));
    }
}

fn nothing(name: &str, noun: &str, bad: &[BadLine]) -> CliError {
    let first = bad.first().map(|BadLine { line, message }| format!("; {noun} {line}: {message}"));
    CliError::new(
        ErrorCode::InvalidInput,
        format!("`{name}` has no {noun} that can be used{}", first.unwrap_or_default()),
    )
}

/// How a file that was packed with gzip begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

fn read(path: &Path, args: &JobsArgs) -> Result<Trace, CliError> {
    let bytes = input::read(path)?;
    if bytes.starts_with(&GZIP) {
        let message = format!("`{}` is packed with gzip", path.display());
        return Err(CliError::new(ErrorCode::InvalidInput, message)
            .help(format!("unpack it: `gunzip -c {} | osprey simulate --trace - …`", path.display())));
    }
    let text = input::text(path, bytes)?;
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return Err(CliError::new(ErrorCode::FileEmpty, format!("`{}` is empty", path.display())));
    }
    let format = format(args, path);
    if args.priority_column.is_some() && format != Format::Csv {
        return Err(CliError::new(ErrorCode::Usage, "only CSV traces have a priority column"));
    }
    match format {
        Format::Swf => Ok(swf::read(&text)),
        Format::Osprey => Ok(requests::read(&text)),
        Format::Batch => batch::read(&text).map_err(|message| {
            CliError::new(
                ErrorCode::InvalidInput,
                format!("`{}` can't be read as what Batch says: {message}", path.display()),
            )
            .help("`aws batch describe-jobs --jobs ID... --output json` writes it; `--format osprey` reads requests")
        }),
        Format::Csv => csv::read(&text, args.priority_column.as_deref()).map_err(|BadLine { line, message }| {
            CliError::new(ErrorCode::InvalidInput, format!("`{}`, line {line}: {message}", path.display()))
                .help("a CSV trace begins with a header line that names `id`, `submit`, `duration` and `gpus`")
        }),
    }
}

/// The format that was asked for, or that of the name's ending.
fn format(args: &JobsArgs, path: &Path) -> Format {
    args.format.unwrap_or_else(|| match path.extension().and_then(|ending| ending.to_str()) {
        Some("swf") => Format::Swf,
        Some("jsonl" | "ndjson") => Format::Osprey,
        Some("json") => Format::Batch,
        _ => Format::Csv,
    })
}

fn made_up(args: &JobsArgs, described: &Described, seed: u64) -> (String, Trace) {
    let (profile, jobs, load) = (args.profile, args.jobs, args.load);
    let entries =
        Synthetic { profile, jobs, gpus: described.gpus(), largest: described.largest(), load, seed }.entries();
    (format!("synthetic:{}", profile.name), Trace { entries, ..Trace::default() })
}

/// Reads the name of a published cluster.
///
/// # Errors
/// Names the known ones.
pub fn profile(name: &str) -> Result<Profile, String> {
    Profile::named(name).ok_or_else(|| {
        let known: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
        format!("known are {}", known.join(", "))
    })
}

/// Reads a load.
///
/// # Errors
/// Says what is wanted.
pub fn load(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|load| (0.01..=100.0).contains(load));
    number.ok_or_else(|| "a number from 0.01 to 100 is wanted".to_owned())
}
