//! What every step needs besides its input: the policy, the pools, and the settings of the place it runs in.

use osprey_model::id::{PoolName, TierName};
use osprey_model::pool::Pool;
use osprey_policy::Policy;

/// Policy, pools and settings, read once.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The policy in force.
    pub policy: &'a Policy,
    /// The pools, in order of preference.
    pub pools: &'a [Pool],
    /// Time limits and switches of the place.
    pub settings: &'a Settings,
}

impl Context<'_> {
    /// The pool of this name.
    #[must_use]
    pub fn pool(&self, name: &PoolName) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.name == *name)
    }

    /// The tier of this name.
    #[must_use]
    pub fn tier(&self, name: &TierName) -> Option<&osprey_policy::rules::Tier> {
        self.policy.tiers().iter().find(|tier| tier.name == *name)
    }
}

/// Time limits and switches of the place: wiring, not policy. Times are milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A claimed submission is sent within this time after the claim, or not at all. At least the functions' time-out.
    pub send_limit_ms: i64,
    /// After it was sent, a submission may still act for so long: on AWS the life of a signature, 5 minutes, and a
    /// margin; 0 for the local Batch.
    pub act_window_ms: i64,
    /// Time between two lists that look for an unsettled submission.
    pub list_interval_ms: i64,
    /// A job that Batch has and that gave no news for so long is asked after.
    pub silence_ms: i64,
    /// A waiting job's dependencies are looked at again after this time, whatever was said of them.
    pub waiting_ms: i64,
    /// A dependency that nobody knows yet may still arrive for so long.
    pub unknown_dependency_ms: i64,
    /// A stop that hasn't shown an effect is asked for again after this time.
    pub stop_repeat_ms: i64,
    /// Delay after a throttled submission.
    pub throttle_delay_ms: i64,
    /// So many seconds after a round of `watch` pools are woken once more; `None` where rounds are that frequent.
    pub second_wake_seconds: Option<u32>,
    /// Batch forgets jobs; one that it doesn't know and that is older than this is taken for lost.
    pub forgotten_ms: i64,
    /// Whether a job definition must be registered. Locally one that isn't runs the request's own command.
    pub definition_required: bool,
    /// Whether Batch here runs multi-node jobs.
    pub multi_node: bool,
    /// Whether policy and modes are kept in the table, where an action can change them.
    pub changeable: bool,
    /// Where checkpoints go: each job gets `BASE/JOB-ID` as `OSPREY_CHECKPOINT_URI`, unless it brings its own.
    pub checkpoint_base: Option<String>,
}

impl Default for Settings {
    /// What is right on AWS.
    fn default() -> Self {
        Self {
            send_limit_ms: 60_000,
            act_window_ms: 330_000,
            list_interval_ms: 30_000,
            silence_ms: 600_000,
            waiting_ms: 300_000,
            unknown_dependency_ms: 300_000,
            stop_repeat_ms: 60_000,
            throttle_delay_ms: 2_000,
            second_wake_seconds: Some(30),
            forgotten_ms: 86_400_000,
            definition_required: true,
            multi_node: true,
            changeable: true,
            checkpoint_base: None,
        }
    }
}

impl Settings {
    /// What is right on one machine: the local Batch answers at once, and a call that returned has no later effect.
    #[must_use]
    pub fn local() -> Self {
        Self {
            send_limit_ms: 30_000,
            act_window_ms: 0,
            list_interval_ms: 1_000,
            silence_ms: 60_000,
            waiting_ms: 30_000,
            unknown_dependency_ms: 15_000,
            stop_repeat_ms: 15_000,
            throttle_delay_ms: 1_000,
            second_wake_seconds: None,
            forgotten_ms: 60_000,
            definition_required: false,
            multi_node: true,
            changeable: false,
            checkpoint_base: None,
        }
    }
}
