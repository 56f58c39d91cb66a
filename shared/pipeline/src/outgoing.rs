//! The request that goes to Batch: the user's, with queue, share, priority, ids and grown memory put in.
//!
//! Batch gets one attempt: a retry inside Batch would re-enter at the front of its queue onto capacity that was given
//! away. Dependencies stay on our side, so that requeueing a parent never fails its children.

use std::collections::BTreeMap;

use osprey_model::definition::JobDefinition;
use osprey_model::id::JobId;
use osprey_model::job::Job;
use osprey_model::pool::Pool;
use osprey_model::request::{
    ContainerOverrides, EksContainerOverride, EksEnvironmentVariable, KeyValuePair, ResourceRequirement, RetryStrategy,
    SubmitJobRequest, TaskContainerOverrides,
};
use serde::{Deserialize, Serialize};

/// Tag with the stable job id.
pub const TAG_JOB_ID: &str = "osprey:job-id";
/// Tag with the attempt's number.
pub const TAG_ATTEMPT: &str = "osprey:attempt";
/// Tag with the derived priority.
pub const TAG_PRIORITY: &str = "osprey:priority";
/// Tag with the tier.
pub const TAG_TIER: &str = "osprey:tier";
/// The tags that Osprey adds.
pub const TAGS: [&str; 4] = [TAG_JOB_ID, TAG_ATTEMPT, TAG_PRIORITY, TAG_TIER];

/// Whose attempt a Batch job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The job.
    pub job: JobId,
    /// The attempt.
    pub attempt: u32,
}

/// What the outgoing request is made of.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The user's request.
    pub request: &'a SubmitJobRequest,
    /// The definition, where it is registered.
    pub definition: Option<&'a JobDefinition>,
    /// The job, claimed.
    pub job: &'a Job,
    /// Its pool.
    pub pool: &'a Pool,
    /// The Batch job of the attempt before.
    pub previous: Option<&'a str>,
    /// Where its checkpoints go.
    pub checkpoint_uri: Option<&'a str>,
    /// The newest checkpoint that it reported: where it goes on.
    pub resume_uri: Option<&'a str>,
}

/// Builds the request. The job must be claimed: the claim holds the queue.
#[must_use]
pub fn build(out: &Outgoing<'_>) -> SubmitJobRequest {
    let mut request = out.request.clone();
    request.job_queue = out.job.claim.as_ref().map(|claim| claim.queue.to_string());
    request.job_definition = pinned(out);
    if !out.pool.mode.submits_as_asked() {
        request.retry_strategy = Some(RetryStrategy { attempts: Some(1), evaluate_on_exit: None });
    }
    request.depends_on = sequential(out.request);
    share_and_priority(&mut request, out);
    trim_amounts(&mut request);
    let tags = request.tags.get_or_insert_default();
    tags.extend(tags_of(out.job));
    put_variables(&mut request, out);
    if let Some(memory) = out.job.memory_mib {
        put_memory(&mut request, memory, is_single_container(out.definition));
    }
    request
}

/// The definition with its revision: IAM looks at a definition's tags only when a revision is named, and a newer
/// revision must not change a job that was admitted.
fn pinned(out: &Outgoing<'_>) -> String {
    match out.definition {
        Some(definition) if definition.revision > 0 => {
            format!("{}:{}", definition.job_definition_name, definition.revision)
        }
        _ => out.request.job_definition.clone(),
    }
}

/// Only `SEQUENTIAL`, which names no job, is Batch's to keep.
fn sequential(request: &SubmitJobRequest) -> Option<Vec<osprey_model::request::JobDependency>> {
    let kept: Vec<_> = request.depends_on.iter().flatten().filter(|d| d.job_id.is_none()).cloned().collect();
    (!kept.is_empty()).then_some(kept)
}

/// Fair-share queues demand both, FIFO queues take neither. One share a tier, so that the number orders the whole
/// queue: Batch compares priorities only inside one share.
fn share_and_priority(request: &mut SubmitJobRequest, out: &Outgoing<'_>) {
    if out.pool.fair_share {
        // As asked, or not at all: the two go together.
        let is_asked = request.share_identifier.is_some() && request.scheduling_priority_override.is_some();
        if out.pool.mode.submits_as_asked() && is_asked {
            return;
        }
        request.share_identifier = Some(share(out.job.tier.as_str()));
        request.scheduling_priority_override = Some(i64::from(out.job.priority));
    } else {
        request.share_identifier = None;
        request.scheduling_priority_override = None;
    }
}

/// A name as a share identifier: Batch takes letters and digits only.
#[must_use]
pub fn share(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).take(255).collect()
}

fn tags_of(job: &Job) -> BTreeMap<String, String> {
    BTreeMap::from([
        (TAG_JOB_ID.to_owned(), job.id.to_string()),
        (TAG_ATTEMPT.to_owned(), job.attempt.to_string()),
        (TAG_PRIORITY.to_owned(), job.priority.to_string()),
        (TAG_TIER.to_owned(), job.tier.to_string()),
    ])
}

/// The variables of an attempt.
fn variables(out: &Outgoing<'_>) -> Vec<(&'static str, String)> {
    let mut variables = vec![
        ("OSPREY_JOB_ID", out.job.id.to_string()),
        ("OSPREY_ATTEMPT", out.job.attempt.to_string()),
        ("OSPREY_TIER", out.job.tier.to_string()),
        ("OSPREY_PRIORITY", out.job.priority.to_string()),
    ];
    variables.extend(out.previous.map(|id| ("OSPREY_PREVIOUS_BATCH_JOB_ID", id.to_owned())));
    variables.extend(out.resume_uri.map(|uri| ("OSPREY_RESUME_URI", uri.to_owned())));
    variables.extend(out.job.memory_mib.map(|mib| ("OSPREY_MEMORY_MIB", mib.to_string())));
    variables
}

fn put_variables(request: &mut SubmitJobRequest, out: &Outgoing<'_>) {
    let ours = variables(out);
    let uri = out.checkpoint_uri.map(|uri| ("OSPREY_CHECKPOINT_URI", uri.to_owned()));
    if let Some(ecs) = &mut request.ecs_properties_override {
        for container in ecs.task_properties.iter_mut().flatten().flat_map(|t| t.containers.iter_mut().flatten()) {
            put_into(container.environment.get_or_insert_default(), &ours, uri.as_ref());
        }
    } else if let Some(pod) = request.eks_properties_override.as_mut().and_then(|e| e.pod_properties.as_mut()) {
        for container in pod.containers.iter_mut().flatten() {
            put_into_pod(container, &ours, uri.as_ref());
        }
    } else if let Some(nodes) = &mut request.node_overrides {
        for node in nodes.node_property_overrides.iter_mut().flatten() {
            let container = node.container_overrides.get_or_insert_default();
            put_into(container.environment.get_or_insert_default(), &ours, uri.as_ref());
        }
    } else if is_single_container(out.definition) {
        let container = request.container_overrides.get_or_insert_default();
        put_into(container.environment.get_or_insert_default(), &ours, uri.as_ref());
    }
}

/// `containerOverrides` is for jobs of one container; other kinds get variables only where they bring overrides.
fn is_single_container(definition: Option<&JobDefinition>) -> bool {
    definition.is_none_or(|d| d.ecs_properties.is_none() && d.eks_properties.is_none() && d.node_properties.is_none())
}

fn put_into(
    environment: &mut Vec<KeyValuePair>,
    ours: &[(&'static str, String)],
    checkpoint: Option<&(&'static str, String)>,
) {
    let given = checkpoint.filter(|(name, _)| !environment.iter().any(|pair| pair.name.as_deref() == Some(*name)));
    environment.retain(|pair| !ours.iter().any(|(name, _)| pair.name.as_deref() == Some(*name)));
    environment.extend(
        ours.iter()
            .chain(given)
            .map(|(name, value)| KeyValuePair { name: Some((*name).to_owned()), value: Some(value.clone()) }),
    );
}

fn put_into_pod(
    container: &mut EksContainerOverride,
    ours: &[(&'static str, String)],
    checkpoint: Option<&(&'static str, String)>,
) {
    let environment = container.env.get_or_insert_default();
    let given = checkpoint.filter(|(name, _)| !environment.iter().any(|variable| variable.name == *name));
    environment.retain(|variable| !ours.iter().any(|(name, _)| variable.name == *name));
    environment.extend(
        ours.iter()
            .chain(given)
            .map(|(name, value)| EksEnvironmentVariable { name: (*name).to_owned(), value: Some(value.clone()) }),
    );
}

/// Admission reads ` 2 ` as 2; Batch would refuse it.
fn trim_amounts(request: &mut SubmitJobRequest) {
    let of_job = request.container_overrides.iter_mut().filter_map(|c| c.resource_requirements.as_mut());
    let ecs = request.ecs_properties_override.iter_mut().flat_map(|e| e.task_properties.iter_mut().flatten());
    let of_tasks = ecs.flat_map(|t| t.containers.iter_mut().flatten()).filter_map(|c| c.resource_requirements.as_mut());
    let nodes = request.node_overrides.iter_mut().flat_map(|n| n.node_property_overrides.iter_mut().flatten());
    let of_nodes =
        nodes.filter_map(|n| n.container_overrides.as_mut()).filter_map(|c| c.resource_requirements.as_mut());
    for requirement in of_job.chain(of_tasks).chain(of_nodes).flatten() {
        requirement.value = requirement.value.trim().to_owned();
    }
}

/// Raises the memory of every container that the request can name. A job of several nodes or containers that brings no
/// overrides keeps its definition's: `containerOverrides` would be refused.
fn put_memory(request: &mut SubmitJobRequest, mib: u64, single_container: bool) {
    if let Some(ecs) = &mut request.ecs_properties_override {
        for container in ecs.task_properties.iter_mut().flatten().flat_map(|t| t.containers.iter_mut().flatten()) {
            put_memory_into(requirements_of_task(container), mib);
        }
    } else if let Some(nodes) = &mut request.node_overrides {
        for node in nodes.node_property_overrides.iter_mut().flatten() {
            put_memory_of_container(node.container_overrides.get_or_insert_default(), mib);
        }
    } else if single_container && request.eks_properties_override.is_none() {
        put_memory_of_container(request.container_overrides.get_or_insert_default(), mib);
    }
}

fn requirements_of_task(container: &mut TaskContainerOverrides) -> &mut Vec<ResourceRequirement> {
    container.resource_requirements.get_or_insert_default()
}

fn put_memory_of_container(container: &mut ContainerOverrides, mib: u64) {
    container.memory = None;
    put_memory_into(container.resource_requirements.get_or_insert_default(), mib);
}

fn put_memory_into(requirements: &mut Vec<ResourceRequirement>, mib: u64) {
    requirements.retain(|requirement| requirement.kind != "MEMORY");
    requirements.push(ResourceRequirement { kind: "MEMORY".to_owned(), value: mib.to_string() });
}
