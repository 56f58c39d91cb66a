//! Jobs that Batch has forgotten. A missing answer is neither success nor failure: Batch drops old jobs, and may not
//! show new ones yet. Only one that has been silent for long is taken for lost, and comes back as after a lost host.

use osprey_model::end::EndClass;
use osprey_model::event::{BatchStatus, JobDetail};
use osprey_model::job::Job;

use crate::apply::{self, Ports, Source};
use crate::context::Context;
use crate::failure::Failure;
use crate::repository::{self, Change, Changed};

/// Notes that Batch doesn't know a job that it should have.
///
/// # Errors
/// When the store fails.
pub async fn note<P: Ports>(ctx: &Context<'_>, ports: &P, job: &Job) -> Result<Changed, Failure> {
    let Some(run) = &job.run else { return Ok(Changed::Unchanged(Box::new(job.clone()))) };
    let now = ports.now().as_millisecond();
    if now < run.submitted_at.saturating_add(ctx.settings.forgotten_ms) {
        return repository::change(ports, ctx.settings, job.id, |current| {
            (current.run == job.run).then(|| Change::of(Job { updated_at: now, ..current.clone() }))
        })
        .await;
    }
    let lost = JobDetail {
        job_id: run.id.to_string(),
        status: BatchStatus::Failed,
        status_reason: Some("Host EC2 terminated. Batch no longer knows the job.".to_owned()),
        created_at: Some(run.submitted_at),
        started_at: run.started_at,
        stopped_at: Some(now),
        ..JobDetail::default()
    };
    debug_assert_eq!(
        osprey_model::end::classify(&lost, osprey_model::end::StoppedBy::Nobody),
        EndClass::HostLost,
        "a forgotten job counts as an interruption"
    );
    apply::apply(ctx, ports, &lost, Source::Asked).await?;
    Ok(match repository::load(ports, job.id).await? {
        Some(loaded) => Changed::Written { before: Box::new(job.clone()), after: Box::new(loaded.job) },
        None => Changed::Missing,
    })
}
