//! Messages of the internal queue: a job's time has come, or a dead letter is sent through again.

use jiff::Timestamp;
use osprey_model::event::BatchEvent;
use osprey_model::id::JobId;
use osprey_pipeline::context::Context;
use osprey_pipeline::dead::{DeadKind, DeadStatus};
use osprey_pipeline::failure::Failure;
use osprey_pipeline::internal::Internal;
use osprey_pipeline::{apply, dead, dispatch, key, record};
use osprey_ports::{QueueKind, ReceivedMessage};

use crate::handle::{self, Ports};

/// Handles a message that Osprey wrote.
pub async fn internal<P: Ports>(ctx: &Context<'_>, ports: &P, message: &ReceivedMessage) -> Result<(), Failure> {
    match serde_json::from_str(&message.body) {
        Ok(Internal::Dispatch { job_id }) => dispatch::dispatch(ctx, ports, job_id).await,
        Ok(Internal::Redrive { dead_letter_id }) => redrive(ctx, ports, dead_letter_id).await,
        Err(fault) => Err(Failure::Corrupt { item: format!("message {}", message.id), fault: fault.to_string() }),
    }
}

/// Handles the message of a dead letter once more, as the message that it was: with its number, so with its job id,
/// and with the sender that the queue authenticated when it came.
async fn redrive<P: Ports>(ctx: &Context<'_>, ports: &P, id: JobId) -> Result<(), Failure> {
    let Some((letter, _)) = dead::load(ports, id).await? else { return Ok(()) };
    let DeadKind::Message { queue, receive_count, .. } = &letter.kind else { return Ok(()) };
    if letter.status != DeadStatus::Redriven {
        return Ok(());
    }
    let Some(record) = record::read(ports, key::dead_partition(id)).await? else { return Ok(()) };
    let message = ReceivedMessage {
        id: record.message,
        body: record.body,
        sender: record.sender,
        sent_at: Timestamp::from_millisecond(record.sent_at).unwrap_or_default(),
        receive_count: receive_count.saturating_add(1),
    };
    if *queue == QueueKind::Events.name() || *queue == QueueKind::EventsDead.name() {
        return event(ctx, ports, &message).await;
    }
    handle::submission(ctx, ports, QueueKind::Submissions, &message).await
}

async fn event<P: Ports>(ctx: &Context<'_>, ports: &P, message: &ReceivedMessage) -> Result<(), Failure> {
    let Ok(event) = serde_json::from_str::<BatchEvent>(&message.body) else {
        let now = ports.now().as_millisecond();
        let code = osprey_model::reason::ReasonCode::NotJson;
        return dead::keep(ports, QueueKind::Events, message, code, "not an event of Batch", now).await.map(drop);
    };
    apply::apply(ctx, ports, &event.detail, apply::Source::Event).await.map(drop)
}
