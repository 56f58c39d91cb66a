//! The rules of a decision, from the policy.

use osprey_model::pool::Pool;
use osprey_policy::Policy;
use osprey_scheduler::Rules;
use osprey_scheduler::rules::Strategy;

/// What a cycle's decision about a pool follows under a policy: `osprey`, which evicts whom the policy opens to more urgent
/// work; in a pool whose preemption is off `backfill`, which evicts nobody and is the same otherwise.
#[must_use]
pub fn of(policy: &Policy, pool: &Pool) -> Rules {
    let strategy = if pool.preemption { Strategy::Osprey } else { Strategy::Backfill };
    Rules { strategy, ..Rules::of(policy, &pool.name) }
}
