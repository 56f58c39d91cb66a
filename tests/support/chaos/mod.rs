//! The chaos harness: the real handlers on a world made of memory, one seed a run.
//!
//! `run::run` drives `submit`, `requeue`, `watch` and `dead-letter` as futures over ports that behave like DynamoDB,
//! SQS and Batch at their worst: every call is an await point before and after its effect, where the invocation may be
//! delayed, overtaken, stalled for minutes or ended, and the call may fail before the effect or after it. A seed turns
//! a random part of the faults on ([`faults::Faults`]), picks sizes, policies, jobs and people. After an hour of virtual
//! time faults stop; then everything must settle within a bound, and the checkers ([`check`]) look at what is there.
//!
//! One seed is one run, byte for byte: time, chance and order come from the seed alone.

mod batch;
mod breakage;
mod broken;
pub mod check;
mod detail;
mod evictions;
pub mod faults;
mod journal;
mod observer;
mod orders;
mod people;
mod pools;
mod ports;
mod queues;
mod quota;
pub mod random;
mod run;
mod scenario;
mod script;
mod seeds;
mod senders;
mod store;
mod submission;
mod wiring;
mod world;

pub use breakage::Breakage;
pub use observer::Walked;
pub use run::{Invocation, SETTLED_MS_MAX, Stage};
pub use seeds::{Tally, run_seeds, seeds_until_caught};

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The rule that was broken, if one was.
    pub violation: Option<String>,
    /// Two equal runs have equal hashes.
    pub hash: u64,
    /// When everything was settled, milliseconds after faults stopped.
    pub settled_ms: Option<i64>,
    /// Jobs that were recorded.
    pub jobs: usize,
    /// Jobs that Batch made.
    pub batch_jobs: usize,
    /// Second Batch jobs of one attempt that the lag of lists made possible.
    pub extras: usize,
    /// Plans of pools, claims that were made under one, and jobs that went from the line of one pool to that of another.
    pub planned: [u64; 3],
    /// Runs that were told to go for other jobs.
    pub evictions: usize,
    /// Edges of the lifecycle that jobs took.
    pub walked: Walked,
    /// The run as a story, when one was asked for.
    pub story: Option<String>,
}

/// Runs a seed and checks what came of it.
#[must_use]
pub fn run_seed(seed: u64, planted: Option<Breakage>, with_story: bool) -> Outcome {
    let finished = run::run(seed, planted, with_story);
    let violation = check::all(&finished).err();
    let world = finished.world;
    let extras = world.store.items().iter().filter(|item| item.key.sort.starts_with("EXTRA#")).count();
    Outcome {
        violation,
        hash: world.journal.hash(),
        settled_ms: finished.settled_ms,
        jobs: world.observer.jobs.len(),
        batch_jobs: world.batch.jobs.len(),
        extras,
        planned: [world.pools.plans_made, world.pools.claims, world.pools.moves],
        evictions: world.evictions.seen.iter().filter(|eviction| eviction.goes_for.is_some()).count(),
        walked: world.observer.walked(),
        story: world.journal.into_story(),
    }
}
