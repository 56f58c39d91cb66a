//! `osprey why`: the one reason for which a job is where it is.

use clap::Args;

use super::{Exit, Place};
use crate::error::CliError;
use crate::joined::Joined;
use crate::render::why;
use crate::ui::Ui;

/// Show why a job waits, or where it is: one reason with its numbers, and how many are before it.
///
/// A job in the line of its pool is asked after by the decision that a cycle would make now, so the answer can't differ
/// from what happens. docs/REASONS.md explains each code.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey why training-231 --local
  osprey why training-231 --local my-state --output json")]
pub struct WhyArgs {
    /// The job: its id, its name, or a beginning that only one job has
    #[arg(value_name = "JOB")]
    job: String,
    #[command(flatten)]
    place: Place,
}

/// Says why.
pub fn why(args: &WhyArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let joined = Joined::of(&args.place)?;
    let answer = joined.why(joined.find(&args.job)?)?;
    if ui.is_json() {
        ui.json(&answer)?;
    } else {
        ui.text(&why::answer(&answer))?;
    }
    Ok(Exit::Ok)
}
