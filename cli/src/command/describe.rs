//! `osprey describe`: everything on record about one job.

use clap::Args;

use super::{Exit, Place};
use crate::error::CliError;
use crate::joined::Joined;
use crate::render::job;
use crate::ui::Ui;

/// Show everything on record about a job: why it has its priority, its attempts and how they ended.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey describe training-231-flaky --local
  osprey describe training-231-flaky --local my-state --output json
  osprey describe 1e5a11f0-c06c-4a7e-8b0a-000000000671 --local
  osprey describe training-231-flaky --stack osprey")]
pub struct DescribeArgs {
    /// The job: its id, its name, or a beginning that only one job has
    #[arg(value_name = "JOB")]
    job: String,
    #[command(flatten)]
    place: Place,
}

/// Describes.
pub fn describe(args: &DescribeArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let joined = Joined::of(&args.place)?;
    let story = joined.story(joined.find(&args.job)?)?;
    if ui.is_json() {
        ui.json(&job::record(&story))?;
    } else {
        ui.text(&job::story(&story))?;
    }
    Ok(Exit::Ok)
}
