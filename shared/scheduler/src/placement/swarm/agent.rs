//! An osprey: a position that glides, and the best order that it has found.

use super::moves::{self, Moves};
use super::random::Random;
use super::settings::Settings;
use crate::placement::packing::Packer;

/// Rounds without anything better after which an agent hovers.
const HOVER_AFTER: u32 = 2;
/// The longest hover, in rounds: each is twice as long as the one before.
const HOVER_ROUNDS_MAX: u32 = 8;
/// Small moves of a round.
const CARRIES: u32 = 10;
/// Most orders that an agent tries in a round: a glide, a dive, a hunt, the small moves, and one above which it hovers.
pub(super) const EVALUATIONS_A_ROUND_MAX: u32 = 3 + CARRIES + 1;
/// The most that a key changes in a round: a third of the queue.
const VELOCITY_MAX: f64 = 0.33;

/// The key of a job that an agent dives for: before every other.
const IN_FRONT: f64 = -1.0;

/// One agent.
#[derive(Debug)]
pub(super) struct Agent {
    random: Random,
    /// A key for each job: the order is that of the keys.
    keys: Vec<f64>,
    velocity: Vec<f64>,
    /// The order of the keys, and what its plan is worth.
    pub(super) glided: Found,
    /// The best order that the agent has found: what it returns to.
    pub(super) perch: Found,
    still_rounds: u32,
    hover_rounds: u32,
    hovers_until: u32,
}

/// An order and what its plan is worth, in thousandths.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) order: Vec<u32>,
    pub(super) score: f64,
}

/// What an agent sees of the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'v> {
    pub(super) settings: &'v Settings,
    pub(super) moves: &'v Moves,
    /// The round, from 1 on.
    pub(super) round: u32,
    /// The best order of the sub-swarm.
    pub(super) local: &'v [u32],
    /// The best order of all, as of the last sync.
    pub(super) global: &'v Found,
    /// A better order of another agent: the fish.
    pub(super) fish: &'v [u32],
}

/// What came of a round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flight {
    pub(super) evaluations: u32,
    pub(super) dives: u32,
}

impl Agent {
    /// An agent that starts at an order, some moves away from it.
    pub(super) fn new(random: Random, start: &[u32], kicks: usize, moves: &Moves, packer: &mut Packer<'_>) -> Self {
        let mut random = random;
        let mut order = start.to_vec();
        (0..kicks).for_each(|_| moves.any(&mut order, &mut random));
        let score = packer.pack(&order);
        let found = Found { order, score };
        let mut agent = Self {
            random,
            keys: vec![0.0; start.len()],
            velocity: vec![0.0; start.len()],
            glided: found.clone(),
            perch: found,
            still_rounds: 0,
            hover_rounds: 1,
            hovers_until: 0,
        };
        agent.land();
        agent
    }

    /// One round.
    pub(super) fn fly(&mut self, view: View<'_>, packer: &mut Packer<'_>) -> Flight {
        let mut flight = Flight::default();
        if view.round < self.hovers_until {
            return flight;
        }
        let before = self.perch.score;
        self.glide(view, packer, &mut flight);
        self.hunt(view, packer, &mut flight);
        self.carry(view, packer, &mut flight);
        if self.perch.score > before {
            (self.still_rounds, self.hover_rounds) = (0, 1);
        } else {
            self.still_rounds += 1;
        }
        if self.still_rounds >= HOVER_AFTER {
            self.hover(view, packer, &mut flight);
        }
        flight
    }

    /// Moves by inertia, by the pull of the sub-swarm's best and by that of the best of all.
    pub(super) fn glide(&mut self, view: View<'_>, packer: &mut Packer<'_>, flight: &mut Flight) {
        let Settings { inertia, local_pull, global_pull, .. } = *view.settings;
        self.velocity.iter_mut().for_each(|velocity| *velocity *= inertia);
        self.pull(view.local, local_pull);
        self.pull(&view.global.order, global_pull);
        for (key, velocity) in self.keys.iter_mut().zip(&mut self.velocity) {
            *velocity = velocity.clamp(-VELOCITY_MAX, VELOCITY_MAX);
            *key = (*key + *velocity).clamp(0.0, 1.0);
        }
        self.look(packer, flight);
        self.dive(packer, flight);
        if self.glided.score > self.perch.score {
            self.perch.clone_from(&self.glided);
        }
    }

    /// Adds to the velocity what leads to an order, by a share that each key draws.
    fn pull(&mut self, toward: &[u32], strength: f64) {
        let step = 1.0 / toward.len().max(1) as f64;
        let mut at = 0.0;
        for job in toward.iter().filter_map(|job| usize::try_from(*job).ok()) {
            if let (Some(key), Some(velocity)) = (self.keys.get(job), self.velocity.get_mut(job)) {
                *velocity += strength * self.random.unit() * (at - key);
            }
            at += step;
        }
    }

    /// Packs the order of the keys.
    fn look(&mut self, packer: &mut Packer<'_>, flight: &mut Flight) {
        let keys = &self.keys;
        let key = |job: &u32| usize::try_from(*job).ok().and_then(|job| keys.get(job)).copied().unwrap_or(1.0);
        self.glided.order.sort_by(|a, b| key(a).total_cmp(&key(b)));
        self.glided.score = packer.pack(&self.glided.order);
        flight.evaluations += 1;
    }

    /// Goes for the urgent jobs that would wait, at once and with all velocity for them gone.
    fn dive(&mut self, packer: &mut Packer<'_>, flight: &mut Flight) {
        let mut prey = packer.waiting_urgent().peekable();
        if prey.peek().is_none() {
            return;
        }
        for job in prey.filter_map(|job| usize::try_from(job).ok()) {
            if let (Some(key), Some(velocity)) = (self.keys.get_mut(job), self.velocity.get_mut(job)) {
                (*key, *velocity) = (IN_FRONT, 0.0);
            }
        }
        flight.dives += 1;
        self.look(packer, flight);
    }

    /// First phase: takes over a part of a better order.
    fn hunt(&mut self, view: View<'_>, packer: &mut Packer<'_>, flight: &mut Flight) {
        let order = moves::taken_over(&self.perch.order, view.fish, &mut self.random);
        self.try_order(order, packer, flight);
    }

    /// Second phase: small moves, over ever smaller distances.
    fn carry(&mut self, view: View<'_>, packer: &mut Packer<'_>, flight: &mut Flight) {
        for _ in 0..CARRIES {
            let mut order = self.perch.order.clone();
            view.moves.near(&mut order, view.round, &mut self.random);
            self.try_order(order, packer, flight);
        }
    }

    /// Keeps an order that is no worse: among equals one goes on, so that plateaus are crossed.
    fn try_order(&mut self, order: Vec<u32>, packer: &mut Packer<'_>, flight: &mut Flight) {
        flight.evaluations += 1;
        let score = packer.pack(&order);
        if score >= self.perch.score {
            self.perch = Found { order, score };
        }
    }

    /// Waits above the best of all, and goes on some moves away from it.
    fn hover(&mut self, view: View<'_>, packer: &mut Packer<'_>, flight: &mut Flight) {
        self.hovers_until = view.round + 1 + self.hover_rounds;
        self.hover_rounds = (self.hover_rounds * 2).min(HOVER_ROUNDS_MAX);
        self.still_rounds = 0;
        let mut order = view.global.order.clone();
        let kicks = 1 + self.random.below(4);
        (0..kicks).for_each(|_| view.moves.any(&mut order, &mut self.random));
        flight.evaluations += 1;
        self.perch = Found { score: packer.pack(&order), order };
        self.land();
    }

    /// Puts the keys where the perch is.
    fn land(&mut self) {
        let step = 1.0 / self.perch.order.len().max(1) as f64;
        let mut at = 0.0;
        for job in &self.perch.order {
            if let Some(key) = usize::try_from(*job).ok().and_then(|job| self.keys.get_mut(job)) {
                *key = at;
            }
            at += step;
        }
        self.velocity.fill(0.0);
        self.glided.clone_from(&self.perch);
    }
}
