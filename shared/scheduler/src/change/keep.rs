//! Less that is kept free for others.

use super::bound::most;
use super::trial::Trial;
use super::{Change, Verified};
use crate::rules::Reserve;

/// The most GPUs kept for urgent jobs that leave the job its place.
pub(super) fn headroom(trial: &mut Trial<'_>) -> Vec<Verified> {
    let from = trial.question.rules.headroom.of(trial.snapshot().gpus());
    let change = |to: u64| Change::Headroom { from, to: u32::try_from(to).unwrap_or(from) };
    let found = most(from.into(), 0, None, |to| trial.starts(&change(to)).is_some());
    found.and_then(|to| trial.verified(change(to))).into_iter().collect()
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
    let to = most(from.into(), 0, None, |to| trial.starts(&change(to)).is_some())?;
    trial.verified(change(to))
}
