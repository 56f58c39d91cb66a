//! `osprey policy apply`: the policy that counts from now on.

use std::path::PathBuf;

use clap::Args;
use osprey_model::message::Action;

use super::named;
use crate::command::action;
use crate::command::{Exit, Place};
use crate::error::CliError;
use crate::joined::Joined;
use crate::ui::Ui;

/// Put a policy into force; on AWS every process follows it within a minute.
///
/// It is sent as a message, so that it is recorded who did it. One that can't be read or fails its own tests isn't sent, and
/// the one in force stays. Waiting jobs are derived again before they start.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey policy apply policy.toml --reason 'inference first' --stack osprey
  osprey policy apply policy.toml --dry-run --stack osprey
  osprey policy apply default --stack osprey     the built-in one

`osprey policy plan OLD NEW` says before what it would change. A local run takes its policy from `--policy`.
Exit code 3 when it is refused, 4 when it can't be used.")]
pub struct ApplyArgs {
    /// The policy; `default` for the built-in one
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Say what would happen, and send nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    place: Place,
}

/// Applies.
pub fn apply(args: &ApplyArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let policy = named(&args.file)?.text;
    let joined = Joined::of(&args.place)?;
    let action = Action::ApplyPolicy { policy, reason: args.reason.clone() };
    let would = joined.preview_order(&action)?;
    match would {
        Ok(_) if !args.dry_run => action::ask(&joined, ui, &action),
        would => action::told(ui, &action, would),
    }
}
