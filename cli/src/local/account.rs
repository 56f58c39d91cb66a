//! The account of a run: where each line of the file ended, and what its jobs went through.

use std::collections::BTreeMap;

use osprey_local::LocalWorld;
use osprey_model::id::{JobId, MessageId, TierName};
use osprey_model::job::{Attempt, Job, JobState};
use osprey_pipeline::acted::Acted;
use osprey_pipeline::dead::{self, DeadLetter};
use osprey_pipeline::{key, repository};
use osprey_ports::GetItem as _;
use serde::Serialize;

use super::block_on;
use super::ingest::TakenLine;
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

/// A line of the file, or a job of a run without one, and what became of it.
#[derive(Clone, Debug)]
pub struct Fate {
    /// Line of the file; `None` for a job that came otherwise.
    pub line: Option<u64>,
    /// What it is.
    pub what: What,
}

/// What a line turned out to be.
#[derive(Clone, Debug)]
pub enum What {
    /// A job.
    Job(Box<Job>),
    /// A job that was sent before.
    Duplicate(JobId),
    /// No job at all.
    Letter(Box<DeadLetter>),
    /// Something that was to be done to a job or a dead letter.
    Action(Box<Acted>),
    /// Nobody knows yet.
    Nothing,
}

impl Fate {
    /// A job that came by no line.
    #[must_use]
    pub fn of_job(job: Job) -> Self {
        Self { line: None, what: What::Job(Box::new(job)) }
    }

    /// Where it ended; `None` while it hasn't. An action that was carried out counts as succeeded.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        match &self.what {
            What::Job(job) => place_of(job.state),
            What::Duplicate(_) => Some(Place::Duplicate),
            What::Letter(_) => Some(Place::DeadLetter),
            What::Action(acted) if acted.refusal.is_some() => Some(Place::Refused),
            What::Action(_) => Some(Place::Succeeded),
            What::Nothing => None,
        }
    }

    /// Its job, when it has one of its own.
    #[must_use]
    pub fn job(&self) -> Option<&Job> {
        if let What::Job(job) = &self.what { Some(job) } else { None }
    }
}

/// Waits of one tier, in real seconds from being recorded to the first start. Those of jobs that an earlier run on the
/// same state recorded are none of this run's: the time between two runs is in them, and another speed may be.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TierWaits {
    /// Jobs of the tier that were let in.
    pub jobs: usize,
    /// Half of those that this run recorded and started waited no longer; `None` when it started none.
    pub median_wait_seconds: Option<f64>,
    /// The longest of these; `None` when this run started none.
    pub max_wait_seconds: Option<f64>,
}

/// The summary of a run. The members are an interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Lines of the file that aren't blank; without a file the jobs that were open, or came, or came back.
    pub jobs: usize,
    /// Of these, those whose job succeeded, and actions that were carried out.
    pub succeeded: usize,
    /// Whose job failed.
    pub failed: usize,
    /// Whose job was refused, and actions that were.
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
    /// Lines that hold an action; each is also counted as succeeded or refused.
    pub actions: usize,
    /// Jobs whose priority is the fallback, since the policy could not be evaluated for them.
    pub fallbacks: usize,
    /// Real seconds of this run.
    pub elapsed_seconds: f64,
    /// By tier.
    pub tiers: BTreeMap<TierName, TierWaits>,
}

/// Looks up what became of a line.
///
/// # Errors
/// When the store fails.
pub fn fate(world: &LocalWorld, line: &TakenLine) -> Result<Fate, CliError> {
    Ok(Fate { line: Some(line.line), what: what(world, line)? })
}

fn what(world: &LocalWorld, line: &TakenLine) -> Result<What, CliError> {
    let own = JobId::of_message(&line.message);
    for id in line.chosen.into_iter().chain([own]) {
        let Some(loaded) = block_on(repository::load(world, id))? else { continue };
        if loaded.job.message == line.message {
            return Ok(What::Job(Box::new(loaded.job)));
        }
        if block_on(world.get_item(&key::duplicate(id, &line.message)))?.is_some() {
            return Ok(What::Duplicate(id));
        }
    }
    if let Some((letter, _)) = block_on(dead::load(world, own))? {
        return Ok(What::Letter(Box::new(letter)));
    }
    let acted = acted(world, &line.message)?;
    Ok(acted.map_or(What::Nothing, |acted| What::Action(Box::new(acted))))
}

/// What became of the action of a message; `None` while nothing has, and for a message that is none.
///
/// # Errors
/// When the store fails.
pub fn acted(world: &LocalWorld, message: &MessageId) -> Result<Option<Acted>, CliError> {
    let item = block_on(world.get_item(&key::action(message)))?;
    Ok(item.map(|item| repository::read(&item)).transpose()?)
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

/// How long a run took, and what its clock was.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// Real seconds that it took.
    pub elapsed_seconds: f64,
    /// When it began, by the state's clock: milliseconds since 1970.
    pub began_at: i64,
    /// How many times as fast as real time that clock ran.
    pub speed: f64,
}

/// Sums up a run.
///
/// # Errors
/// When the store fails.
pub fn summary(world: &LocalWorld, fates: &[Fate], time: Time) -> Result<Summary, CliError> {
    let count = |place| fates.iter().filter(|fate| fate.place() == Some(place)).count();
    let mut summary = Summary {
        jobs: fates.len(),
        succeeded: count(Place::Succeeded),
        failed: count(Place::Failed),
        refused: count(Place::Refused),
        dead_letters: count(Place::DeadLetter),
        duplicates: count(Place::Duplicate),
        actions: fates.iter().filter(|fate| matches!(fate.what, What::Action(_))).count(),
        fallbacks: fates.iter().filter_map(Fate::job).filter(|job| job.fallback).count(),
        elapsed_seconds: rounded(time.elapsed_seconds),
        ..Summary::default()
    };
    let mut waits = BTreeMap::<TierName, Vec<Option<f64>>>::new();
    for job in fates.iter().filter_map(Fate::job) {
        summary.requeued += job.counts.requeues;
        summary.host_lost += job.counts.host_losses;
        summary.preempted += job.counts.preemptions;
        if job.state != JobState::Refused {
            let start = if job.created_at >= time.began_at { first_start(world, job)? } else { None };
            let wait = start.map(|start| real_seconds(start - job.created_at, time.speed));
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
