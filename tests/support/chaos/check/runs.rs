//! No attempt has two recorded runs, no job two live Batch jobs without an excuse, and every Batch job is accounted for.

use std::collections::BTreeMap;

use super::super::batch::BatchJob;
use super::super::faults::{ACT_BOUND_MS, LIST_LAG_BOUND_MS, SKEW_MS_MAX};
use super::super::world::World;
use super::table::{Table, text};

/// Checks every Batch job.
///
/// # Errors
/// The first rule that doesn't hold.
pub fn check(world: &World, table: &Table) -> Result<(), String> {
    one_run_an_attempt(table)?;
    for job in &world.batch.jobs {
        recorded(job, table)?;
    }
    closed(table)?;
    one_at_a_time(world)
}

fn one_run_an_attempt(table: &Table) -> Result<(), String> {
    let mut runs: BTreeMap<&(String, u64), &str> = BTreeMap::new();
    for (batch, owner) in &table.owners {
        if let Some(other) = runs.insert(owner, batch) {
            return Err(format!("attempt {} of job {} has two runs, {other} and {batch}", owner.1, owner.0));
        }
        if table.extras.contains_key(batch) {
            return Err(format!("Batch job {batch} is both the run of an attempt and a second one"));
        }
    }
    Ok(())
}

/// A Batch job with our tags ends as a run or as a second job. One of which no event ever came may be unknown: it was
/// made by a request whose answer was lost, and hidden from every list.
fn recorded(job: &BatchJob, table: &Table) -> Result<(), String> {
    if job.owner.is_empty() {
        return if table.owners.contains_key(&job.id) || !job.heard {
            Ok(())
        } else {
            Err(format!("Batch job {} has no tags, and is nobody's run", job.id))
        };
    }
    if let Some((owner, attempt)) = table.owners.get(&job.id) {
        let own = *owner == job.owner && *attempt == u64::from(job.attempt);
        return if own { Ok(()) } else { Err(format!("Batch job {} is recorded for another attempt", job.id)) };
    }
    match table.extras.get(&job.id) {
        Some((owner, row)) if *owner == job.owner => {
            let stopped = row.get("stopped") == Some(&serde_json::Value::Bool(true));
            if stopped && job.stops.is_empty() {
                return Err(format!("Batch job {} is recorded as stopped, and nobody asked Batch for it", job.id));
            }
            if job.stops.is_empty() && lived_on(job, row) {
                return Err(format!("Batch job {} was found to be a second one, and nobody stopped it", job.id));
            }
            Ok(())
        }
        Some(_) => Err(format!("Batch job {} is recorded as a second one of another job", job.id)),
        None if !job.heard => Ok(()),
        None => {
            Err(format!("Batch job {} of attempt {} of job {} is recorded nowhere", job.id, job.attempt, job.owner))
        }
    }
}

/// Whether a second Batch job was still alive when it was found, by a clock that may be off.
fn lived_on(job: &BatchJob, row: &serde_json::Value) -> bool {
    let found_at = row.get("found_at").and_then(serde_json::Value::as_i64).unwrap_or(0);
    job.whole.stopped_at.is_none_or(|at| at > found_at + SKEW_MS_MAX)
}

/// Every run that was recorded is closed, once, with its own Batch job.
fn closed(table: &Table) -> Result<(), String> {
    for (batch, owner) in &table.owners {
        match table.attempts.get(owner) {
            Some(row) if text(row, "batch_job_id") == *batch => {}
            Some(_) => return Err(format!("attempt {} of job {} was closed by another Batch job", owner.1, owner.0)),
            None => return Err(format!("attempt {} of job {} ({batch}) was never closed", owner.1, owner.0)),
        }
    }
    match table.attempts.keys().find(|key| !table.owners.values().any(|owner| owner == *key)) {
        Some((job, attempt)) => Err(format!("attempt {attempt} of job {job} was closed and has no run")),
        None => Ok(()),
    }
}

/// Two Batch jobs of one job may live at once only when a list hid the first beyond the bound, or its request acted
/// after its signature had expired.
fn one_at_a_time(world: &World) -> Result<(), String> {
    let mut by_job: BTreeMap<&str, Vec<&BatchJob>> = BTreeMap::new();
    for job in world.batch.jobs.iter().filter(|job| !job.owner.is_empty()) {
        by_job.entry(&job.owner).or_default().push(job);
    }
    for (owner, jobs) in by_job {
        for (at, first) in jobs.iter().enumerate() {
            for second in jobs.iter().skip(at + 1) {
                // Where one of an attempt's Batch jobs was out of sight, any of them may be a second one.
                let is_excused =
                    jobs.iter().any(|job| [first.attempt, second.attempt].contains(&job.attempt) && excused(job));
                if overlap(first, second) && !is_excused {
                    return Err(format!(
                        "job {owner} had two live Batch jobs, {} (attempt {}) and {} (attempt {}), and nothing excuses it",
                        first.id, first.attempt, second.id, second.attempt
                    ));
                }
            }
        }
    }
    Ok(())
}

fn overlap(a: &BatchJob, b: &BatchJob) -> bool {
    let end = |job: &BatchJob| job.whole.stopped_at.unwrap_or(i64::MAX);
    a.created_at < end(b) && b.created_at < end(a)
}

/// Whether a second Batch job beside this one is excused: a list hid it, or its request acted, beyond what AWS promises.
pub fn excused(job: &BatchJob) -> bool {
    let hidden = job.hidden_at.iter().any(|at| at - job.created_at > LIST_LAG_BOUND_MS);
    hidden || job.created_at - job.signed_at > ACT_BOUND_MS
}
