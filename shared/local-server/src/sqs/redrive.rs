//! StartMessageMoveTask and what goes with it. A move is done when the call returns, so there is never one to cancel.

use serde_json::{Map, Value, json};

use super::queue::{self, Queue};
use super::{Input, Members as _};
use crate::failure::{Failure, of_queue};
use crate::service::Service;

/// Where finished moves are kept, by the queue they were from.
const KIND: &str = "message-move-tasks";
/// Moves that are remembered.
const KEPT_MAX: usize = 10;

pub fn start(service: &Service, input: &Input) -> Result<Value, Failure> {
    let source = source(service, input)?;
    let arn = service.queue_arn(&source.name);
    let sources = sources_of(service, &source)?;
    if sources.is_empty() {
        return Err(Failure::parameter("Source queue must be configured as a Dead Letter Queue."));
    }
    let destination = match input.text("DestinationArn") {
        Some(arn) => Some(queue::of_arn(service, arn)?.ok_or_else(|| missing("DestinationArn"))?),
        None => None,
    };
    if destination.as_ref().is_some_and(|destination| destination.name == source.name) {
        return Err(Failure::parameter("Source queue and destination queue must be different."));
    }
    let rate = input.number("MaxNumberOfMessagesPerSecond");
    if rate.is_some_and(|rate| !(1..=500).contains(&rate)) {
        return Err(Failure::parameter("MaxNumberOfMessagesPerSecond must be between 1 and 500."));
    }
    let destination = destination.as_ref().map(|queue| queue.name.as_str());
    let started = service.now_ms();
    let moved = service.queues().redrive(&source.name, destination).map_err(of_queue)?;
    let handle = uuid::Uuid::new_v4().hyphenated().to_string();
    let mut task = Map::from_iter([
        ("TaskHandle".to_owned(), json!(handle)),
        ("Status".to_owned(), json!("COMPLETED")),
        ("SourceArn".to_owned(), json!(arn)),
        ("ApproximateNumberOfMessagesMoved".to_owned(), json!(moved)),
        ("ApproximateNumberOfMessagesToMove".to_owned(), json!(moved)),
        ("StartedTimestamp".to_owned(), json!(started)),
    ]);
    if let Some(name) = destination {
        task.insert("DestinationArn".to_owned(), json!(service.queue_arn(name)));
    }
    if let Some(rate) = rate {
        task.insert("MaxNumberOfMessagesPerSecond".to_owned(), json!(rate));
    }
    remember(service, &source.name, Value::Object(task))?;
    Ok(json!({ "TaskHandle": handle }))
}

fn remember(service: &Service, name: &str, task: Value) -> Result<(), Failure> {
    let mut tasks = vec![task];
    tasks.extend(remembered(service, name)?);
    tasks.truncate(KEPT_MAX);
    service.documents().put(KIND, name, &json!(tasks).to_string()).map_err(of_queue)
}

fn remembered(service: &Service, name: &str) -> Result<Vec<Value>, Failure> {
    let text = service.documents().get(KIND, name).map_err(of_queue)?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

pub fn list(service: &Service, input: &Input) -> Result<Value, Failure> {
    let source = source(service, input)?;
    let most = input.number("MaxResults").unwrap_or(1);
    if !(1..=10).contains(&most) {
        return Err(Failure::parameter(format!(
            "Value {most} for parameter MaxResults is invalid. Reason: Must be between 1 and 10, if provided."
        )));
    }
    let mut tasks = remembered(service, &source.name)?;
    tasks.truncate(usize::try_from(most).unwrap_or(1));
    for task in tasks.iter_mut().filter_map(Value::as_object_mut) {
        // Only a move under way has a handle.
        task.remove("TaskHandle");
    }
    Ok(queue::listed("Results", json!(tasks), None))
}

pub fn cancel(_: &Service, _: &Input) -> Result<Value, Failure> {
    Err(Failure::new(400, "ResourceNotFoundException", "Task does not exist."))
}

pub fn sources(service: &Service, input: &Input) -> Result<Value, Failure> {
    let queue = queue::of(service, input)?;
    let (part, next) = queue::paged(sources_of(service, &queue)?, input)?;
    let urls: Vec<String> = part.iter().map(|name| queue::url_of(service, name)).collect();
    // This list keeps its name in lower case, as in the API model, and is there when it is empty.
    let mut answer = Map::from_iter([("queueUrls".to_owned(), json!(urls))]);
    answer.extend(next.map(|next| ("NextToken".to_owned(), json!(next))));
    Ok(Value::Object(answer))
}

/// Names of the queues whose dead-letter queue this is.
fn sources_of(service: &Service, dead: &Queue) -> Result<Vec<String>, Failure> {
    let all = queue::all(service)?.into_iter();
    let is_source = |queue: &Queue| queue.dead_letters().is_some_and(|(name, _)| name == dead.name);
    Ok(all.filter(is_source).map(|queue| queue.name).collect())
}

fn source(service: &Service, input: &Input) -> Result<Queue, Failure> {
    let arn = input.text("SourceArn").unwrap_or_default();
    queue::of_arn(service, arn)?.ok_or_else(|| missing("SourceArn"))
}

fn missing(parameter: &str) -> Failure {
    let message = format!("The resource that you specified for the {parameter} parameter doesn't exist.");
    Failure::new(404, "ResourceNotFoundException", message)
}
