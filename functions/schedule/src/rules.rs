//! The rules of a decision, from the policy.

use osprey_model::pool::Pool;
use osprey_policy::Policy;
use osprey_scheduler::Rules;

/// What a cycle's decision about a pool follows under a policy.
#[must_use]
pub fn of(policy: &Policy, pool: &Pool) -> Rules {
    Rules::of(policy, &pool.name)
}
