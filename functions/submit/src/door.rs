//! Dependencies at the door: what each id in `dependsOn` is, and whether the job can ever start.

use std::collections::BTreeSet;

use osprey_model::id::{BatchJobId, JobId};
use osprey_model::job::Reported;
use osprey_model::message::words::quote;
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_model::request::SubmitJobRequest;
use osprey_pipeline::context::Context;
use osprey_pipeline::dependents::{self, Dependency, On, Standing};
use osprey_pipeline::failure::Failure;
use osprey_pipeline::{derive, feedback};

use crate::handle::Ports;

/// What a job's dependencies come to.
#[derive(Clone, Debug, Default)]
pub struct Door {
    /// What it depends on.
    pub dependencies: Vec<Dependency>,
    /// Jobs of ours, known or announced, whose end it must hear of.
    pub parents: Vec<JobId>,
    /// Whether one of them has not succeeded yet.
    pub waits: bool,
    /// What these reported last of what comes after them.
    pub reported: Option<Reported>,
    /// Why it can't be taken.
    pub refusals: Vec<Refusal>,
}

/// Looks at every dependency of a request.
///
/// # Errors
/// When the store or Batch fails.
pub async fn dependencies<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    request: &SubmitJobRequest,
    id: JobId,
) -> Result<Door, Failure> {
    let mut door = Door::default();
    let ids: BTreeSet<&str> = request.depends_on.iter().flatten().filter_map(|d| d.job_id.as_deref()).collect();
    for given in ids {
        one(ctx, ports, given, id, &mut door).await?;
    }
    if door.refusals.is_empty()
        && door.waits
        && let Some(circle) = dependents::circle(ports, id, &door.dependencies).await?
    {
        let sentence = dependents::cycle(&request.job_name, &dependents::names(ports, &circle).await?);
        door.refusals.push(Refusal::new(ReasonCode::DependencyCycle, sentence));
    }
    Ok(door)
}

async fn one<P: Ports>(ctx: &Context<'_>, ports: &P, given: &str, id: JobId, door: &mut Door) -> Result<(), Failure> {
    if JobId::parse(given) == Some(id) {
        door.refusals.push(itself(given));
        return Ok(());
    }
    let (on, standing, reported) = look_up(ctx, ports, given).await?;
    door.reported = feedback::newest([door.reported, reported]);
    match standing {
        Standing::Done => {}
        Standing::Pending => door.waits = true,
        Standing::Lost(why) => door.refusals.push(lost(given, &why)),
        // A queue may bring a child before its parent: an id that looks like one of ours may still arrive.
        Standing::Unknown if JobId::parse(given).is_some() => door.waits = true,
        Standing::Unknown => {
            door.refusals.push(Refusal::new(ReasonCode::UnknownDependency, dependents::unknown(given)));
        }
    }
    door.parents.extend(match &on {
        On::Job(parent) => Some(*parent),
        On::Unknown => JobId::parse(given),
        On::Batch(_) => None,
    });
    door.dependencies.push(Dependency { given: given.to_owned(), on });
    Ok(())
}

async fn look_up<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    given: &str,
) -> Result<(On, Standing, Option<Reported>), Failure> {
    let now = ports.now().as_millisecond();
    if let Some(loaded) = derive::find(ports, given).await? {
        let grace = ctx.policy.requeue().dependency_grace_ms;
        let standing = dependents::standing(&loaded.job, now, grace);
        return Ok((On::Job(loaded.job.id), standing, loaded.job.reported));
    }
    let (on, standing) = dependents::of_batch(ctx, ports, &BatchJobId::new(given), now).await?;
    Ok((on, standing, None))
}

fn itself(given: &str) -> Refusal {
    Refusal::new(
        ReasonCode::SelfDependency,
        format!("`dependsOn` names the job itself ({}); leave it out", quote(given)),
    )
}

fn lost(given: &str, why: &str) -> Refusal {
    Refusal::new(
        ReasonCode::FailedDependency,
        format!("`dependsOn` names {}, which {why}; requeue that job first, or leave it out", quote(given)),
    )
}
