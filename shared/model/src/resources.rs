//! What a job needs: GPUs, nodes, vCPUs and memory of one attempt, from the request and its job definition.
//!
//! GPUs of a job are the GPUs of a container (the request's, else the definition's), summed over the containers of a
//! node, summed over the nodes. An array's children need this each.

mod amount;
mod nodes;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definition::{
    ContainerProperties, EcsProperties, EksContainer, EksPodProperties, EksProperties, JobDefinition,
};
use crate::limits::{ARRAY_SIZE_MAX, NODES_MAX};
use crate::reason::{ReasonCode, Refusal};
use crate::request::{
    ContainerOverrides, EcsPropertiesOverride, EksContainerOverride, EksPropertiesOverride, EksResources,
    NodePropertyOverride, SubmitJobRequest, TaskContainerOverrides,
};
use amount::Amounts;

/// What one attempt of a job occupies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    /// GPUs of the node that has most of them.
    pub gpus_per_node: u32,
    /// Nodes; 1 for a job that isn't multi-node.
    pub nodes: u32,
    /// GPUs of all nodes.
    pub gpus: u32,
    /// vCPUs of all nodes, rounded up.
    pub vcpus: u32,
    /// Memory of all nodes in MiB.
    pub memory_mib: u64,
    /// Children of an array, each of which needs all of this; 1 for a job that is none.
    pub array_size: u32,
}

impl Demand {
    /// Reads what a job needs. The definition is what the request's `jobDefinition` names; without it, only what the
    /// request says counts.
    ///
    /// # Errors
    /// [`ReasonCode::InvalidResource`] for an amount that is no positive number or out of range, a resource named
    /// twice or unknown, or nodes that are no range; the first one.
    pub fn of(request: &SubmitJobRequest, definition: Option<&JobDefinition>) -> Result<Self, Refusal> {
        let (per_node, nodes, total) = if is_multi_node(request, definition) {
            nodes::amounts(request, definition)?
        } else {
            let one = node_amounts(&Base::of_job(definition), &Layer::of_job(request))?;
            (one, 1, one)
        };
        Ok(Self {
            gpus_per_node: amount::narrow(per_node.gpus),
            nodes,
            gpus: amount::narrow(total.gpus),
            vcpus: amount::narrow(total.vcpu_thousandths.div_ceil(1_000)),
            memory_mib: total.memory_mib,
            array_size: array_size(request),
        })
    }
}

/// Whether a job runs on several nodes at once, by its definition or its overrides.
#[must_use]
pub fn is_multi_node(request: &SubmitJobRequest, definition: Option<&JobDefinition>) -> bool {
    request.node_overrides.is_some() || definition.is_some_and(|definition| definition.node_properties.is_some())
}

/// A member that the definition's types keep as it came; `None` when it is absent or says something else.
pub(crate) fn part<T: DeserializeOwned>(other: &BTreeMap<String, Value>, name: &str) -> Option<T> {
    other.get(name).and_then(|value| serde_json::from_value(value.clone()).ok())
}

/// Children of the array. A size that Batch would refuse counts as the nearest it takes; admission refuses it.
fn array_size(request: &SubmitJobRequest) -> u32 {
    let size = request.array_properties.as_ref().and_then(|array| array.size).unwrap_or(1);
    u32::try_from(size.clamp(1, ARRAY_SIZE_MAX)).unwrap_or(1)
}

/// What the definition says of one node.
#[derive(Default)]
struct Base<'d> {
    container: Option<&'d ContainerProperties>,
    ecs: Option<EcsProperties>,
    eks: Option<EksProperties>,
    /// Where it stands, with a point behind it.
    path: String,
}

impl<'d> Base<'d> {
    fn of_job(definition: Option<&'d JobDefinition>) -> Self {
        let Some(definition) = definition else { return Self::default() };
        Self {
            container: definition.container_properties.as_ref(),
            ecs: definition.ecs_properties.clone(),
            eks: definition.eks_properties.clone(),
            path: String::new(),
        }
    }
}

/// What the request says differently of one node.
#[derive(Default)]
struct Layer<'r> {
    container: Option<&'r ContainerOverrides>,
    ecs: Option<&'r EcsPropertiesOverride>,
    eks: Option<&'r EksPropertiesOverride>,
    /// Where it stands, with a point behind it.
    path: String,
}

impl<'r> Layer<'r> {
    fn of_job(request: &'r SubmitJobRequest) -> Self {
        Self {
            container: request.container_overrides.as_ref(),
            ecs: request.ecs_properties_override.as_ref(),
            eks: request.eks_properties_override.as_ref(),
            path: String::new(),
        }
    }

    fn of_range(range: &'r NodePropertyOverride, index: usize) -> Self {
        Self {
            container: range.container_overrides.as_ref(),
            ecs: range.ecs_properties_override.as_ref(),
            eks: range.eks_properties_override.as_ref(),
            path: format!("nodeOverrides.nodePropertyOverrides[{index}]."),
        }
    }
}

/// Amounts of one node: of its one container, or of all containers of its task or pod.
fn node_amounts(base: &Base<'_>, layer: &Layer<'_>) -> Result<Amounts, Refusal> {
    if base.eks.is_some() || layer.eks.is_some() {
        pod_amounts(base, layer)
    } else if base.ecs.is_some() || layer.ecs.is_some() {
        task_amounts(base, layer)
    } else {
        let defined =
            base.container.map(|container| defined_amounts(container, &format!("{}containerProperties", base.path)));
        let given =
            layer.container.map(|container| given_amounts(container, &format!("{}containerOverrides", layer.path)));
        Ok(given.transpose()?.unwrap_or_default().or(defined.transpose()?.unwrap_or_default()))
    }
}

fn given_amounts(container: &ContainerOverrides, path: &str) -> Result<amount::Given, Refusal> {
    let listed = container.resource_requirements.as_deref().unwrap_or_default();
    let given = amount::requirements(listed, path)?;
    Ok(given.or_given(amount::deprecated(container.vcpus, container.memory, path)?))
}

fn defined_amounts(container: &ContainerProperties, path: &str) -> Result<amount::Given, Refusal> {
    let path = format!("job definition: {path}");
    let given = amount::requirements(&container.resource_requirements, &path)?;
    Ok(given.or_given(amount::deprecated(container.vcpus, container.memory, &path)?))
}

/// An ECS task: overrides go to the container of the same name.
fn task_amounts(base: &Base<'_>, layer: &Layer<'_>) -> Result<Amounts, Refusal> {
    let defined: Vec<&ContainerProperties> =
        base.ecs.iter().flat_map(|ecs| &ecs.task_properties).flat_map(|task| &task.containers).collect();
    let tasks = layer.ecs.and_then(|ecs| ecs.task_properties.as_deref()).unwrap_or_default();
    let given: Vec<&TaskContainerOverrides> =
        tasks.iter().filter_map(|task| task.containers.as_ref()).flatten().collect();
    let mut total = Amounts::default();
    for (index, container) in defined.iter().enumerate() {
        let path = format!("{}ecsProperties.taskProperties[0].containers[{index}]", base.path);
        let own = defined_amounts(container, &path)?;
        let position = given.iter().position(|over| over.name == container.name);
        total.add(task_override(&given, position, &layer.path)?.or(own));
    }
    if defined.is_empty() {
        for index in 0..given.len() {
            total.add(task_override(&given, Some(index), &layer.path)?.or(amount::Given::default()));
        }
    }
    Ok(total)
}

fn task_override(given: &[&TaskContainerOverrides], at: Option<usize>, path: &str) -> Result<amount::Given, Refusal> {
    let Some((index, container)) = at.and_then(|index| given.get(index).map(|container| (index, container))) else {
        return Ok(amount::Given::default());
    };
    let path = format!("{path}ecsPropertiesOverride.taskProperties[0].containers[{index}]");
    amount::requirements(container.resource_requirements.as_deref().unwrap_or_default(), &path)
}

/// What is read of a container of a pod; the definition's has members that the request's hasn't.
#[derive(Clone, Debug, Default, Deserialize)]
struct PodContainer {
    name: Option<String>,
    resources: Option<EksResources>,
}

impl From<&EksContainerOverride> for PodContainer {
    fn from(container: &EksContainerOverride) -> Self {
        Self { name: container.name.clone(), resources: container.resources.clone() }
    }
}

impl From<&EksContainer> for PodContainer {
    fn from(container: &EksContainer) -> Self {
        Self { name: container.name.clone(), resources: container.resources.clone() }
    }
}

/// An EKS pod: its containers run together; its init containers run before them, one at a time.
fn pod_amounts(base: &Base<'_>, layer: &Layer<'_>) -> Result<Amounts, Refusal> {
    let pod = base.eks.as_ref().and_then(|eks| eks.pod_properties.as_ref());
    let over = layer.eks.and_then(|eks| eks.pod_properties.as_ref());
    let read = |containers: Option<&Vec<EksContainerOverride>>| -> Vec<PodContainer> {
        containers.into_iter().flatten().map(PodContainer::from).collect()
    };
    let path = format!("{}eksPropertiesOverride.podProperties", layer.path);
    let own: Vec<PodContainer> = pod.into_iter().flat_map(|pod| &pod.containers).map(PodContainer::from).collect();
    let given = read(over.and_then(|over| over.containers.as_ref()));
    let own_init = pod.map(init_containers).unwrap_or_default();
    let given_init = read(over.and_then(|over| over.init_containers.as_ref()));
    let mut total = Amounts::default();
    for container in merged(&own, &given, &format!("{path}.containers"))? {
        total.add(container);
    }
    for container in merged(&own_init, &given_init, &format!("{path}.initContainers"))? {
        total.at_least(container);
    }
    Ok(total)
}

fn init_containers(pod: &EksPodProperties) -> Vec<PodContainer> {
    part(&pod.other, "initContainers").unwrap_or_default()
}

fn merged(own: &[PodContainer], given: &[PodContainer], path: &str) -> Result<Vec<Amounts>, Refusal> {
    let over = |index: usize| {
        given.get(index).map_or(Ok(amount::Given::default()), |container| {
            amount::pod(container.resources.as_ref(), &format!("{path}[{index}].resources"))
        })
    };
    if own.is_empty() {
        return (0..given.len()).map(|index| Ok(over(index)?.or(amount::Given::default()))).collect();
    }
    let mut amounts = Vec::new();
    for (index, container) in own.iter().enumerate() {
        let same = |over: &PodContainer| over.name == container.name || (over.name.is_none() && own.len() == 1);
        let defined =
            amount::pod(container.resources.as_ref(), &format!("job definition: containers[{index}].resources"))?;
        let given = given.iter().position(same).map_or(Ok(amount::Given::default()), over)?;
        amounts.push(given.or(defined));
    }
    Ok(amounts)
}

/// Nodes of a multi-node job: the override, else the definition's.
fn node_count(request: &SubmitJobRequest, definition: Option<&JobDefinition>) -> Result<u32, Refusal> {
    let given = request.node_overrides.as_ref().and_then(|nodes| nodes.num_nodes);
    let defined = definition.and_then(|definition| definition.node_properties.as_ref()).map(|nodes| nodes.num_nodes);
    let nodes = given.or(defined).unwrap_or(1);
    let path = if given.is_some() { "nodeOverrides.numNodes" } else { "job definition: nodeProperties.numNodes" };
    u32::try_from(nodes).ok().filter(|_| (1..=NODES_MAX).contains(&nodes)).ok_or_else(|| {
        let message = format!("`{path}` must be from 1 to {NODES_MAX} nodes; {nodes} was given");
        Refusal::new(ReasonCode::InvalidResource, message)
    })
}
