//! The six queues, and any that somebody names, as standard SQS queues.
//!
//! * At least once, in any order. Here the order happens to be that of becoming visible; nobody may rely on it.
//! * A message that was received is invisible until its visibility time-out has passed, and then comes again.
//! * A message that was received `max_receive_count` times (5) and comes up again goes to the dead-letter queue
//!   instead, with its id, text, sender, time and receive count. As in SQS this happens when the queue is read.
//! * Only the receipt of the latest receive deletes. A stale one is ignored: [`LocalQueues::delete`] succeeds, and
//!   says that nothing was deleted. To change the visibility with a stale receipt is refused.
//! * A message is never dropped for its age, and any number may be in flight.

mod ledger;
mod named;
mod receive;
mod sender;

use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use osprey_model::id::MessageId;
use osprey_ports::{CallError, Clock, QueueKind, SendMessage};
use rusqlite::{Connection, params};
use uuid::Uuid;

use crate::database::{Database, Fault, Statements};

pub use ledger::{LedgerRow, Line, LineOutcome};
pub use named::{Outgoing, Place};
pub use receive::{Delivery, Receipt};
pub use sender::operating_system_user;

/// Longest message in bytes; SQS's limit.
pub const MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// Longest delay of a message in seconds; SQS's limit.
pub const DELAY_SECONDS_MAX: u32 = 900;
/// Longest visibility time-out in seconds; SQS's limit.
pub const VISIBILITY_SECONDS_MAX: u32 = 43_200;
/// Most messages in one receive; SQS's limit.
pub const RECEIVE_MESSAGES_MAX: usize = 10;
/// How often a message is received before it goes to the dead-letter queue, unless told otherwise.
pub const RECEIVE_COUNT_MAX: u32 = 5;

/// How many messages a queue holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Ready to be received.
    pub visible: u64,
    /// Sent with a delay that hasn't passed.
    pub delayed: u64,
    /// Received, and neither deleted nor timed out.
    pub in_flight: u64,
}

impl QueueCounts {
    /// All of them.
    #[must_use]
    pub fn total(self) -> u64 {
        self.visible + self.delayed + self.in_flight
    }
}

/// The embedded queues. Clones share the database.
#[derive(Clone)]
pub struct LocalQueues {
    database: Arc<Database>,
    clock: Arc<dyn Clock + Send + Sync>,
    sender: Arc<str>,
    receive_count_max: u32,
}

impl fmt::Debug for LocalQueues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { database, clock: _, sender, receive_count_max } = self;
        f.debug_struct("LocalQueues")
            .field("database", database)
            .field("sender", sender)
            .field("receive_count_max", receive_count_max)
            .finish_non_exhaustive()
    }
}

impl LocalQueues {
    /// Queues in `database`. Messages are sent as the user of the operating system (`uid:name`).
    #[must_use]
    pub fn new(database: Arc<Database>, clock: Arc<dyn Clock + Send + Sync>) -> Self {
        Self { database, clock, sender: operating_system_user().into(), receive_count_max: RECEIVE_COUNT_MAX }
    }

    /// The same queues, sending as another sender.
    #[must_use]
    pub fn with_sender(mut self, sender: &str) -> Self {
        self.sender = sender.into();
        self
    }

    /// The same queues with another number of receives before the dead-letter queue; at least 1.
    #[must_use]
    pub fn with_receive_count_max(mut self, receives: u32) -> Self {
        self.receive_count_max = receives.max(1);
        self
    }

    /// Whom messages are sent as.
    #[must_use]
    pub fn sender(&self) -> &str {
        &self.sender
    }

    /// Sends a message that is seen after `delay_seconds`.
    ///
    /// # Errors
    ///
    /// [`CallError::Refused`] for an empty or too long text, a character that SQS doesn't take, or too long a delay.
    pub fn send(&self, queue: QueueKind, body: &str, delay_seconds: u32) -> Result<MessageId, CallError> {
        self.send_to(queue.name(), &Outgoing { body, delay_seconds, extras: None })
    }

    /// Sends several messages to each of several queues in one transaction. One that no queue takes is left out, with a
    /// warning in the log, since whoever sends several has no way to deal with it.
    pub(crate) fn send_all(&self, queues: &[&str], bodies: &[String]) -> Result<(), CallError> {
        if bodies.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
        Ok(self.database.write(|transaction| -> Outcome<_> {
            for body in bodies {
                match check_body(body) {
                    Ok(()) => self.insert_into_each(transaction, queues, body, now)?,
                    Err(error) => tracing::warn!(?queues, %error, "A message was left out."),
                }
            }
            Ok(())
        })?)
    }

    fn insert_into_each(
        &self,
        connection: &Connection,
        queues: &[&str],
        body: &str,
        now: Timestamp,
    ) -> rusqlite::Result<()> {
        for queue in queues {
            let delay = SignedDuration::ZERO;
            NewMessage { queue, body, sender: &self.sender, now, delay, extras: None }.insert(connection)?;
        }
        Ok(())
    }

    /// How many messages `queue` holds.
    ///
    /// # Errors
    ///
    /// When the database can't be read.
    pub fn counts(&self, queue: QueueKind) -> Result<QueueCounts, CallError> {
        self.counts_of(queue.name())
    }

    /// When the next message of `queue` is or becomes visible; `None` when the queue is empty.
    ///
    /// # Errors
    ///
    /// When the database can't be read.
    pub fn next_visible_at(&self, queue: QueueKind) -> Result<Option<Timestamp>, CallError> {
        self.next_visible_in(queue.name())
    }
}

impl SendMessage for LocalQueues {
    async fn send_message(&self, queue: QueueKind, body: &str, delay_seconds: u32) -> Result<MessageId, CallError> {
        self.send(queue, body, delay_seconds)
    }
}

type Outcome<T> = Result<T, Fault<CallError>>;

/// A message on its way in; its text is checked.
struct NewMessage<'a> {
    queue: &'a str,
    body: &'a str,
    sender: &'a str,
    now: Timestamp,
    delay: SignedDuration,
    extras: Option<&'a str>,
}

impl NewMessage<'_> {
    fn insert(&self, connection: &Connection) -> rusqlite::Result<MessageId> {
        let id = Uuid::new_v4().hyphenated().to_string();
        let visible_at = later(self.now, self.delay);
        connection.run(
            "INSERT INTO messages (queue, id, body, sender, sent_at, visible_at, extras)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![self.queue, id, self.body, self.sender, self.now.as_millisecond(), visible_at, self.extras],
        )?;
        Ok(MessageId::new(id))
    }
}

/// What SQS takes as a text.
fn check_body(body: &str) -> Result<(), CallError> {
    if body.is_empty() {
        return Err(refused("the message is empty"));
    }
    if body.len() > MESSAGE_BYTES_MAX {
        return Err(refused(format!(
            "the message is {} bytes long where the limit is {MESSAGE_BYTES_MAX}",
            body.len()
        )));
    }
    match body.chars().position(|c| !is_xml_legal(c)) {
        Some(at) => Err(refused(format!(
            "the message holds a character that a queue doesn't take: U+{:04X} at character {}",
            body.chars().nth(at).map_or(0, u32::from),
            at + 1
        ))),
        None => Ok(()),
    }
}

fn is_xml_legal(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

fn refused(sentence: impl Into<String>) -> CallError {
    CallError::Refused(sentence.into())
}

/// A time in the table.
fn time(millisecond: i64) -> Timestamp {
    Timestamp::from_millisecond(millisecond).unwrap_or(Timestamp::MAX)
}

fn later(now: Timestamp, by: SignedDuration) -> i64 {
    now.saturating_add(by).unwrap_or(Timestamp::MAX).as_millisecond()
}
