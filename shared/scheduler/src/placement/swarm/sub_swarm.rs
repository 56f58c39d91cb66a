//! A sub-swarm: the agents of one node, or of some nodes of a large pool.

use super::agent::{Agent, EVALUATIONS_A_ROUND_MAX, Flight, Found, View};
use super::moves::Moves;
use super::random::Random;
use super::settings::Settings;
use crate::placement::packing::Packer;
use crate::placement::problem::Problem;

/// The agents of one region. It shares nothing with others between two syncs, so which thread flies it is all the same.
#[derive(Debug)]
pub struct SubSwarm<'p> {
    packer: Packer<'p>,
    moves: Moves,
    agents: Vec<Agent>,
    best: Found,
    pub(super) flown: Flight,
    evaluations_max: u32,
}

/// What all sub-swarms know at a sync.
#[derive(Clone, Debug)]
pub(super) struct Sync<'s> {
    pub(super) settings: &'s Settings,
    /// The first round after it, from 1 on.
    pub(super) round: u32,
    /// Rounds until the next.
    pub(super) rounds: u32,
    pub(super) global: &'s Found,
}

impl<'p> SubSwarm<'p> {
    /// A sub-swarm of these agents, by their numbers. The first of all starts at the order itself, the others further and
    /// further away from it.
    pub(super) fn new(problem: &'p Problem, start: &[u32], numbers: impl Iterator<Item = usize>, seed: u64) -> Self {
        let (mut packer, moves) = (Packer::new(problem), Moves::of(problem));
        let agents: Vec<Agent> = numbers
            .map(|number| {
                let random = Random::of(seed, u64::try_from(number).unwrap_or(u64::MAX));
                Agent::new(random, start, number % 8, &moves, &mut packer)
            })
            .collect();
        let best = Found { score: f64::NEG_INFINITY, order: start.to_vec() };
        let evaluations = u32::try_from(agents.len()).unwrap_or(u32::MAX);
        let flown = Flight { evaluations, dives: 0 };
        let mut swarm = Self { packer, moves, agents, best, flown, evaluations_max: u32::MAX };
        swarm.look();
        swarm
    }

    /// The same with a bound on the orders that it tries.
    pub(super) fn bounded(self, evaluations_max: u32) -> Self {
        Self { evaluations_max, ..self }
    }

    /// Rounds until the next sync.
    pub(super) fn fly(&mut self, sync: &Sync<'_>) {
        for round in sync.round..sync.round + sync.rounds {
            for number in 0..self.agents.len() {
                if self.flown.evaluations.saturating_add(EVALUATIONS_A_ROUND_MAX) > self.evaluations_max {
                    return;
                }
                self.fly_one(number, round, sync);
            }
        }
    }

    fn fly_one(&mut self, number: usize, round: u32, sync: &Sync<'_>) {
        let fish = self.fish(number, round).unwrap_or(&sync.global.order).to_vec();
        let Some(agent) = self.agents.get_mut(number) else { return };
        let Sync { settings, global, .. } = *sync;
        let view = View { settings, moves: &self.moves, round, local: &self.best.order, global, fish: &fish };
        let Flight { evaluations, dives } = agent.fly(view, &mut self.packer);
        self.flown.evaluations = self.flown.evaluations.saturating_add(evaluations);
        self.flown.dives += dives;
        if agent.perch.score > self.best.score {
            self.best.clone_from(&agent.perch);
        }
    }

    /// One of the agents that have found better than this one, a different one from round to round.
    fn fish(&self, number: usize, round: u32) -> Option<&[u32]> {
        let own = self.agents.get(number)?.perch.score;
        let better: Vec<&Agent> = self.agents.iter().filter(|agent| agent.perch.score > own).collect();
        // The best of all counts as one more.
        let draw = usize::try_from(round).unwrap_or(0) % (better.len() + 1);
        better.get(draw).map(|agent| agent.perch.order.as_slice())
    }

    fn look(&mut self) {
        for agent in &self.agents {
            if agent.perch.score > self.best.score {
                self.best.clone_from(&agent.perch);
            }
        }
    }

    pub(super) fn best(&self) -> &Found {
        &self.best
    }

    pub(super) fn agents(&self) -> &[Agent] {
        &self.agents
    }
}
