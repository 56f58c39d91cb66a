//! What a pool has: nodes, and what is taken of each, by whomever.

use osprey_model::pool::Pool;

use crate::CallError;

/// A pool's nodes as they are observed. The answer may lag behind by some seconds; whoever decides on it adds what it
/// has started since.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// The nodes that are up and take jobs, in a stable order. A node that is draining or not yet up is left out.
    pub nodes: Vec<NodeCapacity>,
    /// Nodes that aren't up and can be had: what is on its way, and what the environment may still grow by for jobs
    /// that are runnable.
    pub obtainable: u32,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeCapacity {
    /// What Batch's events call it: the last part of the ARN of its container instance.
    pub id: String,
    /// GPUs for jobs.
    pub gpus: u32,
    /// GPUs that are taken now, by our jobs and by others'.
    pub gpus_used: u32,
    /// vCPUs for jobs; `None` where they aren't known.
    pub vcpus: Option<u32>,
    /// vCPUs that are taken now.
    pub vcpus_used: u32,
}

/// Observes a pool (`batch:DescribeComputeEnvironments`, `ecs:ListContainerInstances` and
/// `ecs:DescribeContainerInstances`).
pub trait ObserveCapacity {
    /// The pool's nodes now.
    fn observe_capacity(&self, pool: &Pool) -> impl Future<Output = Result<Capacity, CallError>> + Send;
}

/// The node's id in the ARN of its container instance.
#[must_use]
pub fn node_id(container_instance_arn: &str) -> &str {
    container_instance_arn.rsplit('/').next().unwrap_or(container_instance_arn)
}

impl Capacity {
    /// GPUs of the nodes that are up.
    #[must_use]
    pub fn gpus(&self) -> u32 {
        self.nodes.iter().map(|node| node.gpus).sum()
    }
}
