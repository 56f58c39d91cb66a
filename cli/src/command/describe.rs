//! `osprey describe`: everything on record about one job.

use clap::Args;

use super::{Exit, Place};
use crate::error::CliError;
use crate::local::join::Joined;
use crate::render::job;
use crate::ui::Ui;

/// Show everything on record about a job: why it has its priority, its attempts and how they ended.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey describe 1e5a11f0-c06c-4a7e-8b0a-000000000231 --local
  osprey describe 1e5a11f0-c06c-4a7e-8b0a-000000000231 --local --output json
  osprey describe 5f02c --local            any beginning that only one id has")]
pub struct DescribeArgs {
    /// Id of the job, or a beginning that only one id has
    #[arg(value_name = "JOB")]
    job: String,
    #[command(flatten)]
    place: Place,
}

/// Describes.
pub fn describe(args: &DescribeArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let joined = Joined::of(&args.place)?;
    let view = joined.view(joined.find(&args.job)?)?;
    let logs = |id: &osprey_model::id::BatchJobId| joined.log(id.as_str());
    if ui.is_json() {
        ui.json(&job::record(&view, &logs))?;
    } else {
        ui.text(&job::story(&view, &logs))?;
    }
    Ok(Exit::Ok)
}
