//! `dead-letter`: a message that came back more often than its queue allows is kept whole and told to a person.
//!
//! A dead-letter queue doesn't say why a message failed. What can be read off the message decides: one that was
//! recorded already is done; one that reads well failed for passing reasons, and is sent through again within a
//! budget; one that doesn't read well would fail again.

use osprey_model::event::BatchEvent;
use osprey_model::id::{JobId, MessageId};
use osprey_model::message;
use osprey_model::reason::ReasonCode;
use osprey_pipeline::context::Context;
use osprey_pipeline::dead::{self, DeadKind, DeadStatus};
use osprey_pipeline::driver::guard;
use osprey_pipeline::failure::Failure;
use osprey_pipeline::internal::Internal;
use osprey_pipeline::redrive::{self, REDRIVE_DELAY_SECONDS, REDRIVES_MAX};
use osprey_ports::{Clock, GetItem, Notify, QueryItems, QueueKind, ReceivedMessage, SendMessage, WriteItems};

/// What the function calls.
pub trait Ports: GetItem + QueryItems + WriteItems + SendMessage + Notify + Clock + Sync {}

impl<P: GetItem + QueryItems + WriteItems + SendMessage + Notify + Clock + Sync> Ports for P {}

/// Handles a batch of messages of the dead-letter queue `queue`. Returns the ids of those that must come again.
pub async fn handle<P: Ports>(
    _ctx: &Context<'_>,
    ports: &P,
    queue: QueueKind,
    messages: &[ReceivedMessage],
) -> Vec<MessageId> {
    let mut failed = Vec::new();
    for message in messages {
        match guard(step(ports, queue, message)).await {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => {
                tracing::warn!(message_id = %message.id, error = failure.story(), "a dead letter could not be kept.");
                failed.push(message.id.clone());
            }
            Err(panicked) => {
                tracing::error!(message_id = %message.id, error = %panicked, "a dead letter broke its handler.");
                failed.push(message.id.clone());
            }
        }
    }
    failed
}

async fn step<P: Ports>(ports: &P, queue: QueueKind, message: &ReceivedMessage) -> Result<(), Failure> {
    if queue == QueueKind::InternalDead {
        return internal(ports, message).await;
    }
    if queue == QueueKind::WakeDead {
        // It only said when to look at a pool, and `watch` says that twice a minute.
        tracing::warn!(message_id = %message.id, "a wake-up of a pool failed too often; its line is left to the next one.");
        return Ok(());
    }
    if redrive::is_recorded(ports, message).await? {
        return redrive::arrived(ports, JobId::of_message(&message.id)).await;
    }
    let (code, sentence, transient) = judge(queue, message);
    let letter = dead::keep(ports, source(queue), message, code, &sentence, ports.now().as_millisecond()).await?;
    let now = ports.now().as_millisecond();
    let is_open = letter.status == DeadStatus::Open && matches!(letter.kind, DeadKind::Message { .. });
    if transient && is_open && letter.redrives < REDRIVES_MAX {
        return redrive::again(ports, letter.id, REDRIVE_DELAY_SECONDS, now).await;
    }
    redrive::attend(ports, letter.id, now).await
}

/// A message of the internal queue only pointed at a record. Whatever is due for a job, `watch` does; a redrive came to
/// nothing, which its dead letter has to know.
async fn internal<P: Ports>(ports: &P, message: &ReceivedMessage) -> Result<(), Failure> {
    match serde_json::from_str(&message.body) {
        Ok(Internal::Redrive { dead_letter_id }) => {
            redrive::failed(ports, dead_letter_id, ports.now().as_millisecond()).await?;
            redrive::attend(ports, dead_letter_id, ports.now().as_millisecond()).await
        }
        _ => {
            tracing::warn!(message_id = %message.id, "a wake-up failed too often; its job is left to watch.");
            Ok(())
        }
    }
}

/// Code and sentence of a message that failed too often, and whether another try may help.
fn judge(queue: QueueKind, message: &ReceivedMessage) -> (ReasonCode, String, bool) {
    let received = message.receive_count;
    let often = format!("received {received} times without success");
    if queue == QueueKind::EventsDead {
        return match serde_json::from_str::<BatchEvent>(&message.body) {
            Ok(_) => (ReasonCode::TooManyReceives, often, true),
            Err(fault) => (ReasonCode::NotJson, format!("not an event of Batch: {fault}"), false),
        };
    }
    match message::parse(&message.body) {
        Ok(_) => (ReasonCode::TooManyReceives, often, true),
        Err(rejection) => (rejection.code, rejection.message, false),
    }
}

fn source(queue: QueueKind) -> QueueKind {
    match queue {
        QueueKind::EventsDead => QueueKind::Events,
        QueueKind::InternalDead => QueueKind::Internal,
        QueueKind::WakeDead => QueueKind::Wake,
        _ => QueueKind::Submissions,
    }
}
