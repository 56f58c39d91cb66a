//! The account of a run: where each line of the file ended, and what its jobs went through.

use std::collections::BTreeMap;

use osprey_local::LocalWorld;
use osprey_model::id::{JobId, TierName};
use osprey_model::job::{Attempt, Job, JobState};
use osprey_pipeline::{dead, key, repository};
use osprey_ports::GetItem as _;
use serde::Serialize;

use super::block_on;
use super::ingest::TakenLine;
use super::join::Outcome;
use crate::error::CliError;

/// Where a line of the file ended; exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Its job succeeded.
    Succeeded,
    /// Its job was stopped, or depends on one that is dead.
    Failed,
    /// Its job was turned away at the door.
    Refused,
    /// Its job is dead, or it is no job.
    DeadLetter,
    /// Its job was sent before.
    Duplicate,
}

/// A line and where it is.
#[derive(Clone, Debug)]
pub struct Fate {
    /// Line of the file.
    pub line: u64,
    /// Where it ended; `None` while it hasn't.
    pub place: Option<Place>,
    /// Its job, unless it has none of its own.
    pub job: Option<Job>,
}

/// Waits of one tier, in real seconds from being recorded to the first start.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TierWaits {
    /// Jobs of the tier that were let in.
    pub jobs: usize,
    /// Half of those that started waited no longer; `None` when none started.
    pub median_wait_seconds: Option<f64>,
    /// The longest; `None` when none started.
    pub max_wait_seconds: Option<f64>,
}

/// The summary of a run. The members are an interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Lines of the file that aren't blank.
    pub jobs: usize,
    /// Of these, those whose job succeeded.
    pub succeeded: usize,
    /// Whose job failed.
    pub failed: usize,
    /// Whose job was refused.
    pub refused: usize,
    /// Whose job is dead, and those that are no job.
    pub dead_letters: usize,
    /// Times that jobs of the file went back into the queue.
    pub requeued: u32,
    /// Attempts that lost their host.
    pub host_lost: u32,
    /// Attempts that were evicted.
    pub preempted: u32,
    /// Lines whose job had been sent before.
    pub duplicates: usize,
    /// Real seconds of this run.
    pub elapsed_seconds: f64,
    /// By tier.
    pub tiers: BTreeMap<TierName, TierWaits>,
}

/// Looks up where a line is.
///
/// # Errors
/// When the store fails.
pub fn fate(world: &LocalWorld, line: &TakenLine) -> Result<Fate, CliError> {
    let found = |place, job| Ok(Fate { line: line.line, place, job });
    let own = JobId::of_message(&line.message);
    for id in line.chosen.into_iter().chain([own]) {
        let Some(loaded) = block_on(repository::load(world, id))? else { continue };
        if loaded.job.message == line.message {
            return found(place_of(loaded.job.state), Some(loaded.job));
        }
        if block_on(world.get_item(&key::duplicate(id, &line.message)))?.is_some() {
            return found(Some(Place::Duplicate), None);
        }
    }
    if block_on(dead::load(world, own))?.is_some() {
        return found(Some(Place::DeadLetter), None);
    }
    found(action(world, line)?, None)
}

/// A line may be an action; what was done counts as succeeded.
fn action(world: &LocalWorld, line: &TakenLine) -> Result<Option<Place>, CliError> {
    let Some(item) = block_on(world.get_item(&key::action(&line.message)))? else { return Ok(None) };
    let outcome: Outcome = repository::read(&item)?;
    Ok(Some(if outcome.refusal.is_some() { Place::Refused } else { Place::Succeeded }))
}

fn place_of(state: JobState) -> Option<Place> {
    match state {
        JobState::Succeeded => Some(Place::Succeeded),
        JobState::Failed => Some(Place::Failed),
        JobState::Refused => Some(Place::Refused),
        JobState::Dead => Some(Place::DeadLetter),
        _ => None,
    }
}

/// Sums up a run. `speed` turns the run's time into real time.
///
/// # Errors
/// When the store fails.
pub fn summary(world: &LocalWorld, fates: &[Fate], elapsed_seconds: f64, speed: f64) -> Result<Summary, CliError> {
    let count = |place| fates.iter().filter(|fate| fate.place == Some(place)).count();
    let mut summary = Summary {
        jobs: fates.len(),
        succeeded: count(Place::Succeeded),
        failed: count(Place::Failed),
        refused: count(Place::Refused),
        dead_letters: count(Place::DeadLetter),
        duplicates: count(Place::Duplicate),
        elapsed_seconds: rounded(elapsed_seconds),
        ..Summary::default()
    };
    let mut waits = BTreeMap::<TierName, Vec<Option<f64>>>::new();
    for job in fates.iter().filter_map(|fate| fate.job.as_ref()) {
        summary.requeued += job.counts.requeues;
        summary.host_lost += job.counts.host_losses;
        summary.preempted += job.counts.preemptions;
        if job.state != JobState::Refused {
            let wait = first_start(world, job)?.map(|start| real_seconds(start - job.created_at, speed));
            waits.entry(job.tier.clone()).or_default().push(wait);
        }
    }
    summary.tiers = waits.into_iter().map(|(tier, waits)| (tier, tier_waits(&waits))).collect();
    Ok(summary)
}

/// When the first attempt that started did, milliseconds since 1970.
fn first_start(world: &LocalWorld, job: &Job) -> Result<Option<i64>, CliError> {
    let items = block_on(repository::all(world, key::job_partition(job.id), key::ATTEMPT))?;
    for item in &items {
        if let Some(start) = repository::read::<Attempt>(item)?.started_at {
            return Ok(Some(start));
        }
    }
    Ok(job.run.as_ref().and_then(|run| run.started_at))
}

fn tier_waits(waits: &[Option<f64>]) -> TierWaits {
    let mut known: Vec<f64> = waits.iter().flatten().copied().collect();
    known.sort_by(f64::total_cmp);
    TierWaits {
        jobs: waits.len(),
        median_wait_seconds: median(&known).map(rounded),
        max_wait_seconds: known.last().copied().map(rounded),
    }
}

/// The middle of sorted numbers, or the mean of the middle two.
fn median(sorted: &[f64]) -> Option<f64> {
    let upper = sorted.get(sorted.len() / 2)?;
    let lower = sorted.get((sorted.len() - 1) / 2)?;
    Some(f64::midpoint(*lower, *upper))
}

#[expect(clippy::cast_precision_loss, reason = "waits stay far below 2^53 ms")]
fn real_seconds(ms: i64, speed: f64) -> f64 {
    ms.max(0) as f64 / 1000.0 / speed
}

/// To the millisecond.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_the_middle_two() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[1.0, 2.0, 10.0]), Some(2.0));
        assert_eq!(median(&[1.0, 2.0, 4.0, 10.0]), Some(3.0));
    }

    #[test]
    fn a_tier_whose_jobs_never_started_has_no_waits() {
        let waits = tier_waits(&[None, None]);
        assert_eq!(waits, TierWaits { jobs: 2, median_wait_seconds: None, max_wait_seconds: None });
    }

    #[test]
    fn every_state_that_is_final_is_a_place_and_no_other_is() {
        for state in JobState::ALL {
            assert_eq!(place_of(state).is_some(), state.is_final(), "{state:?}");
        }
    }
}
