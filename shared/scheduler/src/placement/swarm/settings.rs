//! What a swarm flies by.

/// Most sub-swarms: one a node on clusters up to this size, beyond it one for several nodes.
pub(super) const SUB_SWARMS_MAX: usize = 32;

/// What a swarm flies by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The seed; each agent has a stream of its own.
    pub seed: u64,
    /// Agents in all; without it [`Settings::AGENTS_A_NODE`] for each sub-swarm.
    pub agents: Option<u32>,
    /// How much of its velocity an agent keeps in a round.
    pub inertia: f64,
    /// How strongly an agent is drawn to the best of its sub-swarm.
    pub local_pull: f64,
    /// How strongly an agent is drawn to the best of all.
    pub global_pull: f64,
    /// Rounds after which sub-swarms tell each other their best.
    pub sync_rounds: u32,
    /// Most rounds.
    pub rounds_max: u32,
    /// Most orders that are tried, in all: the work is bounded by this and not by time, so that a run can be repeated.
    pub evaluations_max: u32,
    /// Syncs without anything better after which the search ends.
    pub patience_syncs: u32,
}

impl Settings {
    /// Agents of a sub-swarm: the published tuning says 5 to 10 a node.
    pub const AGENTS_A_NODE: u32 = 5;
    /// Most agents.
    pub const AGENTS_MAX: u32 = 10_000;

    /// Sub-swarms on so many nodes.
    pub(super) fn sub_swarms(&self, nodes: usize) -> usize {
        let agents = self.agents.and_then(|agents| usize::try_from(agents).ok()).unwrap_or(usize::MAX);
        nodes.min(SUB_SWARMS_MAX).min(agents).max(1)
    }

    /// Agents in all, in so many sub-swarms.
    pub(super) fn agents_in(&self, sub_swarms: usize) -> usize {
        let each = usize::try_from(Self::AGENTS_A_NODE).unwrap_or(1);
        let asked = self.agents.map(|agents| usize::try_from(agents.min(Self::AGENTS_MAX)).unwrap_or(1));
        asked.unwrap_or(sub_swarms * each).max(1)
    }
}

impl Default for Settings {
    /// The published tuning: 0.9, 1.2 and 0.8.
    fn default() -> Self {
        Self {
            seed: 1,
            agents: None,
            inertia: 0.9,
            local_pull: 1.2,
            global_pull: 0.8,
            sync_rounds: 2,
            rounds_max: 100,
            evaluations_max: 10_000,
            patience_syncs: 12,
        }
    }
}
