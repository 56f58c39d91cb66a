//! What must hold when a run is over. Written without the code under test: items are read as plain JSON, and what is
//! true is known from the scripts and from Batch's own log.

pub mod authority;
pub mod capacity;
pub mod counters;
pub mod evictions;
#[cfg(test)]
mod forged;
pub mod heard;
pub mod hours;
pub mod letters;
pub mod lineage;
pub mod messages;
pub mod order;
pub mod quotas;
pub mod reserves;
pub mod routes;
pub mod runs;
mod table;

use super::run::Finished;
use table::Table;

/// The first rule that doesn't hold, as a sentence.
///
/// # Errors
/// The sentence.
pub fn all(finished: &Finished) -> Result<(), String> {
    let world = &finished.world;
    if let Some(violation) = &world.observer.violation {
        return Err(violation.clone());
    }
    settled(finished)?;
    let table = Table::read(&world.store)?;
    messages::check(world, &table)?;
    runs::check(world, &table)?;
    capacity::check(world, &table)?;
    quotas::check(world, &table)?;
    hours::check(world, &table)?;
    reserves::check(world, &table)?;
    evictions::check(world, &table)?;
    order::check(world)?;
    counters::check(world, &table)?;
    lineage::check(world, &table)?;
    routes::check(world, &table)?;
    heard::check(world, &table)?;
    letters::check(world, &table)?;
    authority::check(world, &table)
}

/// Everything must be settled within the bound.
fn settled(finished: &Finished) -> Result<(), String> {
    if finished.settled_ms.is_some() {
        return Ok(());
    }
    let world = &finished.world;
    let mut left: Vec<String> = world.queues.all().map(|(queue, m)| format!("{} in {}", m.id, queue.name())).collect();
    let jobs = world.observer.jobs.iter().filter(|(id, job)| !world.rests(id, &job.state));
    left.extend(jobs.map(|(id, job)| format!("job {id} {}", job.state)));
    left.extend(world.batch.jobs.iter().filter(|job| !job.is_over()).map(|job| format!("Batch job {}", job.id)));
    left.extend(world.observer.under_way.iter().map(|id| format!("dead letter {id}")));
    left.truncate(5);
    Err(format!("not settled within the bound after faults stopped: {}", left.join(", ")))
}
