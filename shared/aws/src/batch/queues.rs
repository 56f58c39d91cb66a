//! Job queues: whether one is fair-share, and whether it takes jobs.

use std::time::Duration;

use osprey_model::id::QueueName;
use osprey_ports::CallError;
use serde::Deserialize;

use super::{AwsBatch, call_error, unreadable};
use crate::wire::Answer;

/// How long what is known of a queue is good for. A FIFO queue never becomes fair-share.
pub const LIFETIME: Duration = Duration::from_secs(300);

const ACTION: &str = "batch:DescribeJobQueues";

/// What Osprey reads of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueFacts {
    /// Its name.
    pub job_queue_name: String,
    /// Its ARN.
    #[serde(default)]
    pub job_queue_arn: String,
    /// `ENABLED` or `DISABLED`.
    #[serde(default)]
    pub state: String,
    /// Its scheduling policy; absent on a FIFO queue.
    #[serde(default)]
    pub scheduling_policy_arn: Option<String>,
    /// The compute environments that its jobs run in.
    #[serde(default)]
    pub compute_environment_order: Vec<EnvironmentOrder>,
}

/// A compute environment of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentOrder {
    /// Its ARN.
    pub compute_environment: String,
}

impl QueueFacts {
    /// Whether jobs must bring share and priority; a FIFO queue takes neither.
    #[must_use]
    pub fn is_fair_share(&self) -> bool {
        self.scheduling_policy_arn.as_deref().is_some_and(|arn| !arn.is_empty())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Described {
    #[serde(default)]
    job_queues: Vec<QueueFacts>,
}

/// Most names in one DescribeJobQueues call; a limit of Batch.
const NAMES_MAX: usize = 100;

impl AwsBatch {
    /// Learns what queues are, in as few calls as that takes. Those that are known are not asked after.
    ///
    /// # Errors
    /// When Batch fails.
    pub async fn learn_queues(&self, queues: &[QueueName]) -> Result<(), CallError> {
        let unknown: Vec<&str> =
            queues.iter().map(QueueName::as_str).filter(|name| self.queues.get(name).is_none()).collect();
        for some in unknown.chunks(NAMES_MAX) {
            for facts in self.described(some).await? {
                let names = some.iter().filter(|name| **name == facts.job_queue_name || **name == facts.job_queue_arn);
                names.for_each(|name| self.queues.put(name, &facts));
            }
        }
        Ok(())
    }

    /// What was learnt of a queue.
    #[must_use]
    pub fn known_queue(&self, queue: &QueueName) -> Option<QueueFacts> {
        self.queues.get(queue.as_str())
    }

    async fn described(&self, names: &[&str]) -> Result<Vec<QueueFacts>, CallError> {
        let answer = Answer::default();
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let request = self.client.describe_job_queues().set_job_queues(Some(names));
        request.customize().interceptor(answer.clone()).send().await.map_err(call_error(ACTION))?;
        let found: Described = answer.read().map_err(unreadable(ACTION))?;
        Ok(found.job_queues)
    }

    /// What is known of a queue; `None` when there is none of this name.
    ///
    /// # Errors
    /// When Batch fails.
    pub async fn queue_facts(&self, queue: &QueueName) -> Result<Option<QueueFacts>, CallError> {
        if let Some(kept) = self.queues.get(queue.as_str()) {
            return Ok(Some(kept));
        }
        let found = self.described(&[queue.as_str()]).await?.into_iter().next();
        if let Some(found) = &found {
            self.queues.put(queue.as_str(), found);
        }
        Ok(found)
    }
}
