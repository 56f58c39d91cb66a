//! SendMessage and SendMessageBatch.

use osprey_local::Outgoing;
use osprey_local::queues::{DELAY_SECONDS_MAX, MESSAGE_BYTES_MAX};
use serde_json::{Map, Value, json};

use super::queue::{self, Queue};
use super::{Input, Members as _, batch, bounded, digest};
use crate::encoding::base64_decoded;
use crate::failure::{Failure, of_queue};
use crate::service::Service;

/// Most attributes of a message.
const ATTRIBUTES_MAX: usize = 10;

pub fn send(service: &Service, input: &Input) -> Result<Value, Failure> {
    let queue = queue::of(service, input)?;
    one(service, &queue, input)
}

pub fn send_many(service: &Service, input: &Input) -> Result<Value, Failure> {
    let queue = queue::of(service, input)?;
    let entries = batch::entries(input, "SendMessageBatchRequestEntry")?;
    let bytes: usize = entries.iter().map(bytes_of).sum();
    if bytes > MESSAGE_BYTES_MAX {
        let message =
            format!("Batch requests cannot be longer than {MESSAGE_BYTES_MAX} bytes. You have sent {bytes} bytes.");
        return Err(Failure::new(400, "BatchRequestTooLong", message));
    }
    Ok(batch::each(&entries, |entry| one(service, &queue, entry)))
}

fn one(service: &Service, queue: &Queue, input: &Input) -> Result<Value, Failure> {
    let body = input.text("MessageBody").unwrap_or_default();
    check_body(queue, input, body)?;
    let attributes = object(input, "MessageAttributes");
    let system = object(input, "MessageSystemAttributes");
    check_attributes(&attributes)?;
    check_system(&system)?;
    let reason = format!("DelaySeconds must be >= 0 and <= {DELAY_SECONDS_MAX}.");
    let delay_seconds = match input.number("DelaySeconds") {
        Some(given) => bounded(given, "DelaySeconds", 0, DELAY_SECONDS_MAX, &reason)?,
        None => queue.number("DelaySeconds", 0),
    };
    let extras = extras(input, &attributes, &system)?;
    let outgoing = Outgoing { body, delay_seconds, extras: extras.as_deref() };
    let id = service.queues().send_to(&queue.name, &outgoing).map_err(of_queue)?;
    let mut answer = Map::new();
    let mut put = |name: &str, value: String| answer.insert(name.to_owned(), json!(value));
    put("MessageId", id.as_str().to_owned());
    put("MD5OfMessageBody", digest::of_text(body));
    if let Some(sum) = digest::of_attributes(&attributes) {
        put("MD5OfMessageAttributes", sum);
    }
    if let Some(sum) = digest::of_attributes(&system) {
        put("MD5OfMessageSystemAttributes", sum);
    }
    Ok(Value::Object(answer))
}

fn object(input: &Input, name: &str) -> Map<String, Value> {
    input.get(name).and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Bytes of a message: text, and names, types and values of its attributes.
fn bytes_of(input: &Input) -> usize {
    let attribute = |(name, value): (&String, &Value)| {
        let member = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        let binary = base64_decoded(member("BinaryValue")).unwrap_or_default().len();
        name.len() + member("DataType").len() + member("StringValue").len() + binary
    };
    input.text("MessageBody").unwrap_or_default().len()
        + object(input, "MessageAttributes").iter().map(attribute).sum::<usize>()
}

fn check_body(queue: &Queue, input: &Input, body: &str) -> Result<(), Failure> {
    if body.is_empty() {
        let message = "The request must contain the parameter MessageBody.";
        return Err(Failure::new(400, "MissingRequiredParameterException", message));
    }
    let limit = queue.number("MaximumMessageSize", u32::try_from(MESSAGE_BYTES_MAX).unwrap_or(u32::MAX));
    if bytes_of(input) > usize::try_from(limit).unwrap_or(MESSAGE_BYTES_MAX) {
        let message =
            format!("One or more parameters are invalid. Reason: Message must be shorter than {limit} bytes.");
        return Err(Failure::parameter(message));
    }
    if !body.chars().all(is_legal) {
        let message = "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 \
                       to #xFFFD | #x10000 to #x10FFFF";
        return Err(Failure::new(400, "InvalidMessageContents", message));
    }
    if let Some(id) = input.text("MessageDeduplicationId") {
        return Err(Failure::parameter(format!(
            "Value {id} for parameter MessageDeduplicationId is invalid. Reason: The request include parameter that is \
             not valid for this queue type."
        )));
    }
    let group = input.text("MessageGroupId");
    let is_group = |c: char| c.is_ascii_graphic();
    if group.is_some_and(|group| !(1..=128).contains(&group.len()) || !group.chars().all(is_group)) {
        return Err(Failure::parameter(format!(
            "Value {} for parameter MessageGroupId is invalid. Reason: MessageGroupId can only include alphanumeric and \
             punctuation characters. 1 to 128 in length.",
            group.unwrap_or_default()
        )));
    }
    Ok(())
}

fn is_legal(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

fn check_attributes(attributes: &Map<String, Value>) -> Result<(), Failure> {
    if attributes.len() > ATTRIBUTES_MAX {
        let count = attributes.len();
        let message = format!("Number of message attributes [{count}] exceeds the allowed maximum [{ATTRIBUTES_MAX}].");
        return Err(Failure::parameter(message));
    }
    attributes.iter().try_for_each(|(name, value)| check_attribute(name, value))
}

fn check_attribute(name: &str, value: &Value) -> Result<(), Failure> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = (1..=256).contains(&name.len())
        && name.chars().all(is_word)
        && !name.starts_with('.')
        && !name.ends_with('.')
        && !name.contains("..");
    let lower = name.to_ascii_lowercase();
    if !is_name || lower.starts_with("aws.") || lower.starts_with("amazon.") {
        return Err(Failure::parameter(format!("The message attribute name '{name}' is invalid.")));
    }
    let member = |key: &str| value.get(key).and_then(Value::as_str);
    let kind = member("DataType").unwrap_or_default();
    let content = match kind.split('.').next() {
        Some("String" | "Number") => member("StringValue"),
        Some("Binary") => member("BinaryValue"),
        _ => {
            return Err(Failure::parameter(format!(
                "The message attribute '{name}' has an invalid message attribute type, the set of supported type prefixes \
                 is Binary, Number, and String."
            )));
        }
    };
    match content {
        None | Some("") => Err(Failure::parameter(format!(
            "The message attribute '{name}' must contain a non-empty message attribute value for message attribute type \
             '{kind}'."
        ))),
        Some(text) if kind.starts_with("Number") && text.parse::<f64>().is_err() => {
            Err(Failure::parameter(format!("Can't cast the value of message attribute '{name}' to a number.")))
        }
        Some(_) => Ok(()),
    }
}

fn check_system(attributes: &Map<String, Value>) -> Result<(), Failure> {
    match attributes.keys().find(|name| *name != "AWSTraceHeader") {
        Some(name) => Err(Failure::parameter(format!("Message system attribute name '{name}' is invalid."))),
        None => Ok(()),
    }
}

/// What is kept beside the text; nothing when there is nothing.
fn extras(
    input: &Input,
    attributes: &Map<String, Value>,
    system: &Map<String, Value>,
) -> Result<Option<String>, Failure> {
    let mut kept = Map::new();
    if !attributes.is_empty() {
        kept.insert("attributes".to_owned(), json!(attributes));
    }
    if !system.is_empty() {
        kept.insert("system".to_owned(), json!(system));
    }
    if let Some(group) = input.text("MessageGroupId") {
        kept.insert("group".to_owned(), json!(group));
    }
    Ok(if kept.is_empty() { None } else { Some(serde_json::to_string(&kept)?) })
}
