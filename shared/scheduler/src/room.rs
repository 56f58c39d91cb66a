//! Room: what is free, node by node, and where a job would go.

use crate::snapshot::{Hold, Node, Snapshot};

/// Free GPUs node by node.
///
/// Bin packing: a job goes to the node with the fewest free GPUs that fit it, the lowest number on ties; a node that
/// it doesn't fit is no candidate. A job larger than any node takes whole empty nodes, the lowest numbers first.
#[derive(Clone, Debug)]
pub(crate) struct Room<'s> {
    nodes: &'s [Node],
    free: Vec<u32>,
    free_total: u32,
    /// The most that a node has free: most jobs of a long queue are seen not to fit by this alone.
    widest: u32,
    /// The most that a node has.
    largest: u32,
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
    /// What running jobs leave.
    pub(crate) fn of(snapshot: &'s Snapshot) -> Self {
        let mut room = Self::empty(&snapshot.nodes);
        snapshot.running.iter().for_each(|running| room.take(&running.holds));
        room
    }

    /// All of the nodes.
    pub(crate) fn empty(nodes: &'s [Node]) -> Self {
        let free: Vec<u32> = nodes.iter().map(|node| node.gpus).collect();
        let (free_total, largest) = (free.iter().sum(), free.iter().max().copied().unwrap_or(0));
        Self { nodes, free, free_total, widest: largest, largest }
    }

    /// Free GPUs.
    pub(crate) fn free(&self) -> u32 {
        self.free_total
    }

    /// Where a job of this many GPUs goes; `None` when it doesn't fit.
    pub(crate) fn place(&self, gpus: u32) -> Option<Place> {
        match gpus {
            gpus if gpus > self.free_total => None,
            gpus if gpus > self.largest => self.whole(gpus).map(Place::Many),
            gpus if gpus > self.widest => None,
            gpus => self.tightest(gpus).map(Place::One),
        }
    }

    fn tightest(&self, gpus: u32) -> Option<Hold> {
        let fitting = (0_u32..).zip(&self.free).filter(|(_, free)| **free >= gpus);
        fitting.min_by_key(|(_, free)| **free).map(|(node, _)| Hold { node, gpus })
    }

    /// Whole empty nodes until they are enough.
    fn whole(&self, gpus: u32) -> Option<Vec<Hold>> {
        let nodes = (0_u32..).zip(self.nodes.iter().zip(&self.free));
        let empty = nodes.filter(|(_, (node, free))| node.gpus > 0 && node.gpus == **free);
        let mut missing = gpus;
        let mut holds = Vec::new();
        for (node, (Node { gpus }, _)) in empty {
            holds.push(Hold { node, gpus: *gpus });
            missing = missing.saturating_sub(*gpus);
            if missing == 0 {
                return Some(holds);
            }
        }
        None
    }

    /// Whether all of this is free.
    pub(crate) fn has(&self, holds: &[Hold]) -> bool {
        holds.iter().all(|hold| self.free_of(hold.node) >= hold.gpus)
    }

    fn free_of(&self, node: u32) -> u32 {
        usize::try_from(node).ok().and_then(|node| self.free.get(node)).copied().unwrap_or(0)
    }

    /// Takes GPUs. What isn't free, or is on a node that has gone, can't be taken, and is no room either way.
    pub(crate) fn take(&mut self, holds: &[Hold]) {
        let mut was_widest = false;
        for hold in holds {
            let free = self.free_of(hold.node);
            was_widest |= free == self.widest;
            self.set(hold.node, free.saturating_sub(hold.gpus));
        }
        if was_widest {
            self.widest = self.free.iter().max().copied().unwrap_or(0);
        }
    }

    /// Gives GPUs back; never more than a node has.
    pub(crate) fn give(&mut self, holds: &[Hold]) {
        for hold in holds {
            let has = usize::try_from(hold.node).ok().and_then(|node| self.nodes.get(node)).map_or(0, |node| node.gpus);
            let free = self.free_of(hold.node).saturating_add(hold.gpus).min(has);
            self.set(hold.node, free);
            self.widest = self.widest.max(free);
        }
    }

    fn set(&mut self, node: u32, now: u32) {
        if let Some(free) = usize::try_from(node).ok().and_then(|node| self.free.get_mut(node)) {
            self.free_total = self.free_total + now - *free;
            *free = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: [Node; 4] = [Node { gpus: 8 }, Node { gpus: 8 }, Node { gpus: 0 }, Node { gpus: 8 }];

    #[test]
    fn a_job_goes_to_the_tightest_node() {
        let mut room = Room::empty(&NODES);
        room.take(&[Hold { node: 3, gpus: 5 }]);
        assert_eq!(room.place(3), Some(Place::One(Hold { node: 3, gpus: 3 })));
        assert_eq!(room.place(4), Some(Place::One(Hold { node: 0, gpus: 4 })));
        assert_eq!((room.free(), room.place(25)), (19, None));
    }

    #[test]
    fn a_large_job_takes_whole_empty_nodes() {
        let mut room = Room::empty(&NODES);
        let whole = |node| Hold { node, gpus: 8 };
        assert_eq!(room.place(24), Some(Place::Many(vec![whole(0), whole(1), whole(3)])));
        room.take(&[Hold { node: 0, gpus: 1 }]);
        assert_eq!(room.place(12), Some(Place::Many(vec![whole(1), whole(3)])));
        assert_eq!(room.place(24), None);
    }

    #[test]
    fn the_widest_gap_is_known_however_it_came_about() {
        let mut room = Room::empty(&NODES[..2]);
        let part = |node, gpus| [Hold { node, gpus }];
        room.take(&part(0, 6));
        room.take(&part(1, 3));
        assert_eq!((room.place(5), room.place(6)), (Some(Place::One(Hold { node: 1, gpus: 5 })), None));
        room.give(&part(0, 5));
        assert_eq!(room.place(7), Some(Place::One(Hold { node: 0, gpus: 7 })));
    }

    #[test]
    fn nothing_is_taken_twice_or_given_beyond_what_there_is() {
        let mut room = Room::empty(&NODES);
        room.take(&[Hold { node: 0, gpus: 9 }, Hold { node: 9, gpus: 1 }]);
        assert_eq!(room.free(), 16);
        room.give(&[Hold { node: 0, gpus: 20 }, Hold { node: 2, gpus: 1 }]);
        assert_eq!(room.free(), 24);
    }
}
