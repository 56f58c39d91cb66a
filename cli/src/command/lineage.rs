//! `osprey lineage`: where a job comes from and what comes of it.

use clap::Args;

use super::{Exit, Place};
use crate::error::CliError;
use crate::joined::Joined;
use crate::joined::lineage::KIN_MAX;
use crate::render::lineage as render;
use crate::ui::Ui;

/// Show a job's attempts, the jobs that it comes from, those that wait for it, and the priority that these lend.
///
/// A job comes from those in its `dependsOn`, and from the one that its tag `parent-job-id` names; that one is shown of a
/// job and not the other way round. At most 200 jobs are shown, the nearest.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey lineage training-231 --local
  osprey lineage training-231 --local --output json
  osprey lineage training-231 --stack osprey")]
pub struct LineageArgs {
    /// The job: its id, its name, or a beginning that only one job has
    #[arg(value_name = "JOB")]
    job: String,
    #[command(flatten)]
    place: Place,
}

/// Shows.
pub fn lineage(args: &LineageArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let joined = Joined::of(&args.place)?;
    let lineage = joined.lineage(joined.find(&args.job)?)?;
    if ui.is_json() {
        ui.json(&render::document(&lineage))?;
    } else {
        ui.text(&render::tree(&lineage))?;
    }
    if lineage.is_cut {
        ui.note(&format!("there are more jobs; these are the nearest {KIN_MAX}"));
    }
    Ok(Exit::Ok)
}
