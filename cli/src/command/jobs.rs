//! `osprey jobs`: the jobs on record.

use clap::Args;
use osprey_model::job::{Job, JobState};

use super::{Exit, Place};
use crate::error::CliError;
use crate::local::join::Joined;
use crate::render::job;
use crate::ui::Ui;

/// List jobs, newest first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey jobs --local
  osprey jobs --local --state running --state queued
  osprey jobs --local --tier production --output json")]
pub struct JobsArgs {
    /// Only jobs in this state; may be given several times
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Vec<JobState>,
    /// Only jobs of this tier; may be given several times
    #[arg(long, value_name = "TIER")]
    tier: Vec<String>,
    /// At most so many
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    limit: usize,
    #[command(flatten)]
    place: Place,
}

fn state(text: &str) -> Result<JobState, String> {
    let found = JobState::ALL.into_iter().find(|state| state.as_str() == text.to_lowercase());
    found.ok_or_else(|| format!("the states are {}", JobState::ALL.map(JobState::as_str).join(", ")))
}

/// Lists.
pub fn jobs(args: &JobsArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let joined = Joined::of(&args.place)?;
    let is_wanted = |job: &Job| {
        (args.state.is_empty() || args.state.contains(&job.state))
            && (args.tier.is_empty() || args.tier.iter().any(|tier| job.tier.as_str() == tier))
    };
    let jobs: Vec<Job> = joined.jobs()?.into_iter().filter(is_wanted).take(args.limit).collect();
    if ui.is_json() {
        ui.json(&jobs.iter().map(job::summary).collect::<Vec<_>>())?;
    } else if jobs.is_empty() {
        ui.note("no job is on record here");
    } else {
        ui.text(&job::list(&jobs, joined.now_ms()))?;
    }
    Ok(Exit::Ok)
}
