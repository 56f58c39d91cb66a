//! Facts: everything a rule may look at, gathered before the decision and never during it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::metadata::Metadata;

/// All facts of one derivation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// `job.*`.
    pub job: JobFacts,
    /// `lineage.*`.
    pub lineage: LineageFacts,
    /// `team.*`.
    pub team: TeamFacts,
    /// `now.*` comes from this instant, in UTC.
    pub now: Timestamp,
}

/// Facts of the request itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobFacts {
    /// What tags and variables say.
    pub metadata: Metadata,
    /// GPUs of the whole job: containers × nodes, not multiplied by the array size.
    pub gpus: u32,
    /// vCPUs of the whole job, rounded up.
    pub vcpus: u32,
    /// Memory of the whole job in MiB.
    pub memory_mib: u64,
    /// Nodes; 1 for a job that isn't multi-node.
    pub nodes: u32,
    /// Children of an array; 1 for a job that is none.
    pub array_size: u32,
    /// `jobName`.
    pub name: String,
    /// `jobDefinition` as requested.
    pub definition: String,
    /// Tags as given, without ours.
    pub tags: BTreeMap<String, String>,
}

/// What happened to the job and its ancestors before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LineageFacts {
    /// Attempts started.
    pub attempts: u32,
    /// Attempts that count as failures.
    pub failures: u32,
    /// Attempts that Osprey stopped for more urgent work.
    pub preemptions: u32,
    /// Attempts that lost their host.
    pub host_losses: u32,
    /// Ancestors by `parent-job-id`, nearest first.
    pub depth: u32,
    /// Run time of the parent's last attempt in seconds; 0 without a parent or before it ended.
    pub parent_runtime_seconds: u64,
    /// Whether the attempt before this one was preempted.
    pub retry_of_preempted: bool,
    /// GPU-hours lost to failures of this job.
    pub wasted_gpu_hours: f64,
}

/// What the job's team uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TeamFacts {
    /// GPUs its jobs hold now.
    pub gpus_running: u32,
    /// GPU-hours since midnight UTC.
    pub gpu_hours_day: f64,
    /// GPU-hours of the last seven days, today included.
    pub gpu_hours_week: f64,
    /// Share of its GPU-hours lost to failures over seven days, 0 to 1.
    pub waste_ratio: f64,
}
