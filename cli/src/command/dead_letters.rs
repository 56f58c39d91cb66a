//! `osprey dead-letters`: what can't be handled without a person.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use osprey_model::message::Action;
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_pipeline::dead::{DeadLetter, DeadStatus};

use super::{Exit, Place, action};
use crate::error::CliError;
use crate::joined::Joined;
use crate::render::action as render_action;
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
  osprey dead-letters list --all --local --output json
  osprey dead-letters list --stack osprey")]
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
  osprey dead-letters show training-671-never --local")]
pub struct ShowArgs {
    #[command(flatten)]
    letter: Letter,
}

/// Send a dead letter through again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey dead-letters redrive training-671-never --local

Exit code 3 when it can't be.")]
pub struct RedriveArgs {
    #[command(flatten)]
    letter: Letter,
}

/// Close a dead letter.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey dead-letters discard training-671-never --reason 'superseded' --local

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
    /// The dead letter: its id, the name of its job, or a beginning that only one has
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
    let asked = asked(&joined)?;
    if ui.is_json() {
        ui.json(&letters.iter().map(|letter| render::document(letter, None, &asked)).collect::<Vec<_>>())?;
    } else if letters.is_empty() {
        ui.note("there is no dead letter here");
    } else {
        ui.text(&render::list(&letters, joined.now_ms(), &asked))?;
    }
    Ok(Exit::Ok)
}

fn show(letter: &Letter, ui: &mut Ui) -> Result<Exit, CliError> {
    let joined = Joined::of(&letter.place)?;
    let (letter, record) = joined.dead_letter(joined.find_dead_letter(&letter.id)?)?;
    if ui.is_json() {
        ui.json(&render::document(&letter, record.as_ref(), &asked(&joined)?))?;
    } else {
        ui.text(&render::story(&letter, record.as_ref(), &joined.flags(), &asked(&joined)?))?;
    }
    Ok(Exit::Ok)
}

fn ask(letter: &Letter, ui: &mut Ui, make: impl FnOnce(String) -> Action) -> Result<Exit, CliError> {
    let joined = Joined::of(&letter.place)?;
    let id = joined.find_dead_letter(&letter.id)?;
    let action = make(id.to_string());
    if joined.resting()?.is_some()
        && let Some(refusal) = present_refusal(&joined.dead_letter(id)?.0)
    {
        return action::refused(ui, &action, &refusal);
    }
    action::ask(&joined, ui, &action)
}

/// Why a dead letter can't be sent through again or closed as it is now.
fn present_refusal(letter: &DeadLetter) -> Option<Refusal> {
    let id = letter.id;
    let sentence = match letter.status {
        DeadStatus::Open => return None,
        DeadStatus::Discarded => format!("dead letter `{id}` was discarded"),
        DeadStatus::Redriven if letter.arrived => {
            format!("dead letter `{id}` was sent through again, and what came of it is recorded")
        }
        DeadStatus::Redriven => return None,
    };
    Some(Refusal::new(ReasonCode::WrongState, sentence))
}

/// What was asked of each dead letter and not carried out yet.
fn asked(joined: &Joined) -> Result<BTreeMap<String, String>, CliError> {
    let asked = joined.sent_actions()?.into_iter().map(|(_, action)| render_action::asked(&action));
    Ok(asked.filter(|asked| asked.what == "dead letter").map(|asked| (asked.id, asked.name)).collect())
}
