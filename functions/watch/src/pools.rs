//! The rhythm of pools: where somebody stands in line, or an eviction isn't done, a cycle looks.

use osprey_model::id::PoolName;
use osprey_model::pool::{Pool, PoolMode};
use osprey_pipeline::context::Context;
use osprey_pipeline::failure::Failure;
use osprey_pipeline::guard::{self, Guard};
use osprey_pipeline::line::{self, InLine};
use osprey_pipeline::{dispatch, evict, key, wake};
use osprey_ports::SortQuery;

use crate::Ports;

/// Jobs that are taken out of the line of a pool that isn't there any more, in one round.
const STRANDED_MAX: usize = 100;

/// Wakes every pool with a line or an eviction that isn't done, now and where it is wanted once more between two rounds; and lets those go that stand
/// in the line of a pool that isn't there any more.
pub async fn wake<P: Ports>(ctx: &Context<'_>, ports: &P) -> Result<(), Failure> {
    for pool in ctx.pools {
        let first = line::first(ports, &pool.name).await?;
        tell_lag(ports, pool, first.as_ref()).await?;
        if first.is_none() && !is_evicting(ports, &pool.name).await? {
            continue;
        }
        wake::pool(ports, &pool.name, 0).await;
        if let Some(seconds) = ctx.settings.second_wake_seconds {
            wake::pool(ports, &pool.name, seconds).await;
        }
    }
    for name in guard::pools(ports).await?.iter().filter(|name| ctx.pool(name).is_none()) {
        stranded(ctx, ports, name).await?;
    }
    Ok(())
}

/// Whether an eviction of a pool isn't done; a cycle goes on with it.
async fn is_evicting<P: Ports>(ports: &P, pool: &PoolName) -> Result<bool, Failure> {
    let (partition, prefix) = (key::pool_partition(pool), key::PLANNED.to_owned());
    Ok(!ports.query_items(&SortQuery { partition, prefix, after: None, limit: 1 }).await?.items.is_empty())
}

/// Says how long nobody has looked at a pool since somebody stands in its line.
async fn tell_lag<P: Ports>(ports: &P, pool: &Pool, first: Option<&InLine>) -> Result<(), Failure> {
    if pool.mode != PoolMode::Held {
        return Ok(());
    }
    let looked_at = Guard::read(ports, &pool.name).await?.state().looked_at;
    let since = first.map(|first| first.enqueued_at.max(first.not_before).max(looked_at));
    let lag = since.map_or(0, |since| ports.now().as_millisecond().saturating_sub(since).max(0));
    tracing::debug!(metric = "ScheduleLagSeconds", pool = pool.name.as_str(), amount = lag / 1_000);
    Ok(())
}

/// Jobs in the line of a pool that isn't there any more are decided anew; evictions are gone on with.
async fn stranded<P: Ports>(ctx: &Context<'_>, ports: &P, name: &PoolName) -> Result<(), Failure> {
    evict::resume(ctx, ports, name).await?;
    let (jobs, _) = line::front(ports, name, STRANDED_MAX).await?;
    for job in jobs.iter().take(STRANDED_MAX) {
        dispatch::dispatch(ctx, ports, job.job).await?;
    }
    Ok(())
}
