//! Step 1, the number that counts: derived or lent, whichever is higher, and raised by waiting.

use crate::rules::{Aging, Rules, TierOrder, TierRules};
use crate::snapshot::Queued;

/// A point in the unit of [`Standing::level`]: aging at a thousandth of a point an hour raises a job by one unit each
/// millisecond, so that levels are whole numbers and the order of two jobs of one rate never changes by rounding.
pub const POINT: i64 = 3_600_000_000;

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The derived number or the highest lent one: what makes it urgent, and what its weight is made of.
    pub number: u32,
    /// What its wait has added, in units of [`POINT`].
    pub aging: i64,
    /// Whether its wait has raised it as far as it can: it then goes by submission.
    pub is_aged_out: bool,
    /// Whether it is urgent.
    pub is_urgent: bool,
    /// Whether it has waited so long that it goes before all others that aren't urgent, the oldest first.
    pub is_starving: bool,
    /// How its tier is ordered.
    pub order: TierOrder,
    /// What it is ordered by before everything else, in units of [`POINT`], the highest first.
    pub level: i64,
}

impl Standing {
    /// Where a job stands at a time, milliseconds since 1970. A clock that went back makes nobody wait for less than 0.
    #[must_use]
    pub fn of(job: &Queued, rules: &Rules, now_ms: i64) -> Self {
        let number = job.priority.max(job.lent);
        let is_urgent = rules.is_urgent(number);
        let tier = tier_of(job, number, rules);
        let order = tier.map_or(TierOrder::Strict, |tier| tier.order);
        let waited_ms = now_ms.saturating_sub(job.enqueued_ms).max(0);
        let (aging, is_aged_out) = tier.and_then(|tier| tier.aging).map_or((0, false), |a| aged(number, a, waited_ms));
        let level = match (order, tier) {
            (TierOrder::WeightedShortest, Some(tier)) if !is_aged_out => {
                let floor = tier.at_least.unwrap_or(0);
                points(if is_urgent { floor.max(rules.dive_above.saturating_add(1)) } else { floor })
            }
            // A wait passes a weighted tier only all at once, at the cap: the jobs of that tier don't rise one by one.
            _ if !is_aged_out && aging > 0 => (points(number) + aging).min(below_weighted(number, rules)),
            _ => points(number) + aging,
        };
        let is_starving = !is_urgent && rules.starving_after_ms.is_some_and(|after| job.waited_ms(now_ms) > after);
        // Right below the urgent jobs; one that waiting has raised above them stays there.
        let level = if is_starving { level.max(points(rules.dive_above.saturating_add(1)) - 1) } else { level };
        Self { number, aging, is_aged_out, is_urgent, is_starving, order, level }
    }
}

impl Standing {
    /// What the tier of a job that is neither urgent nor goes by age stands at, whatever its number, in units of [`POINT`].
    pub(crate) fn tier_level(&self, job: &Queued, rules: &Rules) -> i64 {
        points(tier_of(job, self.number, rules).and_then(|tier| tier.at_least).unwrap_or(0))
    }

    /// Whether its wait alone says when its turn comes: it goes by submission, and needn't leave the headroom free.
    #[must_use]
    pub const fn goes_by_age(&self) -> bool {
        self.is_aged_out || self.is_starving
    }
}

/// The tier whose rules a job follows: its own, or that of the number that it was lent.
pub(crate) fn tier_of<'r>(job: &Queued, number: u32, rules: &'r Rules) -> Option<&'r TierRules> {
    let own = rules.tiers.get(usize::from(job.tier)).filter(|_| job.lent <= job.priority);
    let reached = |tier: &&TierRules| tier.at_least.is_some_and(|at_least| number >= at_least);
    own.or_else(|| rules.tiers.iter().find(reached))
}

/// The highest level below every weighted tier that a number doesn't reach.
fn below_weighted(number: u32, rules: &Rules) -> i64 {
    let weighted = rules.tiers.iter().filter(|tier| tier.order == TierOrder::WeightedShortest);
    let above = weighted.filter_map(|tier| tier.at_least).filter(|at_least| *at_least > number).min();
    above.map_or(i64::MAX, |at_least| points(at_least) - 1)
}

/// What a wait adds, and whether it can't add more.
fn aged(number: u32, aging: Aging, waited_ms: i64) -> (i64, bool) {
    let most = points(aging.cap.saturating_sub(number));
    let earned = i64::from(aging.millipoints_per_hour).saturating_mul(waited_ms);
    (earned.min(most), most > 0 && earned >= most)
}

fn points(number: u32) -> i64 {
    i64::from(number) * POINT
}

#[cfg(test)]
mod tests {
    use osprey_model::id::JobId;

    use super::*;
    use crate::snapshot::Shape;

    const HOUR: i64 = 3_600_000;

    fn tier(name: &str, at_least: Option<u32>, order: TierOrder, aging: Option<Aging>) -> TierRules {
        TierRules { name: name.into(), at_least, order, aging, ..TierRules::default() }
    }

    fn rules(order: TierOrder) -> Rules {
        let aging = Some(Aging { millipoints_per_hour: 10_000, cap: 1_000 });
        let tiers = vec![
            tier("high", Some(800), order, None),
            tier("low", Some(0), order, aging),
            tier("spare", None, order, aging),
        ];
        Rules { tiers, dive_above: 850, ..Rules::default() }
    }

    fn job(priority: u32, lent: u32, tier: u16) -> Queued {
        let job = JobId::from_uuid(uuid::Uuid::from_u128(1));
        Queued { priority, lent, tier, ..Queued::new(job, Shape::gpus(1)) }
    }

    /// The level in points after so many hours.
    fn level(order: TierOrder, job: &Queued, hours: i64) -> i64 {
        Standing::of(job, &rules(order), hours * HOUR).level / POINT
    }

    #[test]
    fn a_strict_job_goes_by_its_number_and_rises_to_the_cap() {
        let job = job(450, 0, 1);
        assert_eq!([0, 10, 55, 100].map(|hours| level(TierOrder::Strict, &job, hours)), [450, 550, 1_000, 1_000]);
        assert!(!Standing::of(&job, &rules(TierOrder::Strict), 54 * HOUR).is_aged_out);
        assert!(Standing::of(&job, &rules(TierOrder::Strict), 55 * HOUR).is_aged_out);
    }

    #[test]
    fn a_weighted_job_stands_at_its_tier_until_its_wait_puts_it_first() {
        let order = TierOrder::WeightedShortest;
        assert_eq!([0, 54, 55].map(|hours| level(order, &job(450, 0, 1), hours)), [0, 0, 1_000]);
        // Urgent within its tier.
        assert_eq!([level(order, &job(850, 0, 0), 0), level(order, &job(851, 0, 0), 0)], [800, 851]);
    }

    #[test]
    fn a_wait_passes_a_weighted_tier_only_at_the_cap() {
        let mut rules = rules(TierOrder::Strict);
        rules.tiers[0].order = TierOrder::WeightedShortest;
        let level = |hours| Standing::of(&job(700, 0, 1), &rules, hours * HOUR).level;
        assert_eq!(
            [level(5), level(10), level(29), level(30)],
            [750 * POINT, 800 * POINT - 1, 800 * POINT - 1, 1_000 * POINT]
        );
    }

    #[test]
    fn a_lent_number_counts_as_ones_own_and_brings_its_tier() {
        let standing = Standing::of(&job(0, 900, 2), &rules(TierOrder::WeightedShortest), 0);
        assert_eq!((standing.number, standing.is_urgent, standing.level / POINT), (900, true, 851));
        // A lower one changes nothing.
        assert_eq!(level(TierOrder::Strict, &job(450, 300, 1), 0), 450);
    }

    #[test]
    fn a_number_above_the_cap_is_not_lowered_and_never_ages_out() {
        let mut job = job(1_200, 0, 1);
        job.enqueued_ms = -1_000_000 * HOUR;
        let standing = Standing::of(&job, &rules(TierOrder::Strict), 0);
        assert_eq!((standing.level / POINT, standing.is_aged_out), (1_200, false));
    }

    #[test]
    fn a_clock_that_went_back_takes_nothing_away() {
        let mut job = job(450, 0, 1);
        job.enqueued_ms = 1_000 * HOUR;
        let level = |now_ms| Standing::of(&job, &rules(TierOrder::Strict), now_ms).level / POINT;
        assert_eq!([i64::MIN, 0, 1_000 * HOUR].map(level), [450; 3]);
    }

    #[test]
    fn a_tier_that_is_gone_is_replaced_by_that_of_the_number() {
        let order = TierOrder::WeightedShortest;
        assert_eq!([level(order, &job(820, 0, 9), 0), level(order, &job(820, 0, u16::MAX), 0)], [800, 800]);
    }
}
