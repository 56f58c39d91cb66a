//! Which numbers a policy can give at all: what a bound on waits is made of.

use crate::policy::Policy;
use crate::rule::Effect;

impl Policy {
    /// The least and the greatest number that derivation can give, taking any set of rules to match. Neither need be
    /// reached by a job.
    #[must_use]
    pub fn numbers(&self) -> (u32, u32) {
        let limits = self.derive_rules();
        let base = i64::from(limits.base);
        let mut now = (base, base);
        // What a final rule leaves.
        let mut left: Option<(i64, i64)> = None;
        for rule in self.rules() {
            let after = match &rule.effect {
                Effect::Add(number) => (now.0.saturating_add(*number), now.1.saturating_add(*number)),
                Effect::Set(number) => (*number, *number),
                Effect::Amount(amount) => {
                    let (low, high) = amount.range();
                    (now.0.saturating_add(low), now.1.saturating_add(high))
                }
            };
            if rule.is_final {
                left = Some(left.map_or(after, |left| hull(left, after)));
            } else {
                now = hull(now, after);
            }
        }
        let fallback = i64::from(limits.fallback);
        let (low, high) = hull(left.map_or(now, |left| hull(left, now)), (fallback, fallback));
        // A priority class may lower a number to just below any threshold, and to the floor.
        let class = self.tiers().iter().filter_map(|tier| tier.at_least()).min().unwrap_or(0);
        let low = low.min(class.into());
        (within(low, limits.floor, limits.ceiling), within(high, limits.floor, limits.ceiling))
    }
}

fn hull(a: (i64, i64), b: (i64, i64)) -> (i64, i64) {
    (a.0.min(b.0), a.1.max(b.1))
}

fn within(number: i64, floor: u32, ceiling: u32) -> u32 {
    // INVARIANT: between two numbers of 32 bits.
    u32::try_from(number.clamp(floor.into(), ceiling.into())).unwrap_or(ceiling)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{DEFAULT, FOUR_TIERS_SLA, INTERACTIVE_FIRST, STRICT_METADATA};

    fn numbers(rules: &str) -> (u32, u32) {
        let text = format!("name = \"t\"\n{rules}\n[[tier]]\nname = \"all\"\nat_least = 0\n");
        Policy::load(&text).unwrap_or_else(|errors| panic!("{errors:#?}")).policy.numbers()
    }

    #[test]
    fn rules_widen_what_can_come_out_and_floor_and_ceiling_bound_it() {
        let rule = |id: &str, effect: &str| format!("[[rule]]\nid = \"{id}\"\nwhen = \"job.gpus > 1\"\n{effect}\n");
        assert_eq!(numbers(""), (0, 500));
        assert_eq!(numbers(&rule("a", "set = 1000")), (0, 1000));
        assert_eq!(numbers(&(rule("a", "set = 1000") + &rule("b", "add = 200"))), (0, 1200));
        assert_eq!(numbers(&rule("a", "amount = \"-10 * lineage.failures\"")), (0, 500));
        assert_eq!(numbers(&rule("a", "amount = \"(job.gpus > 4 ? 7 : 3) - lineage.depth + 2 * 4\"")), (0, 515));
        assert_eq!(numbers(&rule("a", "amount = \"max(2, min(job.gpus, 50), -3) * 20\"")), (0, 1500));
        assert_eq!(numbers(&rule("a", "amount = \"job.gpus / 2\"")), (0, 9999));
        let last = rule("a", "set = 2000\nfinal = true") + &rule("b", "add = 100");
        assert_eq!(numbers(&last), (0, 2000));
        assert_eq!(numbers(&format!("[derive]\nfloor = 100\nceiling = 1100\n{}", rule("a", "add = 900"))), (100, 1100));
    }

    #[test]
    fn every_test_of_the_policies_that_ship_is_within_reach() {
        for text in [DEFAULT, INTERACTIVE_FIRST, FOUR_TIERS_SLA, STRICT_METADATA] {
            let policy = Policy::load(text).unwrap_or_else(|errors| panic!("{errors:#?}")).policy;
            let (low, high) = policy.numbers();
            for outcome in policy.run_tests() {
                assert!((low..=high).contains(&outcome.derivation.priority), "{}: {}", policy.name(), outcome.name);
            }
        }
    }
}
