//! Whether those that a plan evicts still run, as Batch has it.
//!
//! What is seen in use of a node says how much of it, and not by whom. A run whose end nobody has heard of and others' work
//! of the same size look alike: the run would be told to go, nothing would become free, and whoever starts in its place
//! would wait in Batch. So Batch is asked about everybody who would go, before a plan becomes the pool's. What it says of
//! one that has ended, or isn't up as was thought, is taken in, and the plan is made anew.

use std::collections::BTreeSet;

use futures_util::future::try_join_all;
use osprey_model::event::JobDetail;
use osprey_model::id::{BatchJobId, JobId};
use osprey_model::job::Job;
use osprey_pipeline::failure::Failure;
use osprey_pipeline::repository;
use osprey_ports::batch::DESCRIBE_JOBS_MAX;
use osprey_ports::{DescribeJobs, GetItem};
use osprey_scheduler::{Plan, Snapshot};

use crate::load::Loaded;

/// What Batch says of a run that would go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// It is up, as far as was thought.
    Up,
    /// It has ended.
    Over,
    /// It isn't known to be up where it was thought to be.
    Unsure,
}

/// Asks Batch about everybody whom a plan evicts. `false` when some of them aren't as the snapshot has them: what was
/// loaded says so from then on, and the plan has to be made anew.
///
/// # Errors
/// When the store or Batch fails.
pub async fn confirm<P: GetItem + DescribeJobs + Sync>(
    ports: &P,
    loaded: &mut Loaded,
    (snapshot, plan): (&Snapshot, &Plan),
    now_ms: i64,
) -> Result<bool, Failure> {
    let victims: BTreeSet<JobId> =
        plan.evictions.iter().flat_map(|eviction| &eviction.victims).map(|victim| victim.job).collect();
    if victims.is_empty() {
        return Ok(true);
    }
    let victims: Vec<JobId> = victims.into_iter().collect();
    let (jobs, details) = ask(ports, &victims).await?;
    let mut is_confirmed = true;
    for victim in victims {
        let job = jobs.iter().find(|job| job.id == victim);
        match found(victim, job, &details, snapshot) {
            Found::Up => continue,
            Found::Over => loaded.holds.retain(|holding| holding.job != victim),
            Found::Unsure => doubt(loaded, victim, now_ms),
        }
        tracing::info!(job_id = %victim, "a job that was to be evicted isn't up as was thought; the plan is made anew.");
        is_confirmed = false;
    }
    Ok(is_confirmed)
}

/// Takes out of what was loaded who was told to go and has gone, though his end isn't recorded yet: what he held may be
/// another's by now, or look like it. Answers whether anybody has.
///
/// # Errors
/// When the store or Batch fails.
pub async fn leaving<P: GetItem + DescribeJobs + Sync>(ports: &P, loaded: &mut Loaded) -> Result<bool, Failure> {
    let leaves = loaded.holds.iter().filter(|holding| holding.leaves_for.is_some());
    let leaves: Vec<JobId> = leaves.map(|holding| holding.job).collect();
    if leaves.is_empty() {
        return Ok(false);
    }
    let (jobs, details) = ask(ports, &leaves).await?;
    let is_over = |job: &Job| {
        let detail = job.run.as_ref().and_then(|run| details.iter().find(|detail| detail.job_id == run.id.as_str()));
        detail.is_some_and(|detail| detail.status.is_final())
    };
    let gone: BTreeSet<JobId> = jobs.iter().filter(|job| is_over(job)).map(|job| job.id).collect();
    loaded.holds.retain(|holding| !gone.contains(&holding.job));
    Ok(!gone.is_empty())
}

/// Jobs as they are recorded, and what Batch says of their runs.
async fn ask<P: GetItem + DescribeJobs + Sync>(
    ports: &P,
    jobs: &[JobId],
) -> Result<(Vec<Job>, Vec<JobDetail>), Failure> {
    let jobs = try_join_all(jobs.iter().map(|job| repository::load(ports, *job))).await?;
    let jobs: Vec<Job> = jobs.into_iter().flatten().map(|loaded| loaded.job).collect();
    let ids: Vec<BatchJobId> = jobs.iter().filter_map(|job| job.run.as_ref()).map(|run| run.id.clone()).collect();
    let mut details = Vec::new();
    for some in ids.chunks(DESCRIBE_JOBS_MAX) {
        details.extend(ports.describe_jobs(some).await.map_err(Failure::call("DescribeJobs"))?);
    }
    Ok((jobs, details))
}

fn found(victim: JobId, job: Option<&Job>, details: &[JobDetail], snapshot: &Snapshot) -> Found {
    let Some(run) = job.and_then(|job| job.run.as_ref()) else { return Found::Over };
    let Some(detail) = details.iter().find(|detail| detail.job_id == run.id.as_str()) else { return Found::Unsure };
    if detail.status.is_final() {
        return Found::Over;
    }
    let placed = snapshot.running.iter().filter(|running| running.job == victim && !running.holds.is_empty());
    let placed: i64 = placed.map(|running| i64::from(running.children)).sum();
    match &detail.array_properties {
        Some(array) if array.size.is_some() => {
            let up = |status: &str| array.status_summary.get(status).copied().unwrap_or(0);
            if up("STARTING") + up("RUNNING") < placed { Found::Unsure } else { Found::Up }
        }
        _ => Found::Up,
    }
}

/// From now on a run is as good as on its way: it may be anywhere, and nobody evicts it.
fn doubt(loaded: &mut Loaded, job: JobId, now_ms: i64) {
    for holding in loaded.holds.iter_mut().filter(|holding| holding.job == job) {
        (holding.since, holding.started_at, holding.node) = (now_ms, None, None);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use osprey_model::event::{ArrayDetail, BatchStatus};
    use osprey_model::id::MessageId;
    use osprey_model::job::Run;
    use osprey_scheduler::snapshot::{Hold, Running, Shape};

    use super::*;

    fn job() -> Job {
        let message = MessageId::new("m");
        let run = Run {
            id: "b".into(),
            queue: "q".into(),
            submitted_at: 0,
            claimed_at: None,
            started_at: Some(9),
            node: None,
        };
        Job { run: Some(run), ..Job::new(JobId::of_message(&message), message, 0) }
    }

    fn detail(status: BatchStatus, up: Option<i64>) -> JobDetail {
        let summary = |up| BTreeMap::from([("RUNNING".to_owned(), up), ("RUNNABLE".to_owned(), 4 - up)]);
        let array = |up| ArrayDetail { size: Some(4), status_summary: summary(up), ..ArrayDetail::default() };
        JobDetail { job_id: "b".to_owned(), status, array_properties: up.map(array), ..JobDetail::default() }
    }

    fn told(job: Option<&Job>, details: &[JobDetail], children: u32) -> Found {
        let id = super::tests::job().id;
        let running = Running { holds: vec![Hold::gpus(0, 2)], children, ..Running::new(id, Shape::gpus(1)) };
        let snapshot = Snapshot { running: vec![running], ..Snapshot::default() };
        found(id, job, details, &snapshot)
    }

    #[test]
    fn a_run_goes_only_if_batch_says_that_it_is_up() {
        let job = job();
        let of = |status| told(Some(&job), &[detail(status, None)], 1);
        assert_eq!((of(BatchStatus::Running), of(BatchStatus::Starting)), (Found::Up, Found::Up));
        assert_eq!((of(BatchStatus::Succeeded), of(BatchStatus::Failed)), (Found::Over, Found::Over));
        assert_eq!(told(Some(&job), &[], 1), Found::Unsure, "an answer that lags doesn't show it");
        assert_eq!(told(None, &[], 1), Found::Over);
        assert_eq!(told(Some(&Job { run: None, ..job.clone() }), &[], 1), Found::Over);
    }

    #[test]
    fn an_array_goes_only_if_as_many_of_its_children_are_up_as_were_found_on_nodes() {
        let job = job();
        let of = |up, found| told(Some(&job), &[detail(BatchStatus::Pending, Some(up))], found);
        assert_eq!((of(2, 2), of(4, 2), of(1, 2)), (Found::Up, Found::Up, Found::Unsure));
    }
}
