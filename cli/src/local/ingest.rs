//! Taking in a job file: every line is sent exactly once, however often the same file is started on the same state.

use std::path::Path;

use jiff::Timestamp;
use osprey_local::{Line, LineOutcome, LocalWorld};
use osprey_model::id::{JobId, MessageId};
use osprey_model::limits::MESSAGE_BYTES_MAX;
use osprey_model::message::{self, Message};
use osprey_model::sender::Sender;
use osprey_pipeline::dead;
use osprey_ports::{Clock as _, QueueKind, ReceivedMessage};

use super::block_on;
use crate::error::CliError;
use crate::input::Entry;

/// Namespace of the numbers of lines that no queue takes.
const LINE_NAMESPACE: uuid::Uuid = uuid::Uuid::from_u128(0x6f73_7072_6579_4c69_8262_0000_0000_0003);

/// A line that was taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenLine {
    /// Line of the file, from 1.
    pub line: u64,
    /// The message it became; one of its own for a line that no queue takes.
    pub message: MessageId,
    /// The job id that its sender chose.
    pub chosen: Option<JobId>,
}

/// Takes in the lines of a file: those that the ledger has already are left alone, those that no queue takes become
/// dead letters.
///
/// # Errors
/// When the state can't be written; then no line, or every line that a queue takes, was sent.
pub fn ingest(world: &LocalWorld, file: &Path, entries: &[Entry]) -> Result<Vec<TakenLine>, CliError> {
    let source = source(file);
    let texts: Vec<(&Entry, Option<Line>)> = entries.iter().map(|entry| (entry, text_of(entry))).collect();
    let lines: Vec<Line> = texts.iter().filter_map(|(_, line)| line.clone()).collect();
    let mut rows = world.queues().enqueue_lines(&source, &lines)?.into_iter();
    let mut taken = Vec::new();
    for (entry, line) in texts {
        let outcome = line.and_then(|_| rows.next()).map(|row| row.outcome);
        let message = match outcome {
            Some(LineOutcome::Sent(message)) => message,
            Some(LineOutcome::Refused(_)) | None => bury(world, &source, entry)?,
        };
        taken.push(TakenLine { line: entry.line, message, chosen: chosen(&entry.bytes) });
    }
    Ok(taken)
}

/// A file is known by where it is, however it is named.
fn source(file: &Path) -> String {
    file.canonicalize().unwrap_or_else(|_| file.to_owned()).display().to_string()
}

fn text_of(entry: &Entry) -> Option<Line> {
    let text = String::from_utf8(entry.bytes.clone()).ok()?;
    Some(Line { number: entry.line, text })
}

fn chosen(body: &[u8]) -> Option<JobId> {
    match message::parse_bytes(body) {
        Ok(Message::Submit(request)) => message::chosen_job_id(&request).ok().flatten(),
        _ => None,
    }
}

/// Keeps a line that no queue takes as a dead letter, under a number made of where and what it is.
fn bury(world: &LocalWorld, source: &str, entry: &Entry) -> Result<MessageId, CliError> {
    let name = [source.as_bytes(), &entry.line.to_be_bytes(), &entry.bytes].concat();
    let message = MessageId::new(uuid::Uuid::new_v5(&LINE_NAMESPACE, &name).hyphenated().to_string());
    let body = String::from_utf8_lossy(&entry.bytes);
    let now = world.now();
    let received = ReceivedMessage {
        id: message.clone(),
        body: body.get(..body.floor_char_boundary(MESSAGE_BYTES_MAX)).unwrap_or_default().to_owned(),
        sender: Sender::new(QueueKind::Submissions.name(), world.queues().sender()),
        sent_at: now,
        receive_count: 1,
    };
    let (code, sentence) = match message::parse_bytes(&entry.bytes) {
        Err(rejection) => (rejection.code, rejection.message),
        Ok(_) => (osprey_model::reason::ReasonCode::NotText, "no queue takes the line".to_owned()),
    };
    let sentence = format!("line {}: {sentence}", entry.line);
    block_on(dead::keep(world, QueueKind::Submissions, &received, code, &sentence, ms(now)))?;
    Ok(message)
}

fn ms(time: Timestamp) -> i64 {
    time.as_millisecond()
}
