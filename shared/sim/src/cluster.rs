//! The cluster that jobs run on.

/// Nodes of one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Nodes.
    pub nodes: u32,
    /// GPUs of one node.
    pub gpus_per_node: u32,
    /// How jobs are placed.
    pub placement: Placement,
}

/// How jobs are placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// GPUs are counted: a job fits when as many are free, wherever they are.
    #[default]
    Count,
    /// Nodes matter: a job sits on one node, or on whole empty nodes when it needs more than one has.
    Node,
    /// The same, but the reference strategies put a job on the node with the most free GPUs. It shows what packing is
    /// worth; the production decision packs all the same.
    Spread,
}

impl Cluster {
    /// GPUs of the whole cluster.
    #[must_use]
    pub fn gpus(&self) -> u32 {
        self.nodes.saturating_mul(self.gpus_per_node)
    }

    /// Whether a job of this many GPUs could run on the empty cluster.
    #[must_use]
    pub fn could_hold(&self, gpus: u32) -> bool {
        match self.placement {
            Placement::Count => gpus <= self.gpus(),
            Placement::Node | Placement::Spread => {
                self.gpus_per_node > 0 && gpus.div_ceil(self.gpus_per_node) <= self.nodes
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_over_one_node_needs_whole_nodes_where_nodes_matter() {
        let cluster = |placement| Cluster { nodes: 2, gpus_per_node: 6, placement };
        assert!(cluster(Placement::Count).could_hold(12));
        assert!(!cluster(Placement::Count).could_hold(13));
        assert!(cluster(Placement::Node).could_hold(7));
        assert!(!cluster(Placement::Node).could_hold(13));
        assert!(!Cluster { nodes: 2, gpus_per_node: 0, placement: Placement::Node }.could_hold(1));
    }
}
