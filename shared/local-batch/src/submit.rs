//! SubmitJob: checks, then one transaction that writes the job, its children and its dependencies.

use osprey_model::definition::{ContainerProperties, JobDefinition, NodeProperties, NodeRangeProperty};
use osprey_model::event::BatchStatus;
use osprey_model::request::{RetryStrategy, SubmitJobRequest};
use rusqlite::params;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::arn::name_of;
use crate::batch::LocalBatch;
use crate::change::Change;
use crate::dependency::Link;
use crate::environment::{EnvironmentKind, State};
use crate::error::BatchError;
use crate::job::JobRow;
use crate::multinode::Gang;
use crate::queue::JobQueue;
use crate::requirement::{Need, merged_container, merged_requirements, need_of};
use crate::spot;
use crate::validate::{self, QueueOrder};

/// Answer of SubmitJob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubmittedJob {
    /// ARN.
    pub job_arn: String,
    /// Id, a UUID.
    pub job_id: String,
    /// Name, as asked.
    pub job_name: String,
}

impl LocalBatch {
    /// Submits a job. There is no client token: the same request twice gives two jobs, as on AWS.
    ///
    /// # Errors
    /// A ClientException for everything that Batch checks at the door: see [`crate::validate`].
    pub fn submit_job(&self, request: &SubmitJobRequest) -> Result<SubmittedJob, BatchError> {
        validate::request(request)?;
        self.change(|change| {
            let definition = change.definition_for(request)?;
            change.submit(request, &definition)
        })
    }

    /// Submits a job whose definition needn't be registered: one that isn't stands for an empty container, so that
    /// the request's own command runs, or those of its nodes. AWS has nothing like it; it is for whoever has one machine and no registry.
    ///
    /// # Errors
    /// As [`Self::submit_job`], but for an unknown definition; and for one that is to be multi-node, when the request
    /// doesn't say how many nodes there are and what each runs.
    pub fn submit_unregistered(&self, request: &SubmitJobRequest) -> Result<SubmittedJob, BatchError> {
        validate::request(request)?;
        self.change(|change| {
            let definition = match change.find_definition(&request.job_definition)? {
                Some(_) => change.definition_for(request)?,
                None => change.empty_definition(request)?,
            };
            change.submit(request, &definition)
        })
    }
}

impl Change<'_> {
    fn submit(&self, request: &SubmitJobRequest, definition: &JobDefinition) -> Result<SubmittedJob, BatchError> {
        let queue = self.queue_for(request)?;
        let order = match queue.scheduling_policy_arn {
            Some(_) => QueueOrder::FairShare,
            None => QueueOrder::Fifo,
        };
        let overriding = request.scheduling_priority_override;
        let of_definition = definition.scheduling_priority;
        validate::for_queue(order, request.share_identifier.as_deref(), overriding, of_definition)?;
        if let (QueueOrder::FairShare, Some(share)) = (order, &request.share_identifier) {
            let policy = queue.scheduling_policy_arn.as_deref().map(|arn| self.policy(name_of(arn))).transpose()?;
            self.admit_share(&queue.job_queue_name, share, &policy.flatten().unwrap_or_default())?;
        }
        let gang = Gang::of(request, definition)?;
        let need = match &gang {
            Some(gang) => self.whole_need(gang, &queue)?,
            None => need_of_container(request, definition)?,
        };
        let links = self.links(request)?;

        let id = uuid::Uuid::new_v4().to_string();
        let spec = self.put_spec(request, definition, gang.as_ref())?;
        let mut job = self.row(&id, request, definition, &queue, need);
        job.spec = spec;
        job.nodes = gang.as_ref().map(|gang| gang.size);
        job.main_node = gang.as_ref().map(|gang| gang.main);
        job.node_needs = gang.as_ref().map(Gang::needs);
        job.priority = (order == QueueOrder::FairShare).then(|| overriding.or(of_definition)).flatten();
        let whole = links.iter().filter(|link| !link.is_per_child());
        job.unresolved = count(whole.clone().filter(|link| link.is_open()).count());
        if whole.clone().any(Link::failed) {
            job.doomed = Some(crate::dependency::FAILED_REASON.to_owned());
        }
        job.open_children = job.size.unwrap_or(0);
        job.insert(self.db)?;
        self.put_dependencies(job.seq, whole)?;
        if let Some(size) = job.size {
            self.insert_children(&job, size, &links)?;
        }
        Ok(SubmittedJob { job_arn: self.arns().job(&id), job_id: id, job_name: request.job_name.clone() })
    }

    fn queue_for(&self, request: &SubmitJobRequest) -> Result<JobQueue, BatchError> {
        let asked = request.job_queue.as_deref().filter(|queue| !queue.is_empty());
        let asked = asked.ok_or_else(|| BatchError::client("jobQueue must be specified."))?;
        let queue = self.queue(name_of(asked))?;
        let queue = queue.ok_or_else(|| BatchError::client(format!("JobQueue {asked} not found.")))?;
        if queue.state == State::Disabled {
            return Err(BatchError::client(format!("JobQueue {asked} is DISABLED.")));
        }
        Ok(queue)
    }

    fn definition_for(&self, request: &SubmitJobRequest) -> Result<JobDefinition, BatchError> {
        let asked = &request.job_definition;
        let definition = self.find_definition(asked)?;
        let definition = definition.ok_or_else(|| BatchError::client(format!("JobDefinition {asked} not found.")))?;
        let what = if definition.eks_properties.is_some() {
            "EKS jobs"
        } else if definition.ecs_properties.is_some() {
            "ECS jobs of several containers"
        } else {
            return Ok(definition);
        };
        Err(BatchError::client(format!("The local Batch does not run {what}; submit a container job")))
    }

    /// What a multi-node job needs as a whole, where it can run at all.
    fn whole_need(&self, gang: &Gang, queue: &JobQueue) -> Result<Need, BatchError> {
        for entry in &queue.compute_environment_order {
            let environment = self.environment(name_of(&entry.compute_environment))?;
            if environment.is_some_and(|environment| environment.kind == EnvironmentKind::Ec2) {
                return Ok(gang.total());
            }
        }
        Err(BatchError::client(
            "Multi-node parallel jobs are not supported on compute environments that use Spot Instances",
        ))
    }

    /// What an unregistered definition stands for: an empty container, or as many as the request has nodes.
    fn empty_definition(&self, request: &SubmitJobRequest) -> Result<JobDefinition, BatchError> {
        let asked = &request.job_definition;
        let definition = self.definition_of_nothing(asked);
        let Some(overrides) = &request.node_overrides else { return Ok(definition) };
        let range = NodeRangeProperty {
            target_nodes: "0:".to_owned(),
            container: Some(ContainerProperties::default()),
            ..NodeRangeProperty::default()
        };
        let properties = NodeProperties {
            num_nodes: overrides.num_nodes.unwrap_or_default(),
            main_node: 0,
            node_range_properties: vec![range],
        };
        let complete = overrides.num_nodes.is_some() && Gang::spelled_out(&properties, Some(overrides))?.has_commands();
        if !complete {
            return Err(BatchError::client(format!(
                "JobDefinition {asked} not found; without it nodeOverrides must give numNodes and a command for each node"
            )));
        }
        Ok(JobDefinition { kind: "multinode".to_owned(), node_properties: Some(properties), ..definition })
    }

    fn definition_of_nothing(&self, asked: &str) -> JobDefinition {
        let name = crate::arn::name_of(asked);
        let (name, revision) = name.split_once(':').unwrap_or((name, "1"));
        let revision = revision.parse().unwrap_or(1);
        JobDefinition {
            job_definition_name: name.to_owned(),
            revision,
            job_definition_arn: self.arns().definition(name, i64::from(revision)),
            kind: "container".to_owned(),
            ..JobDefinition::default()
        }
    }

    fn put_spec(
        &self,
        request: &SubmitJobRequest,
        definition: &JobDefinition,
        gang: Option<&Gang>,
    ) -> Result<i64, BatchError> {
        let detail = static_detail(request, definition, gang);
        self.db
            .prepare_cached("INSERT INTO spec (request, detail) VALUES (?1, ?2)")?
            .execute(params![serde_json::to_string(request)?, serde_json::to_string(&detail)?])?;
        Ok(self.db.last_insert_rowid())
    }

    fn row(
        &self,
        id: &str,
        request: &SubmitJobRequest,
        definition: &JobDefinition,
        queue: &JobQueue,
        need: Need,
    ) -> JobRow {
        let timeout = request.timeout.as_ref().or(definition.timeout.as_ref());
        let reclaim = request.tags.as_ref().and_then(|tags| tags.get(spot::RECLAIM_AFTER_TAG));
        JobRow {
            id: id.to_owned(),
            size: request.array_properties.as_ref().and_then(|a| a.size),
            name: request.job_name.clone(),
            definition: definition.job_definition_arn.clone(),
            queue: queue.job_queue_name.clone(),
            created_at: self.now_ms,
            share: request.share_identifier.clone(),
            gpus: need.gpus,
            vcpus_milli: need.vcpus_milli,
            memory_mib: need.memory_mib,
            timeout_ms: timeout.and_then(|t| t.attempt_duration_seconds).map(|s| s.saturating_mul(1_000)),
            attempts_allowed: retry_strategy(request, definition).attempts.unwrap_or(1),
            doomed: validate::doom(request, definition.tags.len()),
            reclaim_after_ms: reclaim.and_then(|text| spot::duration_ms(text)),
            ..JobRow::default()
        }
    }

    /// Children carry on the parent's row in everything but id, index and dependencies.
    fn insert_children(&self, parent: &JobRow, size: i64, links: &[Link]) -> Result<(), BatchError> {
        for index in 0..size {
            let mut child = JobRow {
                id: format!("{}:{index}", parent.id),
                parent: Some(parent.id.clone()),
                index: Some(index),
                size: None,
                status: BatchStatus::Submitted,
                open_children: 0,
                doomed: parent.doomed.clone(),
                ..parent.clone()
            };
            let own = self.links_of_child(links, parent, index)?;
            child.unresolved = count(own.iter().filter(|link| link.is_open()).count());
            if own.iter().any(Link::failed) {
                child.doomed = Some(crate::dependency::FAILED_REASON.to_owned());
            }
            child.insert(self.db)?;
            self.put_dependencies(child.seq, own.iter())?;
        }
        Ok(())
    }
}

fn need_of_container(request: &SubmitJobRequest, definition: &JobDefinition) -> Result<Need, BatchError> {
    let properties = definition.container_properties.clone().unwrap_or_default();
    need_of(&merged_requirements(&properties, request.container_overrides.as_ref())).map_err(BatchError::client)
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn retry_strategy(request: &SubmitJobRequest, definition: &JobDefinition) -> RetryStrategy {
    let strategy = request.retry_strategy.as_ref().or(definition.retry_strategy.as_ref());
    let mut strategy = strategy.cloned().unwrap_or_default();
    strategy.attempts.get_or_insert(1);
    strategy.evaluate_on_exit.get_or_insert_default();
    strategy
}

/// Everything of DescribeJobs that is known at submission and never changes.
fn static_detail(request: &SubmitJobRequest, definition: &JobDefinition, gang: Option<&Gang>) -> Map<String, Value> {
    let mut parameters = definition.parameters.clone();
    parameters.extend(request.parameters.clone().unwrap_or_default());
    let propagate = request.propagate_tags.or(definition.propagate_tags).unwrap_or(false);
    let platforms = if definition.platform_capabilities.is_empty() {
        json!(["EC2"])
    } else {
        json!(definition.platform_capabilities)
    };
    let mut detail = Map::new();
    let mut put = |key: &str, value: Value| detail.insert(key.to_owned(), value);
    put("retryStrategy", json!(retry_strategy(request, definition)));
    put("dependsOn", json!(request.depends_on.as_deref().unwrap_or_default()));
    put("jobDefinition", json!(definition.job_definition_arn));
    put("parameters", json!(parameters));
    match gang {
        Some(gang) => put("nodeProperties", gang.detail()),
        None => put("container", Value::Object(merged_container(definition, request))),
    };
    if let Some(timeout) = request.timeout.as_ref().or(definition.timeout.as_ref()) {
        put("timeout", json!(timeout));
    }
    put("tags", json!(request.tags.clone().unwrap_or_default()));
    put("propagateTags", json!(propagate));
    put("platformCapabilities", platforms);
    put("eksAttempts", json!([]));
    if let Some(consumable) = &request.consumable_resource_properties_override {
        put("consumableResourceProperties", json!(consumable));
    }
    detail
}

#[cfg(test)]
#[path = "submit_tests.rs"]
mod tests;
