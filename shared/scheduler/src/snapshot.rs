//! What a decision looks at: one pool at one moment. Times are milliseconds since 1970.

use osprey_model::id::JobId;

/// A pool at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The nodes; their place in the list is their number.
    pub nodes: Vec<Node>,
    /// What holds GPUs: running jobs, and dispatched ones from the moment of their claim.
    pub running: Vec<Running>,
    /// Jobs that wait, in any order. The order of [`crate::compare`] is the quickest to decide about.
    pub queued: Vec<Queued>,
}

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// GPUs that jobs can hold; 0 for a node that takes no more jobs and has none.
    pub gpus: u32,
}

/// GPUs of one node, as a job holds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hold {
    /// The node's number.
    pub node: u32,
    /// GPUs.
    pub gpus: u32,
}

/// A job that holds GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The job.
    pub job: JobId,
    /// What it holds.
    pub holds: Vec<Hold>,
    /// When it is expected to end. One that is overdue is expected to end at any moment.
    pub expected_end_ms: i64,
}

/// A job that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// The job.
    pub job: JobId,
    /// The derived priority, 0 to 9999.
    pub priority: u32,
    /// When it was submitted. A requeue doesn't change it.
    pub enqueued_ms: i64,
    /// Not to be started before.
    pub not_before_ms: i64,
    /// GPUs that it needs, all at once.
    pub gpus: u32,
    /// How long it is expected to run once it starts, in milliseconds.
    pub expected_ms: u64,
}

impl Snapshot {
    /// GPUs of the pool.
    #[must_use]
    pub fn gpus(&self) -> u32 {
        self.nodes.iter().map(|node| node.gpus).sum()
    }
}
