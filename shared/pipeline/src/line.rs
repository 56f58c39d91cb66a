//! The line of a pool, and what is held of it: rows beside the job records, so that a scheduling cycle reads a pool
//! without reading every job.
//!
//! A job that a cycle starts ([`Job::scheduled`]) has one row at most: a place in the line while it is queued, a hold
//! from its claim to its end. Both are functions of the job record alone, and [`crate::repository`] writes them in the
//! transaction that writes the record, so they can't drift apart from it.
//!
//! The sort key of a place doesn't change with time, so the top of each tier is one range of the base table, read
//! consistently: rows say all that a decision needs.

use osprey_model::id::{JobId, PolicyRevision, PoolName, TierName};
use osprey_model::job::{Charge, Job, JobState, Needs, Saved};
use osprey_ports::{Expect, Item, Key, QueryItems, SortQuery, Write};
use serde::{Deserialize, Serialize};

use crate::evict::Planned;
use crate::failure::Failure;
use crate::order::Orders;
use crate::{key, repository};

/// A job in the line of its pool. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InLine {
    /// The job.
    pub job: JobId,
    /// Its tier.
    pub tier: TierName,
    /// The priority derived.
    pub priority: u32,
    /// When it was recorded; a requeue doesn't change it.
    pub enqueued_at: i64,
    /// Not to be started before.
    #[serde(default, skip_serializing_if = "is_default")]
    pub not_before: i64,
    /// GPUs: those of one child × children for an array.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gpus: u32,
    /// What else it needs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub needs: Needs,
    /// Work of earlier attempts that it goes on from, in milliseconds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kept_ms: u64,
    /// Its team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// Whose use it counts as.
    #[serde(default, skip_serializing_if = "is_default")]
    pub charge: Charge,
    /// The policy revision that its number was derived by.
    pub policy: PolicyRevision,
}

/// A job that holds capacity of its pool. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Holding {
    /// The job.
    pub job: JobId,
    /// Its tier.
    pub tier: TierName,
    /// Its priority.
    pub priority: u32,
    /// GPUs: those of one child × children for an array.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gpus: u32,
    /// What else it needs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub needs: Needs,
    /// Its team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// Whose use it counts as.
    #[serde(default, skip_serializing_if = "is_default")]
    pub charge: Charge,
    /// When it was claimed. The same from then on to its start, so that the row needn't be written in between.
    pub since: i64,
    /// When it started to run; `None` while it is on its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<i64>,
    /// The node that it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Its attempt.
    #[serde(default, skip_serializing_if = "is_default")]
    pub attempt: u32,
    /// Times that it was evicted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub evictions: u32,
    /// Work of earlier attempts that it goes on from, in milliseconds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kept_ms: u64,
    /// The newest checkpoint that it reported, in whichever attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<Saved>,
    /// The job that it is being evicted for; itself when a person asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaves_for: Option<JobId>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The row of a job; `None` for one that no cycle starts, or that is neither queued nor dispatched.
#[must_use]
pub fn row(job: &Job) -> Option<Item> {
    if !job.scheduled {
        None
    } else if job.state == JobState::Queued {
        Some(Item::new(place(job), repository::json(&in_line(job))))
    } else if job.state.is_dispatched() {
        Some(Item::new(key::hold(&job.pool, job.id), repository::json(&holding(job))))
    } else {
        None
    }
}

/// The writes that move a job's row along with its record.
#[must_use]
pub fn writes(before: Option<&Job>, after: &Job) -> Vec<Write> {
    let (old, new) = (before.and_then(row), row(after));
    let same_key = |a: &Item, b: &Item| a.key == b.key;
    let mut writes = Vec::new();
    if let Some(old) = &old
        && !new.as_ref().is_some_and(|new| same_key(old, new))
    {
        writes.push(Write::Delete { key: old.key.clone(), expect: Expect::Any });
    }
    if let Some(new) = new
        && old.is_none_or(|old| old != new)
    {
        writes.push(Write::Put { item: new, expect: Expect::Any });
    }
    writes
}

/// The place of a job in its pool's line: tier by tier, those first whose wait has brought them there, then the highest
/// priority, then who came first.
fn place(job: &Job) -> Key {
    let time = key::sortable(job.created_at);
    let sort = if job.aged {
        // Sorts before every digit.
        format!("{}#!#{time}#{}", job.tier, job.id)
    } else {
        format!("{}#{:04}#{time}#{}", job.tier, 9999_u32.saturating_sub(job.priority), job.id)
    };
    Key::new(key::line_partition(&job.pool), sort)
}

/// The place of a job in a pool's line; `None` for one that doesn't stand there.
#[must_use]
pub fn place_in(job: &Job, pool: &PoolName) -> Option<InLine> {
    (job.scheduled && job.state == JobState::Queued && job.pool == *pool).then(|| in_line(job))
}

fn in_line(job: &Job) -> InLine {
    InLine {
        job: job.id,
        tier: job.tier.clone(),
        priority: job.priority,
        enqueued_at: job.created_at,
        not_before: job.not_before,
        gpus: job.gpus,
        needs: job.needs,
        kept_ms: job.kept_ms,
        team: job.team.clone(),
        charge: job.charge.clone(),
        policy: job.policy.clone(),
    }
}

fn holding(job: &Job) -> Holding {
    let run = job.run.as_ref();
    Holding {
        job: job.id,
        tier: job.tier.clone(),
        priority: job.priority,
        gpus: job.gpus,
        needs: job.needs,
        team: job.team.clone(),
        charge: job.charge.clone(),
        since: job.claim_at().or(run.map(|run| run.claimed_at.unwrap_or(run.submitted_at))).unwrap_or(job.updated_at),
        started_at: run.and_then(|run| run.started_at),
        node: run.and_then(|run| run.node.clone()),
        attempt: job.attempt,
        evictions: job.counts.preemptions,
        kept_ms: job.kept_ms,
        saved: job.saved,
        leaves_for: job.evict.map(|evict| evict.goes_for.unwrap_or(job.id)),
    }
}

/// The front of a pool's line: the first `window` jobs of each tier, and whether some tier has more. Two requests a
/// tier at most, however long the line is.
///
/// # Errors
/// When the store fails.
pub async fn front<P>(ports: &P, pool: &PoolName, window: usize) -> Result<(Vec<InLine>, bool), Failure>
where
    P: QueryItems + Sync,
{
    let (mut jobs, mut cut, mut after): (Vec<InLine>, bool, Option<String>) = (Vec::new(), false, None);
    loop {
        let page = page(ports, pool, "", after.take(), window).await?;
        let Some(last) = page.items.last() else { return Ok((jobs, cut)) };
        let tier = last.key.sort.split('#').next().unwrap_or_default().to_owned();
        for item in &page.items {
            jobs.push(repository::read(item)?);
        }
        if !page.more {
            return Ok((jobs, cut));
        }
        // The page ends within this tier: the rest of its window, and then the tiers behind it.
        let prefix = format!("{tier}#");
        let seen = page.items.iter().filter(|item| item.key.sort.starts_with(&prefix)).count();
        let missing = window.saturating_sub(seen);
        if missing > 0 {
            let rest = self::page(ports, pool, &prefix, Some(last.key.sort.clone()), missing).await?;
            cut |= rest.more;
            for item in &rest.items {
                jobs.push(repository::read(item)?);
            }
        } else {
            cut = true;
        }
        // `~` sorts behind everything that follows a tier's name and the sign behind it.
        after = Some(format!("{prefix}~"));
    }
}

async fn page<P: QueryItems + Sync>(
    ports: &P,
    pool: &PoolName,
    prefix: &str,
    after: Option<String>,
    limit: usize,
) -> Result<osprey_ports::Page, Failure> {
    let partition = key::line_partition(pool);
    Ok(ports.query_items(&SortQuery { partition, prefix: prefix.to_owned(), after, limit }).await?)
}

/// A piece of a pool's line, wherever it lies: so many rows behind a place, and the place of the last of them; `None`
/// when the line ends with it. One request.
///
/// # Errors
/// When the store fails.
pub async fn behind<P: QueryItems + Sync>(
    ports: &P,
    pool: &PoolName,
    after: Option<String>,
    limit: usize,
) -> Result<(Vec<InLine>, Option<String>), Failure> {
    let page = page(ports, pool, "", after, limit).await?;
    let last = page.items.last().filter(|_| page.more).map(|item| item.key.sort.clone());
    let jobs: Result<Vec<InLine>, Failure> = page.items.iter().map(repository::read).collect();
    Ok((jobs?, last))
}

/// The first in a pool's line; `None` when nobody stands there.
///
/// # Errors
/// When the store fails.
pub async fn first<P: QueryItems + Sync>(ports: &P, pool: &PoolName) -> Result<Option<InLine>, Failure> {
    page(ports, pool, "", None, 1).await?.items.first().map(repository::read).transpose()
}

/// Everything that is held of a pool, who is to go for whom, and what people ordered.
///
/// # Errors
/// When the store fails.
pub async fn held<P: QueryItems + Sync>(ports: &P, pool: &PoolName) -> Result<Held, Failure> {
    let mut held = Held::default();
    for item in repository::all(ports, key::pool_partition(pool), "").await? {
        if item.key.sort.starts_with(key::HOLD) {
            held.holds.push(repository::read(&item)?);
        } else if item.key.sort.starts_with(key::PLANNED) {
            held.planned.push(repository::read(&item)?);
        } else {
            held.orders.take(&item)?;
        }
    }
    Ok(held)
}

/// The rows of a pool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Held {
    /// What our jobs hold.
    pub holds: Vec<Holding>,
    /// Who is to go for jobs that were claimed, and wasn't told so yet.
    pub planned: Vec<Planned>,
    /// What people ordered.
    pub orders: Orders,
}

#[cfg(test)]
mod tests {
    use osprey_model::id::MessageId;
    use osprey_model::job::{Claim, Run};

    use super::*;

    fn job() -> Job {
        let message = MessageId::new("m-1");
        Job {
            payload: "0".repeat(16),
            name: "train".to_owned(),
            tier: "production".into(),
            priority: 950,
            pool: "main".into(),
            policy: "0123456789ab".into(),
            team: Some("search".to_owned()),
            gpus: 8,
            needs: Needs { expected_seconds: 3_600, ..Needs::default() },
            scheduled: true,
            updated_at: 2_000,
            ..Job::new(JobId::of_message(&message), message, 1_000)
        }
    }

    fn claimed() -> Job {
        let claim = Claim { at: 3_000, queue: "q".into(), empty_lists: 0 };
        Job { state: JobState::Claimed, attempt: 1, claim: Some(claim), ..job() }
    }

    fn running() -> Job {
        let run = Run {
            id: "b-1".into(),
            queue: "q".into(),
            submitted_at: 3_100,
            claimed_at: Some(3_000),
            started_at: Some(4_000),
            node: Some("n-1".to_owned()),
        };
        Job { state: JobState::Running, attempt: 1, run: Some(run), ..job() }
    }

    fn submitted() -> Job {
        let run = running().run.map(|run| Run { started_at: None, node: None, ..run });
        Job { state: JobState::Submitted, run, ..running() }
    }

    fn keys(writes: &[Write]) -> Vec<(&'static str, String)> {
        let of = |write: &Write| match write {
            Write::Put { item, .. } => ("put", item.key.partition.clone()),
            Write::Delete { key, .. } => ("delete", key.partition.clone()),
            _ => ("other", String::new()),
        };
        writes.iter().map(of).collect()
    }

    #[test]
    fn a_row_follows_its_job_from_the_line_to_a_holding_to_nothing() {
        let (line, pool) = ("LINE#main".to_owned(), "POOL#main".to_owned());
        let done = Job { state: JobState::Succeeded, scheduled: false, ..job() };
        for (before, after, want) in [
            (None, job(), vec![("put", line.clone())]),
            (Some(job()), job(), vec![]),
            (Some(job()), claimed(), vec![("delete", line.clone()), ("put", pool.clone())]),
            (Some(claimed()), submitted(), vec![]),
            (Some(submitted()), running(), vec![("put", pool.clone())]),
            (Some(running()), running(), vec![]),
            (Some(running()), done, vec![("delete", pool.clone())]),
            (Some(claimed()), job(), vec![("delete", pool), ("put", line.clone())]),
            (Some(job()), Job { state: JobState::Held, scheduled: false, ..job() }, vec![("delete", line)]),
        ] {
            assert_eq!(keys(&writes(before.as_ref(), &after)), want, "{:?} to {:?}", before, after.state);
        }
    }

    #[test]
    fn a_job_that_no_cycle_starts_has_no_row() {
        for job in [job(), claimed(), running()] {
            assert_eq!(row(&Job { scheduled: false, ..job }), None);
        }
    }

    #[test]
    fn a_job_that_deserves_another_place_leaves_the_one_that_it_had() {
        let moved = Job { priority: 900, ..job() };
        let writes = writes(Some(&job()), &moved);
        assert_eq!(keys(&writes), [("delete", "LINE#main".to_owned()), ("put", "LINE#main".to_owned())]);
        assert!(place(&job()).sort < place(&moved).sort);
    }

    #[test]
    fn the_most_urgent_is_first_then_who_came_first() {
        let sort = |priority, created_at| place(&Job { priority, created_at, ..job() }).sort;
        assert!(sort(9_999, 5_000) < sort(950, 1_000));
        assert!(sort(950, 1_000) < sort(950, 5_000));
        assert!(sort(10, 1_000) < sort(9, 1_000));
        let aged = place(&Job { aged: true, priority: 0, created_at: 9_000, ..job() }).sort;
        assert!(aged < sort(9_999, 1_000) && aged.starts_with("production#"), "{aged}");
    }
}
