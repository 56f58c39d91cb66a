//! Queues like SQS's standard ones: visibility, receive counts, delays, redrive to the dead-letter queue.

use std::collections::BTreeMap;
use std::sync::Arc;

use osprey_model::id::MessageId;
use osprey_model::sender::Sender;
use osprey_ports::{QueueKind, ReceivedMessage};

use super::random::Random;

/// A message in a queue.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its number, the same at every delivery.
    pub id: MessageId,
    /// The text.
    pub body: Arc<str>,
    /// Who sent it.
    pub sender: &'static str,
    /// When it was sent.
    pub sent_at: i64,
    /// Not to be seen before.
    pub visible_at: i64,
    /// How often it was received.
    pub received: u32,
}

/// All queues.
#[derive(Default)]
pub struct Queues {
    queues: BTreeMap<QueueKind, BTreeMap<u64, Stored>>,
    last: u64,
}

/// Where a message is: its queue and its place there.
pub type Handle = (QueueKind, u64);

/// What a poll gives.
#[derive(Default)]
pub struct Batch {
    /// The messages, each with its place.
    pub messages: Vec<(u64, ReceivedMessage)>,
    /// Numbers of messages that were received too often, and went to the dead-letter queue.
    pub dead: Vec<MessageId>,
}

impl Queues {
    /// Puts a message in.
    pub fn put(&mut self, queue: QueueKind, message: Stored) -> Handle {
        self.last += 1;
        self.queues.entry(queue).or_default().insert(self.last, message);
        (queue, self.last)
    }

    /// Takes up to `most` visible messages; they are seen again at `hidden_until`.
    pub fn receive(&mut self, queue: QueueKind, poll: &Poll, random: &mut Random) -> Batch {
        let mut batch = Batch::default();
        let Some(messages) = self.queues.get_mut(&queue) else { return batch };
        let mut visible: Vec<u64> =
            messages.iter().filter(|(_, m)| m.visible_at <= poll.now).map(|(place, _)| *place).collect();
        random.shuffle(&mut visible);
        let mut dead = Vec::new();
        for place in visible {
            if batch.messages.len() >= poll.most {
                break;
            }
            let Some(message) = messages.get_mut(&place) else { continue };
            if queue.dead_letter_queue().is_some() && message.received >= poll.receives_max {
                dead.extend(messages.remove(&place));
                continue;
            }
            message.received += 1;
            message.visible_at = poll.hidden_until;
            batch.messages.push((place, received(message)));
        }
        batch.dead = dead.iter().map(|message| message.id.clone()).collect();
        for message in dead {
            if let Some(to) = queue.dead_letter_queue() {
                self.put(to, Stored { visible_at: poll.now, received: 0, ..message });
            }
        }
        batch
    }

    /// A message that is still there.
    pub fn get_mut(&mut self, (queue, place): Handle) -> Option<&mut Stored> {
        self.queues.get_mut(&queue)?.get_mut(&place)
    }

    /// Acknowledges a message.
    pub fn delete(&mut self, (queue, place): Handle) -> Option<Stored> {
        self.queues.get_mut(&queue)?.remove(&place)
    }

    /// When the next message of a queue can be seen.
    #[must_use]
    pub fn next_visible(&self, queue: QueueKind) -> Option<i64> {
        self.queues.get(&queue)?.values().map(|message| message.visible_at).min()
    }

    /// Every message that is in a queue.
    pub fn all(&self) -> impl Iterator<Item = (QueueKind, &Stored)> {
        self.queues.iter().flat_map(|(queue, messages)| messages.values().map(|message| (*queue, message)))
    }

    /// Whether every queue is empty.
    #[must_use]
    pub fn are_empty(&self) -> bool {
        self.queues.values().all(BTreeMap::is_empty)
    }
}

/// How to receive.
pub struct Poll {
    /// The time.
    pub now: i64,
    /// Most messages.
    pub most: usize,
    /// When they can be seen again.
    pub hidden_until: i64,
    /// Receives after which a message is a dead letter.
    pub receives_max: u32,
}

fn received(message: &Stored) -> ReceivedMessage {
    ReceivedMessage {
        id: message.id.clone(),
        body: message.body.to_string(),
        sender: Sender::new(QueueKind::Submissions.name(), message.sender),
        sent_at: jiff::Timestamp::from_millisecond(message.sent_at).unwrap_or_default(),
        receive_count: message.received,
    }
}

impl Queues {
    /// Places of the messages of a queue that are wanted.
    pub fn places(&self, queue: QueueKind, wanted: impl Fn(&Stored) -> bool) -> Vec<Handle> {
        let messages = self.queues.get(&queue).into_iter().flatten();
        messages.filter(|(_, message)| wanted(message)).map(|(place, _)| (queue, *place)).collect()
    }
}
