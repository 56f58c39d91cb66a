//! The messages of the wake queue.

use osprey_model::id::MessageId;
use osprey_pipeline::context::Context;
use osprey_pipeline::driver::guard;
use osprey_pipeline::failure::Failure;
use osprey_pipeline::guard::Guard;
use osprey_pipeline::wake::{self, WakePool};
use osprey_ports::ReceivedMessage;

use crate::{Ports, cycle};

/// Cycles that a wake-up runs when others were faster each time; then it is left to the next wake-up.
const TRIES_MAX: u32 = 3;

/// Handles wake-ups, one after the other. Returns the ids of those that must come again.
pub async fn handle<P: Ports>(ctx: &Context<'_>, ports: &P, messages: &[ReceivedMessage]) -> Vec<MessageId> {
    let mut failed = Vec::new();
    for message in messages {
        match guard(step(ctx, ports, message)).await {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => {
                tracing::warn!(message_id = %message.id, error = failure.story(), "a cycle failed.");
                failed.push(message.id.clone());
            }
            Err(panicked) => {
                tracing::error!(message_id = %message.id, error = %panicked, "a cycle broke.");
                failed.push(message.id.clone());
            }
        }
    }
    failed
}

/// Whether a look at the pool has seen what a wake-up was about. One whose clock was ahead says nothing: it would keep
/// everybody from looking until then.
fn is_answered(looked_at: i64, due_at: i64, now: i64) -> bool {
    looked_at > due_at && looked_at <= now
}

async fn step<P: Ports>(ctx: &Context<'_>, ports: &P, message: &ReceivedMessage) -> Result<(), Failure> {
    let Ok(wake) = serde_json::from_str::<WakePool>(&message.body) else {
        // Only Osprey writes to this queue; there is nothing to do, and nothing is lost.
        tracing::error!(message_id = %message.id, "a message of the wake queue is no wake-up.");
        return Ok(());
    };
    let Some(pool) = ctx.pool(&wake.pool) else {
        tracing::warn!(pool = %wake.pool, "a wake-up is for a pool that isn't there any more.");
        return Ok(());
    };
    for _ in 0..TRIES_MAX {
        let before = Guard::read(ports, &pool.name).await?;
        if is_answered(before.state().looked_at, wake.due_at(message), ports.now().as_millisecond()) {
            return Ok(());
        }
        match cycle::run(ctx, ports, pool, before).await? {
            cycle::End::Done => return Ok(()),
            cycle::End::Again { delay_seconds } => {
                wake::pool(ports, &pool.name, delay_seconds).await;
                return Ok(());
            }
            cycle::End::Superseded => {}
        }
    }
    wake::pool(ports, &pool.name, 1).await;
    Ok(())
}
