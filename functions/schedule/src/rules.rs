//! The rules of a decision, from the policy.

use osprey_model::pool::Pool;
use osprey_pipeline::order::Orders;
use osprey_policy::Policy;
use osprey_scheduler::Rules;
use osprey_scheduler::rules::{Reserve, Strategy};

/// What a cycle's decision about a pool follows under a policy: `osprey`, which evicts whom the policy opens to more urgent
/// work; in a pool whose preemption is off `backfill`, which evicts nobody and is the same otherwise.
#[must_use]
pub fn of(policy: &Policy, pool: &Pool) -> Rules {
    let strategy = if pool.preemption { Strategy::Osprey } else { Strategy::Backfill };
    Rules { strategy, ..Rules::of(policy, &pool.name) }
}

/// The rules with what people have kept of the pool for teams at a time, milliseconds since 1970: reserves like those of
/// the policy, for a while.
#[must_use]
pub fn with_orders(mut rules: Rules, orders: &Orders, now_ms: i64) -> Rules {
    rules.quota.reserves.extend(orders.kept_at(now_ms).map(|kept| Reserve {
        name: kept_for(&kept.team),
        gpus: Some(kept.gpus),
        until_ms: Some(kept.until),
        ..Reserve::default()
    }));
    rules
}

/// The name of what is kept for a team.
pub(crate) fn kept_for(team: &str) -> String {
    format!("kept for team {team}")
}
