//! What the queue looks like, as numbers: how many jobs wait in each tier of each pool, how long, and what runs.
//!
//! They are read off the index of what is due, whose entries say all that is counted; it lags a little, as graphs may.

use std::collections::{BTreeMap, BTreeSet};

use osprey_model::job::JobState;
use osprey_model::pool::{Pool, PoolMode};
use osprey_pipeline::context::Context;
use osprey_pipeline::failure::Failure;
use osprey_pipeline::key::{self, DueJob};
use osprey_ports::store::PAGE_ITEMS_MAX;
use osprey_ports::{Index, IndexQuery, QueryIndex};

/// Most entries that are counted; a queue beyond that is known to be too long.
const COUNTED_MAX: usize = 100_000;

/// What is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Numbers {
    /// Waits of jobs that wait, milliseconds, by pool and tier.
    waits: BTreeMap<(String, String), Vec<i64>>,
    /// GPUs of jobs that run, by pool.
    running: BTreeMap<String, u32>,
    /// Priorities of open jobs.
    priorities: BTreeSet<u32>,
    /// The longest wait of a job above the line, milliseconds.
    high_wait: i64,
}

/// Counts, and says what was counted.
///
/// # Errors
/// When the store fails.
pub async fn tell<P: QueryIndex + Sync>(ctx: &Context<'_>, ports: &P, now: i64) -> Result<(), Failure> {
    let (mut numbers, mut after, mut counted) = (Numbers::default(), None, 0);
    loop {
        let query = IndexQuery {
            index: Index::Due,
            partition: key::DUE.to_owned(),
            from: None,
            to: None,
            newest_first: false,
            after: after.take(),
            limit: PAGE_ITEMS_MAX,
        };
        let page = ports.query_index_lagging(&query).await?;
        for (sort, _) in &page.entries {
            if let Some(job) = key::read_due_job(sort) {
                numbers.count(&job, ctx.policy.order().dive_above, now);
            }
        }
        counted += page.entries.len();
        after = page.entries.last().cloned();
        if !page.more || after.is_none() || counted >= COUNTED_MAX {
            break;
        }
    }
    numbers.say(ctx);
    Ok(())
}

impl Numbers {
    fn count(&mut self, job: &DueJob<'_>, line: u32, now: i64) {
        self.priorities.insert(job.priority);
        if job.state == JobState::Running.as_str() {
            *self.running.entry(job.pool.to_owned()).or_default() += job.gpus;
        }
        if job.state != JobState::Queued.as_str() {
            return;
        }
        let wait = now.saturating_sub(job.since).max(0);
        self.waits.entry((job.pool.to_owned(), job.tier.to_owned())).or_default().push(wait);
        if job.priority > line {
            self.high_wait = self.high_wait.max(wait);
        }
    }

    fn say(&mut self, ctx: &Context<'_>) {
        for pool in ctx.pools {
            for tier in pool.queues.keys() {
                let mut waits = self.waits.remove(&(pool.name.to_string(), tier.to_string())).unwrap_or_default();
                waits.sort_unstable();
                let (pool, tier) = (pool.name.as_str(), tier.as_str());
                tracing::debug!(metric = "JobsWaiting", pool, tier, amount = waits.len());
                tracing::debug!(metric = "WaitMedianSeconds", pool, tier, amount = median(&waits) / 1000);
                tracing::debug!(
                    metric = "WaitOldestSeconds",
                    pool,
                    tier,
                    amount = waits.last().map_or(0, |wait| wait / 1000)
                );
            }
            self.say_of(pool);
        }
        tracing::debug!(metric = "PrioritiesDistinct", amount = self.priorities.len());
        tracing::debug!(metric = "HighPriorityWaitOldestSeconds", amount = self.high_wait / 1000);
    }

    fn say_of(&self, pool: &Pool) {
        let running = self.running.get(pool.name.as_str()).copied().unwrap_or(0);
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
}

/// The middle of sorted numbers; of two, the mean.
fn median(sorted: &[i64]) -> i64 {
    let high = sorted.get(sorted.len() / 2).copied().unwrap_or(0);
    let low = sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(0);
    low.midpoint(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_counted_by_pool_and_tier_and_running_gpus_by_pool() {
        let mut numbers = Numbers::default();
        let entries = [
            "0000000001000#id#queued#8#900#1000#production#main",
            "0000000001000#id#queued#8#900#4000#production#main",
            "0000000001000#id#running#16#100#1000#experimental#main",
            "0000000001000#dead-letter",
        ];
        for job in entries.iter().filter_map(|entry| key::read_due_job(entry)) {
            numbers.count(&job, 800, 5_000);
        }
        assert_eq!(numbers.waits, BTreeMap::from([(("main".to_owned(), "production".to_owned()), vec![4_000, 1_000])]));
        assert_eq!(numbers.running, BTreeMap::from([("main".to_owned(), 16)]));
        assert_eq!((numbers.priorities.len(), numbers.high_wait), (2, 4_000));
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        assert_eq!((median(&[]), median(&[7]), median(&[1, 4]), median(&[1, 2, 9])), (0, 7, 2, 2));
    }
}
