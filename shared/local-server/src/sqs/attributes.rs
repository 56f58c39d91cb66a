//! GetQueueAttributes and SetQueueAttributes.

use std::collections::BTreeMap;

use osprey_local::queues::{DELAY_SECONDS_MAX, VISIBILITY_SECONDS_MAX};
use serde_json::{Value, json};

use super::queue::{self, Queue};
use super::{Input, Members as _};
use crate::failure::{Failure, Protocol, of_queue};
use crate::service::Service;

/// Attributes by name.
pub type Attributes = BTreeMap<String, String>;

/// Number attributes that can be set: default, lowest and highest.
const NUMBERS: [(&str, u32, u32, u32); 5] = [
    ("DelaySeconds", 0, 0, DELAY_SECONDS_MAX),
    ("MaximumMessageSize", 1_048_576, 1_024, 1_048_576),
    ("MessageRetentionPeriod", 345_600, 60, 1_209_600),
    ("ReceiveMessageWaitTimeSeconds", 0, 0, 20),
    ("VisibilityTimeout", 30, 0, VISIBILITY_SECONDS_MAX),
];

/// Attributes that can be set, and are kept as they are.
const TEXTS: [&str; 7] = [
    "Policy",
    "RedrivePolicy",
    "RedriveAllowPolicy",
    "KmsMasterKeyId",
    "KmsDataKeyReusePeriodSeconds",
    "SqsManagedSseEnabled",
    "FifoQueue",
];

/// Attributes that can only be asked for.
const ASKED: [&str; 10] = [
    "All",
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
    "CreatedTimestamp",
    "LastModifiedTimestamp",
    "QueueArn",
    "ContentBasedDeduplication",
    "DeduplicationScope",
    "FifoThroughputLimit",
];

pub fn get(service: &Service, input: &Input) -> Result<Value, Failure> {
    let queue = queue::of(service, input)?;
    let asked = input.texts("AttributeNames");
    if let Some(unknown) = asked.iter().find(|name| !is_known(name) && !ASKED.contains(name)) {
        return Err(unknown_attribute(unknown));
    }
    let mut all = attributes_of(service, &queue)?;
    all.retain(|name, _| asked.contains(&"All") || asked.contains(&name.as_str()));
    Ok(if all.is_empty() { json!({}) } else { json!({ "Attributes": all }) })
}

fn attributes_of(service: &Service, queue: &Queue) -> Result<Attributes, Failure> {
    let counts = service.queues().counts_of(&queue.name).map_err(of_queue)?;
    let mut all = queue.attributes.clone();
    for (name, default, ..) in NUMBERS {
        all.entry(name.to_owned()).or_insert_with(|| default.to_string());
    }
    let mut put = |name: &str, value: String| all.insert(name.to_owned(), value);
    put("ApproximateNumberOfMessages", counts.visible.to_string());
    put("ApproximateNumberOfMessagesNotVisible", counts.in_flight.to_string());
    put("ApproximateNumberOfMessagesDelayed", counts.delayed.to_string());
    put("CreatedTimestamp", queue.created_at.to_string());
    put("LastModifiedTimestamp", queue.modified_at.to_string());
    put("QueueArn", service.queue_arn(&queue.name));
    Ok(all)
}

pub fn set(service: &Service, input: &Input) -> Result<Value, Failure> {
    let mut queue = queue::of(service, input)?;
    if queue.is_of_pipeline() {
        return Err(Failure::unsupported(Protocol::Sqs, "other attributes for a queue of the pipeline"));
    }
    for (name, value) in given(service, input)? {
        // An empty policy takes it away.
        if value.is_empty() {
            queue.attributes.remove(&name);
        } else {
            queue.attributes.insert(name, value);
        }
    }
    queue.modified_at = service.now_ms() / 1_000;
    queue.save(service)?;
    Ok(json!({}))
}

/// The attributes of a request, checked.
pub fn given(service: &Service, input: &Input) -> Result<Attributes, Failure> {
    let given = input.get("Attributes").and_then(Value::as_object);
    let mut attributes = Attributes::new();
    for (name, value) in given.into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        if !is_known(name) {
            return Err(unknown_attribute(name));
        }
        check(service, name, value)?;
        attributes.insert(name.clone(), value.to_owned());
    }
    Ok(attributes)
}

fn is_known(name: &str) -> bool {
    TEXTS.contains(&name) || NUMBERS.iter().any(|(known, ..)| *known == name)
}

fn unknown_attribute(name: &str) -> Failure {
    Failure::new(400, "InvalidAttributeName", format!("Unknown Attribute {name}."))
}

fn check(service: &Service, name: &str, value: &str) -> Result<(), Failure> {
    let invalid = || Failure::new(400, "InvalidAttributeValue", format!("Invalid value for the parameter {name}."));
    if let Some((_, _, low, high)) = NUMBERS.iter().find(|(known, ..)| *known == name) {
        return match value.parse::<u32>() {
            Ok(number) if (*low..=*high).contains(&number) => Ok(()),
            _ => Err(invalid()),
        };
    }
    if name != "RedrivePolicy" || value.is_empty() {
        return Ok(());
    }
    let Some((dead, receives)) = dead_letters(value).filter(|(_, receives)| (1..=1_000).contains(receives)) else {
        let reason = "Reason: Amazon SQS can't create the redrive policy, as it's in an unsupported format.";
        let message = format!("Value {value} for parameter RedrivePolicy is invalid. {reason}");
        return Err(Failure::parameter(message));
    };
    if queue::find(service, &dead)?.is_none() {
        let message = format!(
            "Value {{\"deadLetterTargetArn\":\"{}\",\"maxReceiveCount\":\"{receives}\"}} for parameter RedrivePolicy is \
             invalid. Reason: Dead letter target does not exist.",
            service.queue_arn(&dead)
        );
        return Err(Failure::parameter(message));
    }
    Ok(())
}

/// Name of the dead-letter queue of a redrive policy, and the number of receives before it.
pub fn dead_letters(policy: &str) -> Option<(String, u32)> {
    let policy: Value = serde_json::from_str(policy).ok()?;
    let name = policy.get("deadLetterTargetArn")?.as_str()?.rsplit(':').next()?.to_owned();
    let receives = match policy.get("maxReceiveCount")? {
        Value::String(text) => text.parse().ok()?,
        number => u32::try_from(number.as_u64()?).ok()?,
    };
    Some((name, receives))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redrive_policy_is_read_with_its_number_as_text_too() {
        let policy =
            |count: &str| format!("{{\"deadLetterTargetArn\":\"arn:aws:sqs:r:1:dead\",\"maxReceiveCount\":{count}}}");
        let want = Some(("dead".to_owned(), 3));
        assert_eq!((dead_letters(&policy("3")), dead_letters(&policy("\"3\""))), (want.clone(), want));
        for wrong in ["", "{}", "[]", &policy("-1"), &policy("\"x\"")] {
            assert_eq!(dead_letters(wrong), None, "{wrong}");
        }
    }
}
