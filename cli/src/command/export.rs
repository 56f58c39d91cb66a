//! `osprey export`: what became of every job, for other programs and for the simulator.

use clap::Args;
use osprey_model::job::{Attempt, Job};

use super::{Exit, Place};
use crate::error::CliError;
use crate::joined::Joined;
use crate::render::job;
use crate::ui::Ui;

/// Write what became of every job, as JSON lines, oldest first.
///
/// Whatever `--output` says, one line a job comes out. `osprey simulate --trace FILE.jsonl` replays them: each job is
/// submitted when it was recorded, and runs for as long as its last run did.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey export --local > history.jsonl
  osprey export --local my-state | osprey simulate --trace - --format osprey --strategy fifo,backfill")]
pub struct ExportArgs {
    #[command(flatten)]
    place: Place,
}

/// Writes.
pub fn export(args: &ExportArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let joined = Joined::of(&args.place)?;
    let mut jobs: Vec<Job> = joined.jobs()?;
    // The order of submission, and then of ids.
    jobs.sort_by_key(|job| (job.created_at, job.id));
    for job in jobs {
        let view = joined.view(job.id)?;
        let ran: Vec<&Attempt> = view.attempts.iter().filter(|attempt| attempt.started_at.is_some()).collect();
        ui.json(&job::exported(&view, &ran))?;
    }
    Ok(Exit::Ok)
}
