//! The jobs of a simulation: a trace, or made up.

use std::path::Path;
use std::rc::Rc;

use osprey_policy::Policy;
use osprey_sim::cluster::Cluster;
use osprey_sim::intake::{Intake, Numbers};
use osprey_sim::synthetic::{PROFILES, Profile, Synthetic};
use osprey_sim::trace::{BadLine, Trace, csv, requests, swf};
use osprey_sim::workload::Workload;

use super::SimulateArgs;
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
    /// `SubmitJob` requests, one a line.
    Osprey,
}

/// Where the jobs come from, and the jobs.
pub struct Source {
    /// The file, or what was made up.
    pub name: String,
    /// The cluster.
    pub cluster: Cluster,
    /// The jobs.
    pub workload: Rc<Workload>,
    /// Lines that can't be used.
    pub bad: Vec<BadLine>,
    /// Jobs that aren't admitted.
    pub refused: Vec<BadLine>,
    /// What the reader did to make the trace usable.
    pub notes: Vec<String>,
}

impl Source {
    /// Reads or makes up the jobs.
    ///
    /// # Errors
    /// For a file that can't be read, or in which no line can be used.
    pub fn load(args: &SimulateArgs, policy: &Policy, cluster: Cluster, seed: u64) -> Result<Self, CliError> {
        let (name, trace) = match &args.trace {
            Some(path) => (path.display().to_string(), read(path, args)?),
            None => made_up(args, cluster, seed),
        };
        let numbers = if args.priority_column.is_some() { Numbers::Column } else { Numbers::Policy };
        let taken = Intake { policy, cluster, numbers }.take(trace.entries);
        let mut bad = trace.bad;
        bad.extend(taken.bad);
        bad.sort_by_key(|bad| bad.line);
        if taken.workload.jobs.is_empty() {
            return Err(nothing(&name, &bad));
        }
        let (workload, refused) = (Rc::new(taken.workload), taken.refused);
        Ok(Self { name, cluster, workload, bad, refused, notes: trace.notes })
    }

    /// Tells what didn't become part of the simulation as it was.
    pub fn tell(&self, ui: &mut Ui) {
        for note in &self.notes {
            ui.note(&format!("{}: {note}", self.name));
        }
        told(&self.name, &self.bad, "can't be used", ui);
        told(&self.name, &self.refused, "not admitted, and run by the reference strategies only", ui);
    }
}

fn told(name: &str, lines: &[BadLine], what: &str, ui: &mut Ui) {
    if lines.is_empty() {
        return;
    }
    ui.note(&format!("{name}: {} {what}", counted(lines.len(), "line")));
    for BadLine { line, message } in lines.iter().take(LINES_TOLD) {
        ui.note(&format!("  line {line}: {message}"));
    }
    let rest: Vec<String> = lines.iter().skip(LINES_TOLD).map(|bad| bad.line.to_string()).collect();
    if !rest.is_empty() {
        ui.note(&format!("  and lines {}", rest.join(", ")));
    }
}

fn nothing(name: &str, bad: &[BadLine]) -> CliError {
    let first = bad.first().map(|BadLine { line, message }| format!("; line {line}: {message}"));
    CliError::new(
        ErrorCode::InvalidInput,
        format!("`{name}` has no line that can be used{}", first.unwrap_or_default()),
    )
}

fn read(path: &Path, args: &SimulateArgs) -> Result<Trace, CliError> {
    let text = input::read_text(path)?;
    if text.trim().is_empty() {
        return Err(CliError::new(ErrorCode::FileEmpty, format!("`{}` is empty", path.display())));
    }
    let format = args.format.unwrap_or_else(|| by_ending(path));
    if args.priority_column.is_some() && format != Format::Csv {
        return Err(CliError::new(ErrorCode::Usage, "only CSV traces have a priority column"));
    }
    match format {
        Format::Swf => Ok(swf::read(&text)),
        Format::Osprey => Ok(requests::read(&text)),
        Format::Csv => csv::read(&text, args.priority_column.as_deref()).map_err(|BadLine { line, message }| {
            CliError::new(ErrorCode::InvalidInput, format!("`{}`, line {line}: {message}", path.display()))
                .help("a CSV trace begins with a header line that names `id`, `submit`, `duration` and `gpus`")
        }),
    }
}

fn by_ending(path: &Path) -> Format {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("swf") => Format::Swf,
        Some("jsonl" | "ndjson" | "json") => Format::Osprey,
        _ => Format::Csv,
    }
}

fn made_up(args: &SimulateArgs, cluster: Cluster, seed: u64) -> (String, Trace) {
    let (profile, jobs, load) = (args.profile, args.jobs, args.load);
    let entries = Synthetic { profile, jobs, gpus: cluster.gpus(), load, seed }.entries();
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
