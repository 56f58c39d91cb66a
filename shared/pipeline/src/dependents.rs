//! Jobs that wait for other jobs. Batch never sees these dependencies, so an attempt that ends badly and comes back
//! fails nobody.
//!
//! The edge from a parent to its child is written with the child's record, and the parent's state is read again after
//! that: whichever of "the parent ended" and "the edge was written" comes later sees the other. `watch` looks again
//! at every waiting job from time to time all the same.

use std::collections::{BTreeMap, VecDeque};

use osprey_model::event::BatchStatus;
use osprey_model::id::{BatchJobId, JobId};
use osprey_model::job::{End, Job, JobState, cut};
use osprey_model::message::words::quote;
use osprey_model::reason::ReasonCode;
use osprey_ports::{Clock, DescribeJobs, GetItem, PutEvents, QueryItems, SendMessage, SortQuery, WriteItems};
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::failure::Failure;
use crate::repository::{self, Change, Changed};
use crate::{apply, derive, internal, key};

/// Most jobs that one end may move; the rest is left to `watch`.
const CASCADE_MAX: usize = 2000;

/// Most jobs that the search for a cycle visits; a larger web of jobs that were all announced before they came is
/// taken to have none.
const CYCLE_JOBS_MAX: usize = 1000;
/// Most jobs of a circle that its sentence names beside the one that is refused; the sentence has to fit the state item.
const CYCLE_NAMES_MAX: usize = 3;
/// Most characters of each name there.
const CYCLE_NAME_CHARS_MAX: usize = 14;

/// What looking at dependents calls.
pub trait Ports: GetItem + QueryItems + WriteItems + DescribeJobs + SendMessage + PutEvents + Clock + Sync {}

impl<P: GetItem + QueryItems + WriteItems + DescribeJobs + SendMessage + PutEvents + Clock + Sync> Ports for P {}

/// One dependency of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    /// The id as the user gave it.
    pub given: String,
    /// What it is.
    pub on: On,
}

/// What a dependency is on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum On {
    /// A job of ours.
    Job(JobId),
    /// A Batch job that isn't ours.
    Batch(BatchJobId),
    /// Nobody knows it yet.
    Unknown,
}

/// How a dependency stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It succeeded.
    Done,
    /// It may still succeed.
    Pending,
    /// It can't succeed without a person.
    Lost(String),
    /// Nobody knows it.
    Unknown,
}

/// What becomes of a waiting job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// It may start.
    Ready,
    /// It waits on.
    Waits,
    /// It can't start any more.
    Over(JobState, End),
}

/// Decides what becomes of a waiting job. `patient` says whether unknown dependencies may still turn up.
#[must_use]
pub fn outlook(dependencies: &[(String, Standing)], patient: bool) -> Outlook {
    for (given, standing) in dependencies {
        match standing {
            Standing::Lost(why) => {
                let message = format!("depends on {}, which {why}", quote(given));
                return Outlook::Over(JobState::Failed, End::new(ReasonCode::FailedDependency, &message));
            }
            Standing::Unknown if !patient => {
                let message = unknown(given);
                return Outlook::Over(JobState::Refused, End::new(ReasonCode::UnknownDependency, &message));
            }
            _ => {}
        }
    }
    if dependencies.iter().all(|(_, standing)| *standing == Standing::Done) { Outlook::Ready } else { Outlook::Waits }
}

/// The sentence for a dependency that nobody knows.
#[must_use]
pub fn unknown(given: &str) -> String {
    format!(
        "`dependsOn` names {}, which is neither a job of Osprey nor one that Batch knows; submit that job first, or leave it out",
        quote(given)
    )
}

/// How a job of ours stands as a dependency.
#[must_use]
pub fn standing(job: &Job, now: i64, grace_ms: u64) -> Standing {
    match job.state {
        JobState::Succeeded => Standing::Done,
        state if !state.is_final() => Standing::Pending,
        JobState::Dead if now < job.updated_at.saturating_add(i64::try_from(grace_ms).unwrap_or(i64::MAX)) => {
            Standing::Pending
        }
        state => {
            let code = job.end.as_ref().map(|end| format!(" ({})", end.code)).unwrap_or_default();
            Standing::Lost(format!("is {}{code}", state.as_str()))
        }
    }
}

/// Looks at every job that depends on `parent`, and at those that depend on them in turn when they can't start.
///
/// # Errors
/// When the store or Batch fails; `watch` goes on where this stopped.
pub async fn look<P: Ports>(ctx: &Context<'_>, ports: &P, parent: JobId) -> Result<(), Failure> {
    let mut parents = VecDeque::from([parent]);
    let mut looked = 0;
    while let Some(parent) = parents.pop_front() {
        for edge in repository::all(ports, key::job_partition(parent), key::CHILD).await? {
            let Some(child) = key::child_of(&edge.key) else { continue };
            looked += 1;
            if looked > CASCADE_MAX {
                return Ok(());
            }
            if check_one(ctx, ports, child).await? {
                parents.push_back(child);
            }
        }
    }
    Ok(())
}

/// Looks at one waiting job, and at its dependents when it can't start any more.
///
/// # Errors
/// When the store or Batch fails.
pub async fn check<P: Ports>(ctx: &Context<'_>, ports: &P, id: JobId) -> Result<(), Failure> {
    if check_one(ctx, ports, id).await? { look(ctx, ports, id).await } else { Ok(()) }
}

/// Looks at one waiting job; `true` when it ended.
async fn check_one<P: Ports>(ctx: &Context<'_>, ports: &P, id: JobId) -> Result<bool, Failure> {
    let Some(loaded) = repository::load(ports, id).await? else { return Ok(false) };
    if loaded.job.state != JobState::Waiting {
        return Ok(false);
    }
    let now = ports.now().as_millisecond();
    let dependencies = dependencies(ports, id).await?;
    let mut standings = Vec::new();
    for dependency in &dependencies {
        standings.push((dependency.given.clone(), standing_of(ctx, ports, dependency, now).await?));
    }
    let patient = now < loaded.job.created_at.saturating_add(ctx.settings.unknown_dependency_ms);
    let mut outlook = outlook(&standings, patient);
    // Two jobs that came at the same time didn't see each other at the door.
    if outlook == Outlook::Waits
        && let Some(circle) = circle(ports, id, &dependencies).await?
    {
        let sentence = cycle(&loaded.job.name, &names(ports, &circle).await?);
        outlook = Outlook::Over(JobState::Refused, End::new(ReasonCode::DependencyCycle, &sentence));
    }
    let changed = repository::change(ports, ctx.settings, id, |job| moved(job, &outlook, now)).await?;
    let Changed::Written { after, .. } = changed else { return Ok(false) };
    if after.state == JobState::Queued {
        internal::wake(ports, id, now, now).await;
    }
    Ok(after.state.is_final())
}

/// The sentence for a job that waits for itself through others, whose names are given in their order.
#[must_use]
pub fn cycle(name: &str, others: &[String]) -> String {
    let shown = |name: &str| format!("`{}`", cut(name, CYCLE_NAME_CHARS_MAX));
    let mut names: Vec<String> = others.iter().map(|name| shown(name)).collect();
    if names.len() > CYCLE_NAMES_MAX {
        let left_out = names.len() - (CYCLE_NAMES_MAX - 1);
        names.splice(CYCLE_NAMES_MAX - 2..names.len() - 1, [format!("{left_out} more")]);
    }
    let name = shown(name);
    format!(
        "jobs wait for each other in a circle: {name} → {} → {name}; leave one out of `dependsOn`",
        names.join(" → ")
    )
}

/// The names of jobs; the id of one that isn't on record.
///
/// # Errors
/// When the store fails.
pub async fn names<P: GetItem + Sync>(ports: &P, ids: &[JobId]) -> Result<Vec<String>, Failure> {
    let mut names = Vec::new();
    for id in ids {
        let loaded = repository::load(ports, *id).await?;
        names.push(loaded.map_or_else(|| id.to_string(), |loaded| loaded.job.name));
    }
    Ok(names)
}

/// The jobs through which a job waits for itself, from the one that it names to the one that names it; `None` when it
/// doesn't. Only a job that was announced before it came can close a circle: everything else it depends on is older
/// than it.
///
/// # Errors
/// When the store fails.
pub async fn circle<P>(ports: &P, id: JobId, dependencies: &[Dependency]) -> Result<Option<Vec<JobId>>, Failure>
where
    P: GetItem + QueryItems + Sync,
{
    if !is_awaited(ports, id).await? {
        return Ok(None);
    }
    // Who waits for a job, as far as the search has come from `id`.
    let mut waits_for: BTreeMap<JobId, JobId> = BTreeMap::new();
    let mut ahead: VecDeque<(JobId, JobId)> =
        dependencies.iter().filter_map(Dependency::job).map(|parent| (id, parent)).collect();
    while let Some((child, parent)) = ahead.pop_front() {
        if parent == id {
            return Ok(Some(way_back(&waits_for, id, child)));
        }
        if waits_for.len() < CYCLE_JOBS_MAX && !waits_for.contains_key(&parent) {
            waits_for.insert(parent, child);
            let further = self::dependencies(ports, parent).await?;
            ahead.extend(further.iter().filter_map(Dependency::job).map(|next| (parent, next)));
        }
    }
    Ok(None)
}

/// The jobs behind `id` up to `last`.
fn way_back(waits_for: &BTreeMap<JobId, JobId>, id: JobId, last: JobId) -> Vec<JobId> {
    let mut way: Vec<JobId> =
        std::iter::successors(Some(last), |job| waits_for.get(job).copied()).take_while(|job| *job != id).collect();
    way.reverse();
    way
}

async fn is_awaited<P: QueryItems + Sync>(ports: &P, id: JobId) -> Result<bool, Failure> {
    let query = SortQuery { partition: key::job_partition(id), prefix: key::CHILD.to_owned(), after: None, limit: 1 };
    Ok(!ports.query_items(&query).await?.items.is_empty())
}

impl Dependency {
    /// The job of ours that it is on, known or announced.
    #[must_use]
    pub fn job(&self) -> Option<JobId> {
        match &self.on {
            On::Job(job) => Some(*job),
            On::Unknown => JobId::parse(&self.given),
            On::Batch(_) => None,
        }
    }
}

fn moved(job: &Job, outlook: &Outlook, now: i64) -> Option<Change> {
    if job.state != JobState::Waiting {
        return None;
    }
    let mut next = job.clone();
    next.updated_at = now;
    match outlook {
        Outlook::Ready => {
            next.state = JobState::Queued;
            next.not_before = now;
        }
        Outlook::Waits => {}
        Outlook::Over(state, end) => {
            next.state = *state;
            next.end = Some(end.clone());
        }
    }
    Some(Change::of(next))
}

/// What a job depends on.
///
/// # Errors
/// When the store fails.
pub async fn dependencies<P: GetItem + Sync>(ports: &P, id: JobId) -> Result<Vec<Dependency>, Failure> {
    match ports.get_item(&key::depends(id)).await? {
        Some(item) => repository::read(&item),
        None => Ok(Vec::new()),
    }
}

async fn standing_of<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    dependency: &Dependency,
    now: i64,
) -> Result<Standing, Failure> {
    let grace = ctx.policy.requeue().dependency_grace_ms;
    match &dependency.on {
        On::Batch(id) => Ok(of_batch(ctx, ports, id, now).await?.1),
        On::Job(id) => Ok(of_job(repository::load(ports, *id).await?, now, grace)),
        On::Unknown => Ok(of_job(derive::find(ports, &dependency.given).await?, now, grace)),
    }
}

fn of_job(loaded: Option<repository::Loaded>, now: i64, grace_ms: u64) -> Standing {
    loaded.map_or(Standing::Unknown, |loaded| standing(&loaded.job, now, grace_ms))
}

/// What a Batch job is that nobody recorded as a run, and how it stands. One that carries our tags means the job that
/// they name: it may be on its way into the records, or a second one, whose end says nothing about the job.
///
/// # Errors
/// When the store or Batch fails.
pub async fn of_batch<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    id: &BatchJobId,
    now: i64,
) -> Result<(On, Standing), Failure> {
    let details = ports.describe_jobs(std::slice::from_ref(id)).await.map_err(Failure::call("DescribeJobs"))?;
    let Some(detail) = details.first() else { return Ok((On::Unknown, Standing::Unknown)) };
    if let Some(owner) = apply::tagged(detail)
        && let Some(loaded) = repository::load(ports, owner.job).await?
    {
        let grace = ctx.policy.requeue().dependency_grace_ms;
        return Ok((On::Job(owner.job), standing(&loaded.job, now, grace)));
    }
    let standing = match detail.status {
        BatchStatus::Succeeded => Standing::Done,
        BatchStatus::Failed => Standing::Lost("has failed in Batch".to_owned()),
        _ => Standing::Pending,
    };
    Ok((On::Batch(id.clone()), standing))
}

#[cfg(test)]
mod tests {
    use osprey_model::job::STATE_REASON_CHARS_MAX;

    use super::*;

    #[test]
    fn a_circle_is_told_by_name_and_fits_the_state_item() {
        let names = |count: usize| (0..count).map(|n| format!("{n}{}", "x".repeat(100))).collect::<Vec<_>>();
        let short = cycle("a", &["b".to_owned(), "c".to_owned()]);
        assert_eq!(short, "jobs wait for each other in a circle: `a` → `b` → `c` → `a`; leave one out of `dependsOn`");
        let long = cycle(&"n".repeat(128), &names(900));
        assert!(long.contains("→ 898 more →"), "{long}");
        assert!(long.chars().count() <= STATE_REASON_CHARS_MAX, "{} {long}", long.chars().count());
        assert!(cycle(&"n".repeat(128), &names(3)).chars().count() <= STATE_REASON_CHARS_MAX);
    }
}
