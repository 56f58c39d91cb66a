//! Queues: standard SQS queues, so at least once and in any order.

use jiff::Timestamp;
use osprey_model::id::MessageId;
use osprey_model::sender::Sender;

use crate::CallError;

/// The queues of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueKind {
    /// Where users send jobs and actions.
    Submissions,
    /// Where only Osprey writes: wake-ups for one job, redrives. Its messages refer to records and assert nothing.
    Internal,
    /// Batch's events.
    Events,
    /// Where only Osprey writes: wake-ups of pools whose line is to be looked at.
    Wake,
    /// Messages of the submission queue that failed too often.
    SubmissionsDead,
    /// Messages of the internal queue that failed too often.
    InternalDead,
    /// Events that failed too often.
    EventsDead,
    /// Wake-ups that failed too often.
    WakeDead,
}

impl QueueKind {
    /// Every queue.
    pub const ALL: [Self; 8] = [
        Self::Submissions,
        Self::Internal,
        Self::Events,
        Self::Wake,
        Self::SubmissionsDead,
        Self::InternalDead,
        Self::EventsDead,
        Self::WakeDead,
    ];

    /// The queue's name, as created by the template and locally.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Submissions => "osprey-submissions",
            Self::Internal => "osprey-internal",
            Self::Events => "osprey-events",
            Self::Wake => "osprey-wake",
            Self::SubmissionsDead => "osprey-submissions-dead",
            Self::InternalDead => "osprey-internal-dead",
            Self::EventsDead => "osprey-events-dead",
            Self::WakeDead => "osprey-wake-dead",
        }
    }

    /// Where its messages go after too many receives; `None` for a dead-letter queue.
    #[must_use]
    pub fn dead_letter_queue(self) -> Option<Self> {
        match self {
            Self::Submissions => Some(Self::SubmissionsDead),
            Self::Internal => Some(Self::InternalDead),
            Self::Events => Some(Self::EventsDead),
            Self::Wake => Some(Self::WakeDead),
            Self::SubmissionsDead | Self::InternalDead | Self::EventsDead | Self::WakeDead => None,
        }
    }
}

/// A message as a function receives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// The queue's number for it; the same at every delivery.
    pub id: MessageId,
    /// The text that was sent.
    pub body: String,
    /// Who sent it and by which queue, as the queue service authenticated them (SQS's `SenderId`).
    pub sender: Sender,
    /// When it was sent.
    pub sent_at: Timestamp,
    /// How often it was received, this time included.
    pub receive_count: u32,
}

/// Sends a message (`sqs:SendMessage`).
pub trait SendMessage {
    /// Sends `body` to be seen after `delay_seconds` (0 to 900).
    fn send_message(
        &self,
        queue: QueueKind,
        body: &str,
        delay_seconds: u32,
    ) -> impl Future<Output = Result<MessageId, CallError>> + Send;
}
