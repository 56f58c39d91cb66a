//! A team that has used up its GPU-hours of the day goes on in no tier but that of preemptible jobs, where the policy doesn't
//! let it borrow; and nobody is refused for hours that his team hasn't used.

use super::super::batch::BatchJob;
use super::super::observer::Edge;
use super::super::quota::{HOURS_GPU_MS, Quota, RESERVED_PERCENT};
use super::super::scenario::{PHASE_MS, Truth};
use super::super::world::{Sent, World};
use super::capacity::gpus;
use super::quotas::{team, team_of};
use super::table::Table;

const DAY_MS: i64 = 86_400_000;
/// A claimed job is sent within this.
const SENT_WITHIN_MS: i64 = 60_000;

/// Checks every request that Batch got before faults stopped.
///
/// # Errors
/// The first that was made though its team had used up its hours.
pub fn check(world: &World, table: &Table) -> Result<(), String> {
    if !world.quota.stops_at_hours() || !world.changed_modes.is_empty() {
        return Ok(());
    }
    for job in &world.batch.jobs {
        let is_free = job.queue.ends_with("-preemptible") || gpus(world, job) == 0;
        let at = job.signed_at - SENT_WITHIN_MS - world.life_ms;
        let Some(team) = team(world, job).filter(|_| !is_free && job.signed_at < world.start + PHASE_MS) else {
            continue;
        };
        // A clock that is ahead is in the next day already.
        let of_day = |day_of: i64| used(world, table, team, at, day_of);
        let used = of_day(job.signed_at).min(of_day(job.signed_at + SENT_WITHIN_MS));
        if used >= HOURS_GPU_MS {
            let second = (job.signed_at - world.start) / 1_000;
            return Err(format!(
                "job {} of team {team} was started at second {second}, though {used} GPU-ms of {HOURS_GPU_MS} were used",
                job.owner
            ));
        }
    }
    Ok(())
}

/// What a team was known at a time to have used of the day of another, in GPU-milliseconds.
pub fn used(world: &World, table: &Table, team: &str, known_at: i64, at: i64) -> i64 {
    let from = at / DAY_MS * DAY_MS;
    let of = |job: &&BatchJob| self::team(world, job) == Some(team) && was_closed(world, table, job, known_at);
    let ran = |job: &BatchJob| {
        let owner = (job.owner.clone(), u64::from(job.attempt));
        let row = table.attempts.get(&owner);
        let time = |name| row.and_then(|row| row.get(name)).and_then(serde_json::Value::as_i64);
        let (Some(started), Some(stopped)) = (time("started_at"), time("stopped_at")) else { return 0 };
        (stopped - started.max(from)).max(0)
    };
    world.batch.jobs.iter().filter(of).map(|job| ran(job) * gpus(world, job)).sum()
}

/// Whether the end of a run was recorded by a time.
fn was_closed(world: &World, table: &Table, job: &BatchJob, by: i64) -> bool {
    let is_run = table.owners.contains_key(&job.id);
    let edges = world.observer.jobs.get(&job.owner).map(|track| track.edges.as_slice()).unwrap_or_default();
    let ends = |edge: &Edge| {
        let ended = matches!(edge.from.as_str(), "submitted" | "running") && edge.to != "running";
        ended && edge.attempt == u64::from(job.attempt) && edge.at <= by
    };
    is_run && edges.iter().any(ends)
}

/// Whether a job may have been refused for what its team had used, or for what is kept from it of a pool.
pub fn excuse(world: &World, sent: &Sent, id: &str) -> bool {
    let Truth::Job { gpus, urgent, team, .. } = &sent.draft.truth else { return false };
    let track = world.observer.jobs.get(id).filter(|track| track.state == "refused");
    let Some(refused_at) = track.and_then(|track| track.edges.last()).map(|edge| edge.at) else { return false };
    match world.quota {
        Quota::Reject => {
            let began = |job: &BatchJob| self::team(world, job) == Some(team) && self::gpus(world, job) > 0;
            // What was claimed by then counts as well, and is sent a little later, or not at all.
            world.batch.jobs.iter().any(|job| began(job) && job.signed_at <= refused_at + SENT_WITHIN_MS)
                || has_unsent_claim(world, team, refused_at)
        }
        Quota::Reserve => {
            !urgent && world.wired.pools.iter().any(|pool| *gpus > open(i64::from(pool.gpus().unwrap_or(0))))
        }
        _ => false,
    }
}

/// Whether some job of a team had been claimed by a time and not been sent to Batch.
fn has_unsent_claim(world: &World, team: &str, by: i64) -> bool {
    let is_sent = |id: &str, attempt: u64| {
        let is_it = |job: &BatchJob| job.owner == id && u64::from(job.attempt) == attempt && job.signed_at <= by;
        world.batch.jobs.iter().any(is_it)
    };
    let is_unsent = |id: &str, edge: &Edge| edge.to == "claimed" && edge.at <= by && !is_sent(id, edge.attempt);
    let of_team = world.observer.jobs.iter().filter(|(id, _)| team_of(world, id) == Some(team));
    of_team.into_iter().any(|(id, track)| track.edges.iter().any(|edge| is_unsent(id, edge)))
}

/// GPUs of a pool that aren't reserved.
pub fn open(pool_gpus: i64) -> i64 {
    pool_gpus - pool_gpus * RESERVED_PERCENT / 100
}
