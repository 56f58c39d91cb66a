//! The batch of messages.

use osprey_model::id::MessageId;
use osprey_model::message::{self, Message};
use osprey_model::reason::ReasonCode;
use osprey_pipeline::context::Context;
use osprey_pipeline::driver::guard;
use osprey_pipeline::failure::{Disposition, Failure};
use osprey_pipeline::{apply, dead, dispatch};
use osprey_ports::{DescribeJobs, QueueKind, ReceivedMessage};

use crate::{action, intake, wake};

/// What the function calls.
pub trait Ports: dispatch::Ports + apply::Ports + DescribeJobs {}

impl<P: dispatch::Ports + apply::Ports + DescribeJobs> Ports for P {}

/// Handles a batch of messages, one after the other: in the order of the batch, and politely to Batch's rate limit.
/// Returns the ids of those that must come again.
pub async fn handle<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    queue: QueueKind,
    messages: &[ReceivedMessage],
) -> Vec<MessageId> {
    let mut failed = Vec::new();
    for message in messages {
        if !one(ctx, ports, queue, message).await {
            failed.push(message.id.clone());
        }
    }
    failed
}

/// Handles one message; `false` when it must come again.
async fn one<P: Ports>(ctx: &Context<'_>, ports: &P, queue: QueueKind, message: &ReceivedMessage) -> bool {
    let failure = match guard(step(ctx, ports, queue, message)).await {
        Ok(Ok(())) => return true,
        Ok(Err(failure)) => failure,
        Err(panicked) => {
            tracing::error!(message_id = %message.id, error = %panicked, "a message broke its handler.");
            return false;
        }
    };
    tracing::warn!(message_id = %message.id, error = failure.story(), "a message could not be handled.");
    failure.disposition() == Disposition::DeadLetter
        && dead::keep(ports, queue, message, ReasonCode::Broken, &failure.story(), ports.now().as_millisecond())
            .await
            .is_ok()
}

async fn step<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    queue: QueueKind,
    message: &ReceivedMessage,
) -> Result<(), Failure> {
    if queue == QueueKind::Internal {
        return wake::internal(ctx, ports, message).await;
    }
    submission(ctx, ports, queue, message).await
}

/// A message of the submission queue, or one that was redriven.
pub async fn submission<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    queue: QueueKind,
    message: &ReceivedMessage,
) -> Result<(), Failure> {
    match message::parse(&message.body) {
        Ok(Message::Submit(request)) => intake::job(ctx, ports, message, &request).await,
        Ok(Message::Action(wanted)) => action::act(ctx, ports, message, &wanted).await,
        Err(rejection) if rejection.malformed => {
            let now = ports.now().as_millisecond();
            dead::keep(ports, queue, message, rejection.code, &rejection.message, now).await.map(drop)
        }
        Err(rejection) => intake::refuse(ctx, ports, message, rejection.into()).await,
    }
}
