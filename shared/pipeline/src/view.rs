//! Reading for people: one job with its history, lists of jobs and of dead letters.

use osprey_model::decision::Decision;
use osprey_model::id::JobId;
use osprey_model::job::{Attempt, Job};
use osprey_ports::{GetItem, Index, IndexQuery, QueryIndex, QueryItems};
use serde::Deserialize;

use crate::acted::Acted;
use crate::checkpoint::{self, Checkpoint};
use crate::dead::{self, DeadLetter};
use crate::dependents::{self, Dependency};
use crate::evict::Receipt;
use crate::failure::Failure;
use crate::record::{self, Record};
use crate::stop::Extra;
use crate::{key, repository};

/// A job with its history.
#[derive(Clone, Debug)]
pub struct JobView {
    /// The job.
    pub job: Job,
    /// The message as it came; `None` for a reader who may not see it.
    pub record: Option<Record>,
    /// The newest decision.
    pub decision: Option<Decision>,
    /// Every decision that was made of it, oldest first.
    pub decisions: Vec<Decision>,
    /// What it depends on.
    pub dependencies: Vec<Dependency>,
    /// Attempts that ended, oldest first.
    pub attempts: Vec<Attempt>,
    /// Evictions of its attempts, oldest first.
    pub evictions: Vec<Receipt>,
    /// The newest checkpoint that it reported.
    pub checkpoint: Option<Checkpoint>,
    /// Actions on it, oldest first.
    pub actions: Vec<Acted>,
    /// Second Batch jobs that were stopped.
    pub extras: Vec<Extra>,
    /// Other messages for the same job, in no order.
    pub duplicates: Vec<Duplicate>,
}

/// Another message for a job that there was, with the same content.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Duplicate {
    /// Who sent it.
    pub sender: String,
    /// When, milliseconds since 1970.
    pub sent_at: i64,
}

/// Reads a job with its history.
///
/// # Errors
/// When the store fails.
pub async fn describe<P>(ports: &P, id: JobId) -> Result<Option<JobView>, Failure>
where
    P: GetItem + QueryItems + Sync,
{
    let Some(loaded) = repository::load(ports, id).await? else { return Ok(None) };
    let partition = key::job_partition(id);
    let record = record::read(ports, partition.clone()).await?;
    let mut decisions: Vec<Decision> = record.iter().filter_map(|record| record.decision.clone()).collect();
    decisions.extend(rows::<P, Decision>(ports, &partition, key::DECISION).await?);
    let mut actions: Vec<Acted> = rows(ports, &partition, key::ACTION).await?;
    actions.sort_by_key(|acted| acted.at);
    Ok(Some(JobView {
        checkpoint: checkpoint::newest(ports, &loaded.job).await?,
        evictions: rows(ports, &partition, key::EVICTION).await?,
        job: loaded.job,
        decision: decisions.last().cloned(),
        decisions,
        record,
        dependencies: dependents::dependencies(ports, id).await?,
        attempts: rows(ports, &partition, key::ATTEMPT).await?,
        actions,
        extras: rows(ports, &partition, key::EXTRA).await?,
        duplicates: rows(ports, &partition, key::DUPLICATE).await?,
    }))
}

/// The newest decision about a job; `None` for one that could not be read.
///
/// # Errors
/// When the store fails.
pub async fn decision<P>(ports: &P, id: JobId) -> Result<Option<Decision>, Failure>
where
    P: QueryItems + Sync,
{
    let partition = key::job_partition(id);
    let newest = rows(ports, &partition, key::DECISION).await?.into_iter().next_back();
    match newest {
        Some(decision) => Ok(Some(decision)),
        None => Ok(record::read(ports, partition).await?.and_then(|record| record.decision)),
    }
}

async fn rows<P, T>(ports: &P, partition: &str, prefix: &str) -> Result<Vec<T>, Failure>
where
    P: QueryItems + Sync,
    T: serde::de::DeserializeOwned,
{
    let items = repository::all(ports, partition.to_owned(), prefix).await?;
    items.iter().map(repository::read).collect()
}

/// Every job that was recorded at `since` or later (milliseconds since 1970), newest first, up to `limit`; those of the
/// last moments may be missing.
///
/// # Errors
/// When the store fails.
pub async fn jobs<P>(ports: &P, since: Option<i64>, limit: usize) -> Result<Vec<Job>, Failure>
where
    P: GetItem + QueryIndex + Sync,
{
    let mut jobs = Vec::new();
    for id in listed(ports, key::JOBS, since, limit).await? {
        jobs.extend(repository::load(ports, id).await?.map(|loaded| loaded.job));
    }
    Ok(jobs)
}

/// Every dead letter that died at `since` or later (milliseconds since 1970), newest first, up to `limit`; those of the
/// last moments may be missing.
///
/// # Errors
/// When the store fails.
pub async fn dead_letters<P>(ports: &P, since: Option<i64>, limit: usize) -> Result<Vec<DeadLetter>, Failure>
where
    P: GetItem + QueryIndex + Sync,
{
    let mut letters = Vec::new();
    for id in listed(ports, key::DEAD_LETTERS, since, limit).await? {
        letters.extend(dead::load(ports, id).await?.map(|(letter, _)| letter));
    }
    Ok(letters)
}

/// Ids in a listing from `since` on (milliseconds since 1970), newest first. A request for each thousand of them.
///
/// # Errors
/// When the store fails.
pub async fn listed<P: QueryIndex + Sync>(
    ports: &P,
    partition: &str,
    since: Option<i64>,
    limit: usize,
) -> Result<Vec<JobId>, Failure> {
    let mut ids = Vec::new();
    let mut after = None;
    loop {
        let query = IndexQuery {
            index: Index::Listing,
            partition: partition.to_owned(),
            from: since.map(key::sortable),
            to: None,
            newest_first: true,
            after: after.take(),
            limit: limit.saturating_sub(ids.len()).min(osprey_ports::store::PAGE_ITEMS_MAX),
        };
        let page = ports.query_index_lagging(&query).await?;
        ids.extend(page.entries.iter().filter_map(|(sort, _)| JobId::parse(sort.split('#').nth(1)?)));
        after = page.entries.last().cloned();
        if !page.more || after.is_none() || ids.len() >= limit {
            return Ok(ids);
        }
    }
}
