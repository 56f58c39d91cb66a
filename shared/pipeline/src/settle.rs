//! A claimed submission whose outcome isn't known is settled, not repeated.
//!
//! Batch has no token to make a submission idempotent, and its lists may lag. So: look for a job of the claim's name
//! in the claim's queue that carries our tags; adopt it at once if it is there. Submit again only when the window in
//! which the first request could still act is over and two lists in a row, some time apart, were empty. A job that
//! turns up even later is stopped at its first event and counted ([`crate::stop::extra`]).

use jiff::Timestamp;
use osprey_model::event::JobDetail;
use osprey_model::id::{BatchJobId, JobId};
use osprey_model::job::{Claim, Job, JobState};
use osprey_ports::batch::DESCRIBE_JOBS_MAX;
use osprey_ports::{DescribeJobs, ListJobs};

use crate::context::{Context, Settings};
use crate::failure::Failure;
use crate::repository::{self, Change};
use crate::{apply, derive, dispatch, outgoing, stop};

/// Lists after the window that must be empty before the submission counts as never made.
pub const EMPTY_LISTS: u32 = 2;

/// How far Batch's clock may be behind ours, milliseconds: a list goes back so much before the claim.
const CLOCK_SKEW_MS: i64 = 120_000;

/// What settling calls.
pub trait Ports: dispatch::Ports + apply::Ports + ListJobs + DescribeJobs {}

impl<P: dispatch::Ports + apply::Ports + ListJobs + DescribeJobs> Ports for P {}

/// Settles a claimed job as far as that is possible now.
///
/// # Errors
/// When the store or Batch fails; the claim stays.
pub async fn settle<P: Ports>(ctx: &Context<'_>, ports: &P, job: &Job) -> Result<(), Failure> {
    let Some(claim) = job.claim.as_ref().filter(|_| job.state == JobState::Claimed) else { return Ok(()) };
    // What a list shows is what there was when it was asked for, however long the answer took.
    let asked_at = ports.now().as_millisecond();
    let found = find(ctx, ports, job, claim).await?;
    let Some((first, others)) = found.split_first() else { return not_found(ctx, ports, job, asked_at).await };
    // The second ones first: once the claim is settled nobody would look for them again.
    for other in others {
        second(ctx, ports, job, other).await?;
    }
    apply::apply(ctx, ports, first, apply::Source::Asked).await.map(drop)
}

async fn second<P: Ports>(ctx: &Context<'_>, ports: &P, job: &Job, detail: &JobDetail) -> Result<(), Failure> {
    let owner = outgoing::Owner { job: job.id, attempt: job.attempt };
    stop::extra(ctx, ports, owner, &BatchJobId::new(detail.job_id.as_str()), !detail.status.is_final()).await
}

/// The jobs of a claim that nobody recorded, oldest first. Those recorded as second ones are stopped once more. One that
/// a list shows and that isn't described yet may be ours, so nothing is said before it is.
async fn find<P: Ports>(ctx: &Context<'_>, ports: &P, job: &Job, claim: &Claim) -> Result<Vec<JobDetail>, Failure> {
    let from = Timestamp::from_millisecond(claim.at.saturating_sub(CLOCK_SKEW_MS)).unwrap_or_default();
    let mut listed = ports.list_jobs(&claim.queue, &job.name, from).await.map_err(Failure::call("ListJobs"))?;
    listed.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    let ids: Vec<BatchJobId> = listed.into_iter().map(|row| row.id).collect();
    let mut found = Vec::new();
    for some in ids.chunks(DESCRIBE_JOBS_MAX) {
        let details = ports.describe_jobs(some).await.map_err(Failure::call("DescribeJobs"))?;
        let patience_ends = claim.at.saturating_add(ctx.settings.forgotten_ms);
        if details.len() < some.len() && ports.now().as_millisecond() < patience_ends {
            return Err(Failure::Behind("a job that a list shows isn't described yet"));
        }
        for detail in details.into_iter().filter(|detail| is_of(detail, job.id, job.attempt)) {
            let id = BatchJobId::new(detail.job_id.as_str());
            if derive::owner(ports, &id).await?.is_some() {
                continue;
            }
            if stop::is_extra(ports, job.id, &id).await? {
                second(ctx, ports, job, &detail).await?;
            } else {
                found.push(detail);
            }
        }
    }
    found.sort_by(|a, b| (a.created_at, &a.job_id).cmp(&(b.created_at, &b.job_id)));
    Ok(found)
}

/// Whether a Batch job carries our tags for this attempt.
fn is_of(detail: &JobDetail, id: JobId, attempt: u32) -> bool {
    apply::tagged(detail).is_some_and(|owner| owner == outgoing::Owner { job: id, attempt })
}

/// Notes an empty list. Of several lists that were asked for at one time, only one counts: they see the same.
async fn not_found<P: Ports>(ctx: &Context<'_>, ports: &P, seen: &Job, asked_at: i64) -> Result<(), Failure> {
    repository::change(ports, ctx.settings, seen.id, |job| {
        let same = job.attempt == seen.attempt && job.claim == seen.claim && job.updated_at == seen.updated_at;
        (same && job.state == JobState::Claimed).then(|| Change::of(after_empty_list(job, ctx.settings, asked_at)))
    })
    .await?;
    Ok(())
}

/// The job after a list that didn't show it.
#[must_use]
pub fn after_empty_list(job: &Job, settings: &Settings, now: i64) -> Job {
    let mut next = job.clone();
    next.updated_at = now;
    let Some(claim) = &mut next.claim else { return next };
    let acts_until = claim.at.saturating_add(settings.send_limit_ms).saturating_add(settings.act_window_ms);
    if now <= acts_until {
        return next;
    }
    claim.empty_lists = claim.empty_lists.saturating_add(1);
    if claim.empty_lists < EMPTY_LISTS {
        return next;
    }
    dispatch::unclaimed(job, now, now)
}
