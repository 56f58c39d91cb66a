//! What only a person, or time, can open: a paused pool, a back-off, capacity, work that isn't ours.

use super::bound::least_near;
use super::trial::Trial;
use super::{Change, Verified};
use crate::reason::WaitReason;
use crate::snapshot::{Node, NodeState, Shape, UNCOUNTED};

/// Most nodes with work that isn't ours that are asked one by one.
const FOREIGN_MAX: usize = 16;
/// Most nodes more that are told.
const NODES_MAX: u32 = 1_024;

/// The pool goes on.
pub(super) fn resume(trial: &mut Trial<'_>) -> Vec<Verified> {
    trial.verified(Change::Resume).into_iter().collect()
}

/// The job's tier goes on.
pub(super) fn resume_tier(trial: &mut Trial<'_>) -> Vec<Verified> {
    trial.verified(Change::ResumeTier).into_iter().collect()
}

/// The job is released.
pub(super) fn release(trial: &mut Trial<'_>) -> Vec<Verified> {
    let WaitReason::NotYet { until_ms } = trial.question.reason else { return Vec::new() };
    trial.verified(Change::Release { until_ms }).into_iter().collect()
}

/// The pool gets its nodes.
pub(super) fn capacity(trial: &mut Trial<'_>) -> Vec<Verified> {
    trial.verified(Change::Capacity).into_iter().collect()
}

/// The least work that isn't ours without which it starts: that on one node, else all of it.
pub(super) fn foreign(trial: &mut Trial<'_>) -> Vec<Verified> {
    let of = |node: &Node| node.foreign_gpus;
    let nodes = (0_u32..).zip(&trial.snapshot().nodes);
    let mut nodes: Vec<(u32, u32)> = nodes
        .filter(|(_, node)| of(node) > 0 || node.foreign_vcpus > 0)
        .map(|(number, node)| (of(node), number))
        .collect();
    nodes.sort_unstable();
    let all =
        Change::ForeignEnds { node: None, gpus: nodes.iter().fold(0, |sum, (gpus, _)| sum.saturating_add(*gpus)) };
    let one = |(gpus, node): &(u32, u32)| Change::ForeignEnds { node: Some(*node), gpus: *gpus };
    let found = nodes.iter().take(FOREIGN_MAX).find_map(|node| trial.verified(one(node)));
    found.or_else(|| trial.verified(all)).into_iter().collect()
}

/// The fewest nodes more, each like the largest of the pool, or as the job needs them where it has none that are.
pub(super) fn more_nodes(trial: &mut Trial<'_>) -> Vec<Verified> {
    let nodes = &trial.snapshot().nodes;
    let from = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
    let is_large_enough = |node: &&Node| node.gpus >= trial.job.shape.gpus && node.vcpus >= trial.job.shape.vcpus;
    let open = || nodes.iter().filter(|node| node.state != NodeState::Closed && node.gpus > 0);
    let like =
        open().filter(is_large_enough).max_by_key(|node| node.gpus).or_else(|| open().max_by_key(|node| node.gpus));
    let needs = Shape { nodes: 1, gpus: trial.job.shape.gpus, vcpus: UNCOUNTED };
    // Nodes of which one is too small don't help a job that needs a larger one.
    let is_small = matches!(trial.question.reason, WaitReason::NoSuchNode { nodes: 1, .. });
    let each = like.filter(|_| !is_small).map_or(needs, |node| Shape { nodes: 1, gpus: node.gpus, vcpus: node.vcpus });
    let change =
        |more: u64| Change::MoreNodes { from, to: from.saturating_add(u32::try_from(more).unwrap_or(NODES_MAX)), each };
    let found = least_near(0, NODES_MAX.into(), |more| trial.starts(&change(more)).is_some());
    found.and_then(|more| trial.verified(change(more))).into_iter().collect()
}
