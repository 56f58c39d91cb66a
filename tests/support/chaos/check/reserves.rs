//! What is reserved of a pool for urgent jobs isn't given to others, by Batch's own log.

use std::collections::BTreeMap;

use super::super::batch::BatchJob;
use super::super::quota::Quota;
use super::super::world::World;
use super::capacity::{fitting, gpus};
use super::hours::open;
use super::runs::excused;
use super::table::Table;

/// Checks every moment at which Batch made a job that nothing is reserved for.
///
/// # Errors
/// The first at which such jobs held more of a pool than what isn't reserved.
pub fn check(world: &World, table: &Table) -> Result<(), String> {
    if world.quota != Quota::Reserve || !world.wired.is_held || !world.changed_modes.is_empty() {
        return Ok(());
    }
    for pool in world.wired.pools.iter() {
        let is_here = |job: &&BatchJob| job.queue.starts_with(&format!("osprey-{}-", pool.name));
        let is_other = |job: &&BatchJob| !job.queue.ends_with("-critical") && !job.queue.ends_with("-above");
        let is_known = |job: &&BatchJob| table.owners.contains_key(&job.id) && !excused(job);
        let mut changes: BTreeMap<i64, i64> = BTreeMap::new();
        for job in world.batch.jobs.iter().filter(is_here).filter(is_other).filter(is_known) {
            let gpus = gpus(world, job).min(fitting(world, pool, job));
            *changes.entry(job.created_at).or_insert(0) += gpus;
            let leaves_at = world.evictions.leaving.get(&(job.owner.clone(), u64::from(job.attempt)));
            if let Some(at) = leaves_at.copied().into_iter().chain(job.whole.stopped_at).min() {
                *changes.entry(at).or_insert(0) -= gpus;
            }
        }
        let open = open(i64::from(pool.gpus().unwrap_or(0)));
        let mut live = 0;
        for (at, change) in changes {
            live += change;
            if live > open {
                let second = (at - world.start) / 1_000;
                return Err(format!(
                    "jobs that nothing is reserved for held {live} GPUs of pool {} at second {second}, where {open} aren't reserved",
                    pool.name
                ));
            }
        }
    }
    Ok(())
}
