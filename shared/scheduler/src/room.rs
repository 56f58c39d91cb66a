//! Step 4, placement: what is free, node by node, and where a job goes.

use std::collections::BTreeSet;

use crate::demand::Demand;
use crate::snapshot::{Gate, Hold, Node, NodeState, Running, Shape, Snapshot, UNCOUNTED};

/// What a node has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Free {
    pub gpus: u32,
    pub vcpus: u32,
}

impl Free {
    /// Whether this is enough for one node's part of a job.
    pub fn holds(self, shape: Shape) -> bool {
        self.gpus >= shape.gpus && self.vcpus >= shape.vcpus
    }

    /// How many parts like this it is enough for.
    pub fn times(self, shape: Shape) -> u32 {
        let gpus = self.gpus.checked_div(shape.gpus).unwrap_or(u32::MAX);
        let vcpus = if self.vcpus == UNCOUNTED { None } else { self.vcpus.checked_div(shape.vcpus) };
        gpus.min(vcpus.unwrap_or(u32::MAX))
    }

    fn plus(self, hold: &Hold, most: Self) -> Self {
        let gpus = self.gpus.saturating_add(hold.gpus).min(most.gpus);
        Self { gpus, vcpus: self.vcpus.saturating_add(hold.vcpus).min(most.vcpus) }
    }

    pub fn minus(self, hold: &Hold) -> Self {
        let vcpus = if self.vcpus == UNCOUNTED { UNCOUNTED } else { self.vcpus.saturating_sub(hold.vcpus) };
        Self { gpus: self.gpus.saturating_sub(hold.gpus), vcpus }
    }
}

/// Free GPUs and vCPUs node by node.
///
/// Best fit: a job goes to the node with the fewest free GPUs that fit it, of those that are up, then of those that start
/// up, then of those that aren't provisioned, the lowest number on ties; a node that it doesn't fit is no candidate. A
/// job of several nodes, or larger than any, takes whole empty nodes, the lowest numbers first.
#[derive(Clone, Debug)]
pub(crate) struct Room<'s> {
    nodes: &'s [Node],
    free: Vec<Free>,
    free_total: u32,
    /// Nodes of which more was taken than there is: a contradiction, or a node that takes no jobs.
    overdrawn: BTreeSet<u32>,
    /// The most GPUs that a node has.
    largest: u32,
    /// GPUs that dispatches in flight may hold already: what seems to be others' work may be theirs.
    unheard: u32,
    index: Index,
}

/// Where a job goes. Nearly all go to one node, and those cost no memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    One(Hold),
    Many(Vec<Hold>),
}

impl Place {
    pub(crate) fn holds(&self) -> &[Hold] {
        match self {
            Self::One(hold) => std::slice::from_ref(hold),
            Self::Many(holds) => holds,
        }
    }
}

impl From<Place> for Vec<Hold> {
    fn from(place: Place) -> Self {
        match place {
            Place::One(hold) => vec![hold],
            Place::Many(holds) => holds,
        }
    }
}

impl<'s> Room<'s> {
    /// All of the nodes that take jobs, empty but for foreign work.
    pub(crate) fn empty(snapshot: &'s Snapshot) -> Self {
        let nodes = snapshot.nodes.as_slice();
        let is_open = |node: &Node| takes_jobs(node, snapshot.gate);
        let largest = nodes.iter().filter(|node| is_open(node)).map(|node| node.gpus).max().unwrap_or(0);
        let free: Vec<Free> =
            nodes.iter().map(|node| if is_open(node) { left(node) } else { Free::default() }).collect();
        let free_total = free.iter().fold(0_u32, |sum, free| sum.saturating_add(free.gpus));
        let index = Index::of(nodes, &free, largest);
        Self { nodes, free, free_total, overdrawn: BTreeSet::new(), largest, unheard: 0, index }
    }

    /// What running jobs leave, as far as `counts` says.
    pub(crate) fn of(snapshot: &'s Snapshot, counts: impl Fn(&Running) -> bool) -> Self {
        let mut room = Self::empty(snapshot);
        snapshot.running.iter().filter(|running| counts(running)).for_each(|running| room.take(&running.holds));
        room
    }

    /// Free GPUs.
    pub(crate) fn free(&self) -> u32 {
        self.free_total
    }

    /// Nodes with what they have left, by number.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, &'s Node, Free)> {
        (0_u32..).zip(self.nodes.iter().zip(&self.free)).map(|(number, (node, free))| (number, node, *free))
    }

    /// What a node has left.
    pub(crate) fn free_of(&self, node: u32) -> Free {
        usize::try_from(node).ok().and_then(|node| self.free.get(node)).copied().unwrap_or_default()
    }

    /// GPUs of the nodes that aren't closed.
    pub(crate) fn gpus(&self) -> u32 {
        let nodes = self.nodes.iter().filter(|node| node.state != NodeState::Closed);
        nodes.fold(0_u32, |sum, node| sum.saturating_add(node.gpus))
    }

    /// So many GPUs wherever they are free, or all that are.
    pub(crate) fn any(&self, gpus: u32) -> Place {
        let mut missing = gpus;
        let mut holds = Vec::new();
        for (node, _, free) in self.all() {
            let here = free.gpus.min(missing);
            if here > 0 {
                holds.push(Hold::gpus(node, here));
                missing -= here;
            }
        }
        Place::Many(holds)
    }

    /// The most GPUs that a node has.
    pub(crate) fn largest(&self) -> u32 {
        self.largest
    }

    pub(crate) fn node(&self, node: u32) -> Option<&'s Node> {
        usize::try_from(node).ok().and_then(|node| self.nodes.get(node))
    }

    /// Whether a job takes whole nodes.
    pub(crate) fn takes_whole(&self, shape: Shape) -> bool {
        shape.nodes > 1 || shape.gpus > self.largest
    }

    /// Where a job goes that may use the nodes that `may` says; `None` when it doesn't fit.
    pub(crate) fn place(&self, demand: Demand, may: impl Fn(&Hold) -> bool) -> Option<Place> {
        match demand {
            _ if demand.gpus() > self.free_total => None,
            Demand::Nodes(shape) if self.takes_whole(shape) => self.whole(shape, may).map(Place::Many),
            Demand::Nodes(shape) => self.tightest(shape, may).map(Place::One),
            Demand::Children { shape, count } => self.children(shape, count, may).map(Place::Many),
        }
    }

    /// Children of an array, the best fits first.
    fn children(&self, shape: Shape, count: u32, may: impl Fn(&Hold) -> bool) -> Option<Vec<Hold>> {
        let mut missing = count;
        let mut holds = Vec::new();
        for node in self.index.from(shape.gpus) {
            let here = self.free_of(node).times(shape).min(missing);
            let hold = shape.times(node, here);
            if here > 0 && may(&hold) {
                holds.push(hold);
                missing -= here;
            }
            if missing == 0 {
                return Some(holds);
            }
        }
        None
    }

    /// Takes in that so many GPUs may be held by dispatches of which nobody has heard that they run.
    pub(crate) fn expect_unheard(&mut self, gpus: u32) {
        self.unheard = gpus;
    }

    /// How many jobs of a shape the nodes could hold, if nothing but foreign work ran. What may be ours isn't foreign.
    pub(crate) fn most(&self, shape: Shape) -> u32 {
        self.most_beside(shape, self.unheard)
    }

    /// The same, if all that seems to be others' work is.
    pub(crate) fn most_seen(&self, shape: Shape) -> u32 {
        self.most_beside(shape, 0)
    }

    /// How many jobs of a shape the nodes could hold beside others' work, if on each of them so many GPUs of it were ours.
    fn most_beside(&self, shape: Shape, ours: u32) -> u32 {
        let nodes = self.nodes.iter().filter(|node| node.state != NodeState::Closed);
        let bare = |node: &Node| left(&Node { foreign_gpus: node.foreign_gpus.saturating_sub(ours), ..*node });
        nodes.fold(0_u32, |sum, node| sum.saturating_add(bare(node).times(shape)))
    }

    fn tightest(&self, shape: Shape, may: impl Fn(&Hold) -> bool) -> Option<Hold> {
        if shape.gpus > self.index.widest {
            return None;
        }
        let hold = |node| Hold { node, gpus: shape.gpus, vcpus: shape.vcpus };
        let nodes = self.index.from(shape.gpus).map(hold);
        nodes.filter(|hold| self.free_of(hold.node).vcpus >= shape.vcpus).find(may)
    }

    /// Whole empty nodes: as many as the job has, or until they are enough for one that is larger than any.
    fn whole(&self, shape: Shape, may: impl Fn(&Hold) -> bool) -> Option<Vec<Hold>> {
        let (wanted, mut missing) = (Wanted::of(shape), Wanted::of(shape));
        let mut holds = Vec::new();
        for state in 0..STATES {
            let empty = self.all().filter(|(_, node, free)| rank(node) == state && is_empty(node, *free));
            for (number, node, _) in empty.filter(|(_, node, _)| wanted.takes(node)) {
                let hold = whole_hold(number, node);
                if may(&hold) {
                    holds.push(hold);
                    missing.count(node);
                }
                if missing.is_met() {
                    return Some(holds);
                }
            }
        }
        None
    }

    /// Takes a part of nodes. What isn't free, or is on a node that has gone, can't be taken, and is no room either way.
    pub(crate) fn take(&mut self, holds: &[Hold]) {
        for hold in holds {
            let free = self.free_of(hold.node);
            if free.gpus < hold.gpus || free.vcpus < hold.vcpus {
                self.overdrawn.insert(hold.node);
            }
            self.set(hold.node, free.minus(hold));
        }
    }

    /// Gives a part of nodes back that was taken. What is [`Self::is_overdrawn`] isn't known to become free.
    pub(crate) fn give(&mut self, holds: &[Hold]) {
        for hold in holds.iter().filter(|hold| !self.overdrawn.contains(&hold.node)).copied().collect::<Vec<_>>() {
            let most = self.node(hold.node).map(left).unwrap_or_default();
            self.set(hold.node, self.free_of(hold.node).plus(&hold, most));
        }
    }

    /// Whether more was taken of a node than it has.
    pub(crate) fn is_overdrawn(&self, node: u32) -> bool {
        self.overdrawn.contains(&node)
    }

    fn set(&mut self, number: u32, now: Free) {
        let Some(node) = self.node(number) else { return };
        let Some(free) = usize::try_from(number).ok().and_then(|number| self.free.get_mut(number)) else { return };
        let was = std::mem::replace(free, now);
        self.free_total = self.free_total.saturating_sub(was.gpus).saturating_add(now.gpus);
        if was.gpus != now.gpus {
            self.index.change(number, rank(node), was.gpus, now.gpus);
        }
    }
}

/// What a job of whole nodes still misses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    shape: Shape,
    nodes: u32,
    gpus: u32,
}

impl Wanted {
    pub fn of(shape: Shape) -> Self {
        // A job of one node that is larger than any is spread over as many as it takes.
        if shape.nodes > 1 {
            Self { shape, nodes: shape.nodes, gpus: 0 }
        } else {
            Self { shape, nodes: 1, gpus: shape.gpus }
        }
    }

    /// Whether a node is one that the job can use.
    pub fn takes(&self, node: &Node) -> bool {
        let is_enough = self.shape.nodes <= 1 || node.gpus >= self.shape.gpus;
        is_enough && node.vcpus >= self.shape.vcpus && (node.gpus > 0 || self.shape.gpus == 0)
    }

    /// Counts a node in.
    pub fn count(&mut self, node: &Node) {
        self.nodes = self.nodes.saturating_sub(1);
        self.gpus = self.gpus.saturating_sub(node.gpus);
    }

    pub fn is_met(&self) -> bool {
        self.nodes == 0 && self.gpus == 0
    }
}

/// All of a node.
pub(crate) fn whole_hold(number: u32, node: &Node) -> Hold {
    Hold { node: number, gpus: node.gpus, vcpus: if node.vcpus == UNCOUNTED { 0 } else { node.vcpus } }
}

/// Whether a node has all that it ever had.
pub(crate) fn is_empty(node: &Node, free: Free) -> bool {
    free.gpus == node.gpus && free.vcpus == node.vcpus && node.foreign_gpus == 0 && node.foreign_vcpus == 0
}

/// What foreign work leaves of a node.
pub(crate) fn left(node: &Node) -> Free {
    let hold = Hold { node: 0, gpus: node.foreign_gpus, vcpus: node.foreign_vcpus };
    Free { gpus: node.gpus, vcpus: node.vcpus }.minus(&hold)
}

/// Whether a node can be given jobs now. Where capacity can't be had, a node that isn't there doesn't come.
pub(crate) fn takes_jobs(node: &Node, gate: Gate) -> bool {
    match node.state {
        NodeState::Up | NodeState::Starting { .. } => true,
        NodeState::Absent { .. } => !matches!(gate, Gate::NoCapacity { .. }),
        NodeState::Closed => false,
    }
}

/// When a node that is given a job now can run it, milliseconds since 1970.
pub(crate) fn ready_ms(node: &Node, now_ms: i64) -> i64 {
    match node.state {
        NodeState::Up | NodeState::Closed => now_ms,
        NodeState::Starting { ready_ms } => ready_ms.max(now_ms),
        NodeState::Absent { start_up_ms } => now_ms.saturating_add_unsigned(start_up_ms),
    }
}

/// States that are preferred one after the other.
const STATES: usize = 3;

fn rank(node: &Node) -> usize {
    match node.state {
        NodeState::Up | NodeState::Closed => 0,
        NodeState::Starting { .. } => 1,
        NodeState::Absent { .. } => 2,
    }
}

/// Nodes by state and free GPUs: one row of bits each, so that the best fit is the first bit of the first row.
#[derive(Clone, Debug)]
struct Index {
    bits: Vec<u64>,
    /// Words of a row.
    words: usize,
    /// Rows of a state.
    rows: usize,
    /// How many nodes each row has.
    counts: Vec<u32>,
    /// The most that a node has free: most jobs of a long queue are seen not to fit by this alone.
    widest: u32,
}

impl Index {
    fn of(nodes: &[Node], free: &[Free], largest: u32) -> Self {
        let words = nodes.len().div_ceil(64);
        let rows = usize::try_from(largest).unwrap_or(0).saturating_add(1);
        let states = nodes.iter().map(rank).max().map_or(1, |most| most + 1);
        let (bits, counts) = (vec![0; words * rows * states], vec![0; rows * states]);
        let mut index = Self { bits, words, rows, counts, widest: 0 };
        for (number, (node, free)) in (0_u32..).zip(nodes.iter().zip(free)) {
            index.flip(number, rank(node), free.gpus, true);
        }
        index.widest = largest;
        index.narrow();
        index
    }

    fn row(&self, state: usize, gpus: u32) -> usize {
        let gpus = usize::try_from(gpus).unwrap_or(usize::MAX).min(self.rows.saturating_sub(1));
        state * self.rows + gpus
    }

    fn flip(&mut self, node: u32, state: usize, gpus: u32, is_in: bool) {
        let row = self.row(state, gpus);
        let word = usize::try_from(node / 64).ok().map(|word| row * self.words + word);
        if let Some(word) = word.and_then(|word| self.bits.get_mut(word)) {
            *word ^= 1 << (node % 64);
        }
        if let Some(count) = self.counts.get_mut(row) {
            *count = if is_in { *count + 1 } else { count.saturating_sub(1) };
        }
    }

    fn change(&mut self, node: u32, state: usize, was: u32, now: u32) {
        self.flip(node, state, was, false);
        self.flip(node, state, now, true);
        if now > self.widest {
            self.widest = now;
        } else if was == self.widest {
            self.narrow();
        }
    }

    /// Lowers the widest to what there is.
    fn narrow(&mut self) {
        let states = self.counts.len() / self.rows.max(1);
        let is_there =
            |gpus: u32| (0..states).any(|state| self.counts.get(self.row(state, gpus)).is_some_and(|count| *count > 0));
        self.widest = (0..=self.widest).rev().find(|gpus| is_there(*gpus)).unwrap_or(0);
    }

    /// Nodes with at least so many free GPUs, the best fit first.
    fn from(&self, gpus: u32) -> impl Iterator<Item = u32> {
        let first = usize::try_from(gpus).unwrap_or(usize::MAX);
        let states = self.counts.len() / self.rows.max(1);
        let rows = (0..states).flat_map(move |state| (first..self.rows).map(move |gpus| state * self.rows + gpus));
        let rows = rows.filter(|row| self.counts.get(*row).is_some_and(|count| *count > 0));
        rows.flat_map(|row| {
            let words = self.bits.get(row * self.words..(row + 1) * self.words).unwrap_or_default();
            (0_u32..).zip(words).flat_map(|(at, word)| bits(*word).map(move |bit| at * 64 + bit))
        })
    }
}

/// The bits of a word that are set, the lowest first.
fn bits(word: u64) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(word), |left| Some(left & left.wrapping_sub(1)))
        .take_while(|left| *left != 0)
        .map(u64::trailing_zeros)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(nodes: &[Node]) -> Snapshot {
        Snapshot { nodes: nodes.to_vec(), ..Snapshot::default() }
    }

    fn eights() -> Snapshot {
        snapshot(&[8, 8, 0, 8].map(Node::new))
    }

    fn any(_: &Hold) -> bool {
        true
    }

    fn place(room: &Room<'_>, gpus: u32) -> Option<Place> {
        room.place(Demand::Nodes(Shape::gpus(gpus)), any)
    }

    fn one(node: u32, gpus: u32) -> Option<Place> {
        Some(Place::One(Hold::gpus(node, gpus)))
    }

    /// C10
    #[test]
    fn a_job_goes_to_the_tightest_node_and_one_that_does_not_fit_is_no_candidate() {
        let snapshot = eights();
        let mut room = Room::empty(&snapshot);
        room.take(&[Hold::gpus(3, 5)]);
        assert_eq!(place(&room, 3), one(3, 3));
        assert_eq!(place(&room, 4), one(0, 4));
        assert_eq!((room.free(), place(&room, 25)), (19, None));
    }

    #[test]
    fn a_large_job_takes_whole_empty_nodes() {
        let snapshot = eights();
        let mut room = Room::empty(&snapshot);
        let whole = |nodes: &[u32]| Some(Place::Many(nodes.iter().map(|node| Hold::gpus(*node, 8)).collect()));
        assert_eq!(place(&room, 24), whole(&[0, 1, 3]));
        room.take(&[Hold::gpus(0, 1)]);
        assert_eq!(place(&room, 12), whole(&[1, 3]));
        assert_eq!(place(&room, 24), None);
        // A multi-node job takes as many nodes as it has, whatever it needs of each.
        let multi = |nodes, gpus| room.place(Demand::Nodes(Shape { nodes, gpus, vcpus: 0 }), any);
        assert_eq!((multi(2, 4), multi(3, 4), multi(2, 9)), (whole(&[1, 3]), None, None));
    }

    #[test]
    fn the_widest_gap_is_known_however_it_came_about() {
        let snapshot = snapshot(&[Node::new(8); 2]);
        let mut room = Room::empty(&snapshot);
        room.take(&[Hold::gpus(0, 6)]);
        room.take(&[Hold::gpus(1, 3)]);
        assert_eq!((place(&room, 5), place(&room, 6)), (one(1, 5), None));
    }

    #[test]
    fn nothing_is_taken_twice_or_from_a_node_that_has_gone() {
        let snapshot = eights();
        let mut room = Room::empty(&snapshot);
        room.take(&[Hold::gpus(0, 9), Hold::gpus(9, 1)]);
        assert_eq!(room.free(), 16);
    }

    #[test]
    fn an_array_that_starts_as_one_fills_the_tightest_nodes_first() {
        let snapshot = eights();
        let mut room = Room::empty(&snapshot);
        room.take(&[Hold::gpus(3, 4)]);
        let array = |count| room.place(Demand::Children { shape: Shape::gpus(3), count }, any);
        let holds = |holds: &[(u32, u32)]| {
            Some(Place::Many(holds.iter().map(|(node, gpus)| Hold::gpus(*node, *gpus)).collect()))
        };
        assert_eq!(array(4), holds(&[(3, 3), (0, 6), (1, 3)]));
        assert_eq!((array(6), room.most(Shape::gpus(3))), (None, 6));
    }

    #[test]
    fn jobs_without_gpus_go_where_vcpus_are_and_gpus_are_not() {
        let snapshot = snapshot(&[Node { vcpus: 96, ..Node::new(8) }, Node { vcpus: 16, ..Node::new(0) }]);
        let mut room = Room::empty(&snapshot);
        let place = |room: &Room<'_>, vcpus| room.place(Demand::Nodes(Shape { nodes: 1, gpus: 0, vcpus }), any);
        let on = |node, vcpus| Some(Place::One(Hold { node, gpus: 0, vcpus }));
        assert_eq!((place(&room, 16), place(&room, 17), place(&room, 97)), (on(1, 16), on(0, 17), None));
        room.take(&[Hold { node: 1, gpus: 0, vcpus: 9 }]);
        assert_eq!(place(&room, 8), on(0, 8));
    }

    #[test]
    fn nodes_that_are_up_come_first_and_closed_ones_never() {
        let state = |state| Node { state, ..Node::new(8) };
        let nodes = [
            state(NodeState::Absent { start_up_ms: 1 }),
            state(NodeState::Starting { ready_ms: 1 }),
            state(NodeState::Closed),
            state(NodeState::Up),
        ];
        let mut snapshot = snapshot(&nodes);
        let mut room = Room::empty(&snapshot);
        for node in [3, 1, 0] {
            assert_eq!(place(&room, 8), one(node, 8));
            room.take(&[Hold::gpus(node, 8)]);
        }
        assert_eq!(place(&room, 1), None);
        snapshot.gate = Gate::NoCapacity { since_ms: 0 };
        assert_eq!(Room::empty(&snapshot).free(), 16);
    }

    #[test]
    fn foreign_work_holds_what_it_holds_and_its_node_is_never_whole() {
        let snapshot = snapshot(&[Node { foreign_gpus: 3, ..Node::new(8) }, Node::new(8)]);
        let room = Room::empty(&snapshot);
        assert_eq!((room.free(), place(&room, 5), place(&room, 6)), (13, one(0, 5), one(1, 6)));
        assert_eq!(room.place(Demand::Nodes(Shape { nodes: 2, gpus: 1, vcpus: 0 }), any), None);
    }
}
