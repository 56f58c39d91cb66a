//! ReceiveMessage, DeleteMessage and ChangeMessageVisibility, and the last two for several messages.

use std::time::{Duration, Instant};

use osprey_local::queues::VISIBILITY_SECONDS_MAX;
use osprey_local::{Delivery, Receipt};
use osprey_ports::CallError;
use serde_json::{Map, Value, json};

use super::queue::{self, Queue};
use super::{Input, Members as _, batch, bounded, digest};
use crate::failure::{Failure, of_queue};
use crate::service::Service;

/// How often a queue is looked at while somebody waits for a message.
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub fn receive(service: &Service, input: &Input) -> Result<Value, Failure> {
    let queue = queue::of(service, input)?;
    let most = input.number("MaxNumberOfMessages").unwrap_or(1);
    let most = bounded(most, "MaxNumberOfMessages", 1, 10, "Must be between 1 and 10, if provided.")?;
    let wait = match input.number("WaitTimeSeconds") {
        Some(given) => bounded(given, "WaitTimeSeconds", 0, 20, "Must be >= 0 and <= 20, if provided.")?,
        None => queue.number("ReceiveMessageWaitTimeSeconds", 0),
    };
    let visibility = match input.number("VisibilityTimeout") {
        Some(given) => visibility(given)?,
        None => queue.number("VisibilityTimeout", 30),
    };
    let until = Instant::now() + Duration::from_secs(wait.into());
    let place = queue.place();
    loop {
        let most = usize::try_from(most).unwrap_or(1);
        let deliveries = service.queues().receive_from(&place, most, visibility).map_err(of_queue)?;
        if !deliveries.is_empty() || Instant::now() >= until || service.is_stopping() {
            let messages: Vec<Value> = deliveries.iter().map(|delivery| seen(service, input, delivery)).collect();
            return Ok(queue::listed("Messages", json!(messages), None));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn visibility(given: i64) -> Result<u32, Failure> {
    bounded(given, "VisibilityTimeout", 0, VISIBILITY_SECONDS_MAX, "Must be >= 0 and <= 43200, if provided.")
}

/// A message as whoever asked sees it.
fn seen(service: &Service, input: &Input, delivery: &Delivery) -> Value {
    let extras: Map<String, Value> =
        delivery.extras.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let mut message = Map::new();
    let mut put = |name: &str, value: Value| message.insert(name.to_owned(), value);
    put("MessageId", json!(delivery.message.id));
    put("ReceiptHandle", json!(delivery.receipt.as_str()));
    put("MD5OfBody", json!(digest::of_text(&delivery.message.body)));
    put("Body", json!(delivery.message.body));
    let system = system_attributes(service, input, delivery, &extras);
    if !system.is_empty() {
        put("Attributes", Value::Object(system));
    }
    let mut attributes = extras.get("attributes").and_then(Value::as_object).cloned().unwrap_or_default();
    let asked = input.texts("MessageAttributeNames");
    attributes.retain(|name, _| asked.iter().any(|asked| is_meant(asked, name)));
    if let Some(sum) = digest::of_attributes(&attributes) {
        put("MD5OfMessageAttributes", json!(sum));
        put("MessageAttributes", Value::Object(attributes));
    }
    Value::Object(message)
}

/// `All`, `.*`, a name, or the beginning of one followed by `.*`.
fn is_meant(asked: &str, name: &str) -> bool {
    asked == "All" || asked == name || asked.strip_suffix(".*").is_some_and(|prefix| name.starts_with(prefix))
}

fn system_attributes(
    service: &Service,
    input: &Input,
    delivery: &Delivery,
    extras: &Map<String, Value>,
) -> Map<String, Value> {
    let message = &delivery.message;
    let trace = extras.get("system").and_then(|system| system.get("AWSTraceHeader")?.get("StringValue"));
    let all = [
        ("SenderId", Some(json!(message.sender.principal))),
        ("SentTimestamp", Some(json!(message.sent_at.as_millisecond().to_string()))),
        ("ApproximateReceiveCount", Some(json!(message.receive_count.to_string()))),
        ("ApproximateFirstReceiveTimestamp", Some(json!(delivery.first_received_at.as_millisecond().to_string()))),
        ("DeadLetterQueueSourceArn", delivery.source.as_ref().map(|name| json!(service.queue_arn(name)))),
        ("MessageGroupId", extras.get("group").cloned()),
        ("AWSTraceHeader", trace.cloned()),
    ];
    let mut asked = input.texts("MessageSystemAttributeNames");
    asked.extend(input.texts("AttributeNames"));
    let is_asked = |name: &str| asked.contains(&"All") || asked.contains(&name);
    let known = all.into_iter().filter(|(name, _)| is_asked(name));
    known.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

pub fn delete(service: &Service, input: &Input) -> Result<Value, Failure> {
    let queue = queue::of(service, input)?;
    delete_one(service, &queue, input)
}

pub fn delete_many(service: &Service, input: &Input) -> Result<Value, Failure> {
    let queue = queue::of(service, input)?;
    let entries = batch::entries(input, "DeleteMessageBatchRequestEntry")?;
    Ok(batch::each(&entries, |entry| delete_one(service, &queue, entry)))
}

fn delete_one(service: &Service, queue: &Queue, input: &Input) -> Result<Value, Failure> {
    let handle = input.text("ReceiptHandle").unwrap_or_default();
    match service.queues().delete_from(&queue.name, &Receipt::new(handle)) {
        Ok(_) => Ok(json!({})),
        Err(CallError::Refused(_)) => Err(no_receipt(handle)),
        Err(other) => Err(of_queue(other)),
    }
}

pub fn hide(service: &Service, input: &Input) -> Result<Value, Failure> {
    let queue = queue::of(service, input)?;
    hide_one(service, &queue, input)
}

pub fn hide_many(service: &Service, input: &Input) -> Result<Value, Failure> {
    let queue = queue::of(service, input)?;
    let entries = batch::entries(input, "ChangeMessageVisibilityBatchRequestEntry")?;
    Ok(batch::each(&entries, |entry| hide_one(service, &queue, entry)))
}

fn hide_one(service: &Service, queue: &Queue, input: &Input) -> Result<Value, Failure> {
    let handle = input.text("ReceiptHandle").unwrap_or_default();
    let seconds = visibility(input.number("VisibilityTimeout").unwrap_or_default())?;
    let receipt = Receipt::new(handle);
    let is_there = service.queues().holds(&queue.name, &receipt).map_err(|error| match error {
        CallError::Refused(_) => no_receipt(handle),
        other => of_queue(other),
    })?;
    match service.queues().hide_in(&queue.name, &receipt, seconds) {
        Ok(()) => Ok(json!({})),
        Err(CallError::Refused(_)) if is_there => {
            Err(Failure::new(400, "MessageNotInflight", "The specified message isn't in flight."))
        }
        Err(CallError::Refused(_)) => Err(Failure::parameter(format!(
            "Value {handle} for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available \
             for visibility timeout change."
        ))),
        Err(other) => Err(of_queue(other)),
    }
}

fn no_receipt(handle: &str) -> Failure {
    let message = format!("The input receipt handle \"{handle}\" is not a valid receipt handle.");
    Failure::new(400, "ReceiptHandleIsInvalid", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_asked_for_by_name_or_beginning() {
        for (asked, name, want) in [
            ("All", "a", true),
            (".*", "a", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("a.*", "a.b", true),
            ("b.*", "a", false),
        ] {
            assert_eq!(is_meant(asked, name), want, "{asked} {name}");
        }
    }
}
