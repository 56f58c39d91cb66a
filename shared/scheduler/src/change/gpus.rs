//! A smaller request: fewer GPUs, nodes, children or vCPUs.

use super::bound::most;
use super::trial::Trial;
use super::{Change, Verified};
use crate::snapshot::{Array, Shape};

/// Requests that are tried one after the other; where there are more they are bisected.
const TRIED_MAX: usize = 12;

/// The largest smaller request that starts.
pub(super) fn fewer(trial: &mut Trial<'_>) -> Vec<Verified> {
    let from = trial.job.shape;
    let smaller = smaller(from, trial.question.gpus_per_node);
    let change = |to: &Shape| Change::Gpus { from, to: *to };
    if smaller.len() <= TRIED_MAX {
        return smaller.iter().find_map(|to| trial.verified(change(to))).into_iter().collect();
    }
    let count = u64::try_from(smaller.len()).unwrap_or(u64::MAX);
    let at = |place: u64| {
        usize::try_from(place).ok().and_then(|place| place.checked_sub(1)).and_then(|place| smaller.get(place))
    };
    let found =
        super::bound::least(0, count, None, |place| at(place).is_some_and(|to| trial.starts(&change(to)).is_some()));
    found.and_then(at).and_then(|to| trial.verified(change(to))).into_iter().collect()
}

/// Requests with fewer GPUs that may be made, the largest first: fewer nodes of the same kind, then a part of one.
pub(super) fn smaller(shape: Shape, gpus_per_node: Option<u32>) -> Vec<Shape> {
    let nodes = (1..shape.nodes).rev().map(|nodes| Shape { nodes, ..shape });
    let may = |gpus: &u32| gpus_per_node.is_none_or(|node| is_legal(*gpus, node));
    let gpus = (1..shape.gpus).rev().filter(may).map(|gpus| Shape { nodes: 1, gpus, ..shape });
    nodes.chain(gpus).collect()
}

/// Whether admission lets a job ask for so many GPUs: a part of a node without a rest, or whole nodes.
fn is_legal(gpus: u32, node: u32) -> bool {
    node > 0 && (node.is_multiple_of(gpus) || gpus.is_multiple_of(node))
}

/// The most children of an array that starts as one.
pub(super) fn fewer_children(trial: &mut Trial<'_>) -> Vec<Verified> {
    let Some(Array { waiting: from, singly: false }) = trial.job.array else { return Vec::new() };
    let change = |to: u64| Change::Children { from, to: u32::try_from(to).unwrap_or(from) };
    let found = most(from.into(), 1, None, |to| trial.starts(&change(to)).is_some());
    found.and_then(|to| trial.verified(change(to))).into_iter().collect()
}

/// The most vCPUs that start.
pub(super) fn fewer_vcpus(trial: &mut Trial<'_>) -> Vec<Verified> {
    let from = trial.job.shape.vcpus;
    let change = |to: u64| Change::Vcpus { from, to: u32::try_from(to).unwrap_or(from) };
    let found = most(from.into(), 1, None, |to| trial.starts(&change(to)).is_some());
    found.and_then(|to| trial.verified(change(to))).into_iter().collect()
}
