//! Victims for a job that takes whole nodes.

use std::collections::{BTreeMap, BTreeSet};

use super::cover::STEPS_MAX;
use super::node::holds;
use super::{Found, Open, Search};
use crate::decide::Cycle;
use crate::room::{Wanted, takes_jobs};
use crate::snapshot::{Node, Queued, Shape, UNCOUNTED};

/// The cheapest victims that leave enough nodes empty.
///
/// Nodes are tried in the order of what emptying them costs, so the first set that is seen is the obvious one. It is exact
/// unless it takes more than [`STEPS_MAX`] steps.
pub(super) fn search(cycle: &Cycle<'_>, job: &Queued, shape: Shape, open: &Open<'_>) -> Search {
    let nodes = emptiable(cycle, job, shape, open);
    let mut wanted = Wanted::of(shape);
    nodes.iter().for_each(|node| wanted.count(node.node));
    if !wanted.is_met() {
        return Search::NotEnough;
    }
    let mut choice = Choice { open, nodes: &nodes, best: None, steps: 0 };
    choice.walk(0, Wanted::of(shape), &BTreeSet::new());
    let is_cheapest = choice.steps <= STEPS_MAX;
    let Some((_, victims)) = choice.best else { return Search::TooMany };
    let victims = minimal(open, &nodes, shape, victims);
    let (cost, _) = rank(open, &victims);
    let candidates = victims.iter().filter_map(|place| open.candidates.get(*place)).map(|(place, _)| *place).collect();
    Search::Found(Found { candidates, cost, is_cheapest })
}

/// A node that the job can use, and who holds something of it, by their places among those that are open.
struct Emptiable<'s> {
    number: u32,
    node: &'s Node,
    holders: BTreeSet<usize>,
}

/// Nodes that are empty or can be emptied, the cheapest first.
fn emptiable<'s>(cycle: &Cycle<'s>, job: &Queued, shape: Shape, open: &Open<'_>) -> Vec<Emptiable<'s>> {
    let mut held: BTreeMap<u32, (BTreeSet<usize>, u64, u64)> = BTreeMap::new();
    for (place, (_, candidate)) in open.candidates.iter().enumerate() {
        for (node, hold) in holds(cycle, candidate) {
            let held = held.entry(node).or_default();
            held.0.insert(place);
            held.1 += u64::from(hold.gpus);
            held.2 += u64::from(hold.vcpus);
        }
    }
    // It may begin when the last of its nodes is ready, and mustn't run into what is kept of one.
    let end_ms = cycle.end_from(job, cycle.now_ms).unwrap_or(i64::MAX);
    let can_use = |number: u32, node: &Node| {
        takes_jobs(node, cycle.snapshot.gate)
            && Wanted::of(shape).takes(node)
            && (node.foreign_gpus, node.foreign_vcpus) == (0, 0)
            && !cycle.room.is_overdrawn(number)
            && cycle.kept.left_before(number, end_ms).next().is_none()
    };
    let mut nodes: Vec<Emptiable<'s>> = Vec::new();
    for (number, node, free) in cycle.room.all().filter(|(number, node, _)| can_use(*number, node)) {
        let (holders, gpus, vcpus) = held.remove(&number).unwrap_or_default();
        let is_all = u64::from(free.gpus) + gpus == u64::from(node.gpus)
            && (node.vcpus == UNCOUNTED || u64::from(free.vcpus) + vcpus == u64::from(node.vcpus));
        if is_all {
            nodes.push(Emptiable { number, node, holders });
        }
    }
    nodes.sort_by_key(|node| (rank(open, &node.holders), node.number));
    nodes
}

/// What victims cost, and how many they are.
fn rank(open: &Open<'_>, victims: &BTreeSet<usize>) -> (u64, usize) {
    let costs = victims.iter().filter_map(|place| open.candidates.get(*place)).map(|(_, victim)| victim.cost);
    (costs.fold(0, u64::saturating_add), victims.len())
}

struct Choice<'o, 's> {
    open: &'o Open<'o>,
    nodes: &'o [Emptiable<'s>],
    best: Option<((u64, usize), BTreeSet<usize>)>,
    steps: u32,
}

impl Choice<'_, '_> {
    /// Takes this node or leaves it, and goes on with those behind it.
    fn walk(&mut self, at: usize, wanted: Wanted, victims: &BTreeSet<usize>) {
        self.steps += 1;
        let found = rank(self.open, victims);
        if self.steps > STEPS_MAX || self.best.as_ref().is_some_and(|(best, _)| found >= *best) || !self.may(victims) {
            return;
        }
        if wanted.is_met() {
            self.best = Some((found, victims.clone()));
            return;
        }
        let Some(node) = self.nodes.get(at) else { return };
        let mut fewer = wanted;
        fewer.count(node.node);
        self.walk(at + 1, fewer, &victims.union(&node.holders).copied().collect());
        let mut rest = wanted;
        self.nodes.iter().skip(at + 1).for_each(|node| rest.count(node.node));
        if rest.is_met() {
            self.walk(at + 1, wanted, victims);
        }
    }

    /// Whether so many may go.
    fn may(&self, victims: &BTreeSet<usize>) -> bool {
        let mut tiers: BTreeMap<u16, u32> = BTreeMap::new();
        for (_, victim) in victims.iter().filter_map(|place| self.open.candidates.get(*place)) {
            *tiers.entry(victim.tier).or_default() += 1;
        }
        let is_within = |(tier, count): (&u16, &u32)| self.open.budget.left(*tier).is_none_or(|left| *count <= left);
        victims.len() <= self.open.victims_max && tiers.iter().all(is_within)
    }
}

/// Gives back who isn't needed, the most expensive first.
fn minimal(open: &Open<'_>, nodes: &[Emptiable<'_>], shape: Shape, mut victims: BTreeSet<usize>) -> BTreeSet<usize> {
    let mut order: Vec<usize> = victims.iter().copied().collect();
    order.sort_by_key(|place| std::cmp::Reverse(open.candidates.get(*place).map(|(_, victim)| victim.cost)));
    for place in order {
        let mut fewer = victims.clone();
        fewer.remove(&place);
        let mut wanted = Wanted::of(shape);
        nodes.iter().filter(|node| node.holders.is_subset(&fewer)).for_each(|node| wanted.count(node.node));
        if wanted.is_met() {
            victims = fewer;
        }
    }
    victims
}
