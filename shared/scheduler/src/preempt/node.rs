//! Victims for a job that goes to one node.

use std::collections::BTreeMap;

use super::candidate::Candidate;
use super::cover::{Covered, Item, cheapest};
use super::{Found, Open, Search};
use crate::decide::Cycle;
use crate::room::{left, ready_ms, takes_jobs};
use crate::snapshot::{Hold, Node, Queued, Shape, UNCOUNTED};

/// The cheapest victims, on whichever node they are.
pub(super) fn search(cycle: &Cycle<'_>, job: &Queued, shape: Shape, open: &Open<'_>) -> Search {
    let (mut best, mut is_enough): (Option<Found>, bool) = (None, false);
    for (number, here) in by_node(cycle, open) {
        let Some(node) = cycle.room.node(number).filter(|node| could_hold(cycle, number, node, shape)) else {
            continue;
        };
        let needs = Needs::of(cycle, job, shape, (number, node), open.spare);
        let items: Vec<Item> = here.iter().map(|(place, hold)| needs.item(cycle, open, *place, hold)).collect();
        match cheapest(&needs.amounts, &items, open.victims_max) {
            Covered::Never => {}
            Covered::TooMany => is_enough = true,
            Covered::By { items, cost, is_cheapest } => {
                is_enough = true;
                let of = |item: usize| open.candidates.get(here.get(item)?.0).map(|(place, _)| *place);
                let candidates = items.into_iter().filter_map(of).collect();
                let found = Found { candidates, cost, is_cheapest };
                if best.as_ref().is_none_or(|best| found.rank() < best.rank()) {
                    let is_cheapest = found.is_cheapest && best.is_none_or(|best| best.is_cheapest);
                    best = Some(Found { is_cheapest, ..found });
                }
            }
        }
    }
    match best {
        Some(found) => Search::Found(found),
        None if is_enough => Search::TooMany,
        None => Search::NotEnough,
    }
}

/// What the candidates hold of each node, by their places among those that are open.
fn by_node(cycle: &Cycle<'_>, open: &Open<'_>) -> BTreeMap<u32, Vec<(usize, Hold)>> {
    let mut nodes: BTreeMap<u32, Vec<(usize, Hold)>> = BTreeMap::new();
    for (place, (_, candidate)) in open.candidates.iter().enumerate() {
        for (node, hold) in holds(cycle, candidate) {
            nodes.entry(node).or_default().push((place, hold));
        }
    }
    nodes
}

/// What a candidate holds of each node.
pub(super) fn holds(cycle: &Cycle<'_>, candidate: &Candidate) -> BTreeMap<u32, Hold> {
    let mut nodes: BTreeMap<u32, Hold> = BTreeMap::new();
    let runs = candidate.runs.iter().filter_map(|run| cycle.snapshot.running.get(*run));
    for hold in runs.flat_map(|running| &running.holds) {
        let sum = nodes.entry(hold.node).or_insert(Hold { node: hold.node, gpus: 0, vcpus: 0 });
        sum.gpus = sum.gpus.saturating_add(hold.gpus);
        sum.vcpus = sum.vcpus.saturating_add(hold.vcpus);
    }
    nodes
}

fn could_hold(cycle: &Cycle<'_>, number: u32, node: &Node, shape: Shape) -> bool {
    takes_jobs(node, cycle.snapshot.gate) && !cycle.room.is_overdrawn(number) && left(node).holds(shape)
}

/// What a job misses on a node: GPUs and vCPUs now, and at the begin of each reservation that it would run into; and at
/// last GPUs of the pool, where some must stay free beside it.
struct Needs {
    amounts: Vec<i64>,
    /// The begins, for each two amounts after the first.
    at_ms: Vec<i64>,
}

impl Needs {
    fn of(cycle: &Cycle<'_>, job: &Queued, shape: Shape, (number, node): (u32, &Node), spare: u32) -> Self {
        let free = cycle.room.free_of(number);
        let end_ms = cycle.end_from(job, ready_ms(node, cycle.now_ms)).unwrap_or(i64::MAX);
        let (gpus, vcpus) = (i64::from(shape.gpus), i64::from(shape.vcpus));
        let short = |wanted: i64, free: i64| (wanted - free).max(0);
        let mut amounts = vec![short(gpus, free.gpus.into()), short(vcpus, free.vcpus.into())];
        let mut at_ms = Vec::new();
        for (at, gpus_left, vcpus_left) in cycle.kept.left_before(number, end_ms) {
            amounts.extend([short(gpus, gpus_left), short(vcpus, vcpus_left)]);
            at_ms.push(at);
        }
        if spare > 0 {
            amounts.push(short(gpus + i64::from(spare), cycle.room.free().into()));
        }
        Self { amounts, at_ms }
    }

    /// What a candidate gives of it.
    fn item(&self, cycle: &Cycle<'_>, open: &Open<'_>, place: usize, hold: &Hold) -> Item {
        let candidate = open.candidates.get(place).map(|(_, candidate)| *candidate);
        let runs = candidate.into_iter().flat_map(|candidate| &candidate.runs);
        let runs = runs.filter_map(|run| cycle.snapshot.running.get(*run));
        let end_ms = runs.map(|running| cycle.end_of_running(running)).min().unwrap_or(i64::MIN);
        let gives = |is_there: bool| {
            let vcpus = if hold.vcpus == UNCOUNTED { 0 } else { hold.vcpus };
            if is_there { [i64::from(hold.gpus), i64::from(vcpus)] } else { [0, 0] }
        };
        let later = self.at_ms.iter().flat_map(|at_ms| gives(*at_ms < end_ms));
        let of_pool = candidate.map_or(0, |candidate| candidate.gpus(cycle.snapshot));
        let of_pool = i64::try_from(of_pool).unwrap_or(i64::MAX);
        let amounts = gives(true).into_iter().chain(later).chain([of_pool]).zip(&self.amounts);
        // What nobody needs makes no difference.
        let gives = amounts.map(|(gives, need)| if *need > 0 { gives } else { 0 }).collect();
        let tier = candidate.map_or(u16::MAX, |candidate| candidate.tier);
        let budget = open.budget.left(tier).map(|left| (tier, left));
        Item { gives, cost: candidate.map_or(u64::MAX, |candidate| candidate.cost), budget }
    }
}
