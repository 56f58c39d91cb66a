//! Dead letters, for people and programs.

use std::collections::BTreeMap;

use osprey_model::message::words::shown;
use osprey_pipeline::dead::{DeadKind, DeadLetter, DeadStatus};
use osprey_pipeline::record::Record;
use serde_json::{Value, json};

use super::table::Columns;
use super::time::{rfc3339, short};

/// Most characters of a sentence in a list.
const SENTENCE_CHARACTERS_MAX: usize = 80;
/// Most characters of a body that are shown.
const BODY_CHARACTERS_MAX: usize = 4_000;

/// What was asked of dead letters and not carried out yet, by id.
pub type Asked = BTreeMap<String, String>;

/// Dead letters as a table.
#[must_use]
pub fn list(letters: &[DeadLetter], now: i64, asked: &Asked) -> String {
    let mut columns = Columns::new(&["ID", "WHAT", "STATUS", "CODE", ">AGE", "TOLD", ">REDRIVES", "WHY"]);
    for letter in letters {
        columns.row([
            letter.id.to_string(),
            what(letter),
            shown_status(letter, asked),
            letter.code.to_string(),
            short(now - letter.died_at),
            if letter.told { "yes" } else { "not yet" }.to_owned(),
            letter.redrives.to_string(),
            osprey_model::job::cut(&letter.message, SENTENCE_CHARACTERS_MAX),
        ]);
    }
    columns.render()
}

/// One dead letter as JSON, with its message when it is given.
#[must_use]
pub fn document(letter: &DeadLetter, record: Option<&Record>, asked: &Asked) -> Value {
    let DeadLetter { id, kind, code, message, died_at, status: _, told, redrives, .. } = letter;
    let mut document = json!({
        "id": id,
        "kind": kind,
        "code": code,
        "message": message,
        "died_at": rfc3339(*died_at),
        "status": status(letter),
        "asked": asked.get(&id.to_string()),
        "told": told,
        "redrives": redrives,
    });
    if let (Some(record), Some(members)) = (record, document.as_object_mut()) {
        members.insert("sender".to_owned(), record.sender.clone().into());
        members.insert("sent_at".to_owned(), rfc3339(record.sent_at).into());
        members.insert("body".to_owned(), record.body.clone().into());
    }
    document
}

/// One dead letter in sentences.
#[must_use]
pub fn story(letter: &DeadLetter, record: Option<&Record>, flags: &str, asked: &Asked) -> String {
    let mut lines = vec![
        format!("dead letter {}", letter.id),
        format!("  what      {}", shown(&what(letter))),
        format!("  status    {}", shown_status(letter, asked)),
        format!("  died at   {}", rfc3339(letter.died_at)),
        format!("  why       {} ({})", shown(&letter.message), letter.code),
    ];
    if let Some(record) = record {
        lines.push(format!("  sent      {} by {}", rfc3339(record.sent_at), record.sender));
        lines.push(String::new());
        lines.push(osprey_model::job::cut(&record.body, BODY_CHARACTERS_MAX));
    }
    if letter.status == DeadStatus::Open {
        let id = letter.id;
        lines.push(String::new());
        lines.push(format!("try again:  osprey dead-letters redrive {id} {flags}"));
        lines.push(format!("close it:   osprey dead-letters discard {id} {flags}"));
    }
    lines.join("\n")
}

fn what(letter: &DeadLetter) -> String {
    match &letter.kind {
        DeadKind::Job { name } => format!("job {name}"),
        DeadKind::Message { queue, .. } => format!("message of {queue}"),
    }
}

/// The status, and what was asked: `open, redrive asked`.
fn shown_status(letter: &DeadLetter, asked: &Asked) -> String {
    match asked.get(&letter.id.to_string()).map(String::as_str) {
        Some("RedriveDeadLetter") => format!("{}, redrive asked", status(letter)),
        Some(_) => format!("{}, discard asked", status(letter)),
        None => status(letter).to_owned(),
    }
}

fn status(letter: &DeadLetter) -> &'static str {
    match letter.status {
        DeadStatus::Open => "open",
        DeadStatus::Redriven => "redriven",
        DeadStatus::Discarded => "discarded",
    }
}
