//! Nodes of several pools, which come and go.

use super::{NodeShare, Pool};

/// A node, as jobs see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    pool: u16,
    gpus: u32,
    held: u32,
    /// How long it takes to start up, in milliseconds.
    start_up_ms: u64,
    /// When it is, or was, started up.
    ready_ms: u64,
    /// Since when nothing of it is held, as far as anybody looked.
    idle_since_ms: Option<u64>,
    /// Whether it takes jobs. What runs on a node that is closed keeps its GPUs.
    is_open: bool,
    /// Whether it is provisioned: a job on one that isn't waits for its start-up.
    is_warm: bool,
    /// Whether jobs of several nodes may sit on it.
    takes_gangs: bool,
}

/// Free GPUs node by node, where nodes have several shapes and aren't always there.
///
/// A job goes to the warm node with the fewest free GPUs that fit it, then to the cold one with the fewest, the lowest
/// number on ties. A job larger than every node takes whole empty nodes of one pool, warm ones first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixedPool {
    nodes: Vec<Node>,
    free_total: u32,
    gpus_total: u32,
    largest: u32,
}

/// Nodes of one pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Nodes that there can ever be.
    pub nodes: u32,
    /// GPUs of each.
    pub gpus_per_node: u32,
    /// Whether jobs of several nodes may sit on them.
    pub takes_gangs: bool,
    /// How long one takes to start up, in milliseconds.
    pub start_up_ms: u64,
}

impl MixedPool {
    /// Pools one after the other; all of their nodes are closed and cold.
    #[must_use]
    pub fn new(shapes: &[Shape]) -> Self {
        let mut nodes = Vec::new();
        for (pool, shape) in (0_u16..).zip(shapes) {
            let node = Node {
                pool,
                gpus: shape.gpus_per_node,
                held: 0,
                start_up_ms: shape.start_up_ms,
                ready_ms: 0,
                idle_since_ms: None,
                is_open: false,
                is_warm: false,
                takes_gangs: shape.takes_gangs,
            };
            nodes.extend((0..shape.nodes).map(|_| node));
        }
        let largest = nodes.iter().map(|node| node.gpus).max().unwrap_or(0);
        Self { nodes, free_total: 0, gpus_total: 0, largest }
    }

    fn node(&self, node: u32) -> Option<&Node> {
        usize::try_from(node).ok().and_then(|node| self.nodes.get(node))
    }

    fn change(&mut self, node: u32, change: impl FnOnce(&mut Node)) {
        let Some(node) = usize::try_from(node).ok().and_then(|node| self.nodes.get_mut(node)) else { return };
        let before = (node.free(), node.there());
        change(node);
        self.free_total = self.free_total - before.0 + node.free();
        self.gpus_total = self.gpus_total - before.1 + node.there();
    }

    /// Lets a node take jobs, or no more.
    pub fn set_open(&mut self, node: u32, is_open: bool) {
        self.change(node, |node| node.is_open = is_open);
    }

    /// Says whether a node is provisioned.
    pub fn set_warm(&mut self, node: u32, is_warm: bool) {
        self.change(node, |node| node.is_warm = is_warm);
    }

    /// Gives up nodes of a pool of which nothing was held for so long. What was held until now counts as idle from now
    /// on.
    pub fn scale_down(&mut self, pool: u16, idle_ms: u64, now_ms: u64) {
        for node in self.nodes.iter_mut().filter(|node| node.pool == pool) {
            let since_ms = if node.held > 0 { None } else { Some(node.idle_since_ms.unwrap_or(now_ms)) };
            node.idle_since_ms = since_ms;
            node.is_warm &= since_ms.is_none_or(|since_ms| now_ms - since_ms < idle_ms);
        }
    }

    fn numbered(&self) -> impl Iterator<Item = (u32, &Node)> {
        (0_u32..).zip(&self.nodes)
    }

    fn tightest(&self, gpus: u32) -> Option<u32> {
        let fitting = self.numbered().filter(|(_, node)| node.free() >= gpus);
        // `min_by_key` keeps the first of equals: the lowest number.
        fitting.min_by_key(|(_, node)| (!node.is_warm, node.free())).map(|(node, _)| node)
    }

    /// Whole empty nodes of the first pool that has enough of them.
    fn whole(&self, gpus: u32) -> Option<NodeShare> {
        let pools = self.nodes.last().map_or(0, |node| node.pool);
        (0..=pools).find_map(|pool| self.whole_of(pool, gpus))
    }

    fn whole_of(&self, pool: u16, gpus: u32) -> Option<NodeShare> {
        let is_empty = |node: &Node| node.pool == pool && node.takes_gangs && node.gpus > 0 && node.free() == node.gpus;
        let mut empty: Vec<(u32, &Node)> = self.numbered().filter(|(_, node)| is_empty(node)).collect();
        empty.sort_by_key(|(_, node)| !node.is_warm);
        let gpus_per_node = empty.first()?.1.gpus;
        let count = usize::try_from(gpus.div_ceil(gpus_per_node)).ok()?;
        let nodes: Vec<u32> = empty.get(..count)?.iter().map(|(node, _)| *node).collect();
        Some(NodeShare::Whole { nodes, gpus_per_node })
    }
}

impl Node {
    fn free(&self) -> u32 {
        if self.is_open { self.gpus - self.held } else { 0 }
    }

    /// GPUs that are free or held.
    fn there(&self) -> u32 {
        if self.is_open { self.gpus } else { self.held }
    }
}

impl Pool for MixedPool {
    type Share = NodeShare;

    fn gpus(&self) -> u32 {
        self.gpus_total
    }

    fn gpus_of(&self, node: u32) -> Option<u32> {
        self.node(node).map(Node::there)
    }

    fn free(&self) -> u32 {
        self.free_total
    }

    fn place(&self, gpus: u32) -> Option<NodeShare> {
        match gpus {
            gpus if gpus > self.free_total => None,
            gpus if gpus > self.largest => self.whole(gpus),
            gpus => self.tightest(gpus).map(|node| NodeShare::Part { node, gpus }),
        }
    }

    fn fits(&self, gpus: u32) -> bool {
        self.place(gpus).is_some()
    }

    fn hold(&mut self, share: &NodeShare) -> bool {
        let parts = share.nodes();
        let is_free = parts.iter().all(|(node, gpus)| self.node(*node).is_some_and(|node| node.free() >= *gpus));
        if is_free {
            parts.into_iter().for_each(|(node, gpus)| {
                self.change(node, |node| {
                    node.held += gpus;
                    node.idle_since_ms = None;
                })
            });
        }
        is_free
    }

    fn start_up_ms(&mut self, share: &NodeShare, now_ms: u64) -> u64 {
        let mut ready_ms = now_ms;
        for (node, _) in share.nodes() {
            self.change(node, |node| {
                if !node.is_warm {
                    node.is_warm = true;
                    node.ready_ms = now_ms + node.start_up_ms;
                }
                ready_ms = ready_ms.max(node.ready_ms);
            });
        }
        ready_ms - now_ms
    }

    fn give(&mut self, share: &NodeShare) {
        for (node, gpus) in share.nodes() {
            self.change(node, |node| node.held = node.held.saturating_sub(gpus));
        }
    }

    fn stranded(&self) -> u32 {
        self.nodes.iter().filter(|node| node.held > 0).map(Node::free).sum()
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

    /// Two nodes of 4 that take no gangs, then three of 8.
    fn pool() -> MixedPool {
        let shape =
            |nodes, gpus_per_node, takes_gangs| Shape { nodes, gpus_per_node, takes_gangs, start_up_ms: 60_000 };
        let mut pool = MixedPool::new(&[shape(2, 4, false), shape(3, 8, true)]);
        (0..5).for_each(|node| pool.set_open(node, true));
        pool
    }

    #[test]
    fn warm_nodes_come_first_and_then_tight_ones() {
        let mut pool = pool();
        let part = |node, gpus| Some(NodeShare::Part { node, gpus });
        assert_eq!(pool.place(3), part(0, 3));
        pool.set_warm(2, true);
        assert_eq!((pool.place(3), pool.place(6)), (part(2, 3), part(2, 6)));
        assert!(pool.hold(&NodeShare::Part { node: 2, gpus: 7 }));
        assert_eq!((pool.place(3), pool.place(8)), (part(0, 3), part(3, 8)));
        assert_eq!((pool.gpus(), pool.free(), pool.stranded()), (32, 25, 1));
    }

    #[test]
    fn a_cold_node_starts_up_once_and_is_given_up_when_idle() {
        let mut pool = pool();
        let share = NodeShare::Part { node: 3, gpus: 4 };
        assert!(pool.hold(&share));
        assert_eq!((pool.start_up_ms(&share, 1_000), pool.start_up_ms(&share, 21_000)), (60_000, 40_000));
        assert_eq!(pool.start_up_ms(&share, 90_000), 0);
        pool.give(&share);
        pool.scale_down(1, 5_000, 100_000);
        pool.scale_down(1, 5_000, 104_999);
        assert_eq!(pool.place(2), Some(NodeShare::Part { node: 3, gpus: 2 }));
        pool.scale_down(1, 5_000, 105_000);
        assert_eq!(pool.place(2), Some(NodeShare::Part { node: 0, gpus: 2 }));
    }

    #[test]
    fn gangs_take_whole_nodes_of_a_pool_that_takes_them() {
        let mut pool = pool();
        let whole = |nodes: &[u32]| Some(NodeShare::Whole { nodes: nodes.to_vec(), gpus_per_node: 8 });
        assert_eq!(pool.place(12), whole(&[2, 3]));
        pool.set_warm(4, true);
        assert_eq!(pool.place(16), whole(&[4, 2]));
        assert_eq!(pool.place(25), None);
    }

    #[test]
    fn what_runs_on_a_closed_node_keeps_its_gpus_and_nothing_else_is_there() {
        let mut pool = pool();
        let share = NodeShare::Part { node: 4, gpus: 5 };
        assert!(pool.hold(&share));
        pool.set_open(4, false);
        assert_eq!((pool.gpus(), pool.free(), pool.gpus_of(4)), (29, 24, Some(5)));
        pool.give(&share);
        assert_eq!((pool.gpus(), pool.free(), pool.gpus_of(4)), (24, 24, Some(0)));
        assert!(!pool.hold(&share));
        pool.set_open(4, true);
        assert_eq!((pool.gpus(), pool.free()), (32, 32));
    }
}
