//! A shorter declared run, with which the job passes one that GPUs are kept for, or comes before others.

use super::bound::most;
use super::trial::Trial;
use super::{Change, Verified};
use crate::reason::WaitReason;

/// The shortest run that is told, in seconds: nobody makes a job of hours one of less than a minute, and Batch takes no
/// shorter time-out.
const SECONDS_MIN: u64 = 60;
/// The longest run that is told where nobody knows it, in seconds: 30 days.
const SECONDS_MAX: u64 = 2_592_000;

/// The longest run that starts, in whole seconds.
pub(super) fn shorter(trial: &mut Trial<'_>) -> Vec<Verified> {
    let from = trial.job.expected_ms;
    let change = |seconds: u64| Change::ExpectedMs { from, to: seconds.saturating_mul(1_000) };
    // Beyond it nothing is shorter than what is expected.
    let longest = from.map_or(SECONDS_MAX + 1, |ms| ms.div_ceil(1_000));
    let found = most(longest, SECONDS_MIN, guess(trial), |seconds| trial.starts(&change(seconds)).is_some());
    found.and_then(|seconds| trial.verified(change(seconds))).into_iter().collect()
}

/// The run that ends when the job that GPUs are kept for is to start.
fn guess(trial: &Trial<'_>) -> Option<u64> {
    let WaitReason::WouldDelay { reserved_at_ms, ends_at_ms, .. } = trial.question.reason else { return None };
    // Of one that begins later, on a node that starts up, as much less as it ends later.
    let from_ms = match (ends_at_ms, trial.job.expected_ms) {
        (Some(ends_at_ms), Some(run_ms)) => ends_at_ms.saturating_sub_unsigned(run_ms),
        _ => trial.question.now_ms,
    };
    u64::try_from(reserved_at_ms.saturating_sub(from_ms)).ok().map(|ms| ms / 1_000)
}
