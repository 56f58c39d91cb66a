//! What a step of a graph of jobs reports of the priority of what comes after it.
//!
//! The step's record keeps the report ([`Reported`]), and so does the record of each job after it, so that a job that is
//! derived again has it, and one that comes later takes it from those before it. Of several reports the newest stands.

use std::collections::{BTreeSet, VecDeque};

use osprey_model::id::JobId;
use osprey_model::job::{Job, JobState, Reported};

use crate::context::Context;
use crate::derive;
use crate::dispatch::{self, Ports};
use crate::failure::Failure;
use crate::repository::{self, Change, Changed, Loaded};
use crate::{dependents, key, waits};

/// Most jobs that one report reaches.
pub const REACH_MAX: usize = 500;

/// The newest of some reports.
#[must_use]
pub fn newest(reports: impl IntoIterator<Item = Option<Reported>>) -> Option<Reported> {
    reports.into_iter().flatten().max_by_key(|reported| reported.at)
}

/// Brings what a step reported to every job that waits for it, directly or through others. Doing it again changes nothing.
///
/// # Errors
/// When the store or Batch's descriptions fail; what was reached by then stays.
pub async fn spread<P: Ports>(ctx: &Context<'_>, ports: &P, step: &Job) -> Result<(), Failure> {
    let Some(reported) = step.reported else { return Ok(()) };
    let mut seen = BTreeSet::from([step.id]);
    let mut ahead = VecDeque::from([step.id]);
    while let Some(parent) = ahead.pop_front() {
        for edge in repository::all(ports, key::job_partition(parent), key::CHILD).await? {
            let Some(child) = key::child_of(&edge.key).filter(|child| !seen.contains(child)) else { continue };
            if seen.len() > REACH_MAX {
                tracing::warn!(job_id = %step.id, reach = REACH_MAX, "a report reaches no further.");
                return Ok(());
            }
            seen.insert(child);
            ahead.push_back(child);
            reach(ctx, ports, child, reported).await?;
        }
    }
    Ok(())
}

/// Takes the newest report of the jobs before a new one, which may have come while it was being recorded.
///
/// # Errors
/// As [`spread`].
pub async fn catch_up<P: Ports>(ctx: &Context<'_>, ports: &P, job: &Job, parents: &[JobId]) -> Result<(), Failure> {
    let mut reports = Vec::new();
    for parent in parents {
        reports.push(repository::load(ports, *parent).await?.and_then(|loaded| loaded.job.reported));
    }
    match newest(reports) {
        Some(reported) if is_newer(job, reported) => reach(ctx, ports, job.id, reported).await,
        _ => Ok(()),
    }
}

fn is_newer(job: &Job, reported: Reported) -> bool {
    job.reported.is_none_or(|known| known.at < reported.at)
}

/// Notes a report with one job, and derives it again where it still waits to be started.
async fn reach<P: Ports>(ctx: &Context<'_>, ports: &P, id: JobId, reported: Reported) -> Result<(), Failure> {
    let Some(loaded) = repository::load(ports, id).await? else { return Ok(()) };
    if !is_newer(&loaded.job, reported) || matches!(loaded.job.state, JobState::Refused) {
        return Ok(());
    }
    let derived = if is_waiting(&loaded.job) { Some(derived(ctx, ports, loaded, reported).await?) } else { None };
    let dependencies = dependents::dependencies(ports, id).await?;
    let changed = repository::change(ports, ctx.settings, id, |job| {
        if !is_newer(job, reported) || job.state == JobState::Refused {
            return None;
        }
        let mut next = Job { reported: Some(reported), ..job.clone() };
        if let Some(derived) = derived.as_ref().filter(|_| is_waiting(job)) {
            next.priority = derived.priority;
            next.tier = derived.tier.clone();
        }
        let with = waits::begin(&next, &dependencies).into_iter().collect();
        Some(Change { job: next, with })
    })
    .await?;
    match changed {
        Changed::Written { after, .. } if after.state == JobState::Queued => {
            dispatch::dispatch(ctx, ports, after.id).await
        }
        _ => Ok(()),
    }
}

/// Whether a job's number can still matter to when it starts.
fn is_waiting(job: &Job) -> bool {
    matches!(job.state, JobState::Held | JobState::Waiting | JobState::Queued)
}

/// What a job deserves with a report.
async fn derived<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    loaded: Loaded,
    reported: Reported,
) -> Result<osprey_model::decision::Derivation, Failure> {
    let Loaded { job, version } = loaded;
    let loaded = Loaded { job: Job { reported: Some(reported), ..job }, version };
    Ok(derive::again(ctx, ports, loaded).await?.evaluation.decision.derivation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_reports_the_newest_stands() {
        let reported = |points, at| Some(Reported { points, at });
        assert_eq!(newest([None, reported(50, 2), reported(-20, 7), reported(90, 3)]), reported(-20, 7));
        assert_eq!(newest([None, None]), None);
    }
}
