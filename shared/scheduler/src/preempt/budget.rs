//! The disruption budget of a tier: so many evictions within its window.

use crate::plan::Plan;
use crate::rules::Rules;
use crate::snapshot::Snapshot;

/// How many more jobs of each tier may be evicted; `None` where nothing limits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Budget(Vec<Option<u32>>);

impl Budget {
    /// What is left of the budgets at a time, beside what a plan evicts already.
    pub fn of(snapshot: &Snapshot, rules: &Rules, plan: &Plan, now_ms: i64) -> Self {
        let left = (0_u16..).zip(&rules.tiers).map(|(place, tier)| {
            let most = tier.evictions_per_window?;
            let from_ms = now_ms.saturating_sub_unsigned(tier.eviction_window_ms);
            let before = snapshot.evicted.iter().filter(|was| was.tier == place && was.at_ms > from_ms).count();
            let now = plan.evictions.iter().flat_map(|eviction| &eviction.victims).filter(|v| v.tier == place).count();
            Some(most.saturating_sub(u32::try_from(before + now).unwrap_or(u32::MAX)))
        });
        Self(left.collect())
    }

    /// How many more of a tier may be evicted.
    pub fn left(&self, tier: u16) -> Option<u32> {
        self.0.get(usize::from(tier)).copied().flatten()
    }
}
