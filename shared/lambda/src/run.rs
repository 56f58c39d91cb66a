//! The runtime loop of a function.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_lambda_events::sqs::SqsEvent;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use osprey_aws::{Clients, World};
use osprey_model::id::MessageId;
use osprey_pipeline::context::Context;
use osprey_ports::{QueueKind, ReceivedMessage};
use serde_json::Value;
use tokio::sync::Mutex;
use tracing::Instrument as _;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{Config, Function};
use crate::event::{Arrived, batch_response};
use crate::live::{InForce, Live};
use crate::observe::Counts;

/// A message isn't begun with less than this left of the invocation: it may take some calls of a few seconds each.
const BEGIN: Duration = Duration::from_secs(5);
/// The length of an invocation that doesn't say how long it is.
const UNTOLD: Duration = Duration::from_secs(60);
/// Kept of an invocation to answer in: what is under way then is dropped and comes again.
const ANSWER: Duration = Duration::from_millis(500);

/// What a function is started with, once.
struct Started {
    config: Config,
    world: World,
    live: Mutex<Live>,
    counts: Counts,
}

/// Runs a function that is fed by queues. `handle` gets the messages of one queue, one at a time, and returns the ids
/// of those that must come again.
///
/// # Errors
/// When the configuration is wrong, or the runtime ends.
pub async fn run_queue<H>(function: Function, handle: H) -> Result<(), Error>
where
    H: AsyncFn(&Context<'_>, &World, QueueKind, &[ReceivedMessage]) -> Vec<MessageId>,
{
    let started = Arc::new(start(&function).await?);
    let (started, handle) = (&started, &handle);
    lambda_runtime::run(service_fn(async |event: LambdaEvent<SqsEvent>| {
        let span = span(&event.context);
        let ends = ends(event.context.deadline(), SystemTime::now());
        // On the heap: a handler's future is deep, and one type that holds them all is deeper than the compiler goes.
        let failed = Box::pin(batch(started, handle, event.payload, ends)).instrument(span).await;
        started.counts.write(&started.config.stack);
        failed.map(batch_response)
    }))
    .await
}

/// Handles the messages of an event, one after the other, while there is time.
async fn batch<H>(started: &Started, handle: &H, event: SqsEvent, ends: SystemTime) -> Result<Vec<MessageId>, Error>
where
    H: AsyncFn(&Context<'_>, &World, QueueKind, &[ReceivedMessage]) -> Vec<MessageId>,
{
    let arrived = Arrived::of(event);
    let in_force = started.in_force().await?;
    let context = in_force.context(&started.config);
    let mut failed = arrived.strangers;
    for (queue, message) in &arrived.messages {
        let left = left(ends);
        if left < BEGIN {
            tracing::warn!(metric = "InvocationsCutShort", message_id = %message.id, "too little time is left; a message comes again.");
            failed.push(message.id.clone());
            continue;
        }
        let span = tracing::info_span!("message", message_id = %message.id, received = message.receive_count);
        let work = Box::pin(handle(&context, &started.world, *queue, std::slice::from_ref(message))).instrument(span);
        match tokio::time::timeout(left.saturating_sub(ANSWER), work).await {
            Ok(again) => failed.extend(again),
            Err(_) => {
                tracing::warn!(metric = "InvocationsCutShort", message_id = %message.id, "the time is over; a message comes again.");
                failed.push(message.id.clone());
            }
        }
    }
    Ok(failed)
}

/// Runs a function that is called by a schedule.
///
/// # Errors
/// When the configuration is wrong, or the runtime ends.
pub async fn run_schedule<H>(function: Function, handle: H) -> Result<(), Error>
where
    H: AsyncFn(&Context<'_>, &World),
{
    let started = start(&function).await?;
    let (started, handle) = (&started, &handle);
    lambda_runtime::run(service_fn(async |event: LambdaEvent<Value>| {
        let span = span(&event.context);
        let time = left(ends(event.context.deadline(), SystemTime::now())).saturating_sub(ANSWER);
        let done = Box::pin(round(started, handle, time)).instrument(span).await;
        started.counts.add_zeros();
        started.counts.write(&started.config.stack);
        done
    }))
    .await
}

async fn round<H>(started: &Started, handle: &H, time: Duration) -> Result<(), Error>
where
    H: AsyncFn(&Context<'_>, &World),
{
    let in_force = started.in_force().await?;
    let context = in_force.context(&started.config);
    let work = Box::pin(handle(&context, &started.world));
    if tokio::time::timeout(time, work).await.is_err() {
        // What is due stays due, and the next round goes on.
        tracing::warn!(metric = "InvocationsCutShort", "the time is over; the rest is left to the next round.");
    }
    Ok(())
}

impl Started {
    async fn in_force(&self) -> Result<InForce, Error> {
        self.live.lock().await.get(&self.world).await.map_err(Error::from)
    }
}

impl InForce {
    fn context<'a>(&'a self, config: &'a Config) -> Context<'a> {
        Context { policy: &self.policy, pools: &self.pools, settings: &config.settings }
    }
}

/// When an invocation ends. `cargo lambda` gives every invocation the same time in 1970; one that is over as it begins
/// says nothing, and Lambda never gives one.
fn ends(deadline: SystemTime, now: SystemTime) -> SystemTime {
    if deadline > now { deadline } else { now + UNTOLD }
}

fn left(ends: SystemTime) -> Duration {
    ends.duration_since(SystemTime::now()).unwrap_or_default()
}

fn span(context: &lambda_runtime::Context) -> tracing::Span {
    let trace = context.xray_trace_id.as_deref().unwrap_or_default();
    tracing::info_span!("invocation", request_id = context.request_id, trace_id = trace)
}

async fn start(function: &Function) -> Result<Started, Error> {
    let counts = start_logs();
    let environment: BTreeMap<String, String> = std::env::vars().collect();
    let config = Config::read(function, &environment).inspect_err(|problems| {
        tracing::error!(function = function.name, %problems, "the function can't start.");
    })?;
    let world = World::new(&Clients::from_environment().await, &config.wiring);
    let live = Mutex::new(Live::new(&config, function.submits));
    Ok(Started { config, world, live, counts })
}

fn start_logs() -> Counts {
    let filter = tracing_subscriber::EnvFilter::try_from_env("OSPREY_LOG").unwrap_or_else(|_| "info".into());
    let logs = tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(true)
        .with_target(false)
        .without_time();
    let counts = Counts::default();
    // A second call would be a second function in one process, which Lambda never makes.
    let numbers = counts.clone().with_filter(filter_fn(Counts::concerns).with_max_level_hint(LevelFilter::DEBUG));
    let _ = tracing_subscriber::registry().with(logs.with_filter(filter)).with(numbers).try_init();
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invocation_that_is_over_as_it_begins_has_a_minute() {
        let now = SystemTime::now();
        assert_eq!(ends(now + BEGIN, now), now + BEGIN);
        assert_eq!(ends(SystemTime::UNIX_EPOCH + Duration::from_secs(600), now), now + UNTOLD);
    }
}
