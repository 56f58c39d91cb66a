//! Receiving, deleting, and changing the visibility.

use std::fmt;

use jiff::Timestamp;
use osprey_model::id::MessageId;
use osprey_model::sender::Sender;
use osprey_ports::{CallError, QueueKind, ReceivedMessage};
use rusqlite::{Row, Transaction, params};
use uuid::Uuid;

use super::{LocalQueues, Outcome, Place, VISIBILITY_SECONDS_MAX, refused, time};
use crate::database::Statements;

/// The right to delete a message, got by receiving it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Receipt(String);

impl Receipt {
    /// Takes the text of a receipt handle.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// One receive of the message `id`.
    fn of(id: &str) -> Self {
        Self(format!("{id}.{}", Uuid::new_v4().simple()))
    }

    /// The message it is for.
    pub(super) fn message(&self) -> Result<&str, CallError> {
        self.0
            .split_once('.')
            .filter(|(id, receive)| Uuid::try_parse(id).is_ok() && Uuid::try_parse(receive).is_ok())
            .map(|(id, _)| id)
            .ok_or_else(|| refused(format!("`{self}` is no receipt handle")))
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A message that was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The message.
    pub message: ReceivedMessage,
    /// Deletes it.
    pub receipt: Receipt,
    /// When it was received for the first time.
    pub first_received_at: Timestamp,
    /// In a dead-letter queue: the name of the queue it came from.
    pub source: Option<String>,
    /// What it was sent with beside its text.
    pub extras: Option<String>,
}

impl LocalQueues {
    /// Receives at most `max` messages (1 to 10), and hides them for `visibility_seconds`.
    ///
    /// # Errors
    ///
    /// [`CallError::Refused`] for a number out of range.
    pub fn receive(&self, queue: QueueKind, max: usize, visibility_seconds: u32) -> Result<Vec<Delivery>, CallError> {
        self.receive_from(&self.place(queue), max, visibility_seconds)
    }

    /// The oldest messages of a queue, at most `max`, as they are: nothing is received, so nothing changes for whoever
    /// does.
    ///
    /// # Errors
    ///
    /// When the database can't be read.
    pub fn peek(&self, queue: QueueKind, max: usize) -> Result<Vec<ReceivedMessage>, CallError> {
        let sql = "SELECT id, body, sender, sent_at, receives FROM messages WHERE queue = ?1 ORDER BY seq LIMIT ?2";
        let limit = i64::try_from(max).unwrap_or(i64::MAX);
        Ok(self.database.read(|connection| -> Outcome<_> {
            Ok(connection.all(sql, params![queue.name(), limit], |row| message(queue.name(), row))?)
        })?)
    }

    /// Deletes a message, and says whether it was there. A stale receipt deletes nothing.
    ///
    /// # Errors
    ///
    /// [`CallError::Refused`] for a text that is no receipt handle.
    pub fn delete(&self, queue: QueueKind, receipt: &Receipt) -> Result<bool, CallError> {
        self.delete_from(queue.name(), receipt)
    }

    /// Hides a message that is in flight for `seconds` from now on; 0 shows it at once.
    ///
    /// # Errors
    ///
    /// [`CallError::Refused`] for a number out of range, a stale receipt, and a message that isn't in flight.
    pub fn change_visibility(&self, queue: QueueKind, receipt: &Receipt, seconds: u32) -> Result<(), CallError> {
        self.hide_in(queue.name(), receipt, seconds)
    }

    /// A queue of the pipeline with its dead-letter queue.
    fn place(&self, queue: QueueKind) -> Place {
        let dead = queue.dead_letter_queue().map(|dead| (dead.name().to_owned(), self.receive_count_max));
        Place { name: queue.name().to_owned(), dead }
    }
}

pub(super) fn check_visibility(seconds: u32) -> Result<(), CallError> {
    if seconds > VISIBILITY_SECONDS_MAX {
        return Err(refused(format!("a visibility time-out of {seconds} seconds is over {VISIBILITY_SECONDS_MAX}")));
    }
    Ok(())
}

/// What is due in a queue, and until when it is hidden from others once taken.
pub(super) struct Due<'a> {
    pub queue: &'a str,
    pub now: Timestamp,
    pub hidden_until: i64,
}

impl Due<'_> {
    pub fn take(&self, transaction: &Transaction<'_>, max: usize) -> rusqlite::Result<Vec<Delivery>> {
        let sql = "SELECT id FROM messages WHERE queue = ?1 AND visible_at <= ?2 ORDER BY visible_at, seq LIMIT ?3";
        let limit = i64::try_from(max).unwrap_or(i64::MAX);
        let due = params![self.queue, self.now.as_millisecond(), limit];
        let ids: Vec<String> = transaction.all(sql, due, |row| row.get(0))?;
        ids.iter().filter_map(|id| self.take_one(transaction, id).transpose()).collect()
    }

    fn take_one(&self, transaction: &Transaction<'_>, id: &str) -> rusqlite::Result<Option<Delivery>> {
        transaction.first(
            "UPDATE messages SET receives = receives + 1, receipt = ?2, visible_at = ?3,
                 first_received_at = coalesce(first_received_at, ?4)
             WHERE id = ?1 RETURNING id, body, sender, sent_at, receives, receipt, first_received_at, source, extras",
            params![id, Receipt::of(id).as_str(), self.hidden_until, self.now.as_millisecond()],
            |row| delivery(self.queue, row),
        )
    }
}

fn message(queue: &str, row: &Row<'_>) -> rusqlite::Result<ReceivedMessage> {
    Ok(ReceivedMessage {
        id: MessageId::new(row.get::<_, String>(0)?),
        body: row.get(1)?,
        sender: Sender::new(queue, row.get::<_, String>(2)?),
        sent_at: time(row.get(3)?),
        receive_count: row.get(4)?,
    })
}

fn delivery(queue: &str, row: &Row<'_>) -> rusqlite::Result<Delivery> {
    Ok(Delivery {
        message: message(queue, row)?,
        receipt: Receipt(row.get(5)?),
        first_received_at: time(row.get(6)?),
        source: row.get(7)?,
        extras: row.get(8)?,
    })
}
