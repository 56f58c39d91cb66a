//! The rules of a decision: what the policy says of the order, of headroom and of estimates, for one pool.

use osprey_model::id::{PoolName, TierName};
use osprey_policy::Policy;
use osprey_policy::rules::{EstimateRules, OrderRules, Tier};

pub use osprey_policy::rules::{
    Aging, Headroom, NEAR_DONE_PERCENT_MAX, Over, PreemptionRules, QuotaRules, Reserve, TierOrder, Victims, WasteRules,
};

/// What a decision follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How the queue is ordered and walked down.
    pub strategy: Strategy,
    /// The tiers, in the order of the policy: the most urgent first.
    pub tiers: Vec<TierRules>,
    /// A job whose number is above this is urgent: it reserves what it needs, ignores the headroom, and has a cycle at
    /// once.
    pub dive_above: u32,
    /// GPUs of the pool that are kept free for urgent jobs.
    pub headroom: Headroom,
    /// How long a job is taken to run of which nobody knows it, in milliseconds.
    pub unknown_ms: u64,
    /// How long a job waits until it goes before every other one that isn't urgent, in milliseconds.
    pub starving_after_ms: Option<u64>,
    /// What the number is added to in a weighted tier; at least 1.
    ///
    /// With the number alone as weight, work of number 0 would come after everything else, however short it is.
    pub weight_base: u32,
    /// What teams may use, and what is reserved for whom.
    pub quota: QuotaRules,
    /// When running jobs are evicted for one that waits. Only [`Strategy::Osprey`] evicts.
    pub preemption: PreemptionRules,
}

/// What a decision follows in one tier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TierRules {
    /// Its name.
    pub name: TierName,
    /// The smallest number of the tier; `None` for that of preemptible jobs.
    pub at_least: Option<u32>,
    /// How its jobs are ordered.
    pub order: TierOrder,
    /// How a wait raises a job; `None` where it doesn't.
    pub aging: Option<Aging>,
    /// Tiers whose running jobs it may evict, by their place, in the order of the policy.
    pub may_preempt: Vec<u16>,
    /// Tiers whose jobs it may evict besides, when those of the others can't make room.
    pub may_preempt_when_full: Vec<u16>,
    /// Most GPUs of one team at once, of a team whose quota doesn't say it.
    pub team_gpus_max: Option<u32>,
    /// How long a job of this tier runs before it may be evicted, in milliseconds.
    pub minimum_run_ms: u64,
    /// Most evictions of one job of this tier.
    pub evictions_per_job: Option<u32>,
    /// Most evictions of jobs of this tier within [`Self::eviction_window_ms`].
    pub evictions_per_window: Option<u32>,
    /// The window, in milliseconds.
    pub eviction_window_ms: u64,
}

impl Default for Rules {
    /// Numbers alone: no tier, so a strict order; nobody is urgent, and nothing is kept free.
    fn default() -> Self {
        Self {
            strategy: Strategy::default(),
            tiers: Vec::new(),
            dive_above: u32::MAX,
            headroom: Headroom::default(),
            unknown_ms: EstimateRules::default().unknown_ms,
            starving_after_ms: None,
            weight_base: OrderRules::default().weight_base,
            quota: QuotaRules::default(),
            preemption: PreemptionRules::default(),
        }
    }
}

impl Rules {
    /// What a policy says for a pool.
    #[must_use]
    pub fn of(policy: &Policy, pool: &PoolName) -> Self {
        let order = policy.order();
        Self {
            strategy: Strategy::default(),
            tiers: policy.tiers().iter().map(|tier| TierRules::of(tier, policy)).collect(),
            dive_above: order.dive_above,
            headroom: order.headroom_of(pool),
            unknown_ms: policy.estimates().unknown_ms,
            starving_after_ms: order.starving_after_ms,
            weight_base: order.weight_base,
            quota: policy.quota().clone(),
            preemption: policy.preemption().clone(),
        }
    }

    /// Whether a decision asks what teams use.
    #[must_use]
    pub fn asks_of_teams(&self) -> bool {
        self.quota.asks_of_teams() || self.tiers.iter().any(|tier| tier.team_gpus_max.is_some())
    }

    /// The index of a tier, as jobs name it; that of no tier for a name that the policy doesn't have (any more).
    #[must_use]
    pub fn tier(&self, name: &TierName) -> u16 {
        let index = self.tiers.iter().position(|tier| tier.name == *name);
        index.and_then(|index| u16::try_from(index).ok()).unwrap_or(u16::MAX)
    }

    /// Whether a job with this number is urgent.
    #[must_use]
    pub const fn is_urgent(&self, number: u32) -> bool {
        number > self.dive_above
    }
}

impl TierRules {
    fn of(tier: &Tier, policy: &Policy) -> Self {
        let places = |names: &[TierName]| {
            let of = |name: &TierName| policy.tiers().iter().position(|tier| tier.name == *name);
            names.iter().filter_map(of).filter_map(|place| u16::try_from(place).ok()).collect()
        };
        let ms = |seconds: u64| seconds.saturating_mul(1_000);
        Self {
            name: tier.name.clone(),
            at_least: tier.at_least(),
            order: tier.order,
            aging: tier.aging,
            may_preempt: places(&tier.may_preempt),
            may_preempt_when_full: places(&tier.may_preempt_when_full),
            team_gpus_max: tier.team_gpus_max,
            minimum_run_ms: ms(tier.minimum_run_seconds),
            evictions_per_job: tier.evictions_per_job,
            evictions_per_window: tier.evictions_per_window,
            eviction_window_ms: ms(tier.eviction_window_seconds),
        }
    }
}

/// The strategies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// By submission; a head that doesn't fit holds up everybody.
    Fifo,
    /// By priority; a head that doesn't fit holds up everybody. What a queue with static priorities does.
    Priority,
    /// By expected run time, shortest first; a head that doesn't fit holds up everybody.
    Sjf,
    /// By the order of the rules. Urgent jobs that don't fit have a reservation each, and so has the first of the others
    /// behind them; what can't delay one may start before it (EASY).
    #[default]
    Backfill,
    /// As backfill, and preemption for urgent jobs that would wait too long, and a search for a placement in which all that
    /// backfill starts still starts, and more besides.
    Osprey,
}

impl Strategy {
    /// Every one of them.
    pub const ALL: [Self; 5] = [Self::Fifo, Self::Priority, Self::Sjf, Self::Backfill, Self::Osprey];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Priority => "priority",
            Self::Sjf => "sjf",
            Self::Backfill => "backfill",
            Self::Osprey => "osprey",
        }
    }
}
