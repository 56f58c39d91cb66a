//! Jobs that a scheduling cycle starts: how they come into their pool's line, and how a cycle's plan starts them.
//!
//! A job stands in the line of a pool that holds jobs as soon as its time has come, with a number that was derived
//! then. A cycle starts it in three steps: [`prepare`] derives it again, [`claim`] claims it together with the plan's
//! step, and [`send`] calls Batch and records what came of it. Nothing is sent for a plan that was superseded.

use osprey_model::id::{JobId, PoolName};
use osprey_model::job::{Job, JobState};
use osprey_model::pool::PoolMode;
use osprey_ports::{Clock, GetItem, PutEvents, SendMessage, StoreError, SubmitCall, SubmitError, Write, WriteItems};

use crate::context::Context;
use crate::derive::{self, Again, Evaluation};
use crate::dispatch::{self, Along, Claim, Ports};
use crate::failure::Failure;
use crate::repository::{self, Change, Loaded};
use crate::wake;

/// Most pools without capacity that a job keeps in mind.
const AVOIDED_MAX: usize = 4;

/// Whether a queued job is for a cycle of its pool to start: it stands in the line of a pool that holds jobs.
#[must_use]
pub fn is_for_a_cycle(ctx: &Context<'_>, job: &Job) -> bool {
    job.scheduled && ctx.pool(&job.pool).is_some_and(|pool| pool.mode == PoolMode::Held)
}

/// Wakes the pool of a job that stands in its line. One that has stood there very long is noted as looked at.
pub(crate) async fn look<P>(ctx: &Context<'_>, ports: &P, loaded: &Loaded, now: i64) -> Result<(), Failure>
where
    P: WriteItems + PutEvents + SendMessage + Sync,
{
    if repository::due_at(&loaded.job, ctx.settings).is_some_and(|at| at <= now) {
        let job = Job { updated_at: now, ..loaded.job.clone() };
        match repository::write(ports, ctx.settings, loaded, Change::of(job)).await {
            Ok(()) | Err(Failure::Store(StoreError::Conflict { .. })) => {}
            Err(failure) => return Err(failure),
        }
    }
    wake::pool(ports, &loaded.job.pool, 0).await;
    Ok(())
}

/// Puts a queued job into the line of the pool that was decided for it.
pub(crate) async fn stand<P>(
    ctx: &Context<'_>,
    ports: &P,
    loaded: &Loaded,
    evaluation: &Evaluation,
) -> Result<(), Failure>
where
    P: WriteItems + PutEvents + SendMessage + Clock + Sync,
{
    let mut job = dispatch::decided(&loaded.job, &evaluation.decision);
    job.needs = evaluation.needs();
    job.charge = evaluation.charge.clone();
    job.scheduled = true;
    job.updated_at = ports.now().as_millisecond();
    match repository::write(ports, ctx.settings, loaded, Change::of(job.clone())).await {
        Ok(()) => {
            announce(ctx, ports, &job).await;
            Ok(())
        }
        // Somebody else has it.
        Err(Failure::Store(StoreError::Conflict { .. })) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// An urgent job gets a cycle at once; the others wait for freed capacity, or for the rhythm.
pub(crate) async fn announce<P: SendMessage + Sync>(ctx: &Context<'_>, ports: &P, job: &Job) {
    if job.priority > ctx.policy.order().dive_above {
        wake::pool(ports, &job.pool, 0).await;
    }
}

/// A job that a plan starts, read and derived again.
#[derive(Clone, Debug)]
pub struct Prepared(Again);

impl Prepared {
    /// The same start, said to go on beyond its team's quota or not.
    pub fn borrow(&mut self, is_borrowed: bool) {
        self.0.evaluation.charge.borrowed = is_borrowed;
    }
}

/// What came of preparing a start.
pub enum Preparation {
    /// It may be claimed.
    Ready(Box<Prepared>),
    /// It isn't in the pool's line any more, or isn't due.
    Gone,
    /// It deserves another place than it had when the plan was made: it stands there now.
    Moved(PoolName),
}

/// Reads a job that a plan of a pool starts, and derives it again. One that has gone to another pool since isn't the plan's.
///
/// # Errors
/// When the store or Batch's descriptions fail.
pub async fn prepare<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    pool: &PoolName,
    id: JobId,
) -> Result<Preparation, Failure> {
    let Some(loaded) = repository::load(ports, id).await? else { return Ok(Preparation::Gone) };
    let job = &loaded.job;
    let stands_here = job.state == JobState::Queued && job.scheduled && job.pool == *pool;
    if !stands_here || job.not_before > ports.now().as_millisecond() {
        return Ok(Preparation::Gone);
    }
    let again = derive::again(ctx, ports, loaded).await?;
    let (job, decision) = (&again.loaded.job, &again.evaluation.decision);
    let stays = decision.pool == job.pool && decision.derivation.tier == job.tier;
    if ctx.pool(&decision.pool).is_some() && (!stays || decision.derivation.priority < job.priority) {
        stand(ctx, ports, &again.loaded, &again.evaluation).await?;
        return Ok(Preparation::Moved(decision.pool.clone()));
    }
    Ok(Preparation::Ready(Box::new(Prepared(again))))
}

/// Moves a job that waits in vain to a pool that isn't one of these; `None` when there is none for it, or it isn't in
/// the line any more.
///
/// # Errors
/// When the store or Batch's descriptions fail.
pub async fn move_on<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    id: JobId,
    without: &[PoolName],
) -> Result<Option<PoolName>, Failure> {
    let Some(Loaded { job, version }) = repository::load(ports, id).await? else { return Ok(None) };
    if job.state != JobState::Queued || !job.scheduled || !without.contains(&job.pool) {
        return Ok(None);
    }
    let job = Job { avoid_pools: without.iter().take(AVOIDED_MAX).cloned().collect(), ..job };
    let again = derive::again(ctx, ports, Loaded { job, version }).await?;
    let to = &again.evaluation.decision.pool;
    if without.contains(to) || ctx.pool(to).is_none() {
        return Ok(None);
    }
    stand(ctx, ports, &again.loaded, &again.evaluation).await?;
    Ok(Some(to.clone()))
}

/// Notes that a job's wait has brought it to the front of its line.
///
/// # Errors
/// When the store fails.
pub async fn bring_forward<P>(ctx: &Context<'_>, ports: &P, id: JobId) -> Result<(), Failure>
where
    P: GetItem + WriteItems + PutEvents + Sync,
{
    let aged = |job: &Job| {
        let stands = job.scheduled && job.state == JobState::Queued && !job.aged;
        stands.then(|| Change::of(Job { aged: true, ..job.clone() }))
    };
    repository::change(ports, ctx.settings, id, aged).await.map(drop)
}

/// A job that was claimed for a plan, and the call that submits it.
pub struct Ready {
    claimed: Loaded,
    call: SubmitCall,
}

impl Ready {
    /// The job as it was claimed.
    #[must_use]
    pub fn job(&self) -> &Job {
        &self.claimed.job
    }
}

/// What is written with a claim besides the plan's step, made of the claimed job; without conditions.
pub type More<'a> = &'a (dyn Fn(&Job) -> Vec<Write> + Sync);

/// What came of claiming a start.
pub enum Claimed {
    /// It is this plan's to submit.
    Ready(Box<Ready>),
    /// It isn't there to be claimed any more.
    Gone,
    /// Its team holds what it may in its tier: another pool was faster.
    OverQuota,
    /// Another plan is the pool's.
    Superseded,
}

/// Claims a job for a plan; `step` is the plan's next step, and `more` what is written with it.
///
/// # Errors
/// When the store fails.
pub async fn claim<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    prepared: &Prepared,
    step: Write,
    more: More<'_>,
) -> Result<Claimed, Failure> {
    let Prepared(Again { loaded, record, request, evaluation }) = prepared;
    let along = Some(Along { step, more });
    match dispatch::claim(ctx, ports, loaded, record, request, evaluation, along).await? {
        Claim::Won(claimed) => {
            let call = dispatch::call(ctx, ports, &claimed.job, request, evaluation).await?;
            Ok(Claimed::Ready(Box::new(Ready { claimed: *claimed, call })))
        }
        Claim::Lost => Ok(Claimed::Gone),
        Claim::OverQuota => Ok(Claimed::OverQuota),
        Claim::Superseded => Ok(Claimed::Superseded),
    }
}

/// Submits a claimed job once, and records what came of it; `false` when Batch or the account's rate turned it away.
///
/// # Errors
/// When the store fails; the claim is settled later.
pub async fn send<P: Ports>(ctx: &Context<'_>, ports: &P, ready: &Ready) -> Result<bool, Failure> {
    let outcome = ports.submit_job(&ready.call).await;
    let is_taken = !matches!(outcome, Err(SubmitError::Throttled | SubmitError::NotSent(_)));
    dispatch::settle_outcome(ctx, ports, &ready.claimed, outcome).await?;
    Ok(is_taken)
}
