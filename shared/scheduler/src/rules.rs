//! The rules of a decision: what the policy says of the order, of headroom and of estimates, for one pool.

use osprey_model::id::{PoolName, TierName};
use osprey_policy::Policy;
use osprey_policy::rules::{EstimateRules, Tier};

pub use osprey_policy::rules::{Aging, Headroom, TierOrder};

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
}

/// What a decision follows in one tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierRules {
    /// Its name.
    pub name: TierName,
    /// The smallest number of the tier; `None` for that of preemptible jobs.
    pub at_least: Option<u32>,
    /// How its jobs are ordered.
    pub order: TierOrder,
    /// How a wait raises a job; `None` where it doesn't.
    pub aging: Option<Aging>,
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
            tiers: policy.tiers().iter().map(TierRules::of).collect(),
            dive_above: order.dive_above,
            headroom: order.headroom_of(pool),
            unknown_ms: policy.estimates().unknown_ms,
        }
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
    fn of(tier: &Tier) -> Self {
        Self { name: tier.name.clone(), at_least: tier.at_least(), order: tier.order, aging: tier.aging }
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
    /// As backfill, and a search for a placement in which all that backfill starts still starts, and more besides.
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
