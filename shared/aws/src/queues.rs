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
        let group = (queue == QueueKind::Submissions).then(|| group_of(body));
        let call = self.client.send_message().queue_url(url).message_body(body).delay_seconds(delay);
        match call.set_message_group_id(group).send().await {
            // A repetition after a lost reply is one more message; whoever takes it has to bear that anyway.
            Ok(sent) => Ok(MessageId::new(sent.message_id.unwrap_or_default())),
            Err(error) => Err(Fault::of("sqs:SendMessage", &error).into()),
        }
    }
}

/// Whose message it is, so that SQS's fair queues keep the messages of one team from delaying those of others: the team
/// that a job's tags name, and one group for everything else.
fn group_of(body: &str) -> String {
    let request: Option<serde_json::Value> = serde_json::from_str(body).ok();
    let tags = request.as_ref().and_then(|request| request.get("tags")?.as_object());
    let is_team = |name: &str| name.eq_ignore_ascii_case("team");
    let team = tags.and_then(|tags| tags.iter().find(|(name, _)| is_team(name))?.1.as_str());
    team.filter(|team| !team.is_empty()).map_or_else(|| NO_TEAM.to_owned(), as_group)
}

/// The group of messages that name no team.
const NO_TEAM: &str = "osprey";
/// Longest name of a group.
const GROUP_CHARACTERS_MAX: usize = 128;

/// A name in the letters that SQS takes.
fn as_group(team: &str) -> String {
    let allowed = |c: char| if c.is_ascii_graphic() { c.to_ascii_lowercase() } else { '-' };
    team.chars().take(GROUP_CHARACTERS_MAX).map(allowed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_belongs_to_the_group_of_the_team_that_its_tags_name() {
        for (body, want) in [
            (r#"{"jobName":"a","tags":{"Team":"Search"}}"#, "search"),
            (r#"{"jobName":"a","tags":{"team":"größte Gruppe"}}"#, "gr--te-gruppe"),
            (r#"{"jobName":"a","tags":{"team":""}}"#, "osprey"),
            (r#"{"action":"CancelJob"}"#, "osprey"),
            ("half a li", "osprey"),
        ] {
            assert_eq!(group_of(body), want, "{body}");
        }
        assert_eq!(as_group(&"x".repeat(300)).len(), 128);
    }
}
