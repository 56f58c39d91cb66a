//! The runtime loop of a function.

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use osprey_model::id::MessageId;
use osprey_pipeline::context::Context;
use osprey_ports::{QueueKind, ReceivedMessage};
use serde_json::Value;

use crate::config::Config;
use crate::event::{Arrived, batch_response};
use crate::world::{Unconnected, connect};

/// Runs a function that is fed by queues. `handle` gets the messages of one queue at a time and returns the ids of
/// those that must come again.
///
/// # Errors
/// When the configuration is wrong, or the runtime ends.
pub async fn run_queue<H>(handle: H) -> Result<(), Error>
where
    H: AsyncFn(&Context<'_>, &Unconnected, QueueKind, &[ReceivedMessage]) -> Vec<MessageId>,
{
    start_logs();
    let (config, world) = start()?;
    let (config, world, handle) = (&config, &world, &handle);
    lambda_runtime::run(service_fn(async |event: LambdaEvent<SqsEvent>| {
        let context = Context { policy: &config.policy, pools: &config.pools, settings: &config.settings };
        let arrived = Arrived::of(event.payload);
        let mut failed = arrived.strangers;
        for queue in QueueKind::ALL {
            let messages: Vec<ReceivedMessage> = arrived
                .messages
                .iter()
                .filter(|(from, _)| *from == queue)
                .map(|(_, message)| message.clone())
                .collect();
            if !messages.is_empty() {
                failed.extend(handle(&context, world, queue, &messages).await);
            }
        }
        Ok::<SqsBatchResponse, Error>(batch_response(failed))
    }))
    .await
}

/// Runs a function that is called by a schedule.
///
/// # Errors
/// When the configuration is wrong, or the runtime ends.
pub async fn run_schedule<H>(handle: H) -> Result<(), Error>
where
    H: AsyncFn(&Context<'_>, &Unconnected),
{
    start_logs();
    let (config, world) = start()?;
    let (config, world, handle) = (&config, &world, &handle);
    lambda_runtime::run(service_fn(async |_event: LambdaEvent<Value>| {
        let context = Context { policy: &config.policy, pools: &config.pools, settings: &config.settings };
        handle(&context, world).await;
        Ok::<(), Error>(())
    }))
    .await
}

fn start() -> Result<(Config, Unconnected), Error> {
    let config = Config::read(|name| std::env::var(name).ok())?;
    Ok((config, connect()?))
}

fn start_logs() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("OSPREY_LOG").unwrap_or_else(|_| "info".into());
    let logs = tracing_subscriber::fmt().json().with_env_filter(filter).with_target(false).without_time();
    // A second call would be a second function in one process, which Lambda never makes.
    let _ = logs.try_init();
}
