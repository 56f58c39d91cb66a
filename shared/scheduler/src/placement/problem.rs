//! What is to be placed, and where.

use std::fmt;

use super::kinds::Kinds;

/// Most nodes of a problem: a pool larger than this is planned in parts.
pub const NODES_MAX: usize = 4096;
/// Most jobs of a problem: the window of a cycle is far smaller.
pub const JOBS_MAX: usize = 20_000;
/// Most slots of a node: the vCPUs of the largest instance types, and room above.
pub const NODE_SLOTS_MAX: u32 = 1024;
/// The largest price of a stranded slot. A job of the largest number is worth 9.999 a slot, so more changes nothing.
pub const STRANDED_PRICE_MAX: f64 = 1e6;

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Slots that it has.
    pub slots: u32,
    /// Slots that are free now.
    pub free: u32,
    /// Slots of those that are free now which stay free when the reserved head has started: a job that runs beyond that
    /// time may take these without delaying the head. All of them where nothing is reserved.
    pub spare: u32,
}

/// A job that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Slots that it needs, all at once: on one node, or on entirely empty nodes if no node has so many.
    pub slots: u32,
    /// What a slot of it is worth, in thousandths: its priority.
    pub weight: u32,
    /// Whether it comes first, whatever it costs the rest.
    pub is_urgent: bool,
    /// Whether it runs beyond the time at which the reserved head is to start.
    pub outlasts: bool,
}

/// The first job of the queue that doesn't fit: what a delay of it costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Head {
    /// The price of each slot that a plan takes from it, in thousandths.
    pub slot_price: f64,
}

/// Nodes, and the jobs that want them.
///
/// INVARIANT: made by [`Problem::new`], so everything is within the limits above.
#[derive(Clone, Debug)]
pub struct Problem {
    pub(super) nodes: Vec<Node>,
    pub(super) jobs: Vec<Job>,
    /// The price of a slot that is left free on a partly used node.
    alpha: f64,
    pub(super) head: Head,
    pub(super) kinds: Kinds,
    pub(super) node_slots_max: u32,
}

/// Why something is no problem that can be solved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unusable {
    /// More nodes than a problem may have.
    Nodes(usize),
    /// More jobs than a problem may have.
    Jobs(usize),
    /// A node of more slots than a node may have: its place.
    NodeSlots(usize),
    /// A node with more slots free than it has: its place.
    NodeFree(usize),
    /// A job that needs nothing: its place.
    JobSlots(usize),
    /// A price that isn't a number from 0 up to its limit.
    Alpha(f64),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Nodes(nodes) => write!(f, "{nodes} nodes are more than the {NODES_MAX} that are planned at once"),
            Self::Jobs(jobs) => write!(f, "{jobs} jobs are more than the {JOBS_MAX} that are planned at once"),
            Self::NodeSlots(node) => write!(f, "node {node} has more than {NODE_SLOTS_MAX} slots"),
            Self::NodeFree(node) => write!(f, "node {node} has more slots free than it has"),
            Self::JobSlots(job) => write!(f, "job {job} needs no slots"),
            Self::Alpha(alpha) => write!(f, "a price of {alpha} isn't between 0 and {STRANDED_PRICE_MAX}"),
        }
    }
}

impl Problem {
    /// A problem without a reserved head. `alpha` is the price of a slot that is left free on a partly used node, in
    /// units of priority × slots / 1000.
    ///
    /// # Errors
    /// For what is beyond the limits.
    pub fn new(nodes: Vec<Node>, jobs: Vec<Job>, alpha: f64) -> Result<Self, Unusable> {
        if nodes.len() > NODES_MAX {
            return Err(Unusable::Nodes(nodes.len()));
        }
        if jobs.len() > JOBS_MAX {
            return Err(Unusable::Jobs(jobs.len()));
        }
        let place = |wrong: fn(&Node) -> bool| nodes.iter().position(wrong);
        if let Some(node) = place(|node| node.slots > NODE_SLOTS_MAX) {
            return Err(Unusable::NodeSlots(node));
        }
        if let Some(node) = place(|node| node.free > node.slots) {
            return Err(Unusable::NodeFree(node));
        }
        if let Some(job) = jobs.iter().position(|job| job.slots == 0) {
            return Err(Unusable::JobSlots(job));
        }
        if !(0.0..=STRANDED_PRICE_MAX).contains(&alpha) {
            return Err(Unusable::Alpha(alpha));
        }
        let node_slots_max = nodes.iter().map(|node| node.slots).max().unwrap_or(0);
        let kinds = Kinds::of(&jobs);
        Ok(Self { nodes, jobs, alpha, head: Head::default(), kinds, node_slots_max })
    }

    /// The same problem beside a reserved head.
    #[must_use]
    pub fn beside(self, head: Head) -> Self {
        Self { head, ..self }
    }

    /// The nodes.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The jobs.
    #[must_use]
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// The price of a stranded slot, in thousandths.
    pub(super) fn stranded_price(&self) -> f64 {
        self.alpha * 1000.0
    }

    /// The price of a stranded slot.
    #[must_use]
    pub fn alpha(&self) -> f64 {
        self.alpha
    }
}

impl Job {
    /// What starting it is worth, in thousandths.
    pub(super) fn value(&self) -> i64 {
        i64::from(self.weight) * i64::from(self.slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_a_limit_is_refused_by_name() {
        let node = |slots, free| Node { slots, free, spare: free };
        let job = |slots| Job { slots, weight: 1, is_urgent: false, outlasts: false };
        let refused = |nodes: Vec<Node>, jobs: Vec<Job>, alpha| Problem::new(nodes, jobs, alpha).unwrap_err();
        assert_eq!(refused(vec![node(8, 8); NODES_MAX + 1], vec![], 0.0), Unusable::Nodes(NODES_MAX + 1));
        assert_eq!(refused(vec![], vec![job(1); JOBS_MAX + 1], 0.0), Unusable::Jobs(JOBS_MAX + 1));
        assert_eq!(refused(vec![node(NODE_SLOTS_MAX + 1, 0)], vec![], 0.0), Unusable::NodeSlots(0));
        assert_eq!(refused(vec![node(8, 8), node(8, 9)], vec![], 0.0), Unusable::NodeFree(1));
        assert_eq!(refused(vec![], vec![job(1), job(0)], 0.0), Unusable::JobSlots(1));
        assert_eq!(refused(vec![], vec![], -0.5), Unusable::Alpha(-0.5));
        assert!(matches!(refused(vec![], vec![], f64::NAN), Unusable::Alpha(_)));
    }
}
