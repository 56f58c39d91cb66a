//! A job ends for want of a pool only while its tier was away.

use super::super::ports::LIFE_MS_MAX;
use super::super::scenario::Truth;
use super::super::wiring::WITHOUT_TIER;
use super::super::world::World;
use super::messages::truth_of;
use super::table::{Table, text};

/// Checks every job.
///
/// # Errors
/// The first that is refused or dead for want of a pool, and had one.
pub fn check(world: &World, table: &Table) -> Result<(), String> {
    for (id, (job, _)) in &table.jobs {
        let is_urgent = matches!(truth_of(world, job), Some(Truth::Job { urgent: true, .. }));
        let track = world.observer.jobs.get(id);
        let died =
            track.into_iter().flat_map(|track| &track.edges).find(|edge| edge.from == "queued" && edge.to == "dead");
        if let Some(edge) = died.filter(|edge| !(is_urgent && is_away(world, edge.at))) {
            return Err(format!("job {id} died in the queue at {}, and its tier wasn't away", edge.at));
        }
        let code = job.get("end").map(|end| text(end, "code")).unwrap_or_default();
        if code == "NoEligiblePool" && !is_urgent {
            return Err(format!("job {id} is {} for want of a pool, and its tier was never away", text(job, "state")));
        }
    }
    Ok(())
}

/// Whether a job may have been refused for want of a pool.
pub fn excuse(world: &World, id: &str) -> bool {
    let Some(track) = world.observer.jobs.get(id) else { return false };
    let sent = world.sent.iter().find(|sent| sent.id.as_str() == track.message);
    let is_urgent = sent.is_some_and(|sent| matches!(sent.draft.truth, Truth::Job { urgent: true, .. }));
    is_urgent && track.state == "refused" && track.edges.first().is_some_and(|edge| is_away(world, edge.at))
}

/// Whether an invocation at work at a time may know the policy that takes the tier away: it works with the one that it
/// began with.
fn is_away(world: &World, at: i64) -> bool {
    let ends = world.policies.iter().skip(1).map(|(at, _)| *at).chain([i64::MAX]);
    let periods = world.policies.iter().zip(ends);
    periods
        .filter(|((_, policy), _)| *policy == WITHOUT_TIER)
        .any(|((from, _), to)| *from <= at && at <= to.saturating_add(LIFE_MS_MAX))
}
