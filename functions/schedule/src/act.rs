//! What a plan says is done: jobs are claimed one after the other under the plan's guard, and submitted several at
//! once.

use futures_util::future::join_all;
use osprey_model::id::{JobId, PoolName};
use osprey_model::pool::Pool;
use osprey_pipeline::context::Context;
use osprey_pipeline::failure::{Disposition, Failure};
use osprey_pipeline::guard::{self, Guard};
use osprey_pipeline::start::{self, Claimed, Preparation, Prepared, Ready};
use osprey_pipeline::wake;
use osprey_scheduler::Plan;

use crate::Ports;

/// Submissions under way at once: at a tenth of a second each they are faster than Batch takes them.
pub const SUBMITS_AT_ONCE: usize = 10;
/// Most jobs that a cycle starts; the rest is decided anew, on what is true by then.
pub const STARTS_MAX: usize = 200;
/// Wait after Batch, or the account's rate, turned a submission away.
pub(crate) const TURNED_AWAY_SECONDS: u32 = 2;

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acted {
    /// Jobs that were claimed and sent.
    pub started: Vec<JobId>,
    /// When the pool is to be looked at again for what was left; `None` when nothing was.
    pub again_after_seconds: Option<u32>,
}

impl Acted {
    /// Has the pool looked at again after so many seconds, or earlier.
    pub(crate) fn again(&mut self, seconds: u32) {
        self.again_after_seconds = Some(self.again_after_seconds.map_or(seconds, |before| before.min(seconds)));
    }
}

/// Starts what a plan starts.
///
/// # Errors
/// When the store or Batch's descriptions fail. What was claimed by then is sent all the same.
pub async fn act<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    mut guard: Guard,
    plan: &Plan,
    acted: &mut Acted,
) -> Result<(), Failure> {
    let jobs: Vec<(JobId, bool)> =
        plan.starts.iter().take(STARTS_MAX).map(|start| (start.job, start.is_borrowed)).collect();
    if plan.starts.len() > STARTS_MAX {
        acted.again(0);
    }
    for some in jobs.chunks(SUBMITS_AT_ONCE) {
        if !may_submit(ports, acted).await || !group(ctx, ports, &mut guard, some, acted).await? {
            break;
        }
    }
    Ok(())
}

/// Whether a submission may be made now; else the pool is looked at again when one may.
pub(crate) async fn may_submit<P: Ports>(ports: &P, acted: &mut Acted) -> bool {
    let Err(until) = ports.may_submit().await else { return true };
    let wait = until.as_millisecond().saturating_sub(ports.now().as_millisecond()).max(0);
    acted.again(u32::try_from(wait.saturating_add(999) / 1_000).unwrap_or(TURNED_AWAY_SECONDS).min(60));
    false
}

/// Most jobs that a cycle moves to other pools.
const MOVES_MAX: usize = 20;

/// Moves urgent jobs on that this pool can't get capacity for, to another one that isn't without as well.
///
/// # Errors
/// When the store or Batch's descriptions fail.
pub async fn move_on<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    pool: &Pool,
    plan: &Plan,
    acted: &mut Acted,
) -> Result<(), Failure> {
    if plan.moves.is_empty() {
        return Ok(());
    }
    let marked = guard::without_capacity(ports, ports.now().as_millisecond()).await?;
    let others = marked.into_iter().filter(|name| *name != pool.name);
    let without: Vec<PoolName> = std::iter::once(pool.name.clone()).chain(others).collect();
    for job in plan.moves.iter().take(MOVES_MAX) {
        let Some(to) = start::move_on(ctx, ports, *job, &without).await? else { continue };
        tracing::warn!(job_id = %job, from = %pool.name, %to, "a job goes to another pool, since its own has no capacity.");
        wake::pool(ports, &to, 0).await;
    }
    if plan.moves.len() > MOVES_MAX {
        acted.again(0);
    }
    Ok(())
}

/// Most jobs that a cycle gives to the tier of preemptible jobs.
const DEMOTIONS_MAX: usize = 20;

/// Derives jobs again whose teams have used up their GPU-hours: the policy gives them another tier, and they stand there.
///
/// # Errors
/// When the store or Batch's descriptions fail.
pub async fn demote<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    pool: &Pool,
    plan: &Plan,
    acted: &mut Acted,
) -> Result<(), Failure> {
    for job in plan.demotions.iter().take(DEMOTIONS_MAX) {
        if let Preparation::Moved(pool) = start::prepare(ctx, ports, &pool.name, *job).await? {
            tracing::info!(job_id = %job, %pool, "a job goes to the tier of preemptible jobs, since its team is over its quota.");
            acted.again(0);
            wake::pool(ports, &pool, 0).await;
        }
    }
    Ok(())
}

/// Puts jobs to the front of their line whose wait has brought them there, but for those that have started.
///
/// # Errors
/// When the store fails.
pub async fn bring_forward<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    aged: &[JobId],
    acted: &Acted,
) -> Result<(), Failure> {
    for job in aged.iter().filter(|job| !acted.started.contains(job)) {
        start::bring_forward(ctx, ports, *job).await?;
    }
    Ok(())
}

/// Starts some jobs; `false` when the plan must not go on.
async fn group<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    guard: &mut Guard,
    jobs: &[(JobId, bool)],
    acted: &mut Acted,
) -> Result<bool, Failure> {
    let pool = guard.pool().clone();
    let prepared = join_all(jobs.iter().map(|(job, _)| start::prepare(ctx, ports, &pool, *job))).await;
    let mut claims = Claims::default();
    for ((job, is_borrowed), preparation) in jobs.iter().zip(prepared) {
        match preparation {
            Ok(Preparation::Ready(mut prepared)) => {
                prepared.borrow(*is_borrowed);
                if !claims.claim(ctx, ports, guard, *job, &prepared).await {
                    break;
                }
            }
            Ok(Preparation::Gone) => {}
            Ok(Preparation::Moved(pool)) => {
                // Its place here is free for others; where it stands now, somebody has to look.
                acted.again(0);
                wake::pool(ports, &pool, 0).await;
            }
            // It would fail again, and mustn't keep the others from starting.
            Err(failure) if failure.disposition() == Disposition::DeadLetter => {
                tracing::error!(job_id = %job, error = failure.story(), "a job can't be read, and isn't started.");
            }
            Err(failure) => {
                claims.failure = claims.failure.or(Some(failure));
                break;
            }
        }
    }
    acted.started.extend(&claims.jobs);
    let sent = join_all(claims.ready.iter().map(|ready| start::send(ctx, ports, ready))).await;
    for sent in sent {
        match sent {
            Ok(true) => {}
            Ok(false) => {
                acted.again(TURNED_AWAY_SECONDS);
                claims.is_over = true;
            }
            Err(failure) => claims.failure = claims.failure.or(Some(failure)),
        }
    }
    if claims.is_superseded {
        acted.again(0);
    }
    match claims.failure {
        Some(failure) => Err(failure),
        None => Ok(!claims.is_over && !claims.is_superseded),
    }
}

/// Claims of one group.
#[derive(Default)]
struct Claims {
    ready: Vec<Ready>,
    jobs: Vec<JobId>,
    failure: Option<Failure>,
    is_superseded: bool,
    is_over: bool,
}

impl Claims {
    /// Claims a job; `false` when no other may be claimed.
    async fn claim<P: Ports>(
        &mut self,
        ctx: &Context<'_>,
        ports: &P,
        guard: &mut Guard,
        job: JobId,
        prepared: &Prepared,
    ) -> bool {
        match start::claim(ctx, ports, prepared, guard.step(), &|_| Vec::new()).await {
            Ok(Claimed::Ready(ready)) => {
                guard.stepped();
                self.ready.push(*ready);
                self.jobs.push(job);
            }
            Ok(Claimed::Gone) => {}
            Ok(Claimed::OverQuota) => {
                tracing::info!(job_id = %job, "a job waits, since its team got what it may elsewhere.");
            }
            Ok(Claimed::Superseded) => self.is_superseded = true,
            // Whether the step was made isn't known, so no other can be.
            Err(failure) => self.failure = Some(failure),
        }
        self.failure.is_none() && !self.is_superseded
    }
}
