//! SQS.

use std::collections::BTreeMap;

use aws_sdk_sqs::Client;
use osprey_model::id::MessageId;
use osprey_ports::{CallError, QueueKind, SendMessage};

use crate::fault::Fault;

/// The queues that this process may send to.
#[derive(Clone, Debug)]
pub struct SqsQueues {
    client: Client,
    urls: BTreeMap<QueueKind, String>,
}

impl SqsQueues {
    /// The queues of these URLs.
    #[must_use]
    pub fn new(client: Client, urls: BTreeMap<QueueKind, String>) -> Self {
        Self { client, urls }
    }
}

impl SendMessage for SqsQueues {
    async fn send_message(&self, queue: QueueKind, body: &str, delay_seconds: u32) -> Result<MessageId, CallError> {
        let Some(url) = self.urls.get(&queue) else {
            return Err(CallError::Denied(format!("the URL of queue `{}` is not set for this process", queue.name())));
        };
        let delay = i32::try_from(delay_seconds).unwrap_or(i32::MAX);
        let sent = self.client.send_message().queue_url(url).message_body(body).delay_seconds(delay).send().await;
        match sent {
            // A repetition after a lost reply is one more message; whoever takes it has to bear that anyway.
            Ok(sent) => Ok(MessageId::new(sent.message_id.unwrap_or_default())),
            Err(error) => Err(Fault::of("sqs:SendMessage", &error).into()),
        }
    }
}
