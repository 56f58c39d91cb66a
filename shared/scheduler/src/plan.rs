//! What a decision says. A plan leaves no choice to whoever acts on it.

use osprey_model::id::JobId;

pub use crate::preempt::{Opened, Receipt};
use crate::reason::WaitReason;
use crate::snapshot::Hold;

/// A cycle's output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Jobs to start, in the order decided.
    pub starts: Vec<Start>,
    /// Jobs to evict, and those that start in their place.
    pub evictions: Vec<Eviction>,
    /// GPUs kept for jobs that don't fit yet.
    pub reservations: Vec<Reservation>,
    /// Jobs that don't start, each with why, in the order of the queue. An array of which some children start is here
    /// too, for the rest.
    pub waiting: Vec<Waiting>,
    /// Urgent jobs that this pool can't get capacity for and another may; they are among the waiting.
    pub moves: Vec<JobId>,
    /// Jobs whose teams have used up their GPU-hours, and that the policy then gives to the tier of preemptible jobs; they
    /// are among the waiting.
    pub demotions: Vec<JobId>,
}

/// A job to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The job.
    pub job: JobId,
    /// Which of the waiting children of an array, counted from 0 in the order of their indices; `None` for the whole job.
    pub child: Option<u32>,
    /// Whether it goes on beyond its team's quota, until somebody within his own wants the GPUs.
    pub is_borrowed: bool,
    /// Where. Where Batch chooses ([`crate::snapshot::Landing::Anywhere`]) it is one place of many.
    pub holds: Vec<Hold>,
}

/// Running jobs that make room for one that waits.
///
/// Whoever acts on it records each victim's receipt, submits the start, and only then stops the victims: what they free is
/// held for that start. A victim that has ended by then has ended, and isn't counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// The job that starts in their place. It isn't among [`Plan::starts`].
    pub start: Start,
    /// The jobs that go, each as a whole; never none, and none that could be left out.
    pub victims: Vec<Receipt>,
    /// How long the job would wait in all without it, in milliseconds.
    pub predicted_wait_ms: u64,
    /// The wait above which so many evictions are worth it, in milliseconds.
    pub threshold_ms: u64,
    /// Whether it is known that no legal set of victims is cheaper; else the search ended before it had seen them all.
    pub is_cheapest: bool,
}

/// GPUs kept for a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The job.
    pub job: JobId,
    /// The earliest time at which it is expected to fit, milliseconds since 1970.
    pub at_ms: i64,
    /// Where it is expected to go.
    pub holds: Vec<Hold>,
}

/// A job that doesn't start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The job.
    pub job: JobId,
    /// Why.
    pub reason: WaitReason,
}
