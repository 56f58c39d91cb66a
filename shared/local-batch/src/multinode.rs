//! What each node of a multi-node job runs and needs: definition and overrides, spelled out node by node.
//!
//! Source: the API reference, `NodeProperties`, `NodeRangeProperty`, `NodeOverrides` and `NodePropertyOverride`. Of
//! nested ranges the narrowest speaks for a node.

use osprey_model::definition::{JobDefinition, NodeProperties, NodeRangeProperty};
use osprey_model::request::{ContainerOverrides, NodeOverrides, NodePropertyOverride, SubmitJobRequest};
use serde_json::{Map, Value, json};

use crate::error::BatchError;
use crate::requirement::{Need, merged_container_of, merged_requirements, need_of};
use crate::validate;

/// Most nodes of one job.
pub const NODES_MAX: i64 = 1_000;
/// Most ranges of one definition or one request.
pub const RANGES_MAX: usize = 100;

/// A multi-node job, spelled out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Gang {
    /// Number of nodes.
    pub size: i64,
    /// Index of the main node.
    pub main: i64,
    runs: Vec<Run>,
}

/// Nodes in a row that are alike.
#[derive(Clone, Debug, PartialEq)]
struct Run {
    first: i64,
    last: i64,
    container: Map<String, Value>,
    need: Need,
}

impl Run {
    fn count(&self) -> i64 {
        self.last - self.first + 1
    }
}

/// First and last node of a range, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    first: i64,
    last: i64,
}

const OPEN: i64 = i64::MAX;

fn refuse<T>(message: impl Into<String>) -> Result<T, BatchError> {
    Err(BatchError::client(message))
}

/// Reads `0:3`, `4:`, `:3` or `2`.
fn range(text: &str) -> Result<Range, BatchError> {
    let (first, last) = text.split_once(':').unwrap_or((text, text));
    let number = |text: &str, open: i64| match text {
        "" => Some(open),
        digits => digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten(),
    };
    match (number(first, 0), number(last, OPEN)) {
        (Some(first), Some(last)) if first <= last && !text.is_empty() => Ok(Range { first, last }),
        _ => refuse(format!("targetNodes must be a range of nodes such as 0:3 or 4:, got {text:?}")),
    }
}

fn ranges<'t>(texts: impl ExactSizeIterator<Item = &'t str>) -> Result<Vec<Range>, BatchError> {
    if texts.len() > RANGES_MAX {
        return refuse(format!("A job must have at most {RANGES_MAX} ranges of nodes, got {}", texts.len()));
    }
    texts.map(range).collect()
}

/// The range that speaks for a node: of nested ones the narrowest, of equal ones the first.
fn narrowest(ranges: &[Range], node: i64) -> Option<usize> {
    let covering = ranges.iter().enumerate().filter(|(_, range)| (range.first..=range.last).contains(&node));
    covering.min_by_key(|(index, range)| (range.last - range.first, *index)).map(|(index, _)| index)
}

impl Gang {
    /// Spells out a request for a multi-node definition; `None` for any other.
    ///
    /// # Errors
    /// A ClientException when nodes, ranges, or what a container asks for are out of range.
    pub fn of(request: &SubmitJobRequest, definition: &JobDefinition) -> Result<Option<Self>, BatchError> {
        let Some(properties) = &definition.node_properties else {
            return match &request.node_overrides {
                Some(_) => refuse("nodeOverrides can only be specified for multi-node parallel jobs"),
                None => Ok(None),
            };
        };
        if request.container_overrides.is_some() {
            return refuse("containerOverrides can't be specified for multi-node parallel jobs; use nodeOverrides");
        }
        if request.array_properties.as_ref().is_some_and(|array| array.size.is_some()) {
            return refuse("Multi-node parallel jobs can't be array jobs");
        }
        Self::spelled_out(properties, request.node_overrides.as_ref()).map(Some)
    }

    /// Spells out the nodes of a definition, with what a request says differently.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn spelled_out(properties: &NodeProperties, overrides: Option<&NodeOverrides>) -> Result<Self, BatchError> {
        let defined = &properties.node_range_properties;
        let given = overrides.and_then(|o| o.node_property_overrides.as_deref()).unwrap_or_default();
        let of_definition = ranges(defined.iter().map(|range| range.target_nodes.as_str()))?;
        let of_request = ranges(given.iter().map(|range| range.target_nodes.as_str()))?;
        let size = size(properties, overrides.and_then(|o| o.num_nodes), &of_definition)?;
        let mut runs: Vec<Run> = Vec::new();
        let mut speaking = None;
        for node in 0..size {
            let now = (narrowest(&of_definition, node), narrowest(&of_request, node));
            match runs.last_mut().filter(|_| speaking == Some(now)) {
                Some(run) => run.last = node,
                None => {
                    let base = now.0.and_then(|index| defined.get(index));
                    runs.push(run(node, base, now.1.and_then(|index| given.get(index)))?);
                }
            }
            speaking = Some(now);
        }
        Ok(Self { size, main: properties.main_node, runs })
    }

    /// What all nodes need together.
    pub fn total(&self) -> Need {
        self.runs.iter().fold(Need::default(), |sum, run| Need {
            gpus: sum.gpus.saturating_add(run.need.gpus.saturating_mul(run.count())),
            vcpus_milli: sum.vcpus_milli.saturating_add(run.need.vcpus_milli.saturating_mul(run.count())),
            memory_mib: sum.memory_mib.saturating_add(run.need.memory_mib.saturating_mul(run.count())),
        })
    }

    /// What each node needs, as the store keeps it.
    pub fn needs(&self) -> String {
        let one = |run: &Run| [run.count(), run.need.gpus, run.need.vcpus_milli, run.need.memory_mib];
        json!(self.runs.iter().map(one).collect::<Vec<_>>()).to_string()
    }

    /// The member `nodeProperties` of DescribeJobs.
    pub fn detail(&self) -> Value {
        let one = |run: &Run| json!({"targetNodes": format!("{}:{}", run.first, run.last), "container": run.container});
        let runs: Vec<Value> = self.runs.iter().map(one).collect();
        json!({"numNodes": self.size, "mainNode": self.main, "nodeRangeProperties": runs})
    }

    /// Whether every node has a command.
    pub fn has_commands(&self) -> bool {
        let has = |run: &Run| run.container.get("command").and_then(Value::as_array).is_some_and(|c| !c.is_empty());
        self.runs.iter().all(has)
    }
}

/// The number of nodes, once everything that depends on it holds.
fn size(properties: &NodeProperties, asked: Option<i64>, ranges: &[Range]) -> Result<i64, BatchError> {
    let size = asked.unwrap_or(properties.num_nodes);
    if !(1..=NODES_MAX).contains(&size) {
        return refuse(format!("numNodes must be between 1 and {NODES_MAX}, got {size}"));
    }
    if !(0..size).contains(&properties.main_node) {
        return refuse(format!("mainNode {} must be fewer than numNodes {size}", properties.main_node));
    }
    if asked.is_some_and(|n| n != properties.num_nodes) && !ranges.iter().any(|range| range.last == OPEN) {
        return refuse("numNodes can only be overridden when a node range of the job definition has no upper boundary");
    }
    if let Some(beyond) = ranges.iter().find(|range| range.first >= size) {
        return refuse(format!("The node range from {} must begin below numNodes {size}", beyond.first));
    }
    match (0..size).find(|node| narrowest(ranges, *node).is_none()) {
        Some(node) => refuse(format!("The node ranges must account for all nodes; node {node} has none")),
        None => Ok(size),
    }
}

fn run(node: i64, base: Option<&NodeRangeProperty>, layer: Option<&NodePropertyOverride>) -> Result<Run, BatchError> {
    let foreign =
        base.is_some_and(|base| ["ecsProperties", "eksProperties"].iter().any(|k| base.other.contains_key(*k)));
    let foreign =
        foreign || layer.is_some_and(|l| l.ecs_properties_override.is_some() || l.eks_properties_override.is_some());
    if foreign {
        return refuse("The local Batch does not run ECS tasks or EKS pods on the nodes of a multi-node parallel job");
    }
    let container = base.and_then(|base| base.container.clone()).unwrap_or_default();
    let overrides: Option<&ContainerOverrides> = layer.and_then(|layer| layer.container_overrides.as_ref());
    validate::environment(&container.environment)?;
    let need = need_of(&merged_requirements(&container, overrides)).map_err(BatchError::client)?;
    Ok(Run { first: node, last: node, container: merged_container_of(&container, overrides), need })
}

/// Reads what [`Gang::needs`] wrote: one need a node.
pub(crate) fn needs_of(text: &str) -> Vec<Need> {
    let runs: Vec<[i64; 4]> = serde_json::from_str(text).unwrap_or_default();
    let nodes = |[count, gpus, vcpus_milli, memory_mib]: [i64; 4]| {
        let count = usize::try_from(count.clamp(0, NODES_MAX)).unwrap_or(0);
        std::iter::repeat_n(Need { gpus, vcpus_milli, memory_mib }, count)
    };
    runs.into_iter().flat_map(nodes).collect()
}

/// The container of one node in the member `nodeProperties`.
pub(crate) fn container_of(properties: &Value, node: i64) -> Value {
    let runs = properties.get("nodeRangeProperties").and_then(Value::as_array);
    let speaks = |run: &&Value| {
        let range = run.get("targetNodes").and_then(Value::as_str).and_then(|text| range(text).ok());
        range.is_some_and(|range| (range.first..=range.last).contains(&node))
    };
    let run = runs.into_iter().flatten().find(speaks);
    run.and_then(|run| run.get("container")).cloned().unwrap_or_else(|| json!({}))
}

#[cfg(test)]
#[path = "multinode_tests.rs"]
mod tests;
