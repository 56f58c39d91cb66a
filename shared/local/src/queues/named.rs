//! The same queues by their names: what a server that speaks SQS's protocol needs, for queues that it made itself too.

use jiff::{SignedDuration, Timestamp};
use osprey_model::id::MessageId;
use osprey_ports::CallError;
use rusqlite::{Transaction, params};
use uuid::Uuid;

use super::receive::{Due, check_visibility};
use super::{
    DELAY_SECONDS_MAX, Delivery, LocalQueues, NewMessage, Outcome, QueueCounts, RECEIVE_MESSAGES_MAX, Receipt,
    check_body, later, refused, time,
};
use crate::database::{Fault, Statements};

/// A queue by its name, and where messages go that were received too often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the queue.
    pub name: String,
    /// Name of its dead-letter queue, and how often a message is received before it goes there.
    pub dead: Option<(String, u32)>,
}

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing<'a> {
    /// Its text.
    pub body: &'a str,
    /// Seconds until it is seen.
    pub delay_seconds: u32,
    /// What it has beside its text, kept as it is.
    pub extras: Option<&'a str>,
}

impl LocalQueues {
    /// Sends a message to the queue of a name, whether or not anybody reads it.
    ///
    /// # Errors
    ///
    /// As [`Self::send`].
    pub fn send_to(&self, queue: &str, message: &Outgoing<'_>) -> Result<MessageId, CallError> {
        let Outgoing { body, delay_seconds, extras } = *message;
        check_body(body)?;
        if delay_seconds > DELAY_SECONDS_MAX {
            return Err(refused(format!("a delay of {delay_seconds} seconds is over {DELAY_SECONDS_MAX}")));
        }
        let now = self.clock.now();
        let delay = SignedDuration::from_secs(delay_seconds.into());
        let new = NewMessage { queue, body, sender: &self.sender, now, delay, extras };
        Ok(self.database.write(|transaction| -> Outcome<_> { Ok(new.insert(transaction)?) })?)
    }

    /// Receives from the queue of a name; see [`Self::receive`].
    ///
    /// # Errors
    ///
    /// As [`Self::receive`].
    pub fn receive_from(&self, place: &Place, max: usize, visibility_seconds: u32) -> Result<Vec<Delivery>, CallError> {
        if !(1..=RECEIVE_MESSAGES_MAX).contains(&max) {
            return Err(refused(format!("{max} messages in one receive is not from 1 to {RECEIVE_MESSAGES_MAX}")));
        }
        check_visibility(visibility_seconds)?;
        let now = self.clock.now();
        if self.next_visible_in(&place.name)?.is_none_or(|at| at.as_millisecond() > now.as_millisecond()) {
            // A look first, so that a consumer who waits doesn't write to the file each time.
            return Ok(Vec::new());
        }
        let hidden_until = later(now, SignedDuration::from_secs(visibility_seconds.into()));
        Ok(self.database.write(|transaction| -> Outcome<_> {
            move_to_dead_letters(transaction, place, now)?;
            let due = Due { queue: &place.name, now, hidden_until };
            Ok(due.take(transaction, max)?)
        })?)
    }

    /// Deletes a message from the queue of a name, and says whether it was there.
    ///
    /// # Errors
    ///
    /// As [`Self::delete`].
    pub fn delete_from(&self, queue: &str, receipt: &Receipt) -> Result<bool, CallError> {
        let id = receipt.message()?;
        let sql = "DELETE FROM messages WHERE id = ?1 AND queue = ?2 AND receipt = ?3";
        Ok(self.database.write(|transaction| -> Outcome<_> {
            Ok(transaction.run(sql, params![id, queue, receipt.as_str()])? > 0)
        })?)
    }

    /// Hides a message of the queue of a name; see [`Self::change_visibility`].
    ///
    /// # Errors
    ///
    /// As [`Self::change_visibility`].
    pub fn hide_in(&self, queue: &str, receipt: &Receipt, seconds: u32) -> Result<(), CallError> {
        check_visibility(seconds)?;
        let id = receipt.message()?;
        let now = self.clock.now();
        let until = later(now, SignedDuration::from_secs(seconds.into()));
        let sql = "UPDATE messages SET visible_at = ?1
                   WHERE id = ?2 AND queue = ?3 AND receipt = ?4 AND visible_at > ?5";
        let values = params![until, id, queue, receipt.as_str(), now.as_millisecond()];
        Ok(self.database.write(|transaction| match transaction.run(sql, values)? {
            0 => Err(Fault::Refused(refused(format!("message `{id}` is not in flight under this receipt")))),
            _ => Ok(()),
        })?)
    }

    /// Whether the message of a receipt is still in the queue of a name, in flight or not.
    ///
    /// # Errors
    ///
    /// [`CallError::Refused`] for a text that is no receipt handle.
    pub fn holds(&self, queue: &str, receipt: &Receipt) -> Result<bool, CallError> {
        let id = receipt.message()?;
        let sql = "SELECT 1 FROM messages WHERE id = ?1 AND queue = ?2";
        Ok(self.database.read(|connection| -> Outcome<_> {
            Ok(connection.first(sql, params![id, queue], |_| Ok(()))?.is_some())
        })?)
    }

    /// How many messages the queue of a name holds.
    ///
    /// # Errors
    ///
    /// When the database can't be read.
    pub fn counts_of(&self, queue: &str) -> Result<QueueCounts, CallError> {
        let sql = "SELECT coalesce(sum(visible_at <= ?2), 0),
                          coalesce(sum(visible_at > ?2 AND receipt IS NULL), 0),
                          coalesce(sum(visible_at > ?2 AND receipt IS NOT NULL), 0)
                   FROM messages WHERE queue = ?1";
        let now = self.clock.now().as_millisecond();
        Ok(self.database.read(|connection| -> Outcome<_> {
            let counts = connection.first(sql, params![queue, now], |row| {
                let number = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
                Ok(QueueCounts { visible: number(0)?, delayed: number(1)?, in_flight: number(2)? })
            })?;
            Ok(counts.unwrap_or_default())
        })?)
    }

    /// When the next message of the queue of a name is or becomes visible; `None` when it is empty.
    ///
    /// # Errors
    ///
    /// When the database can't be read.
    pub fn next_visible_in(&self, queue: &str) -> Result<Option<Timestamp>, CallError> {
        let sql = "SELECT visible_at FROM messages WHERE queue = ?1 ORDER BY visible_at LIMIT 1";
        Ok(self
            .database
            .read(|connection| -> Outcome<_> { Ok(connection.first(sql, [queue], |row| row.get(0))?.map(time)) })?)
    }

    /// Deletes every message of the queue of a name, and says how many there were.
    ///
    /// # Errors
    ///
    /// When the database can't be written.
    pub fn purge(&self, queue: &str) -> Result<usize, CallError> {
        Ok(self.database.write(|transaction| -> Outcome<_> {
            Ok(transaction.run("DELETE FROM messages WHERE queue = ?1", [queue])?)
        })?)
    }

    /// Moves what can be received in one queue to another, or without one back to where each message came from, and
    /// says how many messages that were. As in SQS, a message that is moved gets a new id and a new time.
    ///
    /// # Errors
    ///
    /// When the database can't be written; then nothing was moved.
    pub fn redrive(&self, from: &str, to: Option<&str>) -> Result<usize, CallError> {
        let now = self.clock.now().as_millisecond();
        let due = "SELECT id FROM messages WHERE queue = ?1 AND visible_at <= ?2 AND (?3 OR source IS NOT NULL)
                   ORDER BY visible_at, seq";
        let change = "UPDATE messages SET queue = coalesce(?2, source), id = ?3, sent_at = ?4, visible_at = ?4,
                          source = NULL, receipt = NULL, receives = 0, first_received_at = NULL WHERE id = ?1";
        Ok(self.database.write(|transaction| -> Outcome<_> {
            let ids: Vec<String> = transaction.all(due, params![from, now, to.is_some()], |row| row.get(0))?;
            for id in &ids {
                let new = Uuid::new_v4().hyphenated().to_string();
                transaction.run(change, params![id, to, new, now])?;
            }
            Ok(ids.len())
        })?)
    }
}

fn move_to_dead_letters(transaction: &Transaction<'_>, place: &Place, now: Timestamp) -> rusqlite::Result<()> {
    let Some((dead, receives_max)) = &place.dead else { return Ok(()) };
    let now = now.as_millisecond();
    transaction.run(
        "UPDATE messages SET queue = ?1, source = ?2, receipt = NULL, visible_at = ?3
         WHERE queue = ?2 AND visible_at <= ?3 AND receives >= ?4",
        params![dead, place.name, now, receives_max],
    )?;
    Ok(())
}
