//! Less that is kept free for others.

use super::bound::most;
use super::trial::Trial;
use super::{Change, Verified};
use crate::reason::WaitReason;
use crate::rules::Reserve;
use crate::snapshot::NodeState;

/// The most GPUs kept for urgent jobs that leave the job its place.
pub(super) fn headroom(trial: &mut Trial<'_>) -> Vec<Verified> {
    let from = trial.question.rules.headroom.of(trial.snapshot().gpus());
    let change = |to: u64| Change::Headroom { from, to: u32::try_from(to).unwrap_or(from) };
    let found = most(from.into(), 0, left(trial), |to| trial.starts(&change(to)).is_some());
    found.and_then(|to| trial.verified(change(to))).into_iter().collect()
}

/// GPUs that stay free beside the job.
fn left(trial: &Trial<'_>) -> Option<u64> {
    match trial.question.reason {
        WaitReason::Headroom { gpus, free, .. } => Some(free.saturating_sub(gpus).into()),
        _ => None,
    }
}

/// For each reserve that the job isn't of, the most of it that leaves the job its place.
pub(super) fn reserve(trial: &mut Trial<'_>) -> Vec<Verified> {
    let reserves = (0_u16..).zip(&trial.question.rules.quota.reserves);
    let others = reserves.filter(|(place, _)| trial.job.charge.reserve != Some(*place));
    // What a person has reserved for a time is a number of GPUs, and no share.
    let kept = |reserve: &Reserve| reserve.gpus.unwrap_or(reserve.share_percent);
    let others: Vec<(u16, u32)> = others.map(|(place, reserve)| (place, kept(reserve))).collect();
    others.into_iter().filter_map(|(reserve, from)| less(trial, reserve, from)).collect()
}

fn less(trial: &mut Trial<'_>, reserve: u16, from: u32) -> Option<Verified> {
    let change = |to: u64| Change::Reserve { reserve, from, to: u32::try_from(to).unwrap_or(from) };
    let to = most(from.into(), 0, share(trial, reserve), |to| trial.starts(&change(to)).is_some())?;
    trial.verified(change(to))
}

/// The greatest share that leaves the job its place, where this reserve alone is made smaller.
fn share(trial: &Trial<'_>, reserve: u16) -> Option<u64> {
    let WaitReason::Reserved { gpus, free, kept, .. } = trial.question.reason else { return None };
    let pool = trial.snapshot().nodes.iter().filter(|node| node.state != NodeState::Closed);
    let pool = pool.fold(0_u32, |sum, node| sum.saturating_add(node.gpus));
    let has = trial.question.rules.quota.reserves.get(usize::from(reserve))?.gpus(pool);
    let may = has.checked_sub(gpus.saturating_add(kept).saturating_sub(free))?;
    // GPUs are rounded down, so all below the next one.
    ((u64::from(may) + 1) * 100).checked_sub(1)?.checked_div(pool.into())
}
