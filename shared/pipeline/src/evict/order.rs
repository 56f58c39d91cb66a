//! Carrying out what a plan evicts, from wherever it stands.

use osprey_model::id::{JobId, PoolName};
use osprey_ports::{Clock, Expect, GetItem, Item, PutEvents, QueryItems, StoreError, TerminateJob, Write, WriteItems};

use super::planned::{Planned, Standing, Victim};
use super::receipt::{self, By};
use crate::context::Context;
use crate::failure::Failure;
use crate::repository::{self, Change};
use crate::{key, stop};

/// What carrying out an eviction calls.
pub trait Ports: GetItem + WriteItems + PutEvents + TerminateJob + Clock + Sync {}

impl<P: GetItem + WriteItems + PutEvents + TerminateJob + Clock + Sync> Ports for P {}

/// Goes on with every eviction of a pool that isn't done: one whose caller ended, stood still, or heard nothing.
///
/// # Errors
/// When the store or Batch fails; what is left is left to the next look.
pub async fn resume<P: Ports + QueryItems>(ctx: &Context<'_>, ports: &P, pool: &PoolName) -> Result<(), Failure> {
    for item in repository::all(ports, key::pool_partition(pool), key::PLANNED).await? {
        step(ctx, ports, &item).await?;
    }
    Ok(())
}

/// Goes on with what goes for a job, if anybody does.
///
/// # Errors
/// When the store or Batch fails; the pool's next cycle goes on.
pub async fn carry_out<P: Ports>(ctx: &Context<'_>, ports: &P, pool: &PoolName, job: JobId) -> Result<(), Failure> {
    match ports.get_item(&key::planned(pool, job)).await? {
        Some(item) => step(ctx, ports, &item).await,
        None => Ok(()),
    }
}

/// Goes on with one eviction as it was read.
async fn step<P: Ports>(ctx: &Context<'_>, ports: &P, item: &Item) -> Result<(), Failure> {
    let planned: Planned = repository::read(item)?;
    let job = repository::load(ports, planned.job).await?.map(|loaded| loaded.job);
    match job.map_or(Standing::Over, |job| planned.standing(&job)) {
        Standing::Unknown => return Ok(()),
        Standing::InBatch => {
            for victim in &planned.victims {
                if !order(ctx, ports, item, &planned, victim).await? {
                    return Ok(());
                }
            }
        }
        Standing::Over => {
            tracing::info!(job_id = %planned.job, "an eviction is withdrawn: the job that it was for isn't on its way.");
        }
    }
    // Batch has been asked for everybody who is to go, or nobody goes any more.
    let done = Write::Delete { key: item.key.clone(), expect: Expect::Version(item.version) };
    match ports.write_items(&[done]).await {
        Ok(()) | Err(StoreError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Marks a victim, writes its receipt, and asks Batch to stop it. Nothing for one that has ended or goes already, but that
/// Batch is asked again. `false` when the plan doesn't stand any more.
async fn order<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    item: &Item,
    planned: &Planned,
    victim: &Victim,
) -> Result<bool, Failure> {
    for _ in 0..repository::TRIES_MAX {
        let Some(loaded) = repository::load(ports, victim.job).await? else { return Ok(true) };
        let now = ports.now().as_millisecond();
        let Some(change) = ordered(&loaded.job, item, planned, victim, now) else {
            let goes = loaded.job.evict.is_some() && loaded.job.attempt == victim.attempt;
            if goes {
                stop::push(ports, &loaded.job).await?;
            }
            return Ok(true);
        };
        let after = change.job.clone();
        match repository::write(ports, ctx.settings, &loaded, change).await {
            Ok(()) => {
                tracing::info!(job_id = %after.id, attempt = after.attempt, goes_for = %planned.job, "a job is evicted.");
                stop::push(ports, &after).await?;
                return Ok(true);
            }
            Err(Failure::Store(StoreError::Conflict { .. })) => {
                let now = ports.get_item(&item.key).await?;
                if now.is_none_or(|now| now.version != item.version) {
                    return Ok(false);
                }
            }
            Err(failure) => return Err(failure),
        }
    }
    Err(Failure::Contended(victim.job))
}

/// A victim that is told to go, under the condition that the plan stands.
fn ordered(job: &osprey_model::job::Job, item: &Item, planned: &Planned, victim: &Victim, now: i64) -> Option<Change> {
    if job.attempt != victim.attempt {
        return None;
    }
    let by =
        By::Job { job: planned.job, job_tier: planned.tier.clone(), job_priority: planned.priority, rule: victim.rule };
    let (marked, receipt) = receipt::begun(job, by, now)?;
    let mut with = receipt.writes(job.id);
    with.push(Write::Check { key: item.key.clone(), expect: Expect::Version(item.version) });
    Some(Change { job: marked, with })
}
