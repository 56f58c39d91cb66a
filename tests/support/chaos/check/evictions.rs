//! Nobody is evicted by a tier that may not, before who takes its place is there, more often than it may be, or beyond its
//! tier's budget, by Batch's own log; and every eviction is recorded and closed.

use std::collections::BTreeMap;

use super::super::batch::BatchJob;
use super::super::evictions::{Eviction, TOKEN};
use super::super::faults::SKEW_MS_MAX;
use super::super::quota::{HOURS_GPU_MS, Quota};
use super::super::scenario::Truth;
use super::super::wiring::{EVICTION_WINDOW_MS, EVICTIONS_PER_JOB, EVICTIONS_PER_WINDOW};
use super::super::world::World;
use super::hours::used;
use super::quotas::team;
use super::table::{Table, text};

/// The longest chain of dependents that is looked through.
const LENT_STEPS_MAX: usize = 8;

/// Checks every eviction.
///
/// # Errors
/// The first rule that doesn't hold.
pub fn check(world: &World, table: &Table) -> Result<(), String> {
    for eviction in &world.evictions.seen {
        closed(world, table, eviction)?;
        let Some(starts) = &eviction.goes_for else { continue };
        let Some(batch) = batch_job(world, &eviction.batch) else { continue };
        match eviction.rule.as_str() {
            "borrowing" => taken_back(world, table, eviction, starts, batch)?,
            _ => permitted(world, eviction, starts, batch)?,
        }
        after_its_successor(world, eviction, starts, batch)?;
    }
    caps(world)?;
    budgets(world)?;
    match table.planned.first() {
        Some(row) => Err(format!("the eviction {row} was planned, and is neither carried out nor withdrawn")),
        None => Ok(()),
    }
}

fn batch_job<'w>(world: &'w World, id: &str) -> Option<&'w BatchJob> {
    world.batch.find(id).and_then(|(at, _)| world.batch.jobs.get(at))
}

/// The receipt says how the run ended.
fn closed(world: &World, table: &Table, eviction: &Eviction) -> Result<(), String> {
    let Eviction { job, attempt, .. } = eviction;
    let row = table.receipts.get(&(job.clone(), *attempt));
    let end = row.map(|row| text(row, "end")).unwrap_or_default();
    let told = batch_job(world, &eviction.batch).and_then(|batch| batch.whole.told.as_ref());
    match table.attempts.get(&(job.clone(), *attempt)) {
        Some(ended) if text(ended, "end_class") == end && told.is_some() => Ok(()),
        _ => Err(format!("the eviction of attempt {attempt} of job {job} ended as `{end}`, and the attempt otherwise")),
    }
}

/// The tier of a queue.
fn tier(queue: &str) -> &str {
    queue.rsplit('-').next().unwrap_or_default()
}

/// What goes by the rule of loans is of a team that had more than its own, and goes for a job of another one that had not.
fn taken_back(world: &World, table: &Table, eviction: &Eviction, starts: &str, batch: &BatchJob) -> Result<(), String> {
    let job = &eviction.job;
    let preemptor = world.batch.jobs.iter().find(|job| job.owner == starts);
    let (from, to) = (team(world, batch), preemptor.and_then(|preemptor| team(world, preemptor)));
    if preemptor.is_some() && from == to {
        return Err(format!("job {job} was taken back for job {starts}, which is of the same team"));
    }
    if preemptor.is_some_and(|preemptor| tier(&preemptor.queue) == "preemptible") {
        return Err(format!("job {job} was taken back for job {starts}, which is preemptible"));
    }
    let had = from.is_some_and(|from| was_given(world, from, batch));
    let borrows = matches!(world.quota, Quota::Borrow | Quota::Lend);
    if !had || !borrows {
        return Err(format!("job {job} was taken back for job {starts}, and its team had borrowed nothing"));
    }
    let known_at = eviction.at - world.life_ms;
    let used = to.map_or(0, |to| used(world, table, to, known_at, eviction.at));
    let most = if world.quota == Quota::Borrow { HOURS_GPU_MS / 3 } else { HOURS_GPU_MS * 2 / 3 };
    if used >= most {
        return Err(format!("job {job} was taken back for job {starts}, whose team had used {used} GPU-ms of {most}"));
    }
    Ok(())
}

/// Whether a team had been given something when a run of it was sent, beside that run: that is all that it may have gone
/// beyond its quota by.
fn was_given(world: &World, from: &str, run: &BatchJob) -> bool {
    let holds = |message: &str| {
        let sent = world.sent.iter().find(|sent| sent.id.as_str() == message).map(|sent| &sent.draft.truth);
        matches!(sent, Some(Truth::Job { team, gpus, .. }) if *team == from && *gpus > 0)
    };
    world.observer.jobs.iter().filter(|(_, track)| holds(&track.message)).any(|(id, track)| {
        let is_other = |attempt: u64| *id != run.owner || attempt != u64::from(run.attempt);
        let claims = track.edges.iter().filter(|edge| edge.to == "claimed" && edge.at <= run.signed_at);
        claims.into_iter().any(|edge| is_other(edge.attempt))
    })
}

/// Only the critical tier evicts, and only the others.
fn permitted(world: &World, eviction: &Eviction, starts: &str, batch: &BatchJob) -> Result<(), String> {
    let is_critical = |job: &BatchJob| job.owner == starts && tier(&job.queue) == "critical";
    let may = world.batch.jobs.iter().any(is_critical) || is_lent_to(world, starts);
    let may = may && tier(&batch.queue) != "critical";
    if may {
        return Ok(());
    }
    Err(format!("job {} of `{}` was evicted for job {starts}, whose tier may not do that", eviction.job, batch.queue))
}

/// Whether an urgent job depends on a job, by however many steps: then that is as urgent.
fn is_lent_to(world: &World, job: &str) -> bool {
    let mut needed = vec![job.to_owned()];
    for _ in 0..LENT_STEPS_MAX {
        let mut more = Vec::new();
        for sent in &world.sent {
            let Truth::Job { chosen, parents, urgent, .. } = &sent.draft.truth else { continue };
            if parents.iter().any(|parent| needed.contains(parent)) {
                if *urgent {
                    return true;
                }
                more.extend(chosen.clone());
            }
        }
        needed.extend(more);
    }
    false
}

/// Batch is asked to stop a run only once it has the job that takes its place.
fn after_its_successor(world: &World, eviction: &Eviction, starts: &str, batch: &BatchJob) -> Result<(), String> {
    let asked = batch.stops.iter().filter(|(_, reason)| reason.starts_with(TOKEN)).map(|(at, _)| *at).min();
    let Some(asked) = asked else { return Ok(()) };
    let came = world.batch.jobs.iter().filter(|job| job.owner == starts).map(|job| job.created_at).min();
    if came.is_some_and(|came| came <= asked) {
        return Ok(());
    }
    Err(format!("job {} was stopped for job {starts} before Batch had that one", eviction.job))
}

/// Evictions for other jobs of runs that ended by them.
fn effective(world: &World) -> impl Iterator<Item = &Eviction> {
    world.evictions.seen.iter().filter(|eviction| {
        let told = batch_job(world, &eviction.batch).and_then(|batch| batch.whole.told.as_ref());
        eviction.goes_for.is_some() && told.is_some_and(|told| told.class == "preempted")
    })
}

fn caps(world: &World) -> Result<(), String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for eviction in effective(world) {
        let count = counts.entry(&eviction.job).or_default();
        *count += 1;
        if *count > EVICTIONS_PER_JOB {
            return Err(format!(
                "job {} was evicted {count} times where {EVICTIONS_PER_JOB} are allowed",
                eviction.job
            ));
        }
    }
    Ok(())
}

/// In no stretch as long as the window are there more evictions of a pool's tier than its budget, by clocks that may be off.
fn budgets(world: &World) -> Result<(), String> {
    let mut times: BTreeMap<(&str, &str), Vec<i64>> = BTreeMap::new();
    for eviction in effective(world).filter(|eviction| eviction.tier == "experimental") {
        times.entry((&eviction.pool, &eviction.tier)).or_default().push(eviction.at);
    }
    for ((pool, tier), mut times) in times {
        times.sort_unstable();
        for some in times.windows(EVICTIONS_PER_WINDOW + 1) {
            let (Some(first), Some(last)) = (some.first(), some.last()) else { continue };
            if last - first < EVICTION_WINDOW_MS - 2 * SKEW_MS_MAX {
                let seconds = (last - first) / 1_000;
                return Err(format!(
                    "{} jobs of tier {tier} were evicted in pool {pool} within {seconds} s, where {EVICTIONS_PER_WINDOW} are allowed",
                    some.len()
                ));
            }
        }
    }
    Ok(())
}
