//! Queues: the six of the pipeline, which are always there, and those that somebody creates.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use osprey_local::queues::RECEIVE_COUNT_MAX;
use osprey_local::{LocalDocuments, Place};
use osprey_ports::{CallError, QueueKind};
use serde_json::{Map, Value, json};

use super::attributes::{self, Attributes};
use super::{Input, Members as _};
use crate::failure::{Failure, Protocol, of_queue};
use crate::page::{self, Page};
use crate::service::Service;

/// Where queues that somebody created are kept.
const KIND: &str = "message-queue";
/// Most queues of a page.
const PAGE_MAX: usize = 1_000;
/// One purge of a queue in this time, as on AWS.
const PURGE_EVERY: Duration = Duration::from_secs(60);

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Name.
    pub name: String,
    /// The attributes that can be set, and were.
    pub attributes: Attributes,
    /// When it was created, in seconds since 1970; 0 for one of the pipeline.
    pub created_at: i64,
    /// When its attributes were set.
    pub modified_at: i64,
}

impl Queue {
    fn of_pipeline(service: &Service, kind: QueueKind) -> Self {
        let mut attributes = Attributes::new();
        if let Some(dead) = kind.dead_letter_queue() {
            attributes.insert("RedrivePolicy".to_owned(), redrive_policy(service, dead.name()));
        }
        Self { name: kind.name().to_owned(), attributes, created_at: 0, modified_at: 0 }
    }

    /// Whether it belongs to the pipeline.
    #[must_use]
    pub fn is_of_pipeline(&self) -> bool {
        QueueKind::ALL.iter().any(|kind| kind.name() == self.name)
    }

    /// A number among its attributes, or what AWS takes without it.
    #[must_use]
    pub fn number(&self, attribute: &str, default: u32) -> u32 {
        self.attributes.get(attribute).and_then(|text| text.parse().ok()).unwrap_or(default)
    }

    /// Name of its dead-letter queue and the number of receives before it.
    #[must_use]
    pub fn dead_letters(&self) -> Option<(String, u32)> {
        attributes::dead_letters(self.attributes.get("RedrivePolicy")?)
    }

    /// The queue for whoever receives.
    #[must_use]
    pub fn place(&self) -> Place {
        Place { name: self.name.clone(), dead: self.dead_letters() }
    }

    fn load(name: &str, body: &str) -> Option<Self> {
        let body: Value = serde_json::from_str(body).ok()?;
        let number = |key: &str| body.get(key).and_then(Value::as_i64).unwrap_or(0);
        Some(Self {
            name: name.to_owned(),
            attributes: serde_json::from_value(body.get("attributes")?.clone()).ok()?,
            created_at: number("createdAt"),
            modified_at: number("modifiedAt"),
        })
    }

    /// Keeps it.
    pub(super) fn save(&self, service: &Service) -> Result<(), Failure> {
        put(service.documents(), self).map_err(of_queue)
    }
}

fn put(documents: &LocalDocuments, queue: &Queue) -> Result<(), CallError> {
    let Queue { name, attributes, created_at, modified_at } = queue;
    let body = json!({ "attributes": attributes, "createdAt": created_at, "modifiedAt": modified_at });
    documents.put(KIND, name, &body.to_string())
}

/// Makes sure that there is a queue of a name, such as for copies of events.
///
/// # Errors
/// When the name is none, or the store fails.
pub fn ensure(documents: &LocalDocuments, name: &str, now_ms: i64) -> Result<(), CallError> {
    check_name(name).map_err(|failure| CallError::Refused(failure.message))?;
    if QueueKind::ALL.iter().any(|kind| kind.name() == name) || documents.get(KIND, name)?.is_some() {
        return Ok(());
    }
    let seconds = now_ms / 1_000;
    let attributes = BTreeMap::new();
    put(documents, &Queue { name: name.to_owned(), attributes, created_at: seconds, modified_at: seconds })
}

fn redrive_policy(service: &Service, dead: &str) -> String {
    json!({ "deadLetterTargetArn": service.queue_arn(dead), "maxReceiveCount": RECEIVE_COUNT_MAX }).to_string()
}

/// All queues by name.
pub fn all(service: &Service) -> Result<Vec<Queue>, Failure> {
    let mut all: Vec<Queue> = QueueKind::ALL.into_iter().map(|kind| Queue::of_pipeline(service, kind)).collect();
    let created = service.documents().list(KIND).map_err(of_queue)?;
    all.extend(created.iter().filter_map(|(name, body)| Queue::load(name, body)));
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

/// The queue of a name.
pub fn find(service: &Service, name: &str) -> Result<Option<Queue>, Failure> {
    if let Some(kind) = QueueKind::ALL.into_iter().find(|kind| kind.name() == name) {
        return Ok(Some(Queue::of_pipeline(service, kind)));
    }
    let body = service.documents().get(KIND, name).map_err(of_queue)?;
    Ok(body.and_then(|body| Queue::load(name, &body)))
}

/// The queue that a request names by its URL. Only the path counts: whoever reaches the server by another name of the
/// loopback means the same queue.
pub fn of(service: &Service, input: &Input) -> Result<Queue, Failure> {
    let url = input.text("QueueUrl").unwrap_or_default();
    let mut parts = url.rsplit('/');
    let (name, account) = (parts.next().unwrap_or_default(), parts.next());
    if account.is_some_and(|account| account != service.account()) {
        return Err(missing());
    }
    find(service, name)?.ok_or_else(missing)
}

/// The queue of an ARN.
pub fn of_arn(service: &Service, arn: &str) -> Result<Option<Queue>, Failure> {
    let name = arn.strip_prefix(&service.queue_arn(""));
    name.map_or(Ok(None), |name| find(service, name))
}

fn missing() -> Failure {
    Failure::new(400, "QueueDoesNotExist", "The specified queue does not exist.")
}

/// URL of a queue.
pub fn url_of(service: &Service, name: &str) -> String {
    format!("{}/{}/{name}", service.endpoint(), service.account())
}

pub fn url(service: &Service, input: &Input) -> Result<Value, Failure> {
    let owner = input.text("QueueOwnerAWSAccountId").is_none_or(|owner| owner == service.account());
    let name = input.text("QueueName").unwrap_or_default();
    let queue = find(service, name)?.filter(|_| owner).ok_or_else(missing)?;
    Ok(json!({ "QueueUrl": url_of(service, &queue.name) }))
}

pub fn list(service: &Service, input: &Input) -> Result<Value, Failure> {
    let prefix = input.text("QueueNamePrefix").unwrap_or_default();
    let names = all(service)?.into_iter().map(|queue| queue.name).filter(|name| name.starts_with(prefix)).collect();
    let (part, next) = paged(names, input)?;
    let urls: Vec<String> = part.iter().map(|name| url_of(service, name)).collect();
    Ok(listed("QueueUrls", json!(urls), next))
}

/// A page of names. Without `MaxResults` there is no token of a next page, as on AWS.
pub fn paged(names: Vec<String>, input: &Input) -> Result<(Vec<String>, Option<String>), Failure> {
    let max_results = input.number("MaxResults");
    if max_results.is_some_and(|n| !(1..=1_000).contains(&n)) {
        return Err(Failure::parameter(format!(
            "Value {} for parameter MaxResults is invalid. Reason: MaxResults must be an integer between 1 and 1000.",
            max_results.unwrap_or_default()
        )));
    }
    let page = Page { max_results, token: input.text("NextToken") };
    let (part, next) = page::cut(names, page, PAGE_MAX).map_err(|_| {
        Failure::parameter("Value for parameter NextToken is invalid. Reason: Invalid or expired next token.")
    })?;
    Ok((part, next.filter(|_| max_results.is_some())))
}

/// A list, left out when it is empty, and the token of its next page.
pub fn listed(name: &str, list: Value, next: Option<String>) -> Value {
    let mut answer = Map::new();
    if list.as_array().is_some_and(|list| !list.is_empty()) {
        answer.insert(name.to_owned(), list);
    }
    if let Some(next) = next {
        answer.insert("NextToken".to_owned(), json!(next));
    }
    Value::Object(answer)
}

fn check_name(name: &str) -> Result<(), Failure> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (1..=80).contains(&name.len()) && name.chars().all(is_word) {
        return Ok(());
    }
    Err(Failure::parameter("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"))
}

pub fn create(service: &Service, input: &Input) -> Result<Value, Failure> {
    let name = input.text("QueueName").unwrap_or_default();
    let attributes = attributes::given(service, input)?;
    if attributes.contains_key("FifoQueue") || name.ends_with(".fifo") {
        return Err(Failure::unsupported(Protocol::Sqs, "FIFO queues"));
    }
    check_name(name)?;
    if let Some(known) = find(service, name)? {
        let other = attributes.iter().find(|(key, value)| known.attributes.get(*key) != Some(*value));
        return match other {
            None => Ok(json!({ "QueueUrl": url_of(service, name) })),
            Some((key, _)) => Err(Failure::new(
                400,
                "QueueNameExists",
                format!("A queue already exists with the same name and a different value for attribute {key}"),
            )),
        };
    }
    let now = service.now_ms() / 1_000;
    Queue { name: name.to_owned(), attributes, created_at: now, modified_at: now }.save(service)?;
    Ok(json!({ "QueueUrl": url_of(service, name) }))
}

pub fn delete(service: &Service, input: &Input) -> Result<Value, Failure> {
    let queue = of(service, input)?;
    if queue.is_of_pipeline() {
        return Err(Failure::unsupported(Protocol::Sqs, "the deletion of a queue of the pipeline"));
    }
    service.documents().delete(KIND, &queue.name).map_err(of_queue)?;
    service.queues().purge(&queue.name).map_err(of_queue)?;
    Ok(json!({}))
}

pub fn purge(service: &Service, input: &Input) -> Result<Value, Failure> {
    let queue = of(service, input)?;
    let mut purges = service.purges();
    if purges.get(&queue.name).is_some_and(|at| at.elapsed() < PURGE_EVERY) {
        let message = format!("Only one PurgeQueue operation on {} is allowed every 60 seconds.", queue.name);
        return Err(Failure::new(400, "PurgeQueueInProgress", message));
    }
    service.queues().purge(&queue.name).map_err(of_queue)?;
    purges.insert(queue.name, Instant::now());
    Ok(json!({}))
}
