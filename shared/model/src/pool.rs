//! Pools: what a job can be sent to. Wiring, not policy.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{PoolName, QueueName, TierName};

/// One compute environment with one GPUs-per-node shape, and its tier queues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pool {
    /// Its name.
    pub name: PoolName,
    /// How jobs reach Batch.
    pub mode: PoolMode,
    /// What its capacity can do to a job.
    pub capacity: CapacityType,
    /// GPUs of one node; 0 for a pool without GPUs.
    pub gpus_per_node: u32,
    /// Most nodes it can have; `None` where that isn't known.
    pub nodes_max: Option<u32>,
    /// Most vCPUs of one node; `None` where that isn't known.
    pub vcpus_per_node: Option<u32>,
    /// Most memory of one node in MiB; `None` where that isn't known.
    pub memory_mib_per_node: Option<u64>,
    /// The job queue of each tier.
    pub queues: BTreeMap<TierName, QueueName>,
    /// Whether its queues are fair-share (they take share and priority) or FIFO (they take neither).
    pub fair_share: bool,
    /// Whether its cycles may evict running jobs for more urgent ones, where the policy lets those.
    #[serde(default = "may_evict")]
    pub preemption: bool,
}

fn may_evict() -> bool {
    true
}

/// How jobs reach Batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PoolMode {
    /// Decide and log only; submit as asked.
    Observe,
    /// Derive, route and submit at once.
    Direct,
    /// Hold jobs until they are about to start.
    Held,
    /// Submit as asked, decide nothing.
    PassThrough,
}

impl PoolMode {
    /// Every mode.
    pub const ALL: [Self; 4] = [Self::Observe, Self::Direct, Self::Held, Self::PassThrough];

    /// The word in configuration and messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Direct => "direct",
            Self::Held => "held",
            Self::PassThrough => "pass-through",
        }
    }

    /// Whether a job goes to Batch as its sender asked, wherever it was asked for.
    #[must_use]
    pub fn submits_as_asked(self) -> bool {
        matches!(self, Self::Observe | Self::PassThrough)
    }
}

/// What a pool's capacity can do to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityType {
    /// Instances stay.
    OnDemand,
    /// Instances may be taken back at two minutes' notice.
    Spot,
}

impl Pool {
    /// GPUs of the whole pool; `None` where the number of nodes isn't known.
    #[must_use]
    pub fn gpus(&self) -> Option<u32> {
        self.nodes_max.map(|nodes| nodes.saturating_mul(self.gpus_per_node))
    }
}
