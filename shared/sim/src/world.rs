//! What happens to a cluster while jobs run: the events of a [`Scenario`], drawn from generators of their own.
//!
//! Each node has its own reclaims and each run of a job its own fate, by name. So one process more doesn't shift the
//! others, and every strategy meets the same reclaims at the same times.

use osprey_model::pool::CapacityType;

use crate::kernel::random::Random;
use crate::kernel::{EventQueue, fork};
use crate::machine::Machine;
use crate::pool::MixedPool;
use crate::scenario::Scenario;
use crate::schedule::SegmentEnd;
use crate::strategy::Strategy;

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// A reclaimed node is there again.
    Back { node: u32 },
    /// A pool changes, by the place of the change.
    Change { change: usize },
    /// A node is taken back.
    Reclaim { node: u32 },
    /// A run fails: the one that began after so many stops.
    Fail { job: usize, stops: u32 },
    /// A job is in the queue again.
    Return { job: usize },
}

impl Event {
    /// What comes first at one instant.
    fn rank(self) -> u8 {
        match self {
            Self::Back { .. } => 0,
            Self::Change { .. } => 1,
            Self::Reclaim { .. } => 2,
            Self::Fail { .. } => 3,
            Self::Return { .. } => 4,
        }
    }

    /// Whether it can make room, or bring a job.
    fn is_hope(self) -> bool {
        !matches!(self, Self::Reclaim { .. } | Self::Fail { .. })
    }

    fn is_return(self) -> bool {
        matches!(self, Self::Return { .. })
    }
}

/// A node's place and its chance.
struct Node {
    pool: usize,
    /// Its number in its pool.
    number: u32,
    is_away: bool,
    reclaims: Random,
}

/// The events of a scenario, on their way.
pub(crate) struct World<'s> {
    scenario: &'s Scenario,
    /// Whether jobs pause before they come back.
    pauses: bool,
    events: EventQueue<Event>,
    /// Events on their way that can make room or bring a job.
    hopes: usize,
    /// Those of them that bring a job.
    returns: usize,
    nodes: Vec<Node>,
    /// Nodes that each pool is to have.
    wanted: Vec<u32>,
}

impl<'s> World<'s> {
    /// The world at the start, and its nodes in the pool.
    pub fn new(scenario: &'s Scenario, pauses: bool, pool: &mut MixedPool) -> Self {
        let mut nodes = Vec::new();
        for (index, spec) in scenario.pools.iter().enumerate() {
            let node = |number| {
                let label = format!("reclaim/{}/{number}", spec.name);
                Node { pool: index, number, is_away: false, reclaims: fork(scenario.seed, &label) }
            };
            nodes.extend((0..scenario.nodes_max(index)).map(node));
        }
        let wanted = scenario.pools.iter().map(|spec| spec.nodes).collect();
        let mut world = Self { scenario, pauses, events: EventQueue::default(), hopes: 0, returns: 0, nodes, wanted };
        world.open(pool);
        for (node, at) in (0_u32..).zip(0..world.nodes.len()) {
            let is_warm =
                world.nodes.get(at).is_some_and(|node| world.spec(node).is_some_and(|spec| node.number < spec.warm));
            pool.set_warm(node, is_warm);
            world.draw_reclaim(node, 0);
        }
        for (change, planned) in scenario.changes.iter().enumerate() {
            world.push(planned.at_ms, Event::Change { change });
        }
        world
    }

    fn spec(&self, node: &Node) -> Option<&'s crate::scenario::PoolSpec> {
        self.scenario.pools.get(node.pool)
    }

    fn node(&self, node: u32) -> Option<&Node> {
        usize::try_from(node).ok().and_then(|node| self.nodes.get(node))
    }

    fn node_mut(&mut self, node: u32) -> Option<&mut Node> {
        usize::try_from(node).ok().and_then(|node| self.nodes.get_mut(node))
    }

    fn push(&mut self, at_ms: u64, event: Event) {
        self.hopes += usize::from(event.is_hope());
        self.returns += usize::from(event.is_return());
        self.events.push(at_ms, event.rank(), event);
    }

    /// Draws when a node is taken back next, from this time on.
    fn draw_reclaim(&mut self, node: u32, from_ms: u64) {
        let mean = self.node(node).and_then(|node| self.spec(node)).and_then(|spec| spec.reclaim_mean_ms);
        let (Some(mean_ms), Some(found)) = (mean, self.node_mut(node)) else { return };
        let gap_ms = whole(found.reclaims.exponential(mean_ms as f64)).max(1);
        self.push(from_ms.saturating_add(gap_ms), Event::Reclaim { node });
    }

    /// Opens the nodes that are wanted and there, and closes the rest.
    fn open(&self, pool: &mut MixedPool) {
        for (index, node) in (0_u32..).zip(&self.nodes) {
            let is_wanted = self.wanted.get(node.pool).is_some_and(|wanted| node.number < *wanted);
            pool.set_open(index, is_wanted && !node.is_away);
        }
    }

    /// When something happens next.
    pub fn next_at_ms(&self) -> Option<u64> {
        self.events.next_at_ms()
    }

    /// Whether something on its way can make room or bring a job.
    pub fn has_hope(&self) -> bool {
        self.hopes > 0
    }

    /// Events in which every node has come back, and every change has been made, on a cluster that stays idle.
    pub fn patience(&self) -> usize {
        4 * self.nodes.len() + self.scenario.changes.len() + 16
    }

    /// Whether a job is on its way back.
    pub fn returns(&self) -> bool {
        self.returns > 0
    }

    /// What it follows.
    pub fn scenario(&self) -> &'s Scenario {
        self.scenario
    }

    /// Lets everything of this instant happen.
    pub fn happen<S: Strategy<MixedPool>>(&mut self, machine: &mut Machine<'_, MixedPool>, strategy: &mut S) {
        let now_ms = machine.now_ms();
        while let Some(event) = self.events.pop_at(now_ms) {
            self.hopes -= usize::from(event.is_hope());
            self.returns -= usize::from(event.is_return());
            match event {
                Event::Back { node } => {
                    self.set_away(node, false, machine);
                    self.draw_reclaim(node, now_ms);
                }
                Event::Change { change } => self.change(change, machine),
                Event::Reclaim { node } => self.reclaim(node, machine),
                Event::Fail { job, stops } => self.fail(job, stops, machine),
                Event::Return { job } => strategy.submit(job, machine),
            }
        }
        for (index, spec) in self.scenario.pools.iter().enumerate() {
            if let Some(idle_ms) = spec.scale_down_ms {
                machine.pool.scale_down(u16::try_from(index).unwrap_or(u16::MAX), idle_ms, now_ms);
            }
        }
    }

    fn change(&mut self, change: usize, machine: &mut Machine<'_, MixedPool>) {
        let Some(change) = self.scenario.changes.get(change) else { return };
        if let Some(wanted) = self.wanted.get_mut(change.pool) {
            *wanted = change.nodes;
        }
        self.open(&mut machine.pool);
    }

    fn set_away(&mut self, node: u32, is_away: bool, machine: &mut Machine<'_, MixedPool>) {
        if let Some(node) = self.node_mut(node) {
            node.is_away = is_away;
        }
        self.open(&mut machine.pool);
    }

    fn reclaim(&mut self, node: u32, machine: &mut Machine<'_, MixedPool>) {
        for job in machine.on_node(node) {
            machine.interrupt(job, SegmentEnd::HostLost);
            self.comes_back(job, machine.outcome(job).host_losses, machine);
        }
        machine.pool.set_warm(node, false);
        let away_ms = self.node(node).and_then(|node| self.spec(node)).map_or(0, |spec| spec.away_ms);
        self.set_away(node, true, machine);
        self.push(machine.now_ms().saturating_add(away_ms), Event::Back { node });
    }

    fn fail(&mut self, job: usize, stops: u32, machine: &mut Machine<'_, MixedPool>) {
        // A run that was stopped in the meantime doesn't fail any more.
        if machine.share(job).is_some() && machine.outcome(job).stops() == stops {
            machine.interrupt(job, SegmentEnd::Failed);
            self.comes_back(job, machine.outcome(job).failures, machine);
        }
    }

    /// Puts a job on its way back, if it may run again, after so many interruptions of its kind.
    fn comes_back(&mut self, job: usize, times: u32, machine: &Machine<'_, MixedPool>) {
        let (budgets, outcome) = (self.scenario.budgets, machine.outcome(job));
        if outcome.failures > budgets.failures_max || outcome.host_losses > budgets.host_losses_max {
            return;
        }
        let pause_ms = if self.pauses { budgets.pause_ms(times) } else { 0 };
        self.push(machine.now_ms().saturating_add(pause_ms), Event::Return { job });
    }

    /// Draws the fate of what has just started.
    pub fn started(&mut self, machine: &mut Machine<'_, MixedPool>) {
        let chance = self.scenario.failure_chance;
        let started = machine.take_started();
        if chance <= 0.0 {
            return;
        }
        for job in started {
            let stops = machine.outcome(job).stops();
            let mut fate = fork(self.scenario.seed, &format!("failure/{}/{stops}", machine.job(job).id));
            if machine.share(job).is_some() && fate.chance(chance) {
                let after_ms = whole(fate.unit() * machine.remaining_ms(job) as f64);
                self.push(machine.works_from_ms(job) + after_ms, Event::Fail { job, stops });
            }
        }
    }
}

/// Whether a scenario needs nothing of all this: one pool whose nodes are there and stay, and jobs that don't fail.
#[must_use]
pub fn is_quiet(scenario: &Scenario) -> bool {
    let stays = |pool: &crate::scenario::PoolSpec| {
        pool.reclaim_mean_ms.is_none()
            && (pool.start_up_ms == 0 || pool.warm >= pool.nodes && pool.scale_down_ms.is_none())
    };
    let is_one = matches!(scenario.pools.as_slice(), [pool] if pool.capacity == CapacityType::OnDemand && stays(pool));
    is_one && scenario.changes.is_empty() && scenario.failure_chance <= 0.0
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "milliseconds, never negative")]
fn whole(ms: f64) -> u64 {
    ms.round() as u64
}

#[cfg(test)]
#[path = "world_tests.rs"]
mod tests;
