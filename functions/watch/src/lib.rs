//! `watch`: every minute, everything whose time has come.
//!
//! It finds work in the index of what is due, which lags; each job is read again before anything is done, and one that
//! the index doesn't show yet is found the next time. It releases jobs whose back-off is over, settles submissions
//! whose outcome isn't known, asks after jobs whose events never came, tells people of dead letters, sends those again
//! whose redrive was lost, and puts events that whoever wrote them could not put. Pools in whose line somebody stands are
//! woken.

pub mod numbers;
mod pools;

use osprey_model::event::JobDetail;
use osprey_model::id::{BatchJobId, JobId};
use osprey_model::job::{Job, JobState};
use osprey_pipeline::apply::{self, Source};
use osprey_pipeline::context::Context;
use osprey_pipeline::driver::guard;
use osprey_pipeline::failure::Failure;
use osprey_pipeline::repository::{self, Changed};
use osprey_pipeline::{dependents, dispatch, forgotten, key, outbox, redrive, settle};
use osprey_ports::batch::DESCRIBE_JOBS_MAX;
use osprey_ports::{Index, IndexQuery, Notify};

/// Most due items of one round; the rest comes in the next.
const ROUND_MAX: usize = 500;

/// What the function calls.
pub trait Ports: settle::Ports + Notify {}

impl<P: settle::Ports + Notify> Ports for P {}

/// What a round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Items that were due.
    pub due: usize,
    /// Steps that failed; their items are still due.
    pub failed: usize,
    /// Jobs asked after.
    pub asked: usize,
    /// Events that were put since nobody else had.
    pub told: usize,
}

/// Does everything whose time has come.
pub async fn handle<P: Ports>(ctx: &Context<'_>, ports: &P) -> Report {
    let mut report = Report::default();
    let due = match due(ports).await {
        Ok(due) => due,
        Err(failure) => {
            tracing::warn!(error = failure.story(), "what is due could not be read.");
            return Report { failed: 1, ..report };
        }
    };
    report.due = due.len();
    let mut silent = Vec::new();
    for item in due {
        match guard(step(ctx, ports, &item)).await {
            Ok(Ok(Some(job))) => silent.push(job),
            Ok(Ok(None)) => {}
            Ok(Err(failure)) => report.fail(&failure.story()),
            Err(panicked) => report.fail(&panicked.to_string()),
        }
    }
    match guard(outbox::put_left(ports, ports.now().as_millisecond())).await {
        Ok(Ok(told)) => report.told = told,
        Ok(Err(failure)) => report.fail(&failure.story()),
        Err(panicked) => report.fail(&panicked.to_string()),
    }
    report.asked = silent.len();
    for some in silent.chunks(DESCRIBE_JOBS_MAX) {
        match guard(ask(ctx, ports, some)).await {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => report.fail(&failure.story()),
            Err(panicked) => report.fail(&panicked.to_string()),
        }
    }
    match guard(pools::wake(ctx, ports)).await {
        Ok(Ok(())) => {}
        Ok(Err(failure)) => report.fail(&failure.story()),
        Err(panicked) => report.fail(&panicked.to_string()),
    }
    report
}

impl Report {
    fn fail(&mut self, story: &str) {
        self.failed += 1;
        tracing::warn!(error = story, "a due step failed; it stays due.");
    }
}

/// Something that is due.
#[derive(Clone, Copy, Debug)]
enum Due {
    /// A job.
    Job(JobId),
    /// A dead letter that nobody was told of, or that was sent through again and wasn't heard of since.
    DeadLetter(JobId),
}

async fn due<P: Ports>(ports: &P) -> Result<Vec<Due>, Failure> {
    let now = ports.now().as_millisecond();
    let query = IndexQuery {
        index: Index::Due,
        partition: key::DUE.to_owned(),
        from: None,
        // `~` sorts after everything that may follow the time.
        to: Some(format!("{}~", key::sortable(now))),
        newest_first: false,
        after: None,
        limit: ROUND_MAX,
    };
    let page = ports.query_index_lagging(&query).await?;
    Ok(page.entries.iter().filter_map(|(_, key)| which(&key.partition)).collect())
}

fn which(partition: &str) -> Option<Due> {
    let (kind, id) = partition.split_once('#')?;
    let id = JobId::parse(id)?;
    match kind {
        "JOB" => Some(Due::Job(id)),
        "DEAD" => Some(Due::DeadLetter(id)),
        _ => None,
    }
}

/// Does what is due for one item; returns a job that has to be asked after.
async fn step<P: Ports>(ctx: &Context<'_>, ports: &P, due: &Due) -> Result<Option<Job>, Failure> {
    let id = match due {
        Due::DeadLetter(id) => {
            let now = ports.now().as_millisecond();
            return redrive::attend(ports, *id, now).await.map(|()| None);
        }
        Due::Job(id) => *id,
    };
    let Some(loaded) = repository::load(ports, id).await? else { return Ok(None) };
    let job = loaded.job;
    if repository::due_at(&job, ctx.settings).is_none_or(|at| at > ports.now().as_millisecond()) {
        return Ok(None);
    }
    match job.state {
        JobState::Queued => dispatch::dispatch(ctx, ports, id).await.map(|()| None),
        JobState::Waiting => {
            dependents::check(ctx, ports, id).await?;
            dispatch::dispatch(ctx, ports, id).await.map(|()| None)
        }
        JobState::Claimed => settle::settle(ctx, ports, &job).await.map(|()| None),
        JobState::Submitted | JobState::Running => Ok(Some(job)),
        _ => Ok(None),
    }
}

/// Asks Batch after jobs that have been silent, at most [`DESCRIBE_JOBS_MAX`] of them.
async fn ask<P: Ports>(ctx: &Context<'_>, ports: &P, jobs: &[Job]) -> Result<(), Failure> {
    let ids: Vec<BatchJobId> = jobs.iter().filter_map(|job| job.run.as_ref()).map(|run| run.id.clone()).collect();
    let details = ports.describe_jobs(&ids).await.map_err(Failure::call("DescribeJobs"))?;
    for detail in &details {
        apply::apply(ctx, ports, detail, Source::Asked).await?;
    }
    for job in jobs.iter().filter(|job| !is_among(job, &details)) {
        if let Changed::Written { after, .. } = forgotten::note(ctx, ports, job).await? {
            tracing::warn!(job_id = %after.id, state = after.state.as_str(), "Batch no longer knows a job.");
        }
    }
    Ok(())
}

fn is_among(job: &Job, details: &[JobDetail]) -> bool {
    let id = job.run.as_ref().map(|run| run.id.as_str());
    details.iter().any(|detail| Some(detail.job_id.as_str()) == id)
}
