//! How deep a job's lineage is follows from the job that it names as its parent, and circles make nothing endless.

use serde_json::Value;

use super::super::scenario::Truth;
use super::super::world::World;
use super::messages::sent_of;
use super::order;
use super::table::{Table, number, text};

/// Deepest lineage that is counted.
const DEPTH_MAX: u64 = 32;

/// Checks every job.
///
/// # Errors
/// The first depth that is another.
pub fn check(world: &World, table: &Table) -> Result<(), String> {
    for (id, (job, _)) in &table.jobs {
        let depth = number(job, "depth");
        let want = allowed(world, table, id, job);
        if !want.contains(&depth) {
            return Err(format!("the lineage of job {id} is {depth} deep where {want:?} is right"));
        }
    }
    Ok(())
}

/// One more than the parent's, whose own never changes; none for a job that came before its parent. A refused message
/// may not have been looked at so far.
fn allowed(world: &World, table: &Table, id: &str, job: &Value) -> Vec<u64> {
    let Some(sent) = sent_of(world, job) else { return vec![0] };
    let Truth::Job { lineage: Some(parent), .. } = &sent.draft.truth else { return vec![0] };
    let owner = order::owner(world, parent);
    let Some((above, _)) = table.jobs.get(&owner).filter(|_| owner != id) else { return vec![0] };
    let deep = (number(above, "depth") + 1).min(DEPTH_MAX);
    let recorded_at = world.observer.jobs.get(&owner).and_then(|track| track.edges.first()).map(|edge| edge.at);
    let was_there = owner == *parent && recorded_at.is_some_and(|at| at < world.start + sent.draft.at_ms);
    if was_there && text(job, "state") != "refused" { vec![deep] } else { vec![0, deep] }
}
