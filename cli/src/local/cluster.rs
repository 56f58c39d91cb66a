//! The machine's make-believe cluster: nodes with GPU slots, an On-Demand and a Spot pool, a queue for each tier.

use std::collections::BTreeMap;
use std::path::Path;

use osprey_local_batch::{
    BatchError, ComputeEnvironmentOrder, ComputeEnvironmentRequest, EnvironmentKind, FairShare, JobQueueRequest,
    LocalBatch, ShareWeight,
};
use osprey_model::id::{PoolName, QueueName};
use osprey_model::pool::{CapacityType, Pool, PoolMode};
use osprey_pipeline::outgoing;
use osprey_policy::Policy;
use osprey_policy::rules::Tier;
use serde::{Deserialize, Serialize};

use crate::error::{CliError, ErrorCode, cause};
use crate::policy_file;

/// Most nodes; the local Batch keeps a row for each.
pub const NODES_MAX: u32 = 1_000;
/// Most GPU slots of a node.
pub const GPUS_PER_NODE_MAX: u32 = 64;
/// Where a state directory keeps what its run was started with.
const FILE: &str = "run.json";

/// Nodes of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// All nodes.
    pub nodes: u32,
    /// GPU slots of each.
    pub gpus_per_node: u32,
    /// Nodes among them that are Spot.
    pub spot_nodes: u32,
    /// How jobs reach the local Batch.
    #[serde(default = "usual_mode")]
    pub mode: PoolMode,
    /// Whether running jobs may be evicted for more urgent ones.
    #[serde(default = "usual_preemption")]
    pub preemption: bool,
}

/// Jobs are held until they are about to start: what the machine has is known.
#[must_use]
pub fn usual_mode() -> PoolMode {
    PoolMode::Held
}

/// Whom the policy opens may be evicted.
#[must_use]
pub fn usual_preemption() -> bool {
    true
}

impl Cluster {
    /// What is usual: one node in five is Spot, and at least one when there are several.
    #[must_use]
    pub fn usual_spot_nodes(nodes: u32) -> u32 {
        if nodes >= 2 { (nodes / 5).max(1) } else { 0 }
    }

    /// What stands for the nodes of a state that no run was in.
    #[must_use]
    pub fn alone() -> Self {
        Self { nodes: 1, gpus_per_node: 8, spot_nodes: 0, mode: usual_mode(), preemption: true }
    }

    /// GPU slots of all nodes.
    #[must_use]
    pub fn gpus(&self) -> u32 {
        self.nodes.saturating_mul(self.gpus_per_node)
    }

    fn nodes_of(&self, capacity: CapacityType) -> u32 {
        match capacity {
            CapacityType::OnDemand => self.nodes.saturating_sub(self.spot_nodes),
            CapacityType::Spot => self.spot_nodes,
        }
    }

    /// The pools that have nodes: `local`, then `local-spot`.
    #[must_use]
    pub fn pools(&self, policy: &Policy) -> Vec<Pool> {
        [("local", CapacityType::OnDemand), ("local-spot", CapacityType::Spot)]
            .into_iter()
            .filter(|(_, capacity)| self.nodes_of(*capacity) > 0)
            .map(|(name, capacity)| self.pool(name, capacity, policy))
            .collect()
    }

    /// What a person should know whose nodes are all Spot: which tiers have nowhere to go.
    #[must_use]
    pub fn warning(&self, policy: &Policy) -> Option<String> {
        let stays_out = |tier: &&Tier| !is_open(tier, CapacityType::Spot);
        let names: Vec<String> =
            policy.tiers().iter().filter(stays_out).map(|tier| format!("`{}`", tier.name)).collect();
        if self.nodes_of(CapacityType::OnDemand) > 0 || names.is_empty() {
            return None;
        }
        let names = names.join(", ");
        Some(format!(
            "all {} nodes are Spot, and the policy keeps tiers {names} off Spot: their jobs are refused",
            self.nodes
        ))
    }

    fn pool(&self, name: &str, capacity: CapacityType, policy: &Policy) -> Pool {
        let shape = ComputeEnvironmentRequest::default();
        let queues = policy
            .tiers()
            .iter()
            .filter(|tier| is_open(tier, capacity))
            .map(|tier| (tier.name.clone(), QueueName::new(format!("osprey-{name}-{}", tier.name))));
        Pool {
            name: PoolName::new(name),
            mode: self.mode,
            capacity,
            gpus_per_node: self.gpus_per_node,
            nodes_max: Some(self.nodes_of(capacity)),
            vcpus_per_node: Some(shape.vcpus_per_node),
            memory_mib_per_node: Some(shape.memory_mib_per_node),
            queues: queues.collect::<BTreeMap<_, _>>(),
            fair_share: true,
            preemption: self.preemption,
        }
    }

    /// Sets up environments and queues in the local Batch, or brings those that are there to this.
    ///
    /// # Errors
    /// When the local Batch refuses, such as another node shape while jobs run.
    pub fn set_up(&self, batch: &LocalBatch, policy: &Policy) -> Result<(), CliError> {
        let pools = self.pools(policy);
        pools.iter().try_for_each(|pool| set_up_pool(batch, pool, policy)).map_err(|error: BatchError| {
            CliError::new(ErrorCode::StateUnusable, format!("the local Batch can't be set up: {error}"))
                .help("a state directory keeps its nodes while jobs run; take another one with `--state DIR`")
        })
    }
}

/// Every tier may go on On-Demand nodes; only those that the policy opens to it go on Spot.
fn is_open(tier: &Tier, capacity: CapacityType) -> bool {
    tier.capacity.contains(&capacity)
}

fn set_up_pool(batch: &LocalBatch, pool: &Pool, policy: &Policy) -> Result<(), BatchError> {
    let environment = format!("osprey-{}", pool.name);
    batch.ensure_compute_environment(&ComputeEnvironmentRequest {
        compute_environment_name: environment.clone(),
        kind: match pool.capacity {
            CapacityType::OnDemand => EnvironmentKind::Ec2,
            CapacityType::Spot => EnvironmentKind::Spot,
        },
        nodes: pool.nodes_max.unwrap_or(0),
        gpus_per_node: pool.gpus_per_node,
        ..ComputeEnvironmentRequest::default()
    })?;
    for (tier, rank) in policy.tiers().iter().rev().zip(1_i64..) {
        let Some(queue) = pool.queues.get(&tier.name) else { continue };
        let share = ShareWeight { share_identifier: outgoing::share(tier.name.as_str()), weight_factor: Some(1.0) };
        let fair_share = FairShare { share_decay_seconds: 0, compute_reservation: 0, share_distribution: vec![share] };
        batch.ensure_scheduling_policy(queue.as_str(), &fair_share)?;
        batch.ensure_job_queue(&JobQueueRequest {
            job_queue_name: queue.to_string(),
            priority: rank,
            scheduling_policy: Some(queue.to_string()),
            compute_environment_order: vec![ComputeEnvironmentOrder {
                order: 1,
                compute_environment: environment.clone(),
            }],
            ..JobQueueRequest::default()
        })?;
    }
    Ok(())
}

/// What a run was started with; kept in its state directory for those who join it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The nodes.
    pub cluster: Cluster,
    /// Text of the policy.
    pub policy: String,
}

impl Kept {
    /// Reads what was kept; `None` where no run was.
    ///
    /// # Errors
    /// When the file is there and can't be read.
    pub fn load(dir: &Path) -> Result<Option<Self>, CliError> {
        let path = dir.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(&path, &cause(&error))),
        };
        serde_json::from_str(&text).map(Some).map_err(|fault| unusable(&path, &fault.to_string()))
    }

    /// Keeps it. A reader sees the old or the new, never a part.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn save(&self, dir: &Path) -> Result<(), CliError> {
        let (path, new) = (dir.join(FILE), dir.join(format!("{FILE}.new")));
        let text = serde_json::to_string_pretty(self).map_err(|fault| unusable(&path, &fault.to_string()))?;
        std::fs::write(&new, text)
            .and_then(|()| std::fs::rename(&new, &path))
            .map_err(|error| unusable(&path, &cause(&error)))
    }

    /// The policy.
    ///
    /// # Errors
    /// When a newer version no longer takes it.
    pub fn policy(&self, dir: &Path) -> Result<Policy, CliError> {
        policy_file::parse(&self.policy, &dir.join(FILE).display().to_string())
    }
}

fn unusable(path: &Path, fault: &str) -> CliError {
    CliError::new(ErrorCode::StateUnusable, format!("`{}` can't be used: {fault}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_node_in_five_is_spot() {
        for (nodes, spot) in [(1, 0), (2, 1), (3, 1), (9, 1), (10, 2), (25, 5)] {
            assert_eq!(Cluster::usual_spot_nodes(nodes), spot, "{nodes} nodes");
        }
    }

    #[test]
    fn pools_have_a_queue_for_each_tier_that_is_open_to_them() {
        let policy = policy_file::load(None).unwrap();
        let pools =
            Cluster { nodes: 3, gpus_per_node: 8, spot_nodes: 1, mode: usual_mode(), preemption: true }.pools(&policy);
        let queues = |pool: &Pool| pool.queues.values().map(QueueName::to_string).collect::<Vec<_>>();
        let [local, spot] = pools.as_slice() else { panic!("{pools:?}") };
        assert_eq!((local.nodes_max, spot.nodes_max), (Some(2), Some(1)));
        assert_eq!(queues(local).len(), 4);
        assert!(queues(local).contains(&"osprey-local-critical".to_owned()));
        assert_eq!(queues(spot), ["osprey-local-spot-preemptible"]);
    }

    #[test]
    fn tiers_that_have_nowhere_to_go_are_told() {
        let policy = policy_file::load(None).unwrap();
        let warning = |spot_nodes| {
            Cluster { nodes: 2, gpus_per_node: 8, spot_nodes, mode: usual_mode(), preemption: true }.warning(&policy)
        };
        assert_eq!(warning(1), None);
        let want = "all 2 nodes are Spot, and the policy keeps tiers `critical`, `production`, `experimental` off Spot: \
                    their jobs are refused";
        assert_eq!(warning(2).unwrap(), want);
    }

    #[test]
    fn without_spot_nodes_there_is_one_pool() {
        let policy = policy_file::load(None).unwrap();
        assert_eq!(
            Cluster { nodes: 1, gpus_per_node: 8, spot_nodes: 0, mode: usual_mode(), preemption: true }
                .pools(&policy)
                .len(),
            1
        );
    }
}
