//! The message of a job, kept as it came: immutable, in chunks, since a message may hold 1 MiB and an item 400 KB.

use std::borrow::Cow;

use osprey_model::decision::Decision;
use osprey_model::id::{JobId, MessageId};
use osprey_model::reason::Refusal;
use osprey_model::sender::Sender;
use osprey_ports::{Expect, Item, Key, QueryItems, QueueKind, ReceivedMessage, Write};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::key;
use crate::repository;

/// Most bytes of the body in one chunk. JSON escapes can double it, and the item still holds it.
const CHUNK_BYTES_MAX: usize = 120 * 1024;

/// A message as it came, with what was decided when it came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The message's number.
    pub message: MessageId,
    /// Who sent it, as the queue service authenticated them.
    pub sender: String,
    /// The queue by which it came; the submission queue where an older record doesn't say.
    #[serde(default = "submissions", skip_serializing_if = "is_submissions")]
    pub queue: String,
    /// When it was sent, milliseconds since 1970.
    pub sent_at: i64,
    /// The body.
    pub body: String,
    /// The first decision.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::compact")]
    pub decision: Option<Decision>,
    /// Why it was refused, every reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<Refusal>,
}

/// The first chunk as it is written: a [`Record`] with the first piece of its body.
#[derive(Serialize)]
struct First<'a> {
    message: &'a MessageId,
    sender: &'a str,
    #[serde(skip_serializing_if = "is_submissions")]
    queue: &'a str,
    sent_at: i64,
    body: &'a str,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "crate::compact::serialize")]
    decision: &'a Option<Decision>,
    #[serde(skip_serializing_if = "<[Refusal]>::is_empty")]
    refusals: &'a [Refusal],
}

impl<'a> First<'a> {
    fn of(record: &'a Record, body: &'a str) -> Self {
        let Record { message, sender, queue, sent_at, body: _, decision, refusals } = record;
        Self { message, sender, queue, sent_at: *sent_at, body, decision, refusals }
    }
}

fn submissions() -> String {
    QueueKind::Submissions.name().to_owned()
}

fn is_submissions(queue: &str) -> bool {
    queue == QueueKind::Submissions.name()
}

impl Record {
    /// The record of a message that nothing was decided of.
    #[must_use]
    pub fn of(message: &ReceivedMessage) -> Self {
        Self {
            message: message.id.clone(),
            sender: message.sender.principal.clone(),
            queue: message.sender.queue.clone(),
            sent_at: message.sent_at.as_millisecond(),
            body: message.body.clone(),
            decision: None,
            refusals: Vec::new(),
        }
    }

    /// Who sent the message.
    #[must_use]
    pub fn from(&self) -> Sender {
        Sender::new(self.queue.clone(), self.sender.clone())
    }
}

/// A further chunk of a long body.
#[derive(Serialize, Deserialize)]
struct Rest<'a> {
    body: Cow<'a, str>,
}

/// The writes that keep a record under `partition`; each demands that nothing is there.
#[must_use]
pub fn writes(partition: &str, record: &Record) -> Vec<Write> {
    let mut pieces = pieces(&record.body).into_iter();
    let first = First::of(record, pieces.next().unwrap_or_default());
    let bodies = std::iter::once(repository::json(&first))
        .chain(pieces.map(|piece| repository::json(&Rest { body: Cow::Borrowed(piece) })));
    bodies
        .enumerate()
        .map(|(number, body)| {
            let key = Key::new(partition, format!("{}{number:03}", key::RECORD));
            Write::Put { item: Item::new(key, body), expect: Expect::Absent }
        })
        .collect()
}

fn pieces(body: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = body;
    while rest.len() > CHUNK_BYTES_MAX {
        let cut = rest.floor_char_boundary(CHUNK_BYTES_MAX);
        let (piece, after) = rest.split_at(cut);
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

/// Reads the record under `partition`.
///
/// # Errors
/// When the store fails or a chunk can't be read.
pub async fn read<P: QueryItems + Sync>(ports: &P, partition: String) -> Result<Option<Record>, Failure> {
    let items = repository::all(ports, partition, key::RECORD).await?;
    let Some((first, rest)) = items.split_first() else { return Ok(None) };
    let mut record: Record = repository::read(first)?;
    for item in rest {
        record.body.push_str(&repository::read::<Rest<'static>>(item)?.body);
    }
    Ok(Some(record))
}

/// Reads the record of a job, which must be there.
///
/// # Errors
/// When the store fails, or the record isn't there.
pub async fn of_job<P: QueryItems + Sync>(ports: &P, id: JobId) -> Result<Record, Failure> {
    read(ports, key::job_partition(id)).await?.ok_or_else(|| Failure::Corrupt {
        item: format!("{} / {}000", key::job_partition(id), key::RECORD),
        fault: "the job has no record".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_body_is_cut_between_characters_and_comes_back_whole() {
        let body: String = "aäß€🦅".repeat(40_000);
        let cut = pieces(&body);
        assert!(cut.len() > 3);
        assert!(cut.iter().all(|piece| piece.len() <= CHUNK_BYTES_MAX));
        assert_eq!(cut.concat(), body);
    }

    #[test]
    fn an_empty_body_is_one_empty_chunk() {
        assert_eq!(pieces(""), [""]);
    }
}
