//! When a waiting job starts: the decision made again and again on the pool as it would become.
//!
//! Jobs end as a [`Pace`] says, what is decided starts and goes, and the decision is made anew, until it starts the job.
//! What is kept for a time ends, and who has run for its minimum may be evicted. Nobody comes meanwhile, no node is lost, and
//! no day begins anew but where a quota says when it does: it is a forecast.
//!
//! `pool` is the pool on its way.

mod pool;

use osprey_model::id::JobId;

use crate::change::DECISIONS_MAX;
use crate::decide;
use crate::plan::Plan;
use crate::rules::Rules;
use crate::snapshot::{Gate, Snapshot};
use pool::Pool;

/// Most decisions of a forecast. What is further off than that can't be foreseen.
pub const STEPS_MAX: u32 = DECISIONS_MAX / 2;
/// Looks of a pool are at least this far apart, in milliseconds, and at least this part of the time from now: a forecast
/// for next week needn't be right to the second.
const STEP_MS: i64 = 1_000;
const STEP_PART: i64 = 12;

/// How long runs take, beside what is expected of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// In percent of what is expected.
    pub run_percent: u32,
    /// How much longer a run goes on that is overdue, in percent of what it has run: nobody knows when it ends.
    pub overdue_percent: u32,
}

impl Pace {
    /// As expected.
    pub const P50: Self = Self { run_percent: 100, overdue_percent: 25 };
    /// Longer than expected: nearly four of five runs end by then, where two of three take between half and double of what is
    /// expected, which is their median.
    pub const P80: Self = Self { run_percent: 170, overdue_percent: 100 };
}

/// When a job starts at a pace, milliseconds since 1970; `None` when that can't be foreseen.
#[must_use]
pub fn starts_at(snapshot: &Snapshot, rules: &Rules, now_ms: i64, job: JobId, pace: Pace) -> Option<i64> {
    if snapshot.gate == Gate::Paused || !snapshot.queued.iter().any(|queued| queued.job == job) {
        return None;
    }
    let mut pool = Pool::new(snapshot, rules, now_ms, pace);
    let mut at_ms = now_ms;
    for _ in 0..STEPS_MAX {
        let plan = decide(pool.snapshot(), pool.rules(), at_ms);
        if starts(&plan, job) {
            return Some(at_ms);
        }
        pool.act(&plan, at_ms);
        let next_ms = pool.next_ms(at_ms)?;
        let step_ms = (at_ms.saturating_sub(now_ms) / STEP_PART).max(STEP_MS);
        at_ms = next_ms.max(at_ms.saturating_add(step_ms));
        pool.pass(at_ms);
    }
    None
}

/// Whether a plan starts a job, or a child of it.
fn starts(plan: &Plan, job: JobId) -> bool {
    let evictors = plan.evictions.iter().map(|eviction| &eviction.start);
    plan.starts.iter().chain(evictors).any(|start| start.job == job)
}

#[cfg(test)]
mod tests;
