//! The order of the queue.

use std::cmp::Ordering;

use crate::rules::Strategy;
use crate::snapshot::Queued;

/// Which of two jobs comes first.
///
/// 1. By what the strategy is about: a higher priority, or a shorter run.
/// 2. By submission, since an earlier job has waited longer.
/// 3. By id, so that the order is total.
#[must_use]
pub fn compare(strategy: Strategy, a: &Queued, b: &Queued) -> Ordering {
    key(strategy, a).cmp(&key(strategy, b)).then(a.enqueued_ms.cmp(&b.enqueued_ms)).then(a.job.cmp(&b.job))
}

/// What the strategy is about, smallest first.
fn key(strategy: Strategy, job: &Queued) -> u64 {
    match strategy {
        Strategy::Fifo => 0,
        Strategy::Priority | Strategy::Backfill => u64::from(u32::MAX - job.priority),
        Strategy::Sjf => job.expected_ms,
    }
}

/// The jobs in their order.
pub(crate) fn ordered(strategy: Strategy, queued: &[Queued]) -> Vec<&Queued> {
    let mut jobs: Vec<&Queued> = queued.iter().collect();
    // A caller that keeps the queue in this order pays for one comparison a job.
    if !jobs.is_sorted_by(|a, b| compare(strategy, a, b).is_lt()) {
        jobs.sort_unstable_by(|a, b| compare(strategy, a, b));
    }
    jobs
}
