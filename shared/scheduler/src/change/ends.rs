//! Running jobs that have ended.
//!
//! 1. Of all jobs by their expected end, the fewest first ones after whose end it starts; so the last of them is needed.
//! 2. That one alone, if that is enough.
//! 3. Else those on the nodes that it would start on, or all, without the first ones that aren't needed, and then without each
//!    of the others that isn't, as far as the decisions reach that are left.

use std::collections::{BTreeMap, BTreeSet};

use osprey_model::id::JobId;

use super::bound::{least, least_near, needed};
use super::trial::{Started, Trial};
use super::{Change, Verified};
use crate::snapshot::Running;

/// Decisions that are left for the kinds of change that come after this one.
const LEFT_FOR_OTHERS: u32 = 24;

/// The first jobs after whose end it starts.
pub(super) fn first(trial: &mut Trial<'_>) -> Vec<Verified> {
    let all = by_end(trial);
    let count = u64::try_from(all.len()).unwrap_or(u64::MAX);
    let found =
        least_near(0, count, |count| trial.starts(&ends(all.get(..place(count)).unwrap_or_default())).is_some());
    let Some(by_then) = found.and_then(|count| all.get(..place(count))) else { return Vec::new() };
    let Some(last) = by_then.last() else { return Vec::new() };
    let one = trial.verified(ends(std::slice::from_ref(last)));
    one.or_else(|| several(trial, by_then)).into_iter().collect()
}

fn place(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// A job with its expected end; the end of an array is that of its last child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    job: JobId,
    at_ms: i64,
    is_known: bool,
}

/// The jobs that run, by when they are expected to end. Those that nobody knows it of come where they are taken to end.
fn by_end(trial: &Trial<'_>) -> Vec<End> {
    let question = trial.question;
    let mut ends: BTreeMap<JobId, End> = BTreeMap::new();
    for running in trial.snapshot().running.iter().filter(|running| running.job != question.job) {
        let usual_ms = running.started_ms.saturating_add_unsigned(question.rules.unknown_ms);
        let at_ms = running.expected_end_ms.unwrap_or(usual_ms).max(question.now_ms);
        let is_known = running.expected_end_ms.is_some();
        let end = ends.entry(running.job).or_insert(End { job: running.job, at_ms, is_known });
        *end = End { at_ms: end.at_ms.max(at_ms), is_known: end.is_known && is_known, ..*end };
    }
    let mut ends: Vec<End> = ends.into_values().collect();
    ends.sort_by_key(|end| (end.at_ms, end.job));
    ends
}

fn ends(jobs: &[End]) -> Change {
    let last = jobs.last().filter(|last| last.is_known);
    Change::Ends { jobs: jobs.iter().map(|end| end.job).collect(), at_ms: last.map(|last| last.at_ms) }
}

/// As few of them as it takes; the last one is among them.
fn several(trial: &mut Trial<'_>, all: &[End]) -> Option<Verified> {
    let started = trial.starts(&ends(all))?;
    let mut jobs = near(trial, all, &started);
    if jobs.len() == all.len() || trial.starts(&ends(&jobs)).is_none() {
        jobs = all.to_vec();
    }
    let most = u64::try_from(jobs.len()).unwrap_or(u64::MAX);
    let rest =
        |jobs: &[End], fewest: u64| jobs.get(jobs.len().saturating_sub(place(fewest))..).unwrap_or_default().to_vec();
    let last = least(1, most, None, |fewest| trial.starts(&ends(&rest(&jobs, fewest))).is_some())?;
    jobs = rest(&jobs, last);
    let tries = usize::try_from(trial.decisions_left().saturating_sub(LEFT_FOR_OTHERS)).unwrap_or(0);
    jobs = needed(jobs, tries, |fewer| trial.starts(&ends(fewer)).is_some());
    trial.verified(ends(&jobs))
}

/// Those that hold something of the nodes that it would start on, and the last.
fn near(trial: &Trial<'_>, all: &[End], started: &Started) -> Vec<End> {
    let nodes: BTreeSet<u32> = started.holds.iter().map(|hold| hold.node).collect();
    let is_on = |running: &&Running| running.holds.iter().any(|hold| nodes.contains(&hold.node));
    let near: BTreeSet<JobId> = trial.snapshot().running.iter().filter(is_on).map(|running| running.job).collect();
    let last = all.last().map(|last| last.job);
    all.iter().copied().filter(|end| near.contains(&end.job) || Some(end.job) == last).collect()
}
