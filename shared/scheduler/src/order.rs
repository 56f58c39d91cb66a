//! Step 2, the order of the queue.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use osprey_model::id::JobId;

use crate::priority::Standing;
use crate::rules::{Rules, Strategy, TierOrder};
use crate::snapshot::{Queued, Snapshot};

/// What jobs are ordered by; the least comes first. It ends in the job's id, so no two jobs are equal.
///
/// 1. The level: the number with what waiting has added; in a weighted tier the tier's threshold, so that the next
///    line decides among its jobs, until waiting has raised a job to the cap.
/// 2. In a weighted tier Smith's ratio, expected run × √GPUs ÷ weight: short, small and important work first, which keeps
///    the sum of weighted waits low.
/// 3. The expected run of what waits for the job, longest first: the critical path of a graph. Not for jobs at the cap,
///    which go by submission, so that none is passed for ever.
/// 4. Submission, since an earlier job has waited longer.
/// 5. The id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    level: Reverse<i64>,
    ratio: u64,
    path_ms: Reverse<u64>,
    enqueued_ms: i64,
    job: JobId,
}

impl Key {
    /// The key of a job at a time, milliseconds since 1970.
    #[must_use]
    pub fn of(job: &Queued, rules: &Rules, now_ms: i64) -> Self {
        let key = Self { level: Reverse(0), ratio: 0, path_ms: Reverse(0), enqueued_ms: job.enqueued_ms, job: job.job };
        match rules.strategy {
            Strategy::Fifo => key,
            Strategy::Priority => Self { level: Reverse(job.priority.into()), ..key },
            Strategy::Sjf => Self { ratio: job.expected_ms.unwrap_or(rules.unknown_ms), ..key },
            Strategy::Backfill | Strategy::Osprey => Self::by_rules(job, rules, now_ms, key),
        }
    }

    fn by_rules(job: &Queued, rules: &Rules, now_ms: i64, key: Self) -> Self {
        let standing = Standing::of(job, rules, now_ms);
        let ratio = match standing.order {
            TierOrder::WeightedShortest if !standing.goes_by_age() => ratio(job, standing.number, rules),
            _ => 0,
        };
        let path_ms = Reverse(if standing.goes_by_age() { u64::MAX } else { job.critical_path_ms });
        Self { level: Reverse(standing.level), ratio, path_ms, ..key }
    }
}

/// Smith's ratio as a whole number that orders like it: the bits of a number with a fraction that isn't negative rise
/// with it. Square root, product and quotient are exactly rounded everywhere, so every machine has the same order.
fn ratio(job: &Queued, number: u32, rules: &Rules) -> u64 {
    let run_ms = job.expected_ms.unwrap_or(rules.unknown_ms).max(1);
    let gpus = if job.array.is_some_and(|array| array.singly) { job.shape.all_gpus() } else { job.all_gpus() };
    let work = run_ms as f64 * f64::from(gpus.max(1)).sqrt();
    (work / f64::from(number.saturating_add(rules.weight_base).max(1))).to_bits()
}

/// The waiting jobs of a pool in their order: team by team where the rules say so.
///
/// Jobs that are urgent, or whose wait alone says when their turn comes, keep their place; all others of a tier go to the
/// team that has used least of late by its weight. Each job that a team already has in the order counts for it as if it had
/// run, so that a team doesn't come with all of its jobs at once (start-time fair queueing). Within a team the order is
/// that of [`ordered`].
#[must_use]
pub fn of_snapshot<'s>(snapshot: &'s Snapshot, rules: &Rules, now_ms: i64) -> Vec<&'s Queued> {
    let queue = ordered(&snapshot.queued, rules, now_ms);
    if !rules.quota.fair_share || snapshot.teams.is_empty() {
        return queue;
    }
    let mut used: BTreeMap<Option<u16>, u64> = BTreeMap::new();
    let mut tagged: Vec<(Reverse<i64>, u64, usize, &Queued)> = Vec::with_capacity(queue.len());
    for (place, job) in queue.into_iter().enumerate() {
        let standing = Standing::of(job, rules, now_ms);
        if standing.is_urgent || standing.goes_by_age() {
            tagged.push((Reverse(standing.level), 0, place, job));
            continue;
        }
        let team = job.charge.team.and_then(|team| snapshot.teams.get(usize::from(team)));
        let share = used.entry(job.charge.team).or_insert_with(|| team.map_or(0, |team| team.share_gpu_ms));
        let tag = *share;
        let work = job.expected_ms.unwrap_or(rules.unknown_ms).saturating_mul(job.all_gpus().into());
        *share = share.saturating_add(work / u64::from(team.map_or(1, |team| team.weight.max(1))));
        tagged.push((Reverse(standing.tier_level(job, rules)), tag, place, job));
    }
    tagged.sort_unstable_by_key(|(level, tag, place, _)| (*level, *tag, *place));
    tagged.into_iter().map(|(.., job)| job).collect()
}

/// The waiting jobs in their order, whosever they are.
#[must_use]
pub fn ordered<'s>(queued: &'s [Queued], rules: &Rules, now_ms: i64) -> Vec<&'s Queued> {
    let key = |job: &Queued| Key::of(job, rules, now_ms);
    // A caller that keeps the queue in this order pays for one key a job.
    if queued.iter().map(key).is_sorted() {
        return queued.iter().collect();
    }
    let mut keyed: Vec<(Key, &Queued)> = queued.iter().map(|job| (key(job), job)).collect();
    keyed.sort_unstable_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, job)| job).collect()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::*;
    use crate::rules::{Aging, TierRules};
    use crate::snapshot::Shape;

    const HOUR: i64 = 3_600_000;

    fn id(number: u128) -> JobId {
        JobId::from_uuid(uuid::Uuid::from_u128(number))
    }

    fn rules(high: TierOrder, low: TierOrder) -> Rules {
        let aging = Some(Aging { millipoints_per_hour: 10_000, cap: 2_000 });
        let tier = |name: &str, at_least, order| TierRules {
            name: name.into(),
            at_least,
            order,
            aging,
            ..TierRules::default()
        };
        let tiers = vec![tier("high", Some(800), high), tier("low", Some(0), low), tier("spare", None, low)];
        Rules { tiers, dive_above: 800, ..Rules::default() }
    }

    /// Jobs by (id, number, tier, GPUs, minutes, hour of submission) in their order at hour 10.
    fn order(rules: &Rules, jobs: &[(u128, u32, u16, u32, u64, i64)]) -> Vec<u128> {
        let queued: Vec<Queued> = jobs
            .iter()
            .map(|(number, priority, tier, gpus, minutes, hour)| Queued {
                priority: *priority,
                tier: *tier,
                enqueued_ms: hour * HOUR,
                expected_ms: Some(minutes * 60_000),
                ..Queued::new(id(*number), Shape::gpus(*gpus))
            })
            .collect();
        let place = |job: &Queued| jobs.iter().map(|job| job.0).find(|number| id(*number) == job.job).unwrap();
        ordered(&queued, rules, 10 * HOUR).into_iter().map(place).collect()
    }

    #[test]
    fn a_strict_tier_goes_by_number_with_its_age_and_then_by_submission() {
        let rules = rules(TierOrder::Strict, TierOrder::Strict);
        // Job 3 has waited 6 hours longer than job 2, which is worth 60 points.
        let jobs = [(1, 900, 0, 8, 600, 9), (2, 550, 1, 1, 1, 9), (3, 500, 1, 8, 600, 3), (4, 900, 0, 1, 1, 9)];
        assert_eq!(order(&rules, &jobs), [1, 4, 3, 2]);
    }

    #[test]
    fn a_weighted_tier_starts_short_small_and_important_work_first() {
        let rules = rules(TierOrder::Strict, TierOrder::WeightedShortest);
        let jobs = [
            (1, 900, 0, 64, 6_000, 9), // strict and urgent: first, whatever it takes
            (2, 500, 1, 4, 60, 9),     // 60 × 2 ÷ 600 = 0.2
            (3, 500, 1, 1, 60, 9),     // 60 × 1 ÷ 600 = 0.1
            (4, 0, 2, 1, 30, 9),       // 30 × 1 ÷ 100 = 0.3
            (5, 700, 1, 4, 60, 9),     // 60 × 2 ÷ 800 = 0.15
        ];
        assert_eq!(order(&rules, &jobs), [1, 3, 5, 2, 4]);
    }

    #[test]
    fn a_job_at_the_cap_goes_first_and_the_oldest_of_them_before_the_others() {
        let mut rules = rules(TierOrder::Strict, TierOrder::WeightedShortest);
        for tier in &mut rules.tiers {
            tier.aging = Some(Aging { millipoints_per_hour: 200_000, cap: 1_300 });
        }
        let jobs =
            [(1, 1_200, 0, 1, 1, 10), (2, 500, 1, 1, 1, 10), (3, 500, 1, 256, 9_000, 4), (4, 0, 2, 64, 9_000, 3)];
        assert_eq!(order(&rules, &jobs), [4, 3, 1, 2]);
    }

    #[test]
    fn a_longer_critical_path_breaks_ties_and_an_unknown_run_is_taken_for_the_usual_one() {
        let rules = rules(TierOrder::Strict, TierOrder::Strict);
        let job = |number, critical_path_ms| Queued { critical_path_ms, ..Queued::new(id(number), Shape::gpus(1)) };
        let queued = [job(1, 5), job(2, 9), job(3, 5)];
        let numbers: Vec<JobId> = ordered(&queued, &rules, 0).into_iter().map(|job| job.job).collect();
        assert_eq!(numbers, [id(2), id(1), id(3)]);
        let known = Queued { expected_ms: Some(rules.unknown_ms), ..job(1, 0) };
        assert_eq!(ratio(&known, 5, &rules), ratio(&job(1, 0), 5, &rules));
    }

    proptest! {
        /// Any order of the input gives one order of the output, and a higher number never comes later.
        #[test]
        fn the_order_is_total_and_monotone_in_the_number(
            jobs in vec((0_u32..1_300, 0_u16..4, 1_u32..64, 0_u64..90_000_000, 0_i64..90_000_000), 1..20),
            orders in (0_usize..2, 0_usize..2), rotate in 0_usize..20, raised in 0_usize..20, by in 1_u32..1_300,
        ) {
            let rules = rules(TierOrder::ALL[orders.0], TierOrder::ALL[orders.1]);
            let tier = |number: u32, tier: u16| if tier == 2 { 2 } else { u16::from(number < 800) };
            let mut queued: Vec<Queued> = (0_u128..)
                .zip(&jobs)
                .map(|(place, (priority, own, gpus, run_ms, enqueued_ms))| Queued {
                    priority: *priority,
                    tier: tier(*priority, *own),
                    enqueued_ms: *enqueued_ms,
                    expected_ms: (*run_ms % 3 != 0).then_some(*run_ms),
                    ..Queued::new(id(place), Shape::gpus(*gpus))
                })
                .collect();
            let now_ms = 100_000_000;
            let place_of = |queued: &[Queued], job: JobId| {
                ordered(queued, &rules, now_ms).into_iter().position(|found| found.job == job)
            };
            let before: Vec<JobId> = ordered(&queued, &rules, now_ms).into_iter().map(|job| job.job).collect();
            let at = rotate % queued.len();
            queued.rotate_left(at);
            let turned: Vec<JobId> = ordered(&queued, &rules, now_ms).into_iter().map(|job| job.job).collect();
            prop_assert_eq!(&turned, &before);
            let at = raised % queued.len();
            let (job, was) = (queued[at].job, place_of(&queued, queued[at].job));
            queued[at].priority += by;
            if queued[at].tier != 2 {
                queued[at].tier = u16::from(queued[at].priority < 800);
            }
            prop_assert!(place_of(&queued, job) <= was);
        }

        /// Two jobs of one rate keep their order while neither reaches the cap: a stored order needs no second look.
        #[test]
        fn the_order_of_two_aging_jobs_does_not_change_with_time(
            a in (0_u32..1_000, 0_i64..90_000_000), b in (0_u32..1_000, 0_i64..90_000_000), later in 0_i64..90_000_000,
        ) {
            let mut rules = rules(TierOrder::Strict, TierOrder::Strict);
            for tier in &mut rules.tiers {
                tier.aging = Some(Aging { millipoints_per_hour: 7, cap: 9_999 });
            }
            let job = |number, (priority, enqueued_ms)| {
                Queued { priority, enqueued_ms, ..Queued::new(id(number), Shape::gpus(1)) }
            };
            let is_first = |now_ms| Key::of(&job(1, a), &rules, now_ms) < Key::of(&job(2, b), &rules, now_ms);
            prop_assert_eq!(is_first(90_000_000), is_first(90_000_000 + later));
        }
    }
}
