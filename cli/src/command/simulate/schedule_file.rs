//! `--schedule`: when each job ran.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use osprey_sim::schedule::Schedule;
use osprey_sim::workload::Workload;

use super::answer::Outcome;
use crate::error::{CliError, cause};

/// Writes the schedules, if asked for.
///
/// # Errors
/// When a file can't be written.
pub fn write(path: Option<&Path>, outcomes: &[Outcome]) -> Result<(), CliError> {
    let Some(path) = path else { return Ok(()) };
    for outcome in outcomes {
        let path = if outcomes.len() == 1 { path.to_owned() } else { with_strategy(path, outcome.strategy) };
        std::fs::write(&path, rows(&outcome.workload, &outcome.schedule))
            .map_err(|error| CliError::failed(format!("`{}` can't be written: {}", path.display(), cause(&error))))?;
    }
    Ok(())
}

/// `FILE-STRATEGY.csv`.
fn with_strategy(path: &Path, strategy: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let ending = path.extension().map_or_else(String::new, |ending| format!(".{}", ending.to_string_lossy()));
    path.with_file_name(format!("{stem}-{strategy}{ending}"))
}

/// One line a job, in the order of submission: first start, last end, in seconds from the first submission.
fn rows(workload: &Workload, schedule: &Schedule) -> String {
    let mut text = "id,start,end,preemptions\n".to_owned();
    for (job, outcome) in workload.jobs.iter().zip(&schedule.outcomes) {
        let (start, end) = (seconds(outcome.start_ms), seconds(outcome.end_ms));
        let _ = writeln!(text, "{},{start},{end},{}", field(&job.id), outcome.preemptions);
    }
    text
}

fn field(id: &str) -> String {
    if id.contains([',', '"']) { format!("\"{}\"", id.replace('"', "\"\"")) } else { id.to_owned() }
}

/// Seconds with as few digits as needed.
fn seconds(ms: Option<u64>) -> String {
    let Some(ms) = ms else { return String::new() };
    match ms % 1000 {
        0 => (ms / 1000).to_string(),
        rest => format!("{}.{rest:03}", ms / 1000).trim_end_matches('0').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_as_few_digits_as_needed() {
        for (ms, want) in [(0, "0"), (3_890_000, "3890"), (1_500, "1.5"), (1_050, "1.05"), (7, "0.007")] {
            assert_eq!(seconds(Some(ms)), want);
        }
        assert_eq!(seconds(None), "");
    }

    #[test]
    fn several_strategies_have_a_file_each() {
        assert_eq!(with_strategy(Path::new("a/b.csv"), "easy"), Path::new("a/b-easy.csv"));
        assert_eq!(with_strategy(Path::new("b"), "easy"), Path::new("b-easy"));
    }
}
