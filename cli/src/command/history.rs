//! `osprey history`: what happened to one job, in the order in which it did.

use clap::Args;

use super::{Exit, Place};
use crate::error::CliError;
use crate::joined::Joined;
use crate::render::history as render;
use crate::ui::Ui;

/// Show what happened to a job, oldest first: messages, decisions, attempts, evictions, checkpoints, what people did.
///
/// It is read off the job's record, so it is the same however often an event came. `osprey describe JOB` shows the same
/// record by subject.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey history training-231 --local
  osprey history training-231 --local --output json
  osprey history training-231 --stack osprey")]
pub struct HistoryArgs {
    /// The job: its id, its name, or a beginning that only one job has
    #[arg(value_name = "JOB")]
    job: String,
    #[command(flatten)]
    place: Place,
}

/// Shows.
pub fn history(args: &HistoryArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let joined = Joined::of(&args.place)?;
    let view = joined.view(joined.find(&args.job)?)?;
    if ui.is_json() {
        ui.json(&render::document(&view))?;
    } else {
        ui.text(&render::story(&view))?;
    }
    Ok(Exit::Ok)
}
