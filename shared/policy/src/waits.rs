//! How long later jobs can pass a waiting one: the worst wait that the order itself can cause.
//!
//! A bound is a promise about the order, whatever else is submitted: after it a job goes before everything that came
//! later, and waits only for what was there before it. How long that takes is a matter of how much work there is and
//! how long it runs, which no order can change.

use osprey_model::id::TierName;

use crate::policy::Policy;
use crate::rules::{Takes, Tier};

/// What a tier's jobs can be made to wait by those that come later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierWait {
    /// The tier.
    pub tier: TierName,
    /// The lowest number that its jobs have: what the bound is made for.
    pub number: u32,
    /// How long.
    pub bound: WaitBound,
}

/// How long later jobs can pass a waiting one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitBound {
    /// At most so long, in milliseconds.
    Within(u64),
    /// For ever.
    Never(Unbounded),
}

/// Why there is no bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unbounded {
    /// A wait raises nobody.
    NoAging,
    /// The cap is no higher than a number that others may have.
    CapTooLow {
        /// The cap.
        cap: u32,
        /// The number.
        highest: u32,
    },
    /// Another tier's jobs may be raised above the cap.
    CapBelow {
        /// The cap.
        cap: u32,
        /// The other tier.
        other: TierName,
        /// Its cap.
        other_cap: u32,
    },
}

impl Policy {
    /// The worst wait of each tier, in the order of the tiers.
    #[must_use]
    pub fn waits(&self) -> Vec<TierWait> {
        let (lowest, highest) = self.numbers();
        let of = |tier: &Tier| {
            let number = match tier.takes {
                Takes::AtLeast(at_least) => at_least.max(lowest),
                Takes::Preemptible => lowest,
            };
            TierWait { tier: tier.name.clone(), number, bound: self.bound(tier, number, highest) }
        };
        self.tiers().iter().map(of).collect()
    }

    fn bound(&self, tier: &Tier, number: u32, highest: u32) -> WaitBound {
        let Some(aging) = tier.aging else { return WaitBound::Never(Unbounded::NoAging) };
        let cap = aging.cap;
        if cap <= highest {
            return WaitBound::Never(Unbounded::CapTooLow { cap, highest });
        }
        let caps = self.tiers().iter().filter_map(|tier| tier.aging.map(|aging| (tier, aging.cap)));
        if let Some((other, other_cap)) = caps.filter(|(_, other)| *other > cap).max_by_key(|(_, cap)| *cap) {
            return WaitBound::Never(Unbounded::CapBelow { cap, other: other.name.clone(), other_cap });
        }
        // INVARIANT: a rate of 0 is no aging.
        aging.reaches_cap_after_ms(number).map_or(WaitBound::Never(Unbounded::NoAging), WaitBound::Within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bounds of two tiers, from 800 and from 0, with these keys.
    fn bounds(high: &str, low: &str) -> Vec<WaitBound> {
        let text = format!(
            "name = \"t\"\n[[rule]]\nid = \"p\"\nwhen = \"job.gpus > 1\"\nset = 1000\n\
             [[tier]]\nname = \"high\"\nat_least = 800\n{high}\n[[tier]]\nname = \"low\"\nat_least = 0\n{low}\n"
        );
        let policy = Policy::load(&text).unwrap_or_else(|errors| panic!("{errors:#?}")).policy;
        policy.waits().into_iter().map(|wait| wait.bound).collect()
    }

    #[test]
    fn the_policies_that_ship_let_nobody_be_passed_for_longer_than_five_weeks_or_say_so() {
        use crate::policy::{DEFAULT, FOUR_TIERS_SLA, INTERACTIVE_FIRST, STRICT_METADATA, STRICT_ORDER};
        for text in [DEFAULT, FOUR_TIERS_SLA, INTERACTIVE_FIRST, STRICT_METADATA] {
            let policy = Policy::load(text).unwrap_or_else(|errors| panic!("{errors:#?}")).policy;
            for TierWait { tier, bound, .. } in policy.waits() {
                assert!(
                    matches!(bound, WaitBound::Within(ms) if ms <= 35 * 24 * HOUR_MS),
                    "{tier} of {}: {bound:?}",
                    policy.name()
                );
            }
        }
        let strict = Policy::load(STRICT_ORDER).unwrap_or_else(|errors| panic!("{errors:#?}")).policy;
        assert!(
            strict.order().unbounded_wait
                && strict.waits().iter().all(|wait| wait.bound == WaitBound::Never(Unbounded::NoAging))
        );
    }

    const HOUR_MS: u64 = 3_600_000;

    #[test]
    fn a_wait_is_bounded_once_it_can_raise_a_job_above_every_number() {
        let found = bounds("aging = 1\naging_cap = 1001", "aging = 10\naging_cap = 1001");
        assert_eq!(found, [WaitBound::Within(201 * HOUR_MS), WaitBound::Within(1001 * HOUR_MS / 10)]);
    }

    #[test]
    fn without_aging_or_below_what_others_reach_there_is_no_bound() {
        let never = |why| WaitBound::Never(why);
        assert_eq!(bounds("", "aging = 0\naging_cap = 1001"), [never(Unbounded::NoAging), never(Unbounded::NoAging)]);
        let low = never(Unbounded::CapTooLow { cap: 1000, highest: 1000 });
        assert_eq!(bounds("", "aging = 5\naging_cap = 1000").last(), Some(&low));
        let below = Unbounded::CapBelow { cap: 1001, other: "high".into(), other_cap: 2000 };
        let found = bounds("aging = 1\naging_cap = 2000", "aging = 5\naging_cap = 1001");
        assert_eq!(found, [WaitBound::Within(1_200 * HOUR_MS), never(below)]);
    }
}
