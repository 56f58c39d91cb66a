//! What came out: when each job ran, and the sums that metrics need of the time in between.

/// One job's fate. Times are milliseconds since the first submission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// First start; `None` for a job that never started.
    pub start_ms: Option<u64>,
    /// Last end; `None` for a job that never ended.
    pub end_ms: Option<u64>,
    /// Times that it was stopped for others.
    pub preemptions: u32,
    /// Times that it lost its host.
    pub host_losses: u32,
    /// Times that it failed.
    pub failures: u32,
}

impl Outcome {
    /// Times that it was stopped before it was done.
    #[must_use]
    pub fn stops(&self) -> u32 {
        self.preemptions + self.host_losses + self.failures
    }
}

/// A run of a job, from a start to a stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The job, by its place in the workload.
    pub job: usize,
    /// When it started.
    pub start_ms: u64,
    /// When it stopped.
    pub end_ms: u64,
    /// Nodes and the GPUs of each; empty where nodes don't matter.
    pub nodes: Vec<(u32, u32)>,
    /// Why it stopped.
    pub end: SegmentEnd,
    /// Whether its start evicted others.
    pub is_dive: bool,
}

/// Why a run of a job stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentEnd {
    /// The job was done.
    Done,
    /// It was stopped for others.
    Preempted,
    /// Its host was lost.
    HostLost,
    /// It failed.
    Failed,
}

/// Sums over time, in milliseconds and GPU-milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// GPU-time that there was.
    pub capacity_gpu_ms: u128,
    /// The same while at least one job waited.
    pub backlogged_capacity_gpu_ms: u128,
    /// Time in which at least one job waited.
    pub backlogged_ms: u64,
    /// GPU-time held while at least one job waited.
    pub backlogged_gpu_ms: u128,
    /// GPU-time free on nodes of which others were held, while at least one job waited.
    pub stranded_gpu_ms: u128,
    /// GPU-time of work that was done and lost, with the cost of restarts.
    pub lost_gpu_ms: u128,
}

/// A schedule: one outcome for each job of the workload, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Outcomes.
    pub outcomes: Vec<Outcome>,
    /// Sums over time.
    pub sums: Sums,
    /// Every run, in the order of their ends; empty unless asked for.
    pub segments: Vec<Segment>,
}

impl Schedule {
    /// Preemptions of all jobs.
    #[must_use]
    pub fn preemptions(&self) -> u64 {
        self.outcomes.iter().map(|outcome| u64::from(outcome.preemptions)).sum()
    }
}
