//! The swarm: ospreys that look for a plan around the greedy one.
//!
//! An agent is an order of the jobs, and a plan is what best fit makes of it. A round of an agent is a glide (a step of
//! particle swarm optimisation, with a dive for urgent jobs), a hunt and small moves that carry what was caught (the
//! two phases of the published osprey algorithm, in the space of orders). `docs/osprey.md` says what comes from where.
//!
//! The same problem and settings give the same plan, whatever the number of threads: each agent draws from a stream of
//! its own, sub-swarms share nothing between two syncs, and the work is bounded by tried orders and not by time.

mod agent;
mod moves;
mod random;
mod settings;
mod sub_swarm;

use super::order::by_priority;
use super::packing::Packer;
use super::plan::Plan;
use super::problem::Problem;
use agent::Found;
pub use settings::Settings;
pub use sub_swarm::SubSwarm;
use sub_swarm::Sync;

/// Who flies the sub-swarms from one sync to the next: one after the other, or threads. Each is flown once.
pub trait Pace {
    /// Calls `fly` for each sub-swarm.
    fn each<'p>(&self, swarms: &mut [SubSwarm<'p>], fly: &(dyn Fn(&mut SubSwarm<'p>) + std::marker::Sync));
}

/// One sub-swarm after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct InTurn;

impl Pace for InTurn {
    fn each<'p>(&self, swarms: &mut [SubSwarm<'p>], fly: &(dyn Fn(&mut SubSwarm<'p>) + std::marker::Sync)) {
        swarms.iter_mut().for_each(fly);
    }
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Flown {
    /// The plan.
    pub plan: Plan,
    /// The jobs that it starts, in the order in which they are placed.
    pub placed: Vec<u32>,
    /// Whether it is worth more than that of the order to begin with.
    pub is_better: bool,
    /// Orders that were tried.
    pub evaluations: u32,
    /// How it went, from the start on.
    pub syncs: Vec<AtSync>,
}

/// The swarm at a sync.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtSync {
    /// Rounds flown so far.
    pub round: u32,
    /// What the best plan so far is worth.
    pub best: f64,
    /// Dives since the last sync.
    pub dives: u32,
    /// Share of the agents whose gliding has come to the plan that most have come to.
    pub alike: f64,
}

/// Looks for a plan with the default pace.
#[must_use]
pub fn osprey(problem: &Problem, settings: &Settings) -> Flown {
    search(problem, settings, &by_priority(problem), &InTurn)
}

/// Looks for a plan that is worth at least what packing the jobs in the order `start` is worth.
#[must_use]
pub fn search(problem: &Problem, settings: &Settings, start: &[u32], pace: &impl Pace) -> Flown {
    let mut packer = Packer::new(problem);
    let mut best = Found { score: packer.pack(start), order: start.to_vec() };
    let (ceiling, begin) = (ceiling(problem), best.score);
    let mut swarms = if best.score < ceiling { sub_swarms(problem, settings, start) } else { Vec::new() };
    gather(&mut best, &swarms);
    let mut syncs = vec![at_sync(0, best.score, 0, &swarms)];
    let (mut round, mut still) = (0, 0);
    while still < settings.patience_syncs && round < settings.rounds_max && best.score < ceiling {
        let rounds = settings.sync_rounds.max(1).min(settings.rounds_max - round);
        let before = (best.score, dives(&swarms), evaluations(&swarms));
        let sync = Sync { settings, round: round + 1, rounds, global: &best };
        pace.each(&mut swarms, &|swarm| swarm.fly(&sync));
        round += rounds;
        gather(&mut best, &swarms);
        still = if best.score > before.0 { 0 } else { still + 1 };
        syncs.push(at_sync(round, best.score, dives(&swarms) - before.1, &swarms));
        if evaluations(&swarms) == before.2 {
            break;
        }
    }
    packer.pack(&best.order);
    let (plan, placed, is_better) = (packer.plan(), packer.placed(), best.score > begin);
    Flown { plan, placed, is_better, evaluations: evaluations(&swarms) + 1, syncs }
}

/// The agents, dealt out to sub-swarms.
fn sub_swarms<'p>(problem: &'p Problem, settings: &Settings, start: &[u32]) -> Vec<SubSwarm<'p>> {
    let count = settings.sub_swarms(problem.nodes().len());
    let agents = settings.agents_in(count);
    let each_max = settings.evaluations_max / u32::try_from(count).unwrap_or(1).max(1);
    let swarm = |number: usize| {
        let numbers = (number..agents).step_by(count);
        SubSwarm::new(problem, start, numbers, settings.seed).bounded(each_max)
    };
    (0..count).map(swarm).collect()
}

/// Takes over the best of the sub-swarms, the first of equals.
fn gather(best: &mut Found, swarms: &[SubSwarm<'_>]) {
    for swarm in swarms {
        if swarm.best().score > best.score {
            best.clone_from(swarm.best());
        }
    }
}

fn dives(swarms: &[SubSwarm<'_>]) -> u32 {
    swarms.iter().map(|swarm| swarm.flown.dives).sum()
}

fn evaluations(swarms: &[SubSwarm<'_>]) -> u32 {
    swarms.iter().map(|swarm| swarm.flown.evaluations).sum()
}

fn at_sync(round: u32, best: f64, dives: u32, swarms: &[SubSwarm<'_>]) -> AtSync {
    let mut scores: Vec<f64> = swarms.iter().flat_map(SubSwarm::agents).map(|agent| agent.glided.score).collect();
    scores.sort_by(f64::total_cmp);
    let most = scores.chunk_by(|a, b| a.total_cmp(b).is_eq()).map(<[f64]>::len).max().unwrap_or(0);
    AtSync { round, best: best / 1000.0, dives, alike: most as f64 / scores.len().max(1) as f64 }
}

/// More than this no plan is worth, in thousandths: the worthiest slots fill all that is free, and nothing is stranded.
fn ceiling(problem: &Problem) -> f64 {
    let mut free: u64 = problem.nodes().iter().map(|node| u64::from(node.free)).sum();
    let mut jobs: Vec<(u32, u32)> = problem.jobs().iter().map(|job| (job.weight, job.slots)).collect();
    jobs.sort_unstable_by(|a, b| b.cmp(a));
    let mut worth = 0;
    for (weight, slots) in jobs {
        let taken = free.min(u64::from(slots));
        worth += taken * u64::from(weight);
        free -= taken;
    }
    worth as f64
}

#[cfg(test)]
mod tests;
