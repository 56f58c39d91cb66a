//! `osprey usage`: what teams use, what they may, and what became of it.

use clap::Args;

use super::{Exit, Place};
use crate::error::CliError;
use crate::joined::Joined;
use crate::render::usage;
use crate::ui::Ui;

/// Show what teams use, what they may, and what they waste.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey usage --local
  osprey usage --local --team search
  osprey usage --stack osprey --output json")]
pub struct UsageArgs {
    /// Only this team; may be given several times
    #[arg(long, value_name = "TEAM")]
    team: Vec<String>,
    #[command(flatten)]
    place: Place,
}

/// Shows.
pub fn usage(args: &UsageArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let joined = Joined::of(&args.place)?;
    let teams: Vec<String> = args.team.iter().map(|team| team.to_lowercase()).collect();
    let used = joined.usage(&teams)?;
    if ui.is_json() {
        ui.json(&used.iter().map(usage::summary).collect::<Vec<_>>())?;
    } else if used.is_empty() {
        ui.note("no job on record here names a team");
    } else {
        ui.text(&usage::list(&used))?;
    }
    Ok(Exit::Ok)
}
