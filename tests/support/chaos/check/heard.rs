//! Other systems hear the end of every job, and nothing is left to tell.

use super::super::observer::is_final;
use super::super::world::World;
use super::table::{Table, text};

/// Checks what was heard.
///
/// # Errors
/// The first rule that doesn't hold.
pub fn check(world: &World, table: &Table) -> Result<(), String> {
    if let Some(event) = table.outbox.first() {
        let (job, state) = (text(event, "jobId"), text(event, "state"));
        return Err(format!("nobody was told that job {job} is {state}: the event is still in the outbox"));
    }
    for (id, (job, _)) in &table.jobs {
        let state = text(job, "state");
        let heard = world.heard.get(id).map(|(_, heard)| heard.as_str());
        if is_final(&state) && heard != Some(state.as_str()) {
            return Err(format!("job {id} is {state}, and others heard {heard:?} last"));
        }
    }
    Ok(())
}
