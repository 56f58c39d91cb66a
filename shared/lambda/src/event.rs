//! SQS events of Lambda into messages, and failed messages into a partial batch response.

use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
use jiff::Timestamp;
use osprey_model::id::MessageId;
use osprey_model::sender::Sender;
use osprey_ports::{QueueKind, ReceivedMessage};

/// The messages of an event, by the queue they came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// Messages of queues that we know.
    pub messages: Vec<(QueueKind, ReceivedMessage)>,
    /// Ids of messages from queues that we don't know; they must not be taken for done.
    pub strangers: Vec<MessageId>,
}

impl Arrived {
    /// Sorts out an event. Bodies are not looked at: each is parsed on its own, so that a bad one fails alone.
    #[must_use]
    pub fn of(event: SqsEvent) -> Self {
        let mut arrived = Self::default();
        for record in event.records {
            let queue = record.event_source_arn.as_deref().and_then(source_queue);
            let message = message(record);
            match queue {
                Some(queue) => arrived.messages.push((queue, message)),
                None => arrived.strangers.push(message.id),
            }
        }
        arrived
    }
}

/// The queue of an event source ARN. Stacks prefix their queues' names, so the end of the name counts.
#[must_use]
pub fn source_queue(arn: &str) -> Option<QueueKind> {
    let name = arn.rsplit(':').next()?;
    QueueKind::ALL.into_iter().find(|queue| name.ends_with(queue.name()))
}

fn message(record: SqsMessage) -> ReceivedMessage {
    let arn = record.event_source_arn.as_deref().unwrap_or_default();
    let queue = arn.rsplit(':').next().unwrap_or_default();
    let attribute = |name: &str| record.attributes.get(name).cloned();
    let sent = attribute("SentTimestamp").and_then(|text| text.parse().ok()).unwrap_or(0);
    ReceivedMessage {
        id: MessageId::new(record.message_id.clone().unwrap_or_default()),
        sender: Sender::new(queue, attribute("SenderId").unwrap_or_default()),
        sent_at: Timestamp::from_millisecond(sent).unwrap_or_default(),
        receive_count: attribute("ApproximateReceiveCount").and_then(|text| text.parse().ok()).unwrap_or(1),
        body: record.body.unwrap_or_default(),
    }
}

/// The partial batch response for the messages that must come again. An empty id would fail the whole batch, so a
/// message without an id, which SQS never sends, is left out.
#[must_use]
pub fn batch_response(failed: Vec<MessageId>) -> SqsBatchResponse {
    let mut response = SqsBatchResponse::default();
    response.batch_item_failures = failed
        .into_iter()
        .filter(|id| !id.as_str().is_empty())
        .map(|id| {
            let mut failure = BatchItemFailure::default();
            failure.item_identifier = id.as_str().to_owned();
            failure
        })
        .collect();
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(name: &str) -> SqsEvent {
        let path = format!("{}/../../events/{name}", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    #[test]
    fn a_message_keeps_its_id_its_sender_and_its_body() {
        let arrived = Arrived::of(sample("sqs-submit-job.json"));
        let (queue, message) = &arrived.messages[0];
        assert_eq!(*queue, QueueKind::Submissions);
        assert!(!message.id.as_str().is_empty() && !message.sender.principal.is_empty());
        assert!(message.body.contains("jobName"));
        assert_eq!(message.receive_count, 1);
    }

    #[test]
    fn a_wake_up_of_a_pool_is_read_as_one() {
        let arrived = Arrived::of(sample("sqs-wake-pool.json"));
        let (queue, message) = &arrived.messages[0];
        assert_eq!(*queue, QueueKind::Wake);
        let wake: osprey_pipeline::wake::WakePool = serde_json::from_str(&message.body).unwrap();
        assert_eq!((wake.pool.as_str(), wake.delay_seconds), ("main", 30));
    }

    #[test]
    fn a_body_that_is_no_json_doesnt_hinder_the_others() {
        let arrived = Arrived::of(sample("sqs-submit-job-poison.json"));
        assert!(arrived.messages.len() > 1);
    }

    #[test]
    fn a_response_never_holds_an_empty_id() {
        let response = batch_response(vec!["a".into(), "".into()]);
        let json = serde_json::to_string(&response).unwrap();
        assert_eq!(json, r#"{"batchItemFailures":[{"itemIdentifier":"a"}]}"#);
    }

    #[test]
    fn a_stacks_queue_is_known_by_the_end_of_its_name() {
        assert_eq!(source_queue("arn:aws:sqs:eu-west-1:1:prod-osprey-events"), Some(QueueKind::Events));
        assert_eq!(source_queue("arn:aws:sqs:eu-west-1:1:osprey-events-dead"), Some(QueueKind::EventsDead));
        assert_eq!(source_queue("arn:aws:sqs:eu-west-1:1:other"), None);
    }
}
