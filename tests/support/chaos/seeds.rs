//! Many seeds on several threads. What is told of them is in the order of the seeds, so that it is the same, byte for
//! byte, however many threads there are.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::breakage::Breakage;
use super::{Outcome, Walked, run_seed};

/// What came of many runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Seeds that passed.
    pub passed: u64,
    /// Seeds that failed.
    pub failed: u64,
    /// Jobs that were recorded.
    pub jobs: u64,
    /// Jobs that Batch made.
    pub batch_jobs: u64,
    /// Second Batch jobs among them.
    pub extras: u64,
    /// Plans of pools, claims that were made under one, and jobs that went from the line of one pool to that of another.
    pub planned: [u64; 3],
    /// Runs that were told to go for other jobs.
    pub evictions: u64,
    /// The longest time until everything was settled, milliseconds.
    pub settled_ms_max: i64,
    /// Edges of the lifecycle that jobs took.
    pub walked: Walked,
    /// Two equal runs of the same seeds have equal hashes.
    pub hash: u64,
}

impl Tally {
    fn count(&mut self, outcome: &Outcome) {
        let failed = outcome.violation.is_some();
        self.passed += u64::from(!failed);
        self.failed += u64::from(failed);
        self.jobs += outcome.jobs as u64;
        self.batch_jobs += outcome.batch_jobs as u64;
        self.extras += outcome.extras as u64;
        self.planned.iter_mut().zip(outcome.planned).for_each(|(sum, planned)| *sum += planned);
        self.evictions += outcome.evictions as u64;
        self.settled_ms_max = self.settled_ms_max.max(outcome.settled_ms.unwrap_or(0));
        self.walked = self.walked.and(outcome.walked);
        self.hash = self.hash.rotate_left(1) ^ outcome.hash;
    }
}

/// Hears of each seed that failed, with the rule that it broke.
pub type Tell<'a> = dyn Fn(u64, &str) + Sync + 'a;

/// Outcomes in the order of their seeds: one that comes early waits for those before it.
struct Ledger<'a> {
    next: u64,
    early: BTreeMap<u64, Outcome>,
    tally: Tally,
    tell: &'a Tell<'a>,
}

impl Ledger<'_> {
    fn take(&mut self, seed: u64, outcome: Outcome) {
        self.early.insert(seed, outcome);
        while let Some(outcome) = self.early.remove(&self.next) {
            self.tally.count(&outcome);
            if let Some(violation) = &outcome.violation {
                (self.tell)(self.next, violation);
            }
            self.next += 1;
        }
    }
}

/// Runs `seeds` seeds from `first` on with so many threads; `tell` hears of each seed that fails, in their order.
pub fn run_seeds(first: u64, seeds: u64, threads: usize, planted: Option<Breakage>, tell: &Tell<'_>) -> Tally {
    let next = AtomicU64::new(first);
    let end = first.saturating_add(seeds);
    let ledger = Mutex::new(Ledger { next: first, early: BTreeMap::new(), tally: Tally::default(), tell });
    on_threads(threads, &|| {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return;
            }
            let outcome = run_seed(seed, planted, false);
            enter(&ledger).take(seed, outcome);
        }
    });
    ledger.into_inner().unwrap_or_else(PoisonError::into_inner).tally
}

/// Plants a breakage and runs seeds until one fails: how many that took, and the rule that was broken.
#[must_use]
pub fn seeds_until_caught(breakage: Breakage, first: u64, within: u64, threads: usize) -> Option<(u64, String)> {
    let next = AtomicU64::new(1);
    let caught: Mutex<Option<(u64, String)>> = Mutex::new(None);
    on_threads(threads, &|| {
        loop {
            let count = next.fetch_add(1, Ordering::Relaxed);
            // Only seeds before the first one that failed so far can still be the first.
            if count > within || enter(&caught).as_ref().is_some_and(|(first, _)| *first < count) {
                return;
            }
            let Some(violation) = run_seed(first + count - 1, Some(breakage), false).violation else { continue };
            let mut caught = enter(&caught);
            if caught.as_ref().is_none_or(|(first, _)| count < *first) {
                *caught = Some((count, violation));
            }
        }
    });
    caught.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn on_threads(threads: usize, work: &(dyn Fn() + Sync)) {
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
}

fn enter<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
