//! `osprey wait`: until a job has ended, across its attempts.

use std::time::{Duration, Instant};

use clap::Args;
use osprey_model::job::{Job, JobState};
use serde_json::json;

use super::{Exit, Place};
use crate::error::{CliError, ErrorCode};
use crate::joined::{Joined, RUNNER_PATIENCE};
use crate::ui::Ui;

/// Wait until a job has ended, however many attempts that takes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey wait training-231-flaky --local
  osprey wait training-231-flaky --timeout 600 --local && echo trained
  osprey wait 1e5a11f0-c06c-4a7e-8b0a-000000000671 --stack osprey

Exit code 0 when it succeeded, 1 when it ended otherwise, hasn't by the time-out, or no pipeline runs, 3 when it was refused.")]
pub struct WaitArgs {
    /// The job: its id, its name, or a beginning that only one job has
    #[arg(value_name = "JOB")]
    job: String,
    /// Give up after so many seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    #[command(flatten)]
    place: Place,
}

/// Waits.
pub fn wait(args: &WaitArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let joined = Joined::of(&args.place)?;
    let id = joined.look_up(&args.job)?.id();
    let began = Instant::now();
    let mut alone: Option<Instant> = None;
    loop {
        // None while nobody has taken it in.
        let job = joined.job(id)?;
        if let Some(job) = job.as_ref().filter(|job| job.state.is_final()) {
            return ended(job, ui);
        }
        match joined.resting()? {
            None => alone = None,
            Some(command) if alone.get_or_insert_with(Instant::now).elapsed() > RUNNER_PATIENCE => {
                let message = format!("job `{id}` has not ended, and no pipeline runs in {}", joined.name());
                return Err(CliError::failed(message).help(format!("`{command}` runs it")));
            }
            Some(_) => {}
        }
        if args.timeout.is_some_and(|seconds| began.elapsed() >= Duration::from_secs(seconds)) {
            let state = job.map_or("sent, and not yet taken in", |job| job.state.as_str());
            return Err(CliError::new(ErrorCode::Failed, format!("job `{id}` has not ended yet: it is {state}")));
        }
        std::thread::sleep(joined.look_every());
    }
}

fn ended(job: &Job, ui: &mut Ui) -> Result<Exit, CliError> {
    if ui.is_json() {
        ui.json(&json!({ "id": job.id, "state": job.state.as_str(), "attempts": job.attempt, "end": job.end }))?;
    } else {
        let why = job.end.as_ref().map(|end| format!(": {}", end.message)).unwrap_or_default();
        ui.text(&format!("{} {}{why}", job.id, job.state.as_str()))?;
    }
    Ok(match job.state {
        JobState::Succeeded => Exit::Ok,
        JobState::Refused => Exit::Negative,
        _ => Exit::Failed,
    })
}
