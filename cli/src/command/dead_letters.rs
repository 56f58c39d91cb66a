//! `osprey dead-letters`: what can't be handled without a person.

use clap::{Args, Subcommand};
use osprey_model::message::Action;
use osprey_pipeline::dead::{DeadLetter, DeadStatus};

use super::{Exit, Place, action};
use crate::error::CliError;
use crate::local::join::Joined;
use crate::render::dead_letter as render;
use crate::ui::Ui;

/// Look after what can't be handled without a person.
#[derive(Debug, Subcommand)]
pub enum DeadLettersCommand {
    List(ListArgs),
    Show(ShowArgs),
    Redrive(RedriveArgs),
    Discard(DiscardArgs),
}

/// List dead letters, newest first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey dead-letters list --local
  osprey dead-letters list --all --local --output json")]
pub struct ListArgs {
    /// Also those that were sent through again or closed
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    place: Place,
}

/// Show a dead letter and its message.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey dead-letters show 5f02c --local")]
pub struct ShowArgs {
    #[command(flatten)]
    letter: Letter,
}

/// Send a dead letter through again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey dead-letters redrive 5f02c --local

Exit code 3 when it can't be.")]
pub struct RedriveArgs {
    #[command(flatten)]
    letter: Letter,
}

/// Close a dead letter.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey dead-letters discard 5f02c --reason 'half a line' --local

Exit code 3 when it can't be.")]
pub struct DiscardArgs {
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    letter: Letter,
}

/// Which dead letter.
#[derive(Debug, Args)]
struct Letter {
    /// Id of the dead letter, or a beginning that only one id has
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    place: Place,
}

/// Does what was asked.
pub fn dead_letters(command: &DeadLettersCommand, ui: &mut Ui) -> Result<Exit, CliError> {
    match command {
        DeadLettersCommand::List(args) => list(args, ui),
        DeadLettersCommand::Show(args) => show(&args.letter, ui),
        DeadLettersCommand::Redrive(args) => {
            ask(&args.letter, ui, |dead_letter_id| Action::RedriveDeadLetter { dead_letter_id })
        }
        DeadLettersCommand::Discard(args) => ask(&args.letter, ui, |dead_letter_id| Action::DiscardDeadLetter {
            dead_letter_id,
            reason: args.reason.clone(),
        }),
    }
}

fn list(args: &ListArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let joined = Joined::of(&args.place)?;
    let is_wanted = |letter: &DeadLetter| args.all || letter.status == DeadStatus::Open;
    let letters: Vec<DeadLetter> = joined.dead_letters()?.into_iter().filter(is_wanted).collect();
    if ui.is_json() {
        ui.json(&letters.iter().map(|letter| render::document(letter, None)).collect::<Vec<_>>())?;
    } else if letters.is_empty() {
        ui.note("there is no dead letter here");
    } else {
        ui.text(&render::list(&letters, joined.now_ms()))?;
    }
    Ok(Exit::Ok)
}

fn show(letter: &Letter, ui: &mut Ui) -> Result<Exit, CliError> {
    let joined = Joined::of(&letter.place)?;
    let (letter, record) = joined.dead_letter(joined.find_dead_letter(&letter.id)?)?;
    if ui.is_json() {
        ui.json(&render::document(&letter, record.as_ref()))?;
    } else {
        ui.text(&render::story(&letter, record.as_ref(), joined.dir()))?;
    }
    Ok(Exit::Ok)
}

fn ask(letter: &Letter, ui: &mut Ui, make: impl FnOnce(String) -> Action) -> Result<Exit, CliError> {
    let joined = Joined::of(&letter.place)?;
    let id = joined.find_dead_letter(&letter.id)?;
    action::ask(&joined, ui, &make(id.to_string()), "dead letter", id)
}
