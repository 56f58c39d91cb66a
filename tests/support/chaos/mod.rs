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
pub mod faults;
mod journal;
mod observer;
mod people;
mod ports;
mod queues;
mod random;
mod run;
mod scenario;
mod script;
mod store;
mod submission;
mod wiring;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

pub use breakage::Breakage;
pub use run::SETTLED_MS_MAX;

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The rule that was broken, if one was.
    pub violation: Option<String>,
    /// Two equal runs have equal hashes.
    pub hash: u64,
    /// When everything was settled, milliseconds after faults stopped.
    pub settled_ms: Option<i64>,
    /// Jobs that Batch made.
    pub batch_jobs: usize,
    /// Second Batch jobs of one attempt that the lag of lists made possible.
    pub extras: usize,
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
        batch_jobs: world.batch.jobs.len(),
        extras,
        story: world.journal.into_story(),
    }
}

/// What came of many runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Seeds that passed.
    pub passed: u64,
    /// Seeds that failed.
    pub failed: u64,
    /// Jobs that Batch made.
    pub batch_jobs: u64,
    /// Second Batch jobs among them.
    pub extras: u64,
    /// The longest time until everything was settled, milliseconds.
    pub settled_ms_max: i64,
}

impl Tally {
    fn count(&mut self, outcome: &Outcome) {
        let failed = outcome.violation.is_some();
        self.passed += u64::from(!failed);
        self.failed += u64::from(failed);
        self.batch_jobs += outcome.batch_jobs as u64;
        self.extras += outcome.extras as u64;
        self.settled_ms_max = self.settled_ms_max.max(outcome.settled_ms.unwrap_or(0));
    }
}

/// Runs `seeds` seeds from `first` on with so many threads; `tell` hears of each seed that fails.
pub fn run_seeds(
    first: u64,
    seeds: u64,
    threads: usize,
    planted: Option<Breakage>,
    tell: &(dyn Fn(u64, &str) + Sync),
) -> Tally {
    let next = AtomicU64::new(first);
    let end = first.saturating_add(seeds);
    let tally = Mutex::new(Tally::default());
    let work = || loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            return;
        }
        let outcome = run_seed(seed, planted, false);
        tally.lock().unwrap_or_else(PoisonError::into_inner).count(&outcome);
        if let Some(violation) = &outcome.violation {
            tell(seed, violation);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    tally.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Plants a breakage and runs seeds until one fails: how many that took, and the rule that was broken.
#[must_use]
pub fn seeds_until_caught(breakage: Breakage, first: u64, within: u64) -> Option<(u64, String)> {
    (0..within).find_map(|count| {
        let violation = run_seed(first + count, Some(breakage), false).violation?;
        Some((count + 1, violation))
    })
}
