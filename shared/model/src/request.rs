//! The job message: Batch's `SubmitJob` request, every member, in the API's camelCase.
//!
//! Source of every field: the Batch API reference, `SubmitJob`. Members that are absent stay absent when the
//! request is written again, so a request goes in and out without loss.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A `SubmitJob` request as a user sends it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubmitJobRequest {
    /// Name of the job, at most 128 characters.
    pub job_name: String,
    /// Queue, or for Osprey the pool or tier queue asked for; may be left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_queue: Option<String>,
    /// Share the job is charged to in a fair-share queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_identifier: Option<String>,
    /// Priority inside one share, 0 to 9999.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_priority_override: Option<i64>,
    /// Makes the job an array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array_properties: Option<ArrayProperties>,
    /// Jobs that must succeed first, at most 20.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<Vec<JobDependency>>,
    /// Job definition: name, `name:revision`, or ARN.
    pub job_definition: String,
    /// Values for the definition's placeholders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<BTreeMap<String, String>>,
    /// What differs from the definition's container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_overrides: Option<ContainerOverrides>,
    /// What differs for a multi-node job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_overrides: Option<NodeOverrides>,
    /// Batch's own retries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_strategy: Option<RetryStrategy>,
    /// Whether tags travel to the ECS task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub propagate_tags: Option<bool>,
    /// Time limit of one attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<JobTimeout>,
    /// Tags, at most 50.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
    /// What differs for an EKS job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eks_properties_override: Option<EksPropertiesOverride>,
    /// What differs for an ECS job of several containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecs_properties_override: Option<EcsPropertiesOverride>,
    /// What differs in consumable resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumable_resource_properties_override: Option<ConsumableResourceProperties>,
}

/// Size of an array job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArrayProperties {
    /// Number of children, 2 to 10,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
}

/// One job that must succeed first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobDependency {
    /// The job waited for; absent for `SEQUENTIAL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// `N_TO_N` or `SEQUENTIAL`, for arrays.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// What differs from the definition's container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContainerOverrides {
    /// vCPUs; deprecated by Batch in favour of `resourceRequirements`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vcpus: Option<i64>,
    /// MiB; deprecated by Batch in favour of `resourceRequirements`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<i64>,
    /// Command and arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Instance type, multi-node jobs only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// Environment variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<Vec<KeyValuePair>>,
    /// GPU, VCPU and MEMORY.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_requirements: Option<Vec<ResourceRequirement>>,
}

/// A name and a value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyValuePair {
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// An amount of one resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceRequirement {
    /// The amount as text: GPUs, vCPUs, or MiB.
    pub value: String,
    /// `GPU`, `VCPU` or `MEMORY`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// What differs for a multi-node job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeOverrides {
    /// Number of nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_nodes: Option<i64>,
    /// Overrides of node ranges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_property_overrides: Option<Vec<NodePropertyOverride>>,
}

/// Overrides of one range of nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodePropertyOverride {
    /// Range such as `0:3`.
    pub target_nodes: String,
    /// Container of these nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_overrides: Option<ContainerOverrides>,
    /// ECS task of these nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecs_properties_override: Option<EcsPropertiesOverride>,
    /// Instance types of these nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_types: Option<Vec<String>>,
    /// EKS pod of these nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eks_properties_override: Option<EksPropertiesOverride>,
    /// Consumable resources of these nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumable_resource_properties_override: Option<ConsumableResourceProperties>,
}

/// Batch's own retries.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetryStrategy {
    /// Attempts in all, 1 to 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i64>,
    /// At most five rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluate_on_exit: Option<Vec<EvaluateOnExit>>,
}

/// One rule of a retry strategy; all its conditions must match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EvaluateOnExit {
    /// Pattern on the job's status reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_status_reason: Option<String>,
    /// Pattern on the container's reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_reason: Option<String>,
    /// Pattern on the exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_exit_code: Option<String>,
    /// `RETRY` or `EXIT`, in any letter case.
    pub action: String,
}

/// Time limit of one attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobTimeout {
    /// Seconds, at least 60 on Batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_duration_seconds: Option<i64>,
}

/// What differs for an EKS job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EksPropertiesOverride {
    /// The pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_properties: Option<EksPodPropertiesOverride>,
}

/// What differs in an EKS pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EksPodPropertiesOverride {
    /// Containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containers: Option<Vec<EksContainerOverride>>,
    /// Containers that run first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init_containers: Option<Vec<EksContainerOverride>>,
    /// Labels, annotations, namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<EksMetadata>,
}

/// What differs in one EKS container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EksContainerOverride {
    /// Which container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Entry point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// Environment variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<EksEnvironmentVariable>>,
    /// Requests and limits; `nvidia.com/gpu` counts as GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<EksResources>,
}

/// A name and a value of an EKS container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EksEnvironmentVariable {
    /// Name.
    pub name: String,
    /// Value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Resources of an EKS container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EksResources {
    /// Upper bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<BTreeMap<String, String>>,
    /// Reserved amounts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<BTreeMap<String, String>>,
}

/// Metadata of an EKS pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EksMetadata {
    /// Labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// What differs for an ECS job of several containers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EcsPropertiesOverride {
    /// The tasks; Batch takes one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_properties: Option<Vec<TaskPropertiesOverride>>,
}

/// What differs in one ECS task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskPropertiesOverride {
    /// Containers of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containers: Option<Vec<TaskContainerOverrides>>,
}

/// What differs in one container of an ECS task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskContainerOverrides {
    /// Command and arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Environment variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<Vec<KeyValuePair>>,
    /// Which container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// GPU, VCPU and MEMORY.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_requirements: Option<Vec<ResourceRequirement>>,
}

/// Consumable resources of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConsumableResourceProperties {
    /// The list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumable_resource_list: Option<Vec<ConsumableResourceRequirement>>,
}

/// An amount of one consumable resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConsumableResourceRequirement {
    /// Name or ARN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumable_resource: Option<String>,
    /// Amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantity: Option<i64>,
}
