//! No pool that holds its jobs is given more than it has, by Batch's own log.

use std::collections::BTreeMap;

use osprey_model::pool::Pool;

use super::super::batch::BatchJob;
use super::super::ports::LIFE_MS_MAX;
use super::super::scenario::Truth;
use super::super::world::World;
use super::runs::excused;
use super::table::Table;

/// From the answer about a run until it is told to go, where no invocation stands still, it takes no longer.
const BRISK_MS: i64 = 30_000;
/// How long after its eviction the end of an array may not have been heard of when its place is taken.
const UNHEARD_MS: i64 = 60_000;

/// Checks every moment at which Batch made a job.
///
/// # Errors
/// The first at which the jobs of a pool needed more GPUs than it had.
pub fn check(world: &World, table: &Table) -> Result<(), String> {
    if !world.wired.is_held {
        return Ok(());
    }
    // While modes change, jobs start both ways, and those that nobody planned aren't known until they run.
    let is_checked = |(number, _): &(usize, &Pool)| !world.changed_modes.contains(number);
    for (_, pool) in world.wired.pools.iter().enumerate().filter(is_checked) {
        let total = i64::from(pool.gpus().unwrap_or(0));
        let is_here = |job: &&BatchJob| job.queue.starts_with(&format!("osprey-{}-", pool.name));
        // A second Batch job of an attempt that a lag of lists brought about holds what nobody could know of.
        let is_known = |job: &&BatchJob| table.owners.contains_key(&job.id) && !excused(job);
        let jobs: Vec<&BatchJob> = world.batch.jobs.iter().filter(is_here).filter(is_known).collect();
        let mut changes: BTreeMap<i64, i64> = BTreeMap::new();
        for job in &jobs {
            let gpus = gpus(world, job).min(fitting(world, pool, job));
            *changes.entry(job.created_at).or_insert(0) += gpus;
            // From the moment when it is planned to go, what a job holds is that of the one that it goes for.
            let leaves_at = world.evictions.leaving.get(&(job.owner.clone(), u64::from(job.attempt)));
            if let Some(at) = leaves_at.copied().into_iter().chain(job.whole.stopped_at).min() {
                *changes.entry(at).or_insert(0) -= gpus;
            }
        }
        let mut live = 0;
        for (at, change) in changes {
            live += change;
            let others = world.foreign_gpus_at(at);
            // Others' work and children of an array that nobody has heard of look alike.
            let is_array_up = || jobs.iter().any(|job| !job.children.is_empty() && seems_live_at(world, job, at));
            let over = live - (total - others);
            if over > 0 && !(others > 0 && (is_array_up() || over <= gone_before(world, &jobs, at))) {
                let second = (at - world.start) / 1_000;
                return Err(format!(
                    "jobs of pool {} needed {live} GPUs at second {second}, where it had {total} and others held {others}",
                    pool.name
                ));
            }
        }
    }
    Ok(())
}

/// GPUs of runs that were told to go for others that are in Batch, though they had ended: while answers lag their end looks
/// like a run, and others' work like what they hold.
fn gone_before(world: &World, jobs: &[&BatchJob], at: i64) -> i64 {
    let is_live = |job: &&&BatchJob| job.created_at <= at && job.whole.stopped_at.is_none_or(|stopped| stopped > at);
    let run_of = |(owner, attempt): &(String, u64)| {
        jobs.iter().find(|job| job.owner == *owner && u64::from(job.attempt) == *attempt)
    };
    let goers =
        world.evictions.goers().filter(|(starts, _)| jobs.iter().filter(is_live).any(|job| job.owner == *starts));
    let acts_within_ms = if world.life_ms == LIFE_MS_MAX { world.life_ms } else { BRISK_MS };
    let ended_before = goers.filter_map(|(_, goer)| {
        let (run, left_at) = (run_of(goer)?, world.evictions.leaving.get(goer)?);
        let stopped_at = run.whole.stopped_at?;
        (stopped_at <= *left_at && left_at - stopped_at <= world.answers_lag_ms + acts_within_ms).then_some(run)
    });
    let gone: i64 = ended_before.map(|run| gpus(world, run)).sum();
    // Of one that has gone since, it may not be known yet: what others hold then looks like what it held.
    let just_gone = world.evictions.leaving.iter().filter_map(|(goer, left_at)| {
        let (run, lag_ms) = (run_of(goer)?, world.answers_lag_ms + acts_within_ms);
        let stopped_at = run.whole.stopped_at?;
        (*left_at < stopped_at && (at - lag_ms..=at).contains(&stopped_at)).then_some(run)
    });
    gone + just_gone.map(|run| gpus(world, run)).sum::<i64>()
}

/// Whether a job is in Batch, or has ended and was evicted all the same a moment ago, since nobody had heard of its end.
fn seems_live_at(world: &World, job: &BatchJob, at: i64) -> bool {
    let left_at = world.evictions.leaving.get(&(job.owner.clone(), u64::from(job.attempt)));
    let is_just_gone = left_at.is_some_and(|left| (at - UNHEARD_MS..=at).contains(left));
    job.created_at <= at && (job.whole.stopped_at.is_none_or(|stopped| stopped > at) || is_just_gone)
}

/// GPUs that the children of an array find on an empty pool; the others wait in Batch for the first to end.
pub fn fitting(world: &World, pool: &Pool, job: &BatchJob) -> i64 {
    let node = i64::from(pool.gpus_per_node);
    if job.children.is_empty() {
        return i64::MAX;
    }
    let each = gpus_of_a_child(world, job).max(1);
    let on = |free: i64| free / each * each;
    let first = node - world.foreign_gpus_at(job.created_at);
    on(first) + on(node) * (i64::from(pool.nodes_max.unwrap_or(0)) - 1)
}

/// GPUs of a child of an array, or of a job that is none.
pub fn gpus_of_a_child(world: &World, job: &BatchJob) -> i64 {
    let children = i64::try_from(job.children.len().max(1)).unwrap_or(1);
    gpus(world, job) / children
}

/// GPUs that a Batch job takes: those of all children for an array.
pub fn gpus(world: &World, job: &BatchJob) -> i64 {
    let track = world.observer.jobs.get(&job.owner);
    let sent = track.and_then(|track| world.sent.iter().find(|sent| sent.id.as_str() == track.message));
    match sent.map(|sent| &sent.draft.truth) {
        Some(Truth::Job { gpus, .. }) => *gpus,
        _ => 0,
    }
}
