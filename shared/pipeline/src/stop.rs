//! Stopping: a person's wish, an eviction, and second Batch jobs for one attempt.

use osprey_model::end::{EVICTION_TOKEN, STOP_TOKEN};
use osprey_model::id::{BatchJobId, JobId};
use osprey_model::job::{AfterStop, End, Job, JobState, Stop};
use osprey_model::reason::ReasonCode;
use osprey_ports::{CallError, Clock, Expect, GetItem, Item, TerminateJob, Write, WriteItems};
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::failure::Failure;
use crate::repository::{self, Change};
use crate::{derive, key, outgoing::Owner};

/// A second Batch job for one attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extra {
    /// The attempt it was made for.
    pub attempt: u32,
    /// Batch's id.
    pub batch_job_id: BatchJobId,
    /// When it was found, milliseconds since 1970.
    pub found_at: i64,
    /// Whether it was still alive and Batch was asked to stop it.
    pub stopped: bool,
}

/// Puts a job that Batch doesn't have where a person's wish wants it.
pub fn carry_out(job: &mut Job, wish: &Stop, now: i64) {
    match wish.then {
        AfterStop::Fail => {
            job.state = JobState::Failed;
            job.end = Some(End::new(ReasonCode::Cancelled, &wish.reason));
        }
        AfterStop::Hold => job.state = JobState::Held,
        AfterStop::Requeue => {
            job.state = JobState::Queued;
            job.scheduled = false;
            job.not_before = now;
        }
    }
}

/// Asks Batch to stop the job's run, if a person wishes it or it is being evicted. Asking again does no harm, so nothing
/// is recorded: the job's end will say that it worked, and `watch` asks again until then.
///
/// # Errors
/// When Batch fails.
pub async fn push<P: TerminateJob + Sync>(ports: &P, job: &Job) -> Result<(), Failure> {
    let (Some(run), Some(reason)) = (&job.run, reason(job)) else { return Ok(()) };
    terminate(ports, &run.id, &reason).await
}

/// Why a job's run is to be stopped; a person's wish goes before an eviction.
fn reason(job: &Job) -> Option<String> {
    if let Some(wish) = &job.stop {
        return Some(format!("{STOP_TOKEN} stopped by a person: {}", wish.reason));
    }
    Some(match job.evict?.goes_for {
        Some(other) => format!("{EVICTION_TOKEN}ed for={other}"),
        None => format!("{EVICTION_TOKEN}ed by a person"),
    })
}

async fn terminate<P: TerminateJob + Sync>(ports: &P, id: &BatchJobId, reason: &str) -> Result<(), Failure> {
    match ports.terminate_job(id, reason).await {
        // A job that can't be stopped any more has ended, and its event says how.
        Ok(()) | Err(CallError::Refused(_)) => Ok(()),
        Err(source) => Err(Failure::Call { what: "TerminateJob", source }),
    }
}

/// Records and stops a second Batch job for one attempt. Counted once. One that turns out to be a recorded run is left
/// alone.
///
/// # Errors
/// When the store or Batch fails; the next event of that Batch job brings it here again.
pub async fn extra<P>(ctx: &Context<'_>, ports: &P, owner: Owner, id: &BatchJobId, alive: bool) -> Result<(), Failure>
where
    P: GetItem + WriteItems + TerminateJob + Clock + Sync,
{
    let row = match ports.get_item(&key::extra(owner.job, id)).await? {
        Some(item) => Some(repository::read(&item)?),
        None => record(ctx, ports, owner, id).await?,
    };
    match row {
        Some(row) if alive => halt(ports, owner, &row).await,
        _ => Ok(()),
    }
}

/// Records a second Batch job; `None` when it is a recorded run, or its job isn't there.
async fn record<P>(ctx: &Context<'_>, ports: &P, owner: Owner, id: &BatchJobId) -> Result<Option<Extra>, Failure>
where
    P: GetItem + WriteItems + Clock + Sync,
{
    let Owner { job, attempt } = owner;
    let found_at = ports.now().as_millisecond();
    let Some(loaded) = repository::load(ports, job).await? else { return Ok(None) };
    // Read after the job: whoever takes the Batch job for a run writes the job too, and this write then fails.
    if derive::owner(ports, id).await?.is_some() {
        return Ok(None);
    }
    let row = Extra { attempt, batch_job_id: id.clone(), found_at, stopped: false };
    let mut counted = loaded.job.clone();
    counted.counts.duplicate_runs = counted.counts.duplicate_runs.saturating_add(1);
    let expect = Expect::Version(loaded.version);
    let mut writes = repository::writes(Some(&loaded.job), &counted, ctx.settings, expect)?;
    writes.push(repository::create(key::extra(job, id), repository::json(&row)));
    ports.write_items(&writes).await?;
    tracing::error!(metric = "DuplicatesStopped", job_id = %job, attempt, batch_job_id = %id, "a second Batch job for one attempt was found.");
    Ok(Some(row))
}

/// Stops a second Batch job, and notes that Batch was asked to. Batch is asked at every sign of life.
async fn halt<P>(ports: &P, owner: Owner, row: &Extra) -> Result<(), Failure>
where
    P: WriteItems + TerminateJob + Sync,
{
    let Owner { job, attempt } = owner;
    let reason = format!("{STOP_TOKEN} a second Batch job for attempt {attempt} of job {job}");
    terminate(ports, &row.batch_job_id, &reason).await?;
    if row.stopped {
        return Ok(());
    }
    let stopped = Extra { stopped: true, ..row.clone() };
    let item = Item::new(key::extra(job, &row.batch_job_id), repository::json(&stopped));
    Ok(ports.write_items(&[Write::Put { item, expect: Expect::Any }]).await?)
}

/// Whether a Batch job was recorded as a second one of a job.
///
/// # Errors
/// When the store fails.
pub async fn is_extra<P: GetItem + Sync>(ports: &P, job: JobId, id: &BatchJobId) -> Result<bool, Failure> {
    Ok(ports.get_item(&key::extra(job, id)).await?.is_some())
}

/// A change that notes a person's wish on a job that Batch has, or may have.
#[must_use]
pub fn wished(job: &Job, then: AfterStop, reason: &str, now: i64) -> Change {
    let mut job = job.clone();
    let reason = osprey_model::job::cut(reason, osprey_model::job::STATE_REASON_CHARS_MAX);
    job.stop = Some(Stop { then, reason });
    job.updated_at = now;
    Change::of(job)
}
