//! Messages of the internal queue: a job's time has come, or a dead letter is sent through again.

use osprey_model::event::BatchEvent;
use osprey_model::id::JobId;
use osprey_pipeline::context::Context;
use osprey_pipeline::dead::{DeadKind, DeadStatus};
use osprey_pipeline::failure::{Disposition, Failure};
use osprey_pipeline::internal::Internal;
use osprey_pipeline::{apply, dead, dispatch, redrive};
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
    let DeadKind::Message { queue, .. } = &letter.kind else { return Ok(()) };
    if !letter.is_under_way() {
        // It was closed while it went through.
        let closed_too_early = letter.status == DeadStatus::Discarded && redrive::is_elsewhere(ports, &letter).await?;
        return if closed_too_early { redrive::arrived(ports, id).await } else { Ok(()) };
    }
    let Some(message) = redrive::kept(ports, &letter).await? else { return Ok(()) };
    match through(ctx, ports, queue, &message).await {
        Ok(true) => redrive::arrived(ports, id).await,
        Ok(false) => Ok(()),
        // Coming again can't help: it is the same dead letter as before, and not one more.
        Err(failure) if failure.disposition() == Disposition::DeadLetter => {
            tracing::warn!(dead_letter_id = %id, error = failure.story(), "a redrive could not be handled.");
            redrive::open(ports, id, ports.now().as_millisecond()).await
        }
        Err(failure) => Err(failure),
    }
}

/// Handles the message of a dead letter; `true` when what came of it is recorded, `false` when it was kept once more.
async fn through<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    queue: &str,
    message: &ReceivedMessage,
) -> Result<bool, Failure> {
    if queue == QueueKind::Events.name() || queue == QueueKind::EventsDead.name() {
        return event(ctx, ports, message).await;
    }
    if queue == QueueKind::Internal.name() || queue == QueueKind::InternalDead.name() {
        // It pointed at a job; a pointer to another dead letter has nothing to add to that one.
        if let Ok(Internal::Dispatch { job_id }) = serde_json::from_str(&message.body) {
            dispatch::dispatch(ctx, ports, job_id).await?;
        }
        return Ok(true);
    }
    handle::submission(ctx, ports, QueueKind::Submissions, message).await?;
    redrive::is_recorded(ports, message).await
}

async fn event<P: Ports>(ctx: &Context<'_>, ports: &P, message: &ReceivedMessage) -> Result<bool, Failure> {
    let Ok(event) = serde_json::from_str::<BatchEvent>(&message.body) else {
        let now = ports.now().as_millisecond();
        let code = osprey_model::reason::ReasonCode::NotJson;
        dead::keep(ports, QueueKind::Events, message, code, "not an event of Batch", now).await?;
        return Ok(false);
    };
    apply::apply(ctx, ports, &event.detail, apply::Source::Event).await?;
    Ok(true)
}
