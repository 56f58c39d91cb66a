//! The least changes that would start a waiting job in the next cycle, each one verified by [`crate::decide`] itself.
//!
//! A change is found by looking for the least of its kind, one file a kind, and is told only after the decision was made
//! again on the changed snapshot and started the job. `trial` makes these decisions and counts them; `apply` says what a
//! change changes; `bound` looks between what starts the job and what doesn't.
//!
//! What is guaranteed: every change, applied alone, starts the job. Where a number is told, the number before it (a GPU
//! count that may be asked for, a second of a run, a point of priority, a GPU or a GPU-hour of a quota) doesn't. Where the
//! effect of a kind isn't monotone a lesser change further off may do too: numbers are bisected, not tried one by one. Of
//! jobs that end, those that are told are the first after whose end it starts, and none of them could be left out as
//! long as they are few (`ends`).

mod apply;
mod bound;
mod duration;
mod ends;
mod gate;
mod gpus;
mod heads;
mod keep;
mod priority;
mod quota;
mod tell;
mod trial;

use osprey_model::id::{JobId, PoolName};

pub use quota::Unit;

use crate::reason::WaitReason;
use crate::rules::Rules;
use crate::snapshot::{Shape, Snapshot};
use trial::Trial;

/// Most decisions that a search for changes makes, so that it ends within about a second with 10,000 jobs in line: one
/// decision takes 0.9 ms with 4,001 of them and 39 ms with 100,000 (`docs/performance.md`).
pub const DECISIONS_MAX: u32 = 160;

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'s> {
    /// The pool.
    pub snapshot: &'s Snapshot,
    /// What the decision follows.
    pub rules: &'s Rules,
    /// When, milliseconds since 1970.
    pub now_ms: i64,
    /// The job.
    pub job: JobId,
    /// Why it waits, as the decision about the snapshot says.
    pub reason: WaitReason,
    /// GPUs of a node, where a job may only ask for a part of a node without a rest or for whole nodes; `None` where any
    /// number may be asked for.
    pub gpus_per_node: Option<u32>,
    /// Most decisions; [`DECISIONS_MAX`] is the usual number.
    pub decisions_max: u32,
}

/// What could be different. Each is a change of one thing, from what it is to what would start the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The job asks for fewer GPUs, or fewer nodes: the largest request that starts.
    Gpus {
        /// What it asks for.
        from: Shape,
        /// What it would.
        to: Shape,
    },
    /// An array that starts as one has fewer children: the most that start.
    Children {
        /// How many wait.
        from: u32,
        /// How many would.
        to: u32,
    },
    /// The job asks for fewer vCPUs on each node: the most that start.
    Vcpus {
        /// How many it asks for.
        from: u32,
        /// How many it would.
        to: u32,
    },
    /// The job declares that it runs for less, in milliseconds: the longest run that starts, in whole seconds.
    ExpectedMs {
        /// What is expected; `None` when nobody knows.
        from: Option<u64>,
        /// What would be.
        to: u64,
    },
    /// The job has a higher number: the lowest that starts. Its tier is then that of the number, unless it is the one of
    /// preemptible jobs.
    Priority {
        /// The number.
        from: u32,
        /// The higher one.
        to: u32,
    },
    /// The job is sent to another pool.
    Pool {
        /// Its pool.
        from: PoolName,
        /// The other one.
        to: PoolName,
    },
    /// A limit of the quota of the job's team, or user, is higher: the lowest that starts.
    Quota {
        /// Which, and in which unit.
        unit: Unit,
        /// What it is.
        from: u64,
        /// What it would be.
        to: u64,
    },
    /// Fewer GPUs are kept free for urgent jobs: the most that leave the job its place.
    Headroom {
        /// GPUs kept.
        from: u32,
        /// GPUs that would be.
        to: u32,
    },
    /// Less of the pool is reserved for other jobs, in percent, or in GPUs where a person keeps them for a time: the most that
    /// leaves the job its place.
    Reserve {
        /// The reserve: an index into those of the rules.
        reserve: u16,
        /// Percent, or GPUs.
        from: u32,
        /// What would be.
        to: u32,
    },
    /// Running jobs have ended, or are cancelled: the first of them after whose end it starts, without those that needn't
    /// have.
    Ends {
        /// The jobs, by when they are expected to end.
        jobs: Vec<JobId>,
        /// When the last of them is expected to, milliseconds since 1970; `None` when nobody knows.
        at_ms: Option<i64>,
    },
    /// Waiting jobs that are before it are cancelled or held.
    Without {
        /// The jobs, in their order.
        jobs: Vec<JobId>,
    },
    /// The pool goes on.
    Resume,
    /// The job's tier goes on in the pool.
    ResumeTier,
    /// Its back-off is over: it is released.
    Release {
        /// When it is over else, milliseconds since 1970.
        until_ms: i64,
    },
    /// The pool gets the capacity that it has asked for.
    Capacity,
    /// Work that isn't ours has ended.
    ForeignEnds {
        /// The node that it is on, by its number; `None` for every one.
        node: Option<u32>,
        /// GPUs that it holds.
        gpus: u32,
    },
    /// The pool has more nodes: the fewest that start it.
    MoreNodes {
        /// How many it has.
        from: u32,
        /// How many it would have.
        to: u32,
        /// What each of the new ones has.
        each: Shape,
    },
}

/// A change, and what the decision about the changed snapshot says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The change.
    pub change: Change,
    /// Jobs that would be evicted for it.
    pub victims: usize,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Changes, each of which starts the job alone; what the job's sender can do comes first.
    pub changes: Vec<Verified>,
    /// Decisions that were made.
    pub decisions: u32,
    /// Whether every kind of change was looked at to its end; else the decisions were used up.
    pub is_complete: bool,
}

/// Finds the least change of each kind that has to do with why a job waits.
///
/// A job that doesn't wait in the snapshot has none.
#[must_use]
pub fn least(question: &Question<'_>) -> Found {
    let Some(mut trial) = Trial::new(question) else { return Found { is_complete: true, ..Found::default() } };
    let mut changes = Vec::new();
    for kind in kinds(question.reason) {
        changes.extend(kind(&mut trial));
    }
    Found { changes, decisions: trial.decisions(), is_complete: !trial.is_exhausted() }
}

/// How the least change of a kind is found.
type Kind = fn(&mut Trial<'_>) -> Vec<Verified>;

/// The kinds that a reason calls for. The others can't do anything about it.
fn kinds(reason: WaitReason) -> Vec<Kind> {
    const REQUEST: [Kind; 3] = [gpus::fewer, gpus::fewer_children, gpus::fewer_vcpus];
    const PLACE: [Kind; 2] = [duration::shorter, priority::higher];
    let with = |rest: &[Kind]| REQUEST.iter().chain(&PLACE).chain(rest).copied().collect();
    match reason {
        WaitReason::PoolPaused => vec![gate::resume],
        WaitReason::TierPaused => vec![gate::resume_tier],
        WaitReason::NotYet { .. } => vec![gate::release],
        WaitReason::AlreadyRuns => Vec::new(),
        WaitReason::NoNodes | WaitReason::LargerThanPool { .. } | WaitReason::NoSuchNode { .. } => {
            REQUEST.iter().copied().chain([gate::more_nodes as Kind]).collect()
        }
        WaitReason::NoCapacity { .. } => with(&[ends::first, gate::capacity]),
        WaitReason::ForeignWork { .. } => with(&[ends::first, gate::foreign]),
        WaitReason::OverQuota { .. } => with(&[quota::higher, ends::first]),
        WaitReason::Headroom { .. } | WaitReason::HeadroomNodes { .. } => with(&[ends::first, keep::headroom]),
        WaitReason::Reserved { .. } => with(&[ends::first, keep::reserve]),
        WaitReason::BehindHead { .. } | WaitReason::WouldDelay { .. } => {
            with(&[heads::gone, ends::first, quota::higher])
        }
        WaitReason::NoRoom { .. }
        | WaitReason::Scattered { .. }
        | WaitReason::NoVcpus { .. }
        | WaitReason::InFlight { .. } => with(&[ends::first, quota::higher]),
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
