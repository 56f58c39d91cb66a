//! When a job that waits may have running ones evicted, and which of them.
//!
//! Whom a tier may preempt, and how often, is said by the tiers themselves.

/// What an eviction must be worth, and how victims are chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreemptionRules {
    /// Nobody is evicted for a job that would wait less than this without it, in milliseconds.
    pub wait_ms: u64,
    /// How much longer it must wait for each job that is evicted, in milliseconds.
    pub wait_per_victim_ms: u64,
    /// A job that has done so much of its work is spared, in percent; at most [`NEAR_DONE_PERCENT_MAX`].
    pub near_done_percent: u32,
    /// What a job needs to go on after an eviction, in milliseconds.
    pub restart_ms: u64,
    /// What an eviction counts besides the work that it loses, in GPU-milliseconds: the more, the fewer and the larger
    /// the victims.
    pub eviction_gpu_ms: u64,
    /// Which of the sets of victims that make room is taken.
    pub victims: Victims,
    /// Whether victims of a tier that stands later in `may_preempt` are taken only when those before it can't make room.
    pub tier_by_tier: bool,
}

/// A job that is 99 % done is spared whatever a policy says.
pub const NEAR_DONE_PERCENT_MAX: u32 = 99;

/// Which of the sets of victims that make room is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Victims {
    /// The one that costs the least; of equally cheap ones that of the fewest jobs.
    #[default]
    Cheapest,
    /// That of the fewest jobs; of as many, those that would go on the longest. What would soon end is let end.
    LongestLeft,
}

impl Victims {
    /// Every one of them.
    pub const ALL: [Self; 2] = [Self::Cheapest, Self::LongestLeft];

    /// The word in a policy.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cheapest => "cheapest",
            Self::LongestLeft => "longest-left",
        }
    }
}

impl Default for PreemptionRules {
    /// Five minutes and 100 seconds a victim, jobs that are 90 % done spared, the cheapest set of all open tiers.
    fn default() -> Self {
        Self {
            wait_ms: 300_000,
            wait_per_victim_ms: 100_000,
            near_done_percent: 90,
            restart_ms: 60_000,
            eviction_gpu_ms: 0,
            victims: Victims::default(),
            tier_by_tier: false,
        }
    }
}
