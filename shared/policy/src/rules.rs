//! The parts of a policy that are data: tiers, admission, requeue and order, with their defaults.
//!
//! Units are in the names: `_seconds`, `_ms`, `_mib`, `_percent`. A limit that is `None` is no limit.

use std::collections::BTreeMap;

use osprey_model::id::{PoolName, TierName};
use osprey_model::pool::CapacityType;

use crate::key::MetadataKey;

mod preemption;
mod quota;

pub use preemption::{NEAR_DONE_PERCENT_MAX, PreemptionRules, Victims};
pub use quota::{Over, QuotaRules, Reserve, TeamQuota, WasteRules};

/// The smallest number that Batch takes as a scheduling priority.
pub const PRIORITY_MIN: u32 = 0;

/// The greatest number that Batch takes as a scheduling priority.
pub const PRIORITY_MAX: u32 = 9999;

/// A tier: a level of urgency with its own job queue in each pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Its name, the last part of its queues' names.
    pub name: TierName,
    /// Which jobs it gets.
    pub takes: Takes,
    /// Tiers whose running jobs it may preempt.
    pub may_preempt: Vec<TierName>,
    /// Tiers whose running jobs it may preempt besides, only when the pool is full.
    pub may_preempt_when_full: Vec<TierName>,
    /// How long a job runs before it may be preempted, in seconds.
    pub minimum_run_seconds: u64,
    /// Time between the notice and the end of a preempted job, in seconds; never 0, a checkpoint needs it.
    pub grace_seconds: u64,
    /// The work that a preemption may cost: a checkpoint interval above it is refused, in seconds.
    pub checkpoint_window_seconds: u64,
    /// Most evictions of one job in its life.
    pub evictions_per_job: Option<u32>,
    /// Most evictions of the tier's jobs within [`Self::eviction_window_seconds`].
    pub evictions_per_window: Option<u32>,
    /// The window of [`Self::evictions_per_window`], in seconds.
    pub eviction_window_seconds: u64,
    /// Most GPUs of one team running in the tier.
    pub team_gpus_max: Option<u32>,
    /// Longest run of a job of the tier, in seconds.
    pub duration_max_seconds: Option<u64>,
    /// Kinds of capacity open to the tier, the preferred one first; never empty.
    pub capacity: Vec<CapacityType>,
    /// How its waiting jobs are ordered.
    pub order: TierOrder,
    /// How a wait raises a job in the order; `None` where it doesn't.
    pub aging: Option<Aging>,
}

/// How the waiting jobs of a tier are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TierOrder {
    /// By number.
    #[default]
    Strict,
    /// By Smith's ratio: expected run × √GPUs, divided by a weight that the number gives. Short and small work first.
    WeightedShortest,
}

impl TierOrder {
    /// Every one of them.
    pub const ALL: [Self; 2] = [Self::Strict, Self::WeightedShortest];

    /// The word in a policy.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::WeightedShortest => "weighted-shortest",
        }
    }
}

/// How a wait raises a job in Osprey's own order. What is sent to Batch never ages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aging {
    /// Thousandths of a point an hour.
    pub millipoints_per_hour: u32,
    /// The number that a job is raised to at most. Jobs that have reached it are ordered by submission.
    pub cap: u32,
}

impl Aging {
    /// How long a job of this number waits until it has reached the cap, in milliseconds; `None` for never.
    #[must_use]
    pub fn reaches_cap_after_ms(&self, number: u32) -> Option<u64> {
        let missing = u64::from(self.cap.saturating_sub(number)) * 3_600_000_000;
        let rate = u64::from(self.millipoints_per_hour);
        if missing == 0 { Some(0) } else { (rate > 0).then(|| missing.div_ceil(rate)) }
    }
}

/// GPUs of a pool that are kept free for urgent jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headroom {
    /// So many.
    Gpus(u32),
    /// This share of the pool, in percent, rounded down.
    Percent(u32),
}

impl Default for Headroom {
    /// None.
    fn default() -> Self {
        Self::Gpus(0)
    }
}

impl Headroom {
    /// GPUs of a pool that has so many.
    #[must_use]
    pub fn of(self, pool_gpus: u32) -> u32 {
        match self {
            Self::Gpus(gpus) => gpus.min(pool_gpus),
            Self::Percent(percent) => {
                u32::try_from(u64::from(pool_gpus) * u64::from(percent) / 100).unwrap_or(pool_gpus).min(pool_gpus)
            }
        }
    }
}

/// Which jobs a tier gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Jobs that aren't preemptible and whose number is at least this.
    AtLeast(u32),
    /// Every preemptible job, whatever its number.
    Preemptible,
}

impl Tier {
    /// The default minimum run: 5 minutes.
    pub const MINIMUM_RUN_SECONDS: u64 = 300;
    /// The default grace: 2 minutes, the notice that Spot gives.
    pub const GRACE_SECONDS: u64 = 120;
    /// The default checkpoint window: 15 minutes.
    pub const CHECKPOINT_WINDOW_SECONDS: u64 = 900;
    /// The default window of `evictions_per_window`: 1 hour.
    pub const EVICTION_WINDOW_SECONDS: u64 = 3600;

    /// A tier with every default; preemptible jobs prefer Spot, the others never see it.
    #[must_use]
    pub fn new(name: TierName, takes: Takes) -> Self {
        let capacity = match takes {
            Takes::Preemptible => vec![CapacityType::Spot, CapacityType::OnDemand],
            Takes::AtLeast(_) => vec![CapacityType::OnDemand],
        };
        Self {
            name,
            takes,
            may_preempt: Vec::new(),
            may_preempt_when_full: Vec::new(),
            minimum_run_seconds: Self::MINIMUM_RUN_SECONDS,
            grace_seconds: Self::GRACE_SECONDS,
            checkpoint_window_seconds: Self::CHECKPOINT_WINDOW_SECONDS,
            evictions_per_job: None,
            evictions_per_window: None,
            eviction_window_seconds: Self::EVICTION_WINDOW_SECONDS,
            team_gpus_max: None,
            duration_max_seconds: None,
            capacity,
            order: TierOrder::default(),
            aging: None,
        }
    }

    /// The smallest number of the tier; `None` for the preemptible tier.
    #[must_use]
    pub const fn at_least(&self) -> Option<u32> {
        match self.takes {
            Takes::AtLeast(number) => Some(number),
            Takes::Preemptible => None,
        }
    }
}

/// What the policy demands at the door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionRules {
    /// Metadata that every job must give, in the order of the file.
    pub require: Vec<MetadataKey>,
    /// Most children of an array that Batch itself unfolds.
    pub array_width_max: u32,
    /// Longest run of any job, in seconds.
    pub duration_max_seconds: Option<u64>,
}

impl Default for AdmissionRules {
    /// Nothing required, arrays up to 100 children, no cap on durations.
    fn default() -> Self {
        Self { require: Vec::new(), array_width_max: 100, duration_max_seconds: None }
    }
}

/// What happens after a failure or an interruption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequeueRules {
    /// Requeues after failures; the next failure is the last.
    pub failures_max: u32,
    /// Requeues after interruptions (preemptions and lost hosts); the next one is the last.
    pub interruptions_max: u32,
    /// The first delay, in milliseconds; the delay doubles with each try.
    pub base_ms: u64,
    /// The longest delay, in milliseconds.
    pub cap_ms: u64,
    /// How much of a delay is left to chance, in percent: 20 makes 10 s one of 8 s to 10 s.
    pub jitter_percent: u32,
    /// Lost hosts after which a job goes to On-Demand capacity.
    pub on_demand_after: u32,
    /// Memory of the try after one that ran out of memory, in percent of that one's.
    pub memory_growth_percent: u32,
    /// Most memory that growth may reach, in MiB.
    pub memory_cap_mib: Option<u64>,
    /// How long dependents of a dead job wait for a person to requeue it before they fail, in milliseconds.
    pub dependency_grace_ms: u64,
}

impl Default for RequeueRules {
    fn default() -> Self {
        Self {
            failures_max: 3,
            interruptions_max: 10,
            base_ms: 5_000,
            cap_ms: 900_000,
            jitter_percent: 20,
            on_demand_after: 2,
            memory_growth_percent: 150,
            memory_cap_mib: None,
            dependency_grace_ms: 0,
        }
    }
}

/// Which waiting job comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderRules {
    /// A job above this number is urgent: it gets a scheduling cycle at once, reserves what it needs, and may take the
    /// headroom.
    pub dive_above: u32,
    /// GPUs of each pool that are kept free for urgent jobs.
    pub headroom: Headroom,
    /// Pools with a headroom of their own.
    pub pool_headroom: BTreeMap<PoolName, Headroom>,
    /// Whether tiers may be left in which later jobs can pass a waiting one for ever.
    pub unbounded_wait: bool,
    /// How long a job waits until it goes before every other one that isn't urgent, in milliseconds.
    pub starving_after_ms: Option<u64>,
    /// What a number adds to in a tier that is ordered by weight: the greater, the less the numbers count there.
    pub weight_base: u32,
}

impl Default for OrderRules {
    /// Urgent above 800, no headroom, every wait bounded, nobody starving.
    fn default() -> Self {
        Self {
            dive_above: 800,
            headroom: Headroom::default(),
            pool_headroom: BTreeMap::new(),
            unbounded_wait: false,
            starving_after_ms: None,
            weight_base: 100,
        }
    }
}

impl OrderRules {
    /// What is kept free of a pool.
    #[must_use]
    pub fn headroom_of(&self, pool: &PoolName) -> Headroom {
        self.pool_headroom.get(pool).copied().unwrap_or(self.headroom)
    }
}

/// What is believed of run times before they are over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EstimateRules {
    /// Upper ends of the classes that a declared `expected-duration` is rounded up to, in milliseconds, rising; empty to
    /// take what is declared.
    pub classes_ms: Vec<u64>,
    /// The share of past runs that an estimate covers, in percent.
    pub quantile_percent: u32,
    /// Past runs of a kind that it takes to learn from them.
    pub runs_min: u32,
    /// How long a job is taken to run of which nothing is known, in milliseconds.
    pub unknown_ms: u64,
}

impl Default for EstimateRules {
    /// What is declared, else the median of at least three runs, else an hour.
    fn default() -> Self {
        Self { classes_ms: Vec::new(), quantile_percent: 50, runs_min: 3, unknown_ms: 3_600_000 }
    }
}

/// How far a step's report moves the number of what comes after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedbackRules {
    /// Most points, either way; 0 where reports move nothing.
    pub most: u32,
    /// Most points of one report.
    pub step: u32,
    /// A report that differs from the last one by less moves nothing.
    pub least: u32,
    /// A report within this time after the last one moves nothing, in milliseconds.
    pub pause_ms: u64,
}

impl Default for FeedbackRules {
    /// 200 points, 100 at a time, 10 at least, once a minute.
    fn default() -> Self {
        Self { most: 200, step: 100, least: 10, pause_ms: 60_000 }
    }
}

/// The numbers of derivation that aren't rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeriveRules {
    /// The number before the first rule.
    pub base: u32,
    /// The number is never below this.
    pub floor: u32,
    /// The number is never above this.
    pub ceiling: u32,
    /// The number when derivation itself fails.
    pub fallback: u32,
}

impl Default for DeriveRules {
    fn default() -> Self {
        Self { base: 500, floor: PRIORITY_MIN, ceiling: PRIORITY_MAX, fallback: 500 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preemptible_jobs_prefer_spot_and_others_never_see_it() {
        let tier = |takes| Tier::new("t".into(), takes).capacity;
        assert_eq!(tier(Takes::Preemptible), [CapacityType::Spot, CapacityType::OnDemand]);
        assert_eq!(tier(Takes::AtLeast(0)), [CapacityType::OnDemand]);
    }

    #[test]
    fn headroom_is_never_more_than_the_pool() {
        assert_eq!([0, 8, 256].map(|gpus| Headroom::Gpus(24).of(gpus)), [0, 8, 24]);
        assert_eq!([0, 8, 16, 256, u32::MAX].map(|gpus| Headroom::Percent(10).of(gpus)), [0, 0, 1, 25, 429_496_729]);
    }

    #[test]
    fn aging_reaches_the_cap_at_its_rate_and_never_without_one() {
        let aging = Aging { millipoints_per_hour: 2_500, cap: 1_000 };
        assert_eq!(aging.reaches_cap_after_ms(500), Some(200 * 3_600_000));
        assert_eq!(aging.reaches_cap_after_ms(1_000), Some(0));
        assert_eq!(Aging { millipoints_per_hour: 0, cap: 9 }.reaches_cap_after_ms(8), None);
    }

    #[test]
    fn only_tiers_with_a_threshold_have_a_smallest_number() {
        assert_eq!(Tier::new("t".into(), Takes::AtLeast(800)).at_least(), Some(800));
        assert_eq!(Tier::new("t".into(), Takes::Preemptible).at_least(), None);
    }
}
