//! Step 4 where Batch chooses the nodes: a start must fit wherever the dispatches in flight may land.

use std::collections::BTreeMap;

use crate::demand::Demand;
use crate::room::{Free, Room, Wanted, is_empty};
use crate::snapshot::{Hold, Node, Shape};

/// Dispatches whose nodes aren't known, and what is free without them.
#[derive(Clone, Debug)]
pub(crate) struct InFlight<'s> {
    /// What is free beside the jobs whose nodes are known.
    room: Room<'s>,
    /// How many there are of each shape.
    jobs: BTreeMap<Shape, u32>,
}

impl<'s> InFlight<'s> {
    /// Nothing is in flight.
    pub fn new(room: Room<'s>) -> Self {
        Self { room, jobs: BTreeMap::new() }
    }

    /// What is free beside the jobs whose nodes are known.
    pub fn room(&self) -> &Room<'s> {
        &self.room
    }

    /// Takes in that parts of nodes become free.
    pub fn give(&mut self, holds: &[Hold]) {
        self.room.give(holds);
    }

    /// How many are in flight.
    pub fn count(&self) -> u32 {
        self.jobs.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Takes in a dispatch.
    pub fn add(&mut self, demand: Demand) {
        let (shape, count) = parts(demand);
        let known = self.jobs.entry(shape).or_default();
        *known = known.saturating_add(count);
    }

    /// Whether one more fits, and leaves every other one its place, wherever each of them lands.
    ///
    /// Each of them is asked in turn how many nodes the others could spoil for it at most, and whether one is left.
    pub fn allows(&self, demand: Demand) -> bool {
        let (shape, count) = parts(demand);
        let mut jobs = self.jobs.clone();
        let known = jobs.entry(shape).or_default();
        *known = known.saturating_add(count);
        jobs.keys().all(|shape| self.is_left_room(*shape, &jobs))
    }

    fn is_left_room(&self, shape: Shape, jobs: &BTreeMap<Shape, u32>) -> bool {
        let wanted = Wanted::of(shape);
        let takes_whole = self.room.takes_whole(shape);
        let nodes = self.room.all().filter(|(_, node, free)| {
            if takes_whole { is_empty(node, *free) && wanted.takes(node) } else { free.holds(shape) }
        });
        // What it takes of a node until it is spoilt: GPUs and vCPUs.
        let margin = |free: Free| {
            if takes_whole {
                (1, 1)
            } else {
                (free.gpus - shape.gpus + 1, free.vcpus.saturating_sub(shape.vcpus).saturating_add(1))
            }
        };
        let nodes: Vec<(&Node, (u32, u32))> = nodes.map(|(_, node, free)| (node, margin(free))).collect();
        let others = Others::of(shape, jobs, self.room.largest());
        let margins: Vec<(u32, u32)> = nodes.iter().map(|(_, margin)| *margin).collect();
        let spoilt = others.spoil(&margins);
        let mut missing = wanted;
        // The largest nodes may be the ones that are spoilt.
        let mut left: Vec<&Node> = nodes.iter().map(|node| node.0).collect();
        left.sort_unstable_by_key(|node| node.gpus);
        let left = left.len().checked_sub(spoilt).and_then(|count| left.get(..count)).unwrap_or_default();
        left.iter().for_each(|node| missing.count(node));
        if takes_whole { missing.is_met() } else { !left.is_empty() }
    }
}

/// A shape, and how many of it may land apart from each other.
fn parts(demand: Demand) -> (Shape, u32) {
    match demand {
        Demand::Nodes(shape) => (shape, 1),
        Demand::Children { shape, count } => (shape, count),
    }
}

/// What all the others can take at most.
struct Others {
    /// Nodes that they can be on.
    nodes: u64,
    gpus: u64,
    vcpus: u64,
    /// The most GPUs and vCPUs that one of them takes.
    most: (u32, u32),
}

impl Others {
    fn of(shape: Shape, jobs: &BTreeMap<Shape, u32>, largest: u32) -> Self {
        let mut others = Self { nodes: 0, gpus: 0, vcpus: 0, most: (0, 0) };
        for (other, count) in jobs {
            let count = u64::from(if *other == shape { count.saturating_sub(1) } else { *count });
            let is_whole = other.nodes > 1 || other.gpus > largest;
            let nodes = if other.nodes > 1 { other.nodes } else { other.gpus.div_ceil(largest.max(1)).max(1) };
            let gpus = if is_whole { largest } else { other.gpus };
            let on = count.saturating_mul(nodes.into());
            others.nodes = others.nodes.saturating_add(on);
            others.gpus = others.gpus.saturating_add(on.saturating_mul(gpus.into()));
            let vcpus = if is_whole { u32::MAX } else { other.vcpus };
            if count > 0 {
                others.most = (others.most.0.max(gpus), others.most.1.max(vcpus));
            }
            others.vcpus = others.vcpus.saturating_add(on.saturating_mul(vcpus.into()));
        }
        others
    }

    /// Most nodes that they can spoil, by what each of them stands of GPUs and of vCPUs.
    fn spoil(&self, margins: &[(u32, u32)]) -> usize {
        let by_gpus = cheapest(margins.iter().map(|margin| margin.0), self.gpus);
        // Where nothing in flight needs vCPUs they spoil nothing.
        let by_vcpus = if self.vcpus == 0 { 0 } else { cheapest(margins.iter().map(|margin| margin.1), self.vcpus) };
        // Nobody takes a part of what he takes: jobs of 4 GPUs spoil a node that stands 5 only by two of them.
        let jobs = |margin: u32, most: u32| if most == 0 { u32::MAX } else { margin.div_ceil(most) };
        let needed = margins.iter().map(|(gpus, vcpus)| jobs(*gpus, self.most.0).min(jobs(*vcpus, self.most.1)));
        (by_gpus + by_vcpus).min(cheapest(needed, self.nodes))
    }
}

/// How many of these a sum pays for.
fn cheapest(margins: impl Iterator<Item = u32>, sum: u64) -> usize {
    let mut margins: Vec<u32> = margins.collect();
    margins.sort_unstable();
    let mut left = sum;
    margins
        .into_iter()
        .take_while(|margin| {
            let is_paid = u64::from(*margin) <= left;
            left = left.saturating_sub((*margin).into());
            is_paid
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{Hold, Snapshot};

    fn snapshot(nodes: usize) -> Snapshot {
        Snapshot { nodes: vec![Node::new(8); nodes], ..Snapshot::default() }
    }

    fn gpus(gpus: u32) -> Demand {
        Demand::Nodes(Shape::gpus(gpus))
    }

    #[test]
    fn a_whole_node_is_only_safe_while_every_other_start_can_miss_one() {
        let snapshot = snapshot(3);
        let mut flight = InFlight::new(Room::empty(&snapshot));
        assert!(flight.allows(gpus(8)));
        flight.add(gpus(1));
        flight.add(gpus(1));
        assert!(flight.allows(gpus(8)), "two nodes at most are spoilt, and a third is left");
        flight.add(gpus(1));
        assert!(!flight.allows(gpus(8)), "each of the three may be on another node");
        assert!(flight.allows(gpus(1)));
        assert_eq!(flight.count(), 3);
    }

    #[test]
    fn one_that_would_spoil_the_place_of_another_waits() {
        let snapshot = snapshot(2);
        let mut flight = InFlight::new(Room::empty(&snapshot));
        flight.add(gpus(8));
        assert!(flight.allows(gpus(1)), "it spoils one node, and the other is left");
        flight.add(gpus(1));
        assert!(!flight.allows(gpus(1)));
    }

    #[test]
    fn small_jobs_fill_what_they_can_only_spoil_by_being_many() {
        let snapshot = snapshot(1);
        let mut room = Room::empty(&snapshot);
        room.take(&[Hold::gpus(0, 2)]);
        let mut flight = InFlight::new(room);
        for _ in 0..6 {
            assert!(flight.allows(gpus(1)));
            flight.add(gpus(1));
        }
        assert!(!flight.allows(gpus(1)));
    }

    /// An array whose children fill nodes to the last GPU, or vCPU, never started: the others were thought to spoil a node
    /// each by a part of what they take.
    #[test]
    fn children_that_fill_nodes_exactly_leave_each_other_their_places() {
        let node = Node { vcpus: 96, ..Node::new(8) };
        let two = Snapshot { nodes: vec![node; 2], ..Snapshot::default() };
        let array = |gpus, vcpus, count| Demand::Children { shape: Shape { nodes: 1, gpus, vcpus }, count };
        for (gpus, vcpus, count) in [(4, 0, 4), (2, 0, 8), (4, 48, 4), (1, 12, 16)] {
            let flight = InFlight::new(Room::empty(&two));
            assert!(flight.allows(array(gpus, vcpus, count)), "{count} of {gpus} GPUs and {vcpus} vCPUs");
        }
        // Three GPUs don't fill a node, and two nodes hold two each.
        let flight = InFlight::new(Room::empty(&two));
        assert!(flight.allows(array(3, 0, 4)) && !flight.allows(array(3, 0, 5)));
        // What isn't of their size may be in the way of two of them.
        let mut flight = InFlight::new(Room::empty(&two));
        flight.add(gpus(1));
        assert!(!flight.allows(array(4, 0, 4)) && flight.allows(array(4, 0, 3)));
    }

    #[test]
    fn a_multi_node_job_needs_nodes_that_nobody_can_spoil() {
        let snapshot = snapshot(4);
        let mut flight = InFlight::new(Room::empty(&snapshot));
        let multi = Demand::Nodes(Shape { nodes: 3, gpus: 8, vcpus: 0 });
        assert!(flight.allows(multi));
        flight.add(gpus(2));
        assert!(flight.allows(multi));
        flight.add(gpus(2));
        assert!(!flight.allows(multi));
    }

    #[test]
    fn vcpus_spoil_too() {
        let snapshot = Snapshot { nodes: vec![Node { vcpus: 16, ..Node::new(8) }], ..Snapshot::default() };
        let mut flight = InFlight::new(Room::empty(&snapshot));
        let job = |gpus, vcpus| Demand::Nodes(Shape { nodes: 1, gpus, vcpus });
        flight.add(job(0, 9));
        assert!(!flight.allows(job(1, 8)));
        assert!(flight.allows(job(1, 7)));
    }
}
