//! `osprey jobs`: the jobs on record.

use clap::Args;
use osprey_model::job::{Job, JobState};

use super::{Exit, Place};
use crate::error::CliError;
use crate::joined::{Joined, Listed};
use crate::render::job;
use crate::ui::Ui;

/// List jobs, newest first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey jobs --local
  osprey jobs --local --state running --state queued
  osprey jobs --local --tier production --output json
  osprey jobs --stack osprey --region eu-west-1")]
pub struct JobsArgs {
    /// Only jobs in this state; may be given several times
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Vec<JobState>,
    /// Only jobs of this tier; may be given several times
    #[arg(long, value_name = "TIER")]
    tier: Vec<String>,
    /// At most so many, the newest
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
    let Listed { jobs, more } = joined.listed(args.limit, is_wanted)?;
    if ui.is_json() {
        ui.json(&jobs.iter().map(job::summary).collect::<Vec<_>>())?;
    } else if jobs.is_empty() {
        ui.note("no job is on record here");
    } else {
        ui.text(&job::list(&jobs, joined.now_ms()))?;
    }
    let shown = jobs.len();
    match more {
        Some(Some(more)) => {
            ui.note(&format!("{more} more, older than these {shown}; `--limit {}` shows all", shown + more));
        }
        Some(None) => ui.note(&format!("there may be more, older than these {shown}; `--limit` takes more")),
        None => {}
    }
    say_sent(&joined, ui)?;
    Ok(Exit::Ok)
}

/// Says which jobs were sent and aren't on record yet.
fn say_sent(joined: &Joined, ui: &mut Ui) -> Result<(), CliError> {
    let sent = joined.sent_jobs()?;
    let Some(first) = sent.first() else { return Ok(()) };
    let what = match sent.len() {
        1 => format!("1 job is sent, and not yet taken in: {} ({})", first.id, first.name),
        count => format!("{count} jobs are sent, and not yet taken in, such as {} ({})", first.id, first.name),
    };
    let way_out = joined.resting()?.map(|command| format!("; `{command}` takes it in")).unwrap_or_default();
    ui.note(&format!("{what}{way_out}"));
    Ok(())
}
