//! Nodes: a job sits on one, or on whole empty ones.

use super::Pool;

/// Free GPUs node by node.
///
/// A job that fits a node goes to the one with the fewest free GPUs that fit, the lowest number on ties. A larger job
/// takes whole empty nodes, the lowest numbers first, and holds all of their GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePool {
    gpus_per_node: u32,
    gpus: u32,
    free: Vec<u32>,
    free_total: u32,
    empty: u32,
    /// Whether a job goes to the node with the most free GPUs instead.
    spreads: bool,
}

/// What a job holds of the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeShare {
    /// GPUs of one node.
    Part {
        /// The node.
        node: u32,
        /// GPUs.
        gpus: u32,
    },
    /// Whole nodes.
    Whole {
        /// The nodes.
        nodes: Vec<u32>,
        /// GPUs of each.
        gpus_per_node: u32,
    },
}

impl NodeShare {
    /// The share that holds these GPUs of these nodes, all of one shape when they are several.
    pub(super) fn of(nodes: &[(u32, u32)]) -> Self {
        match nodes {
            [(node, gpus)] => Self::Part { node: *node, gpus: *gpus },
            _ => Self::Whole {
                nodes: nodes.iter().map(|(node, _)| *node).collect(),
                gpus_per_node: nodes.first().map_or(0, |(_, gpus)| *gpus),
            },
        }
    }

    /// The nodes, each with its GPUs.
    #[must_use]
    pub fn nodes(&self) -> Vec<(u32, u32)> {
        match self {
            Self::Part { node, gpus } => vec![(*node, *gpus)],
            Self::Whole { nodes, gpus_per_node } => nodes.iter().map(|node| (*node, *gpus_per_node)).collect(),
        }
    }
}

impl NodePool {
    /// Nodes of one shape, all empty.
    #[must_use]
    pub fn new(nodes: u32, gpus_per_node: u32) -> Self {
        let free = (0..nodes).map(|_| gpus_per_node).collect();
        let gpus = nodes.saturating_mul(gpus_per_node);
        Self { gpus_per_node, gpus, free, free_total: gpus, empty: nodes, spreads: false }
    }

    /// The same pool, with jobs spread over the nodes instead of packed.
    #[must_use]
    pub fn spread(self) -> Self {
        Self { spreads: true, ..self }
    }

    /// Whole nodes that a job needs, when it needs more than one has.
    fn whole(&self, gpus: u32) -> Option<u32> {
        (gpus > self.gpus_per_node).then(|| gpus.div_ceil(self.gpus_per_node))
    }

    /// The node with the fewest free GPUs that fit, or with the most.
    fn node_for(&self, gpus: u32) -> Option<u32> {
        let fitting = (0_u32..).zip(&self.free).filter(|(_, free)| **free >= gpus);
        let rank = |free: u32| if self.spreads { self.gpus_per_node.saturating_sub(free) } else { free };
        // `min_by_key` keeps the first of equals: the lowest number.
        fitting.min_by_key(|(_, free)| rank(**free)).map(|(node, _)| node)
    }

    fn empty_nodes(&self, count: u32) -> Vec<u32> {
        let empty = (0_u32..).zip(&self.free).filter(|(_, free)| **free == self.gpus_per_node);
        empty.map(|(node, _)| node).take(usize::try_from(count).unwrap_or(usize::MAX)).collect()
    }

    /// Free GPUs of a node; 0 for a node that isn't there.
    #[must_use]
    pub fn free_of(&self, node: u32) -> u32 {
        usize::try_from(node).ok().and_then(|node| self.free.get(node)).copied().unwrap_or(0)
    }

    fn set(&mut self, node: u32, now: u32) {
        let full = self.gpus_per_node;
        if let Some(free) = usize::try_from(node).ok().and_then(|node| self.free.get_mut(node)) {
            self.empty = self.empty + u32::from(now == full) - u32::from(*free == full);
            self.free_total = self.free_total + now - *free;
            *free = now;
        }
    }
}

impl Pool for NodePool {
    type Share = NodeShare;

    fn gpus(&self) -> u32 {
        self.gpus
    }

    fn free(&self) -> u32 {
        self.free_total
    }

    fn place(&self, gpus: u32) -> Option<NodeShare> {
        match self.whole(gpus) {
            None => self.node_for(gpus).map(|node| NodeShare::Part { node, gpus }),
            Some(count) if count > self.empty => None,
            Some(count) => Some(NodeShare::Whole { nodes: self.empty_nodes(count), gpus_per_node: self.gpus_per_node }),
        }
    }

    fn fits(&self, gpus: u32) -> bool {
        match self.whole(gpus) {
            None => self.free.iter().any(|free| *free >= gpus),
            Some(count) => count <= self.empty,
        }
    }

    fn hold(&mut self, share: &NodeShare) -> bool {
        let parts = Self::nodes(share);
        let is_free = parts.iter().all(|(node, gpus)| self.free_of(*node) >= *gpus);
        if is_free {
            parts.into_iter().for_each(|(node, gpus)| self.set(node, self.free_of(node) - gpus));
        }
        is_free
    }

    fn give(&mut self, share: &NodeShare) {
        for (node, gpus) in Self::nodes(share) {
            self.set(node, self.free_of(node) + gpus);
        }
    }

    fn stranded(&self) -> u32 {
        self.free_total - self.empty * self.gpus_per_node
    }

    fn share_of(nodes: &[(u32, u32)]) -> NodeShare {
        NodeShare::of(nodes)
    }

    fn nodes(share: &NodeShare) -> Vec<(u32, u32)> {
        share.nodes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(pool: &mut NodePool, gpus: u32) -> NodeShare {
        let share = pool.place(gpus).unwrap();
        assert!(pool.hold(&share));
        share
    }

    #[test]
    fn a_job_goes_to_the_tightest_node_and_the_lowest_of_equals() {
        let mut pool = NodePool::new(3, 8);
        assert_eq!(take(&mut pool, 4), NodeShare::Part { node: 0, gpus: 4 });
        assert_eq!(take(&mut pool, 6), NodeShare::Part { node: 1, gpus: 6 });
        assert_eq!(take(&mut pool, 2), NodeShare::Part { node: 1, gpus: 2 });
        assert_eq!(take(&mut pool, 1), NodeShare::Part { node: 0, gpus: 1 });
        assert_eq!((pool.free(), pool.stranded()), (11, 3));
    }

    #[test]
    fn a_pool_that_spreads_takes_the_emptiest_node_and_the_lowest_of_equals() {
        let mut pool = NodePool::new(3, 8).spread();
        let nodes: Vec<NodeShare> = [4, 2, 1, 1].into_iter().map(|gpus| take(&mut pool, gpus)).collect();
        let part = |node, gpus| NodeShare::Part { node, gpus };
        assert_eq!(nodes, [part(0, 4), part(1, 2), part(2, 1), part(2, 1)]);
        assert_eq!((pool.free(), pool.stranded(), pool.place(7)), (16, 16, None));
    }

    #[test]
    fn a_job_over_one_node_takes_whole_empty_nodes() {
        let mut pool = NodePool::new(4, 8);
        let small = take(&mut pool, 1);
        let large = take(&mut pool, 12);
        assert_eq!(large, NodeShare::Whole { nodes: vec![1, 2], gpus_per_node: 8 });
        assert!(!pool.fits(16) && pool.fits(8));
        assert_eq!(pool.place(16), None);
        pool.give(&small);
        assert!(pool.fits(16));
        pool.give(&large);
        assert_eq!(pool, NodePool::new(4, 8));
    }

    #[test]
    fn a_share_that_is_partly_held_is_not_taken_at_all() {
        let mut pool = NodePool::new(2, 8);
        take(&mut pool, 1);
        let before = pool.clone();
        assert!(!pool.hold(&NodeShare::Whole { nodes: vec![0, 1], gpus_per_node: 8 }));
        assert_eq!(pool, before);
    }
}
