//! Job definitions: what `DescribeJobDefinitions` answers and `RegisterJobDefinition` takes, as far as Osprey reads it.
//!
//! Members that Osprey does not read are kept in `other`, so a definition goes in and out without loss.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::request::{JobTimeout, KeyValuePair, ResourceRequirement, RetryStrategy};

/// A registered job definition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobDefinition {
    /// Name, at most 128 characters.
    pub job_definition_name: String,
    /// Revision, from 1; 0 while it is not registered.
    #[serde(default)]
    pub revision: u32,
    /// ARN with revision; empty while it is not registered.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub job_definition_arn: String,
    /// `ACTIVE` or `INACTIVE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// `container` or `multinode`.
    #[serde(rename = "type", default = "container_type")]
    pub kind: String,
    /// Priority inside one share, 0 to 9999.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling_priority: Option<i64>,
    /// Defaults of the placeholders `Ref::name`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Batch's own retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_strategy: Option<RetryStrategy>,
    /// The container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_properties: Option<ContainerProperties>,
    /// The nodes of a multi-node job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_properties: Option<NodeProperties>,
    /// An ECS job of several containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecs_properties: Option<EcsProperties>,
    /// An EKS pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eks_properties: Option<EksProperties>,
    /// Time limit of one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<JobTimeout>,
    /// Whether tags travel to the ECS task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub propagate_tags: Option<bool>,
    /// `EC2` or `FARGATE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub platform_capabilities: Vec<String>,
    /// Tags.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Every other member, as it came.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

fn container_type() -> String {
    "container".to_owned()
}

impl JobDefinition {
    /// Every role and service account that its containers get, each once, in order: ARNs, or names on EKS.
    #[must_use]
    pub fn roles(&self) -> Vec<&str> {
        let nodes = self.node_properties.iter().flat_map(|nodes| &nodes.node_range_properties);
        let tasks = self.ecs_properties.iter().flat_map(|ecs| &ecs.task_properties);
        let pods = self.eks_properties.iter().filter_map(|eks| eks.pod_properties.as_ref());
        let containers = self.container_properties.iter().chain(nodes.filter_map(|node| node.container.as_ref()));
        let containers = containers.chain(tasks.clone().flat_map(|task| &task.containers));
        let own = containers.flat_map(|one| one.job_role_arn.as_deref().into_iter().chain(role_members(&one.other)));
        let mut roles: Vec<&str> = own.collect();
        roles.extend(tasks.flat_map(|task| role_members(&task.other)));
        roles.extend(pods.flat_map(|pod| role_members(&pod.other)));
        roles.sort_unstable();
        roles.dedup();
        roles
    }
}

/// The members by which Batch names a role where no field of ours does.
fn role_members(other: &BTreeMap<String, Value>) -> impl Iterator<Item = &str> {
    ["executionRoleArn", "taskRoleArn", "serviceAccountName"].into_iter().filter_map(|name| other.get(name)?.as_str())
}

/// One container of a definition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerProperties {
    /// Image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Name, in a task of several containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// vCPUs; deprecated form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vcpus: Option<i64>,
    /// MiB; deprecated form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<i64>,
    /// Command and arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Role the job runs as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_role_arn: Option<String>,
    /// Environment variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<KeyValuePair>,
    /// GPU, VCPU and MEMORY.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_requirements: Vec<ResourceRequirement>,
    /// Every other member, as it came.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// The nodes of a multi-node definition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeProperties {
    /// Number of nodes.
    pub num_nodes: i64,
    /// Index of the main node.
    #[serde(default)]
    pub main_node: i64,
    /// Ranges and their containers.
    #[serde(default)]
    pub node_range_properties: Vec<NodeRangeProperty>,
}

/// One range of nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRangeProperty {
    /// Range such as `0:3` or `4:`.
    pub target_nodes: String,
    /// Container of these nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerProperties>,
    /// Every other member, as it came.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// An ECS job of several containers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EcsProperties {
    /// The tasks; Batch takes one.
    #[serde(default)]
    pub task_properties: Vec<EcsTaskProperties>,
}

/// One ECS task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EcsTaskProperties {
    /// Containers of the task.
    #[serde(default)]
    pub containers: Vec<ContainerProperties>,
    /// Every other member, as it came.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// An EKS job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EksProperties {
    /// The pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_properties: Option<EksPodProperties>,
}

/// An EKS pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EksPodProperties {
    /// Containers of the pod.
    #[serde(default)]
    pub containers: Vec<EksContainer>,
    /// Every other member, as it came.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// One container of an EKS pod. A definition holds more than a request may override.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EksContainer {
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Environment variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<crate::request::EksEnvironmentVariable>,
    /// Requests and limits; `nvidia.com/gpu` counts as GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<crate::request::EksResources>,
    /// Every other member, as it came.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eks_definition_keeps_what_a_request_may_not_override() {
        let text = r#"{"jobDefinitionName":"d","type":"container","eksProperties":{"podProperties":{"containers":
            [{"name":"main","image":"i","securityContext":{"privileged":false},
              "resources":{"limits":{"nvidia.com/gpu":"2"}}}]}}}"#;
        let definition: JobDefinition = serde_json::from_str(text).unwrap();
        let again: Value = serde_json::to_value(&definition).unwrap();
        let container = &again["eksProperties"]["podProperties"]["containers"][0];
        assert_eq!(container["securityContext"]["privileged"], false);
        assert_eq!(container["resources"]["limits"]["nvidia.com/gpu"], "2");
    }
}
