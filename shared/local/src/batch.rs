//! Batch's verbs on the local Batch, and its events on their way into the event queue.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use osprey_local_batch::{BatchError, ComputeNode, ListFilter, ListJobsRequest, LocalBatch, arn};
use osprey_model::definition::JobDefinition;
use osprey_model::event::{BatchStatus, JobDetail};
use osprey_model::id::{BatchJobId, QueueName};
use osprey_model::pool::Pool;
use osprey_ports::{
    CallError, CancelJob, Capacity, Clock, DescribeJobDefinition, DescribeJobs, JobSummary, ListChildren, ListJobs,
    NodeCapacity, ObserveCapacity, QueueKind, SubmitCall, SubmitError, SubmitJob, TerminateJob,
};
use serde_json::Value;

use crate::queues::LocalQueues;

/// Events taken from the local Batch at a time.
const EVENTS_AT_A_TIME: usize = 100;
/// Whom events come from, as the queue knows them.
const EVENT_SENDER: &str = "events:local-batch";

/// The local Batch behind the ports. Its answers never lag. Clones share it.
#[derive(Clone)]
pub struct LocalBatchPorts {
    batch: LocalBatch,
    clock: Arc<dyn Clock + Send + Sync>,
}

impl LocalBatchPorts {
    /// Ports to `batch`. The clock has to be the one that `batch` goes by.
    #[must_use]
    pub fn new(batch: LocalBatch, clock: Arc<dyn Clock + Send + Sync>) -> Self {
        Self { batch, clock }
    }

    /// The local Batch itself.
    #[must_use]
    pub fn batch(&self) -> &LocalBatch {
        &self.batch
    }

    /// Moves all events that are due to the event queue, with a copy to each of the queues named in `copies`, and says
    /// how many that were. Each is sent before it is acknowledged, so one that is cut off in between comes twice.
    ///
    /// # Errors
    ///
    /// When the queue or the local Batch can't be used; nothing is lost then.
    pub fn pump_events(&self, queues: &LocalQueues, copies: &[String]) -> Result<usize, CallError> {
        let queues = queues.clone().with_sender(EVENT_SENDER);
        let targets: Vec<&str> =
            std::iter::once(QueueKind::Events.name()).chain(copies.iter().map(String::as_str)).collect();
        let mut moved = 0;
        loop {
            let events = self.batch.fetch_events(EVENTS_AT_A_TIME).map_err(call_error)?;
            let bodies: Vec<String> = events.iter().map(|event| event_text(&event.body)).collect();
            queues.send_all(&targets, &bodies)?;
            let ids: Vec<i64> = events.iter().map(|event| event.id).collect();
            self.batch.ack_events(&ids).map_err(call_error)?;
            moved += ids.len();
            if ids.len() < EVENTS_AT_A_TIME {
                return Ok(moved);
            }
        }
    }

    /// Submits once.
    ///
    /// # Errors
    ///
    /// As the port says.
    pub fn submit(&self, call: &SubmitCall) -> Result<BatchJobId, SubmitError> {
        let now = self.clock.now();
        if now > call.not_after {
            return Err(SubmitError::NotSent(format!("it is {now}, and the claim holds until {}", call.not_after)));
        }
        // Whether a definition must be registered was decided at the door.
        match self.batch.submit_unregistered(&call.request) {
            Ok(job) => Ok(BatchJobId::new(job.job_id)),
            Err(error) => Err(submit_error(error)),
        }
    }

    fn list(&self, queue: &QueueName, name: &str, created_from: Timestamp) -> Result<Vec<JobSummary>, CallError> {
        let by_name = ListFilter { name: "JOB_NAME".to_owned(), values: vec![name.to_owned()] };
        let job_queue = Some(queue.as_str().to_owned());
        let mut request = ListJobsRequest { job_queue, filters: vec![by_name], ..ListJobsRequest::default() };
        let mut found = Vec::new();
        loop {
            let page = self.batch.list_jobs(&request).map_err(call_error)?;
            let jobs = page.job_summary_list.iter().filter_map(summary);
            let young: Vec<_> = jobs.filter(|job| is_from(job, created_from)).collect();
            let all_young = young.len() == page.job_summary_list.len();
            found.extend(young);
            request.next_token = page.next_token;
            // Newest first: after the first one that is too old there are only older ones.
            if request.next_token.is_none() || !all_young {
                return Ok(found);
            }
        }
    }

    fn failed_children(&self, parent: &BatchJobId, limit: usize) -> Result<Vec<BatchJobId>, CallError> {
        let mut request = ListJobsRequest {
            array_job_id: Some(parent.as_str().to_owned()),
            job_status: Some(BatchStatus::Failed.as_str().to_owned()),
            ..ListJobsRequest::default()
        };
        let mut found = Vec::new();
        while found.len() < limit {
            let page = self.batch.list_jobs(&request).map_err(call_error)?;
            found.extend(page.job_summary_list.iter().filter_map(summary).map(|job| job.id));
            request.next_token = page.next_token;
            if request.next_token.is_none() {
                break;
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    /// The nodes of the environments that a pool's queues lead to.
    fn capacity(&self, pool: &Pool) -> Result<Capacity, CallError> {
        let names: Vec<String> = pool.queues.values().map(ToString::to_string).collect();
        let queues = self.batch.describe_job_queues(&names).map_err(call_error)?;
        let environments: BTreeSet<&str> = queues
            .iter()
            .flat_map(|queue| &queue.compute_environment_order)
            .map(|order| arn::name_of(&order.compute_environment))
            .collect();
        let mut capacity = Capacity::default();
        let nodes = self.batch.describe_nodes().map_err(call_error)?;
        for node in nodes.iter().filter(|node| environments.contains(node.compute_environment_name.as_str())) {
            if node.open {
                capacity.nodes.push(node_capacity(node));
            } else if node.coming {
                capacity.obtainable += 1;
            }
        }
        Ok(capacity)
    }

    fn definition(&self, name: &str) -> Result<Option<JobDefinition>, CallError> {
        let with_revision = arn::name_of(name).contains(':');
        let all = self.batch.describe_job_definitions(&[name.to_owned()]).map_err(call_error)?;
        let is_meant = |found: &JobDefinition| with_revision || found.status.as_deref() != Some("INACTIVE");
        Ok(all.into_iter().filter(is_meant).max_by_key(|found| found.revision))
    }
}

fn node_capacity(node: &ComputeNode) -> NodeCapacity {
    let count = |devices: &[i64]| u32::try_from(devices.len()).unwrap_or(u32::MAX);
    let gpus = count(&node.devices);
    NodeCapacity {
        id: osprey_ports::capacity::node_id(&node.container_instance_arn).to_owned(),
        gpus,
        gpus_used: gpus.saturating_sub(count(&node.free_devices)),
        // As many as the machine's own scheduler shares out.
        vcpus: None,
        vcpus_used: 0,
    }
}

/// An event as a text that a queue takes: JSON may hold the two characters that are legal there and not in XML.
fn event_text(event: &Value) -> String {
    event.to_string().replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff")
}

fn summary(value: &Value) -> Option<JobSummary> {
    let text = |name| value.get(name).and_then(Value::as_str);
    let created_at = value.get("createdAt").and_then(Value::as_i64)?;
    Some(JobSummary {
        id: BatchJobId::new(text("jobId")?),
        name: text("jobName")?.to_owned(),
        created_at: Timestamp::from_millisecond(created_at).ok()?,
    })
}

/// Times of Batch are whole milliseconds.
fn is_from(job: &JobSummary, created_from: Timestamp) -> bool {
    job.created_at.as_millisecond() >= created_from.as_millisecond()
}

fn call_error(error: BatchError) -> CallError {
    match error.status {
        429 => CallError::Throttled,
        400..=499 => CallError::Refused(error.message),
        _ => CallError::Unknown(error.message),
    }
}

fn submit_error(error: BatchError) -> SubmitError {
    match call_error(error) {
        CallError::Throttled => SubmitError::Throttled,
        CallError::Refused(message) | CallError::Denied(message) => SubmitError::Refused(message),
        CallError::Unknown(message) => SubmitError::Unknown(message),
    }
}

impl SubmitJob for LocalBatchPorts {
    async fn submit_job(&self, call: &SubmitCall) -> Result<BatchJobId, SubmitError> {
        self.submit(call)
    }
}

impl DescribeJobs for LocalBatchPorts {
    async fn describe_jobs(&self, ids: &[BatchJobId]) -> Result<Vec<JobDetail>, CallError> {
        let ids: Vec<String> = ids.iter().map(|id| id.as_str().to_owned()).collect();
        let details = self.batch.describe_jobs(&ids).map_err(call_error)?;
        let parsed = details.into_iter().map(serde_json::from_value).collect::<Result<Vec<_>, _>>();
        parsed
            .map_err(|error| CallError::Refused(format!("the local Batch described a job that can't be read: {error}")))
    }
}

impl ListJobs for LocalBatchPorts {
    async fn list_jobs(
        &self,
        queue: &QueueName,
        name: &str,
        created_from: Timestamp,
    ) -> Result<Vec<JobSummary>, CallError> {
        self.list(queue, name, created_from)
    }
}

impl ListChildren for LocalBatchPorts {
    async fn list_failed_children(&self, parent: &BatchJobId, limit: usize) -> Result<Vec<BatchJobId>, CallError> {
        self.failed_children(parent, limit)
    }
}

impl ObserveCapacity for LocalBatchPorts {
    async fn observe_capacity(&self, pool: &Pool) -> Result<Capacity, CallError> {
        self.capacity(pool)
    }
}

impl CancelJob for LocalBatchPorts {
    async fn cancel_job(&self, id: &BatchJobId, reason: &str) -> Result<(), CallError> {
        self.batch.cancel_job(id.as_str(), reason).map_err(call_error)
    }
}

impl TerminateJob for LocalBatchPorts {
    async fn terminate_job(&self, id: &BatchJobId, reason: &str) -> Result<(), CallError> {
        self.batch.terminate_job(id.as_str(), reason).map_err(call_error)
    }
}

impl DescribeJobDefinition for LocalBatchPorts {
    async fn describe_job_definition(&self, name: &str) -> Result<Option<JobDefinition>, CallError> {
        self.definition(name)
    }
}
