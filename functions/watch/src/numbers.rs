//! What the queue looks like, told as metrics: how many jobs wait in each tier of each pool, how long, and what runs.

use osprey_model::pool::{Pool, PoolMode};
use osprey_pipeline::census::{self, Census};
use osprey_pipeline::context::Context;
use osprey_pipeline::failure::Failure;
use osprey_ports::QueryIndex;

/// Counts, and says what was counted.
///
/// # Errors
/// When the store fails.
pub async fn tell<P: QueryIndex + Sync>(ctx: &Context<'_>, ports: &P, now: i64) -> Result<(), Failure> {
    say(ctx, &census::read(ports, ctx.policy.order().dive_above).await?, now);
    Ok(())
}

fn say(ctx: &Context<'_>, census: &Census, now: i64) {
    for pool in ctx.pools {
        for tier in pool.queues.keys() {
            let count = census.tiers.get(&(pool.name.clone(), tier.clone()));
            let (median, oldest) = count.and_then(|count| count.waits_ms(now)).unwrap_or_default();
            let waiting = count.map_or(0, |count| count.since.len());
            let (pool, tier) = (pool.name.as_str(), tier.as_str());
            tracing::debug!(metric = "JobsWaiting", pool, tier, amount = waiting);
            tracing::debug!(metric = "WaitMedianSeconds", pool, tier, amount = median / 1000);
            tracing::debug!(metric = "WaitOldestSeconds", pool, tier, amount = oldest / 1000);
        }
        say_of(census, pool);
    }
    let high_wait = census.high_since.map_or(0, |since| now.saturating_sub(since).max(0));
    tracing::debug!(metric = "PrioritiesDistinct", amount = census.priorities.len());
    tracing::debug!(metric = "HighPriorityWaitOldestSeconds", amount = high_wait / 1000);
}

fn say_of(census: &Census, pool: &Pool) {
    let running = census.running_gpus(pool.name.as_str());
    let free = pool.gpus().map_or(0, |gpus| gpus.saturating_sub(running));
    let percent = |gpus: u32| f64::from(running.min(gpus)) * 100.0 / f64::from(gpus);
    let used = pool.gpus().filter(|gpus| *gpus > 0).map_or(0.0, percent);
    let (pool, mode) = (pool.name.as_str(), pool.mode);
    tracing::debug!(metric = "GpusRunning", pool, amount = running);
    tracing::debug!(metric = "GpusFree", pool, amount = free);
    tracing::debug!(metric = "UtilisationPercent", pool, amount = used);
    // Where nothing places jobs on nodes, nothing is known of gaps, cycles and their lag. Of a pool that holds jobs
    // its cycles say it, and the rhythm.
    if mode == PoolMode::Held {
        return;
    }
    for metric in ["FragmentationPercent", "ScheduleLagSeconds", "CycleMilliseconds"] {
        tracing::debug!(metric, pool, amount = 0);
    }
}
