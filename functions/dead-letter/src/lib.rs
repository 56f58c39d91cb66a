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
use osprey_pipeline::dead::{self, DeadLetter, DeadStatus};
use osprey_pipeline::driver::guard;
use osprey_pipeline::failure::Failure;
use osprey_pipeline::internal::Internal;
use osprey_pipeline::{key, repository};
use osprey_ports::{Clock, Expect, GetItem, Notify, QueueKind, ReceivedMessage, SendMessage, Write, WriteItems};

/// Times that a message is sent through again without a person asking.
pub const REDRIVES_MAX: u32 = 2;
/// Delay before a message is sent through again, seconds.
const REDRIVE_DELAY_SECONDS: u32 = 60;

/// What the function calls.
pub trait Ports: GetItem + WriteItems + SendMessage + Notify + Clock + Sync {}

impl<P: GetItem + WriteItems + SendMessage + Notify + Clock + Sync> Ports for P {}

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
        // It only pointed at a record; whatever is due for that record, `watch` does.
        tracing::warn!(message_id = %message.id, "a wake-up failed too often; its job is left to watch.");
        return Ok(());
    }
    if is_recorded(ports, message).await? {
        return Ok(());
    }
    let (code, sentence, transient) = judge(queue, message);
    let letter = dead::keep(ports, source(queue), message, code, &sentence, ports.now().as_millisecond()).await?;
    if transient && letter.redrives < REDRIVES_MAX && letter.status == DeadStatus::Open {
        return send_again(ports, letter).await;
    }
    dead::tell(ports, letter.id).await
}

/// Whether the message's job or action is recorded: then nothing is lost.
async fn is_recorded<P: Ports>(ports: &P, message: &ReceivedMessage) -> Result<bool, Failure> {
    if ports.get_item(&key::action(&message.id)).await?.is_some() {
        return Ok(true);
    }
    let by_message = repository::load(ports, JobId::of_message(&message.id)).await?;
    if by_message.is_some() {
        return Ok(true);
    }
    let Ok(message::Message::Submit(request)) = message::parse(&message.body) else { return Ok(false) };
    let Ok(Some(chosen)) = message::chosen_job_id(&request) else { return Ok(false) };
    let recorded = repository::load(ports, chosen).await?.is_some_and(|loaded| loaded.job.message == message.id);
    let duplicate = ports.get_item(&key::duplicate(chosen, &message.id)).await?.is_some();
    Ok(recorded || duplicate)
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
        _ => QueueKind::Submissions,
    }
}

/// Sends a message through again by way of its record. The record says so before the message is sent, and stays the
/// one place where the message is if that gets lost: a person finds it there.
async fn send_again<P: Ports>(ports: &P, letter: DeadLetter) -> Result<(), Failure> {
    let Some((current, version)) = dead::load(ports, letter.id).await? else { return Ok(()) };
    let next = DeadLetter { status: DeadStatus::Redriven, redrives: current.redrives + 1, ..current };
    ports.write_items(&[Write::Put { item: next.item(), expect: Expect::Version(version) }]).await?;
    let body = repository::json(&Internal::Redrive { dead_letter_id: letter.id });
    ports
        .send_message(QueueKind::Internal, &body, REDRIVE_DELAY_SECONDS)
        .await
        .map(drop)
        .map_err(Failure::call("SendMessage"))
}
