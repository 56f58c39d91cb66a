//! Step 3, eligibility: who can't start whatever the order. Such a job waits and holds up nobody.

use std::collections::BTreeMap;

use crate::reason::WaitReason;
use crate::room::{Wanted, left};
use crate::snapshot::{Gate, Node, NodeState, Queued, Shape, Snapshot};

/// What is asked of each job; answers about shapes are remembered, since most jobs have one of a few.
pub(crate) struct Eligible<'s> {
    snapshot: &'s Snapshot,
    now_ms: i64,
    pool_gpus: u32,
    shapes: BTreeMap<Shape, Option<WaitReason>>,
}

impl<'s> Eligible<'s> {
    pub fn new(snapshot: &'s Snapshot, now_ms: i64) -> Self {
        let pool_gpus = open(snapshot).fold(0_u32, |sum, node| sum.saturating_add(node.gpus));
        Self { snapshot, now_ms, pool_gpus, shapes: BTreeMap::new() }
    }

    /// Why a job can't start; `None` when it is a matter of room and order.
    pub fn refuses(&mut self, job: &Queued) -> Option<WaitReason> {
        if self.snapshot.gate == Gate::Paused {
            return Some(WaitReason::PoolPaused);
        }
        if self.snapshot.drained.contains(&job.tier) {
            return Some(WaitReason::TierPaused);
        }
        if self.snapshot.nodes.is_empty() {
            return Some(WaitReason::NoNodes);
        }
        if job.not_before_ms > self.now_ms {
            return Some(WaitReason::NotYet { until_ms: job.not_before_ms });
        }
        let (gpus, pool_gpus) = (job.shape.all_gpus(), self.pool_gpus);
        if gpus > pool_gpus {
            return Some(WaitReason::LargerThanPool { gpus, pool_gpus });
        }
        if job.shape.nodes <= 1 && job.shape.vcpus == 0 {
            // A job larger than any node takes whole ones until they are enough, and all of them are the most.
            return None;
        }
        let snapshot = self.snapshot;
        *self.shapes.entry(job.shape).or_insert_with(|| no_such_node(snapshot, job.shape))
    }
}

fn open(snapshot: &Snapshot) -> impl Iterator<Item = &Node> {
    snapshot.nodes.iter().filter(|node| node.state != NodeState::Closed)
}

/// Whether the nodes, if nothing ran on them, couldn't hold a job.
fn no_such_node(snapshot: &Snapshot, shape: Shape) -> Option<WaitReason> {
    let Shape { nodes, gpus, vcpus } = shape;
    let largest = open(snapshot).map(|node| node.gpus).max().unwrap_or(0);
    let could = if nodes > 1 || gpus > largest {
        let mut missing = Wanted::of(shape);
        open(snapshot).filter(|node| Wanted::of(shape).takes(node)).for_each(|node| missing.count(node));
        missing.is_met()
    } else {
        let bare = |node: &Node| left(&Node { foreign_gpus: 0, foreign_vcpus: 0, ..*node });
        open(snapshot).any(|node| bare(node).holds(shape))
    };
    (!could).then_some(WaitReason::NoSuchNode { nodes: nodes.max(1), gpus, vcpus })
}
