//! Dead letters: what can't be handled is kept whole, and a person is told once.

use osprey_model::id::{JobId, MessageId};
use osprey_model::job::{Job, cut};
use osprey_model::reason::ReasonCode;
use osprey_ports::{
    Expect, GetItem, IndexEntry, Item, Notice, Notify, QueueKind, ReceivedMessage, StoreError, Write, WriteItems,
};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::record::{self, Record};
use crate::redrive::{LATE_MS, REDRIVE_REPEAT_MS};
use crate::{key, repository};

/// Most characters of a sentence kept with a dead letter.
const MESSAGE_CHARS_MAX: usize = 4096;

/// A dead letter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// Its id: the job's, or one derived from the message.
    pub id: JobId,
    /// What it is.
    pub kind: DeadKind,
    /// Why it is dead.
    pub code: ReasonCode,
    /// The sentence.
    pub message: String,
    /// When it died, milliseconds since 1970.
    pub died_at: i64,
    /// What a person did about it.
    pub status: DeadStatus,
    /// Whether a person was told.
    pub told: bool,
    /// Times it was sent through again.
    #[serde(default)]
    pub redrives: u32,
    /// When it was last sent through again, milliseconds since 1970.
    #[serde(default)]
    pub redriven_at: i64,
    /// Whether it is known to be recorded elsewhere since it was sent through again.
    #[serde(default)]
    pub arrived: bool,
    /// Whether it was looked at once more after every invocation that could still have recorded its message.
    #[serde(default)]
    pub checked: bool,
}

/// What a dead letter is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadKind {
    /// A job that can't go on.
    Job {
        /// Its name.
        name: String,
    },
    /// A message that is no job.
    Message {
        /// The queue it came by.
        queue: String,
        /// Its number there.
        message: MessageId,
        /// How often it was received.
        receive_count: u32,
    },
}

/// What a person did about a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadStatus {
    /// Nothing yet.
    Open,
    /// It was sent through again.
    Redriven,
    /// It was closed.
    Discarded,
}

impl DeadLetter {
    /// The state item.
    #[must_use]
    pub fn item(&self) -> Item {
        let mut item = Item::new(key::dead(self.id), repository::json(self));
        item.indexes.push(key::listing(key::DEAD_LETTERS, self.died_at, self.id));
        item.indexes.extend(self.due());
        item
    }

    /// In the index of what is due until a person was told, and until it is known where it went.
    fn due(&self) -> Option<IndexEntry> {
        let at = if self.is_under_way() {
            self.redriven_at.saturating_add(REDRIVE_REPEAT_MS)
        } else if !self.told && self.status == DeadStatus::Open {
            self.died_at
        } else if self.may_be_late() {
            self.died_at.saturating_add(LATE_MS)
        } else {
            return None;
        };
        Some(key::due(at, self.id))
    }
}

/// The write that makes a dead letter of a job. A job may die again after a person requeued it.
#[must_use]
pub fn job_write(job: &Job, message: &str, now: i64) -> Write {
    let letter = DeadLetter {
        id: job.id,
        kind: DeadKind::Job { name: job.name.clone() },
        code: job.end.as_ref().map_or(ReasonCode::NotRetryable, |end| end.code),
        message: cut(message, MESSAGE_CHARS_MAX),
        died_at: now,
        status: DeadStatus::Open,
        told: false,
        redrives: 0,
        redriven_at: 0,
        arrived: false,
        checked: false,
    };
    Write::Put { item: letter.item(), expect: Expect::Any }
}

/// Says that a job became a dead letter, once it is written.
pub fn tell_of_job(id: JobId, code: ReasonCode) {
    tracing::warn!(metric = "DeadLetters", job_id = %id, code = %code, "a job became a dead letter.");
}

/// The write that notes that a dead job was put back into the queue without its dead letter being redriven.
#[must_use]
pub fn requeued_write(job: &Job) -> Write {
    let code = job.end.as_ref().map_or(ReasonCode::NotRetryable, |end| end.code);
    let message = job.end.as_ref().map_or("", |end| end.message.as_str());
    let letter = DeadLetter {
        id: job.id,
        kind: DeadKind::Job { name: job.name.clone() },
        code,
        message: message.to_owned(),
        died_at: job.updated_at,
        status: DeadStatus::Redriven,
        told: true,
        redrives: 1,
        redriven_at: job.updated_at,
        arrived: true,
        checked: true,
    };
    Write::Put { item: letter.item(), expect: Expect::Any }
}

/// Keeps a message that can't be handled. Keeping it again changes only a dead letter that was sent through again and
/// hasn't arrived anywhere: it is open again.
///
/// # Errors
/// When the store fails; the message comes again.
pub async fn keep<P>(
    ports: &P,
    queue: QueueKind,
    message: &ReceivedMessage,
    code: ReasonCode,
    sentence: &str,
    now: i64,
) -> Result<DeadLetter, Failure>
where
    P: GetItem + WriteItems + Sync,
{
    let letter = DeadLetter {
        id: JobId::of_message(&message.id),
        kind: DeadKind::Message {
            queue: queue.name().to_owned(),
            message: message.id.clone(),
            receive_count: message.receive_count,
        },
        code,
        message: cut(sentence, MESSAGE_CHARS_MAX),
        died_at: now,
        status: DeadStatus::Open,
        told: false,
        redrives: 0,
        redriven_at: 0,
        arrived: false,
        checked: false,
    };
    let record = Record::of(message);
    let mut writes = vec![Write::Put { item: letter.item(), expect: Expect::Absent }];
    writes.extend(record::writes(&key::dead_partition(letter.id), &record));
    match ports.write_items(&writes).await {
        Ok(()) => {
            tracing::warn!(metric = "DeadLetters", dead_letter_id = %letter.id, code = %code, sentence, "a message became a dead letter.");
            Ok(letter)
        }
        Err(StoreError::Conflict { .. }) => reopen(ports, letter).await,
        Err(error) => Err(error.into()),
    }
}

async fn reopen<P: GetItem + WriteItems + Sync>(ports: &P, letter: DeadLetter) -> Result<DeadLetter, Failure> {
    let Some((before, version)) = load(ports, letter.id).await? else { return Ok(letter) };
    if !before.is_under_way() {
        return Ok(before);
    }
    let again = DeadLetter { redrives: before.redrives, ..letter };
    ports.write_items(&[Write::Put { item: again.item(), expect: Expect::Version(version) }]).await?;
    Ok(again)
}

/// Reads a dead letter and the version of its item.
///
/// # Errors
/// When the store fails.
pub async fn load<P: GetItem + Sync>(ports: &P, id: JobId) -> Result<Option<(DeadLetter, u64)>, Failure> {
    match ports.get_item(&key::dead(id)).await? {
        Some(item) => Ok(Some((repository::read(&item)?, item.version))),
        None => Ok(None),
    }
}

/// Tells a person of a dead letter, once.
///
/// # Errors
/// When the store or the topic fails; `watch` tries again.
pub async fn tell<P>(ports: &P, id: JobId) -> Result<(), Failure>
where
    P: GetItem + WriteItems + Notify + Sync,
{
    let Some((letter, version)) = load(ports, id).await? else { return Ok(()) };
    if letter.told || letter.status != DeadStatus::Open {
        return Ok(());
    }
    ports.notify(&notice(&letter)).await.map_err(Failure::call("Publish"))?;
    let told = DeadLetter { told: true, ..letter };
    match ports.write_items(&[Write::Put { item: told.item(), expect: Expect::Version(version) }]).await {
        // Somebody else changed it; the notice has the same key, so telling again tells nobody twice.
        Ok(()) | Err(StoreError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn notice(letter: &DeadLetter) -> Notice {
    let what = match &letter.kind {
        DeadKind::Job { name } => format!("job {name}"),
        DeadKind::Message { queue, .. } => format!("a message of {queue}"),
    };
    let id = letter.id;
    Notice {
        key: format!("{id} {} {}", letter.code, letter.died_at),
        subject: cut(&format!("Osprey: {what} is a dead letter ({})", letter.code), 100),
        text: format!(
            "{what} can't be handled: {}.\n\nLook at it:  osprey dead-letters show {id}\nTry again:   osprey dead-letters redrive {id}\nClose it:    osprey dead-letters discard {id}\n",
            letter.message
        ),
    }
}
