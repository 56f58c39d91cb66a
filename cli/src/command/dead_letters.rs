//! `osprey dead-letters`: what can't be handled without a person.

use std::collections::BTreeMap;

use clap::{Args, Subcommand, ValueEnum};
use osprey_model::message::Action;
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_pipeline::dead::{DeadKind, DeadLetter, DeadStatus};

use super::{Exit, Place, action};
use crate::error::CliError;
use crate::filter::{NamePattern, Since, since};
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

/// List dead letters, newest first: those that wait for a person, unless `--all` or `--status` says otherwise.
///
/// TOLD says whether a notice of it was sent, REDRIVES how often it was sent through again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey dead-letters list --local
  osprey dead-letters list --all --local --output json
  osprey dead-letters list --kind job --name 'train-*' --since 1d --local
  osprey dead-letters list --code NotRetryable --local
  osprey dead-letters list --stack osprey")]
pub struct ListArgs {
    /// Also those that were sent through again or closed
    #[arg(long, conflicts_with = "status")]
    all: bool,
    /// Only those in this status; may be given several times
    #[arg(long, value_name = "STATUS", value_enum)]
    status: Vec<Status>,
    /// Only jobs, or only messages that are no job
    #[arg(long, value_name = "KIND", value_enum)]
    kind: Option<Kind>,
    /// Only those with this code; may be given several times
    #[arg(long, value_name = "CODE")]
    code: Vec<String>,
    /// Only jobs whose name begins so, or is so with `*` for any text and `?` for one character
    #[arg(long, value_name = "PATTERN")]
    name: Option<String>,
    /// Only those that died since: how long ago, such as `2h`, or a time such as `2026-11-30T08:00:00Z`
    #[arg(long, value_name = "WHEN", value_parser = since)]
    since: Option<Since>,
    /// At most so many, the newest
    #[arg(long, value_name = "NUMBER", default_value_t = 1000)]
    limit: usize,
    #[command(flatten)]
    place: Place,
}

/// What a person did about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Status {
    /// Nothing yet.
    Open,
    /// It was sent through again.
    Redriven,
    /// It was closed.
    Discarded,
}

/// What it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// A job that can't go on.
    Job,
    /// A message that is no job.
    Message,
}

impl ListArgs {
    fn is_wanted(&self, letter: &DeadLetter, name: Option<&NamePattern>) -> bool {
        let status = match letter.status {
            DeadStatus::Open => Status::Open,
            DeadStatus::Redriven => Status::Redriven,
            DeadStatus::Discarded => Status::Discarded,
        };
        let (kind, own) = match &letter.kind {
            DeadKind::Job { name } => (Kind::Job, Some(name)),
            DeadKind::Message { .. } => (Kind::Message, None),
        };
        let code = letter.code.to_string();
        let is_asked = if self.status.is_empty() { status == Status::Open } else { self.status.contains(&status) };
        (self.all || is_asked)
            && self.kind.is_none_or(|wanted| wanted == kind)
            && (self.code.is_empty() || self.code.iter().any(|wanted| wanted.eq_ignore_ascii_case(&code)))
            && name.is_none_or(|name| own.is_some_and(|own| name.is_match(own)))
    }
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
    let name = args.name.as_deref().map(NamePattern::new);
    let all = joined.dead_letters_since(args.since.map(|since| since.at(joined.now_ms())))?;
    let is_none = all.is_empty();
    let mut letters: Vec<DeadLetter> = all.into_iter().filter(|letter| args.is_wanted(letter, name.as_ref())).collect();
    let more = letters.len().saturating_sub(args.limit);
    letters.truncate(args.limit);
    let asked = asked(&joined)?;
    if ui.is_json() {
        ui.json(&letters.iter().map(|letter| render::document(letter, None, &asked)).collect::<Vec<_>>())?;
    } else if !letters.is_empty() {
        ui.text(&render::list(&letters, joined.now_ms(), &asked))?;
    } else if is_none {
        ui.note("there is no dead letter here");
    } else {
        ui.note("no dead letter here is like that; `--all` shows also those that were looked after");
    }
    if more > 0 {
        let all = letters.len() + more;
        ui.note(&format!("{more} more, older than these {}; `--limit {all}` shows all", letters.len()));
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
