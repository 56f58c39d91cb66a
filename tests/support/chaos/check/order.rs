//! No job is submitted before what it depends on has succeeded.

use super::super::scenario::Truth;
use super::super::world::World;

/// What is wrong with the claim of a job now.
pub fn claimed(world: &World, job: &str) -> Option<String> {
    for parent in parents(world, job) {
        let owner = owner(world, &parent);
        let state = world.observer.jobs.get(&owner).map_or("unknown", |track| track.state.as_str());
        if state != "succeeded" {
            return Some(format!("job {job} was claimed while `{parent}`, on which it depends, was {state}"));
        }
    }
    None
}

/// The job that an id in `dependsOn` stands for.
pub fn owner(world: &World, id: &str) -> String {
    let of_batch = world.batch.find(id).and_then(|(at, _)| world.batch.jobs.get(at));
    of_batch.map_or(id, |job| job.owner.as_str()).to_owned()
}

fn parents(world: &World, job: &str) -> Vec<String> {
    let Some(track) = world.observer.jobs.get(job) else { return Vec::new() };
    let sent = world.sent.iter().find(|sent| sent.id.as_str() == track.message);
    match sent.map(|sent| &sent.draft.truth) {
        Some(Truth::Job { parents, .. }) => parents.clone(),
        _ => Vec::new(),
    }
}

/// Checks by Batch's log.
///
/// # Errors
/// The first Batch job that was made before a parent of its job had succeeded.
pub fn check(world: &World) -> Result<(), String> {
    for job in &world.batch.jobs {
        for parent in parents(world, &job.owner) {
            let owner = owner(world, &parent);
            let edges = world.observer.jobs.get(&owner).into_iter().flat_map(|track| &track.edges);
            let succeeded = edges.filter(|edge| edge.to == "succeeded").map(|edge| edge.at).next();
            if succeeded.is_none_or(|at| at > job.created_at) {
                return Err(format!("Batch job {} was made before `{parent}` had succeeded", job.id));
            }
        }
    }
    Ok(())
}

/// Longest chain of parents that is followed.
const CHAIN_MAX: u32 = 100;

/// Whether a waiting job waits, directly or through others, for one that a person holds.
pub fn waits_for_a_person(world: &World, job: &str) -> bool {
    held_above(world, job, CHAIN_MAX)
}

fn held_above(world: &World, job: &str, depth: u32) -> bool {
    depth > 0
        && parents(world, job).iter().map(|parent| owner(world, parent)).any(|parent| {
            let state = world.observer.jobs.get(&parent).map_or("", |track| track.state.as_str());
            state == "held" || (state == "waiting" && held_above(world, &parent, depth - 1))
        })
}
