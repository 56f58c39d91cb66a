//! `requeue`: Batch's events move jobs on, close attempts exactly once, and bring back what failed or lost its host.
//!
//! The steps are in [`osprey_pipeline::apply`], since `watch` takes the same ones for jobs whose events never came.

use osprey_model::event::{BatchEvent, JOB_STATE_CHANGE};
use osprey_model::id::MessageId;
use osprey_model::reason::ReasonCode;
use osprey_pipeline::apply::{self, Applied, Source};
use osprey_pipeline::context::Context;
use osprey_pipeline::dead;
use osprey_pipeline::driver::guard;
use osprey_pipeline::failure::{Disposition, Failure};
use osprey_ports::{QueueKind, ReceivedMessage};

/// What the function calls.
pub trait Ports: apply::Ports {}

impl<P: apply::Ports> Ports for P {}

/// Handles a batch of events, one after the other. Returns the ids of those that must come again.
pub async fn handle<P: Ports>(ctx: &Context<'_>, ports: &P, messages: &[ReceivedMessage]) -> Vec<MessageId> {
    let mut failed = Vec::new();
    for message in messages {
        if !one(ctx, ports, message).await {
            failed.push(message.id.clone());
        }
    }
    failed
}

async fn one<P: Ports>(ctx: &Context<'_>, ports: &P, message: &ReceivedMessage) -> bool {
    let failure = match guard(step(ctx, ports, message)).await {
        Ok(Ok(())) => return true,
        Ok(Err(failure)) => failure,
        Err(panicked) => {
            tracing::error!(message_id = %message.id, error = %panicked, "an event broke its handler.");
            return false;
        }
    };
    tracing::warn!(message_id = %message.id, error = failure.story(), "an event could not be handled.");
    failure.disposition() == Disposition::DeadLetter
        && keep(ports, message, ReasonCode::Broken, &failure.story()).await.is_ok()
}

async fn step<P: Ports>(ctx: &Context<'_>, ports: &P, message: &ReceivedMessage) -> Result<(), Failure> {
    let event = match read(&message.body) {
        Ok(Some(event)) => event,
        Ok(None) => return Ok(()),
        Err((code, sentence)) => return keep(ports, message, code, &sentence).await,
    };
    let applied = apply::apply(ctx, ports, &event.detail, Source::Event).await?;
    if applied != Applied::Nothing {
        let (batch_job_id, status) = (&event.detail.job_id, event.detail.status.as_str());
        tracing::debug!(batch_job_id, status, ?applied, "an event was applied.");
    }
    Ok(())
}

/// Reads an event; `None` for one of another kind, which is passed over.
fn read(body: &str) -> Result<Option<BatchEvent>, (ReasonCode, String)> {
    let event = serde_json::from_str::<BatchEvent>(body);
    let detail_type = match &event {
        Ok(event) => event.detail_type.clone(),
        Err(_) => {
            let kind = serde_json::from_str::<Kind>(body);
            kind.map_err(|fault| (ReasonCode::NotJson, format!("not an event: {fault}")))?.detail_type
        }
    };
    if detail_type != JOB_STATE_CHANGE {
        tracing::info!(detail_type, "an event of another kind was passed over.");
        return Ok(None);
    }
    event.map(Some).map_err(|fault| (ReasonCode::WrongType, format!("not a job state change: {fault}")))
}

/// The kind of an event, before anything else is expected of it.
#[derive(serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Kind {
    detail_type: String,
}

async fn keep<P: Ports>(ports: &P, message: &ReceivedMessage, code: ReasonCode, sentence: &str) -> Result<(), Failure> {
    dead::keep(ports, QueueKind::Events, message, code, sentence, ports.now().as_millisecond()).await.map(drop)
}
