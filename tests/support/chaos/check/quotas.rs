//! No team is given more GPUs at once in a tier than it may have, by Batch's own log; and what is over isn't held.

use std::collections::BTreeMap;

use super::super::batch::BatchJob;
use super::super::quota::TEAM_GPUS_MAX;
use super::super::scenario::Truth;
use super::super::world::World;
use super::capacity::gpus;
use super::runs::excused;
use super::table::Table;

/// Checks every moment at which Batch made a job, and what is left when all is over.
///
/// # Errors
/// The first at which a team held more than it may, or what it is still said to hold.
pub fn check(world: &World, table: &Table) -> Result<(), String> {
    left(world, table)?;
    // Where Osprey only looks on it holds nobody back.
    if !world.quota.counts() || !world.changed_modes.is_empty() {
        return Ok(());
    }
    let mut changes: BTreeMap<(&str, &str), BTreeMap<i64, i64>> = BTreeMap::new();
    // A second Batch job of an attempt that a lag of lists brought about holds what nobody could know of.
    let is_known = |job: &&BatchJob| table.owners.contains_key(&job.id) && !excused(job);
    for job in world.batch.jobs.iter().filter(is_known) {
        let Some(team) = team(world, job) else { continue };
        let tier = job.queue.rsplit('-').next().unwrap_or_default();
        let changes = changes.entry((team, tier)).or_default();
        *changes.entry(job.created_at).or_insert(0) += gpus(world, job);
        if let Some(at) = job.whole.stopped_at {
            *changes.entry(at).or_insert(0) -= gpus(world, job);
        }
    }
    for ((team, tier), changes) in changes {
        let mut live = 0;
        for (at, change) in changes {
            live += change;
            if live > i64::from(TEAM_GPUS_MAX) {
                let second = (at - world.start) / 1_000;
                return Err(format!(
                    "team {team} held {live} GPUs in tier {tier} at second {second}, where it may hold {TEAM_GPUS_MAX}"
                ));
            }
        }
    }
    Ok(())
}

/// Nothing runs any more, so nothing is held.
fn left(world: &World, table: &Table) -> Result<(), String> {
    if let Some(((team, tier), gpus)) = table.held.iter().find(|(_, gpus)| **gpus != 0) {
        return Err(format!("team {team} is said to hold {gpus} GPUs in tier {tier}, and nothing runs"));
    }
    if let Some(job) = table.holding.first() {
        return Err(format!("job {job} is said to hold GPUs of its team, and nothing runs"));
    }
    let counts = !table.held.is_empty();
    if counts && !world.quota.counts() {
        return Err("what teams hold is counted, and no policy asks for it".to_owned());
    }
    Ok(())
}

/// The team of a Batch job.
pub fn team<'w>(world: &'w World, job: &BatchJob) -> Option<&'w str> {
    team_of(world, &job.owner)
}

/// The team of a job, by its id.
pub fn team_of<'w>(world: &'w World, id: &str) -> Option<&'w str> {
    let track = world.observer.jobs.get(id)?;
    let sent = world.sent.iter().find(|sent| sent.id.as_str() == track.message)?;
    match &sent.draft.truth {
        Truth::Job { team, .. } => Some(team),
        _ => None,
    }
}
