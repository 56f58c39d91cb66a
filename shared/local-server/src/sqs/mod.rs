//! SQS's operations, in its JSON 1.0 protocol: the operation is named in the header `X-Amz-Target`.

mod attributes;
mod batch;
mod digest;
mod queue;
mod receive;
mod redrive;
mod send;

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::failure::{Failure, Protocol};
use crate::http::Call;
use crate::service::Service;
use crate::shape::Shapes;

pub use queue::ensure;

static SHAPES: LazyLock<Shapes> = LazyLock::new(|| Shapes::parse(Protocol::Sqs, include_str!("shapes.txt")));

/// A request that fits its shape.
pub(crate) type Input = Map<String, Value>;

type Handler = fn(&Service, &Input) -> Result<Value, Failure>;

/// Operations with what handles them; the shape is the name followed by `Request`.
const OPERATIONS: [(&str, Handler); 18] = [
    ("SendMessage", send::send),
    ("SendMessageBatch", send::send_many),
    ("ReceiveMessage", receive::receive),
    ("DeleteMessage", receive::delete),
    ("DeleteMessageBatch", receive::delete_many),
    ("ChangeMessageVisibility", receive::hide),
    ("ChangeMessageVisibilityBatch", receive::hide_many),
    ("GetQueueUrl", queue::url),
    ("ListQueues", queue::list),
    ("CreateQueue", queue::create),
    ("DeleteQueue", queue::delete),
    ("PurgeQueue", queue::purge),
    ("GetQueueAttributes", attributes::get),
    ("SetQueueAttributes", attributes::set),
    ("ListDeadLetterSourceQueues", redrive::sources),
    ("StartMessageMoveTask", redrive::start),
    ("ListMessageMoveTasks", redrive::list),
    ("CancelMessageMoveTask", redrive::cancel),
];

/// Operations that AWS has and this doesn't.
const UNSUPPORTED: [&str; 5] = ["AddPermission", "RemovePermission", "ListQueueTags", "TagQueue", "UntagQueue"];

/// Answers a call whose signature was right.
///
/// # Errors
/// What SQS would answer.
pub fn answer(service: &Service, call: &Call) -> Result<Value, Failure> {
    let target = call.header("x-amz-target").unwrap_or_default();
    let name = target.strip_prefix("AmazonSQS.").unwrap_or_default();
    if call.method != "POST" {
        return Err(Failure::new(405, "MethodNotAllowedException", "The HTTP method is not POST"));
    }
    match OPERATIONS.iter().find(|(known, _)| *known == name) {
        Some((_, handler)) => handler(service, &SHAPES.read(&format!("{name}Request"), &call.body)?),
        None if UNSUPPORTED.contains(&name) => Err(Failure::unsupported(Protocol::Sqs, name)),
        None => {
            let message = "The action or operation requested is invalid. Verify that the action is typed correctly.";
            Err(Failure::new(400, "UnknownOperationException", message))
        }
    }
}

/// Reading what was checked against its shape.
pub(crate) trait Members {
    /// A text.
    fn text(&self, name: &str) -> Option<&str>;
    /// A number.
    fn number(&self, name: &str) -> Option<i64>;
    /// A list of texts; empty when there is none.
    fn texts(&self, name: &str) -> Vec<&str>;
}

impl Members for Input {
    fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(Value::as_i64)
    }

    fn texts(&self, name: &str) -> Vec<&str> {
        let list = self.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

/// A number within bounds, or SQS's sentence.
fn bounded(value: i64, name: &str, low: u32, high: u32, reason: &str) -> Result<u32, Failure> {
    let number = u32::try_from(value).ok().filter(|n| (low..=high).contains(n));
    number.ok_or_else(|| Failure::parameter(format!("Value {value} for parameter {name} is invalid. Reason: {reason}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_its_shape() {
        for (name, _) in OPERATIONS {
            let read = SHAPES.object(&format!("{name}Request"), Value::String(String::new()));
            let want = "SerializationException: STRING_VALUE can not be converted to a structure";
            assert_eq!(read.map_err(|error| error.to_string()), Err(want.to_owned()), "{name} has no shape");
        }
    }
}
