//! Receiving, deleting, and changing the visibility.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use osprey_model::id::MessageId;
use osprey_ports::{CallError, QueueKind, ReceivedMessage};
use rusqlite::{Row, Transaction, params};
use uuid::Uuid;

use super::{LocalQueues, Outcome, RECEIVE_MESSAGES_MAX, VISIBILITY_SECONDS_MAX, later, refused, time};
use crate::database::{Fault, Statements};

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
    fn message(&self) -> Result<&str, CallError> {
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
    /// In a dead-letter queue: the queue it came from.
    pub source: Option<QueueKind>,
}

impl LocalQueues {
    /// Receives at most `max` messages (1 to 10), and hides them for `visibility_seconds`.
    ///
    /// # Errors
    ///
    /// [`CallError::Refused`] for a number out of range.
    pub fn receive(&self, queue: QueueKind, max: usize, visibility_seconds: u32) -> Result<Vec<Delivery>, CallError> {
        if !(1..=RECEIVE_MESSAGES_MAX).contains(&max) {
            return Err(refused(format!("{max} messages in one receive is not from 1 to {RECEIVE_MESSAGES_MAX}")));
        }
        check_visibility(visibility_seconds)?;
        let now = self.clock.now();
        if self.next_visible_at(queue)?.is_none_or(|at| at.as_millisecond() > now.as_millisecond()) {
            // A look first, so that a consumer who waits doesn't write to the file each time.
            return Ok(Vec::new());
        }
        let hidden_until = later(now, SignedDuration::from_secs(visibility_seconds.into()));
        Ok(self.database.write(|transaction| -> Outcome<_> {
            self.move_to_dead_letters(transaction, queue, now)?;
            let due = Due { queue, now, hidden_until };
            Ok(due.take(transaction, max)?)
        })?)
    }

    /// Deletes a message, and says whether it was there. A stale receipt deletes nothing.
    ///
    /// # Errors
    ///
    /// [`CallError::Refused`] for a text that is no receipt handle.
    pub fn delete(&self, queue: QueueKind, receipt: &Receipt) -> Result<bool, CallError> {
        let id = receipt.message()?;
        let sql = "DELETE FROM messages WHERE id = ?1 AND queue = ?2 AND receipt = ?3";
        Ok(self.database.write(|transaction| -> Outcome<_> {
            Ok(transaction.run(sql, params![id, queue.name(), receipt.as_str()])? > 0)
        })?)
    }

    /// Hides a message that is in flight for `seconds` from now on; 0 shows it at once.
    ///
    /// # Errors
    ///
    /// [`CallError::Refused`] for a number out of range, a stale receipt, and a message that isn't in flight.
    pub fn change_visibility(&self, queue: QueueKind, receipt: &Receipt, seconds: u32) -> Result<(), CallError> {
        check_visibility(seconds)?;
        let id = receipt.message()?;
        let now = self.clock.now();
        let until = later(now, SignedDuration::from_secs(seconds.into()));
        let sql = "UPDATE messages SET visible_at = ?1
                   WHERE id = ?2 AND queue = ?3 AND receipt = ?4 AND visible_at > ?5";
        let values = params![until, id, queue.name(), receipt.as_str(), now.as_millisecond()];
        Ok(self.database.write(|transaction| match transaction.run(sql, values)? {
            0 => Err(Fault::Refused(refused(format!("message `{id}` is not in flight under this receipt")))),
            _ => Ok(()),
        })?)
    }

    fn move_to_dead_letters(&self, transaction: &Transaction<'_>, queue: QueueKind, now: Timestamp) -> Outcome<()> {
        let Some(dead) = queue.dead_letter_queue() else { return Ok(()) };
        let now = now.as_millisecond();
        transaction.run(
            "UPDATE messages SET queue = ?1, source = ?2, receipt = NULL, visible_at = ?3
             WHERE queue = ?2 AND visible_at <= ?3 AND receives >= ?4",
            params![dead.name(), queue.name(), now, self.receive_count_max],
        )?;
        Ok(())
    }
}

fn check_visibility(seconds: u32) -> Result<(), CallError> {
    if seconds > VISIBILITY_SECONDS_MAX {
        return Err(refused(format!("a visibility time-out of {seconds} seconds is over {VISIBILITY_SECONDS_MAX}")));
    }
    Ok(())
}

/// What is due in a queue, and until when it is hidden from others once taken.
struct Due {
    queue: QueueKind,
    now: Timestamp,
    hidden_until: i64,
}

impl Due {
    fn take(&self, transaction: &Transaction<'_>, max: usize) -> rusqlite::Result<Vec<Delivery>> {
        let sql = "SELECT id FROM messages WHERE queue = ?1 AND visible_at <= ?2 ORDER BY visible_at, seq LIMIT ?3";
        let limit = i64::try_from(max).unwrap_or(i64::MAX);
        let due = params![self.queue.name(), self.now.as_millisecond(), limit];
        let ids: Vec<String> = transaction.all(sql, due, |row| row.get(0))?;
        ids.iter().filter_map(|id| self.take_one(transaction, id).transpose()).collect()
    }

    fn take_one(&self, transaction: &Transaction<'_>, id: &str) -> rusqlite::Result<Option<Delivery>> {
        transaction.first(
            "UPDATE messages SET receives = receives + 1, receipt = ?2, visible_at = ?3,
                 first_received_at = coalesce(first_received_at, ?4)
             WHERE id = ?1 RETURNING id, body, sender, sent_at, receives, receipt, first_received_at, source",
            params![id, Receipt::of(id).as_str(), self.hidden_until, self.now.as_millisecond()],
            delivery,
        )
    }
}

fn delivery(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    Ok(Delivery {
        message: ReceivedMessage {
            id: MessageId::new(row.get::<_, String>(0)?),
            body: row.get(1)?,
            sender: row.get(2)?,
            sent_at: time(row.get(3)?),
            receive_count: row.get(4)?,
        },
        receipt: Receipt(row.get(5)?),
        first_received_at: time(row.get(6)?),
        source: row.get::<_, Option<String>>(7)?.and_then(|name| QueueKind::ALL.into_iter().find(|q| q.name() == name)),
    })
}
