//! What the queue looks like, as numbers: how many jobs wait in each tier of each pool, since when, and what runs.
//!
//! They are read off the index of what is due, whose entries say all that is counted; it lags a little, as graphs may.
//! The metrics of `watch` and the tables of the command line are made of the same count, so they can't disagree.

use std::collections::{BTreeMap, BTreeSet};

use osprey_model::id::{JobId, PoolName, TierName};
use osprey_model::job::JobState;
use osprey_ports::store::PAGE_ITEMS_MAX;
use osprey_ports::{Index, IndexQuery, Key, QueryIndex};

use crate::failure::Failure;
use crate::key::{self, DueJob};

/// Most entries that are counted; a queue beyond that is known to be too long.
pub const COUNTED_MAX: usize = 100_000;

/// What is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Jobs that have not ended, by pool and tier. Those that a person holds aren't counted: nothing is due of them.
    pub tiers: BTreeMap<(PoolName, TierName), Count>,
    /// Priorities of these jobs.
    pub priorities: BTreeSet<u32>,
    /// Since when the oldest waits whose number is above the line, milliseconds since 1970.
    pub high_since: Option<i64>,
    /// Whether there are more than were counted.
    pub is_cut: bool,
}

/// The jobs of one tier in one pool. Times are milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Since when each job waits that may start, in no order.
    pub since: Vec<i64>,
    /// The one of them that waits longest.
    pub oldest: Option<(i64, JobId)>,
    /// GPUs that these jobs want.
    pub wanted_gpus: u32,
    /// Jobs that wait for other jobs.
    pub blocked: u32,
    /// Jobs on their way to a node: claimed, or in Batch and not started.
    pub sent: u32,
    /// GPUs of these.
    pub sent_gpus: u32,
    /// Jobs that run.
    pub running: u32,
    /// GPUs of these.
    pub running_gpus: u32,
}

/// A job that has not ended, as the index of what is due says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenJob {
    /// Its id.
    pub id: JobId,
    /// Where it is.
    pub state: JobState,
    /// GPUs that it needs.
    pub gpus: u32,
    /// Its priority.
    pub priority: u32,
    /// Since when it is there, or back, milliseconds since 1970.
    pub since: i64,
    /// Its tier.
    pub tier: TierName,
    /// Its pool.
    pub pool: PoolName,
}

impl OpenJob {
    /// Reads an entry of the index; `None` for one of something else.
    #[must_use]
    pub fn read(sort: &str, key: &Key) -> Option<Self> {
        let DueJob { state, gpus, priority, since, tier, pool } = key::read_due_job(sort)?;
        Some(Self {
            id: key::job_of(key)?,
            state: JobState::ALL.into_iter().find(|known| known.as_str() == state)?,
            gpus,
            priority,
            since,
            tier: TierName::new(tier),
            pool: PoolName::new(pool),
        })
    }
}

/// Counts; a job whose priority is above `line` is a high one. A request for each thousand jobs that have not ended.
///
/// # Errors
/// When the store fails.
pub async fn read<P: QueryIndex + Sync>(ports: &P, line: u32) -> Result<Census, Failure> {
    let (jobs, is_cut) = jobs(ports).await?;
    Ok(Census { is_cut, ..Census::of(&jobs, line) })
}

/// The jobs that have not ended, those first that are due first, and whether there are more than [`COUNTED_MAX`]. Those
/// that a person holds aren't among them. A request for each thousand.
///
/// # Errors
/// When the store fails.
pub async fn jobs<P: QueryIndex + Sync>(ports: &P) -> Result<(Vec<OpenJob>, bool), Failure> {
    let (mut jobs, mut after, mut seen) = (Vec::new(), None, 0);
    loop {
        let query = IndexQuery {
            index: Index::Due,
            partition: key::DUE.to_owned(),
            from: None,
            to: None,
            newest_first: false,
            after: after.take(),
            limit: PAGE_ITEMS_MAX,
        };
        let page = ports.query_index_lagging(&query).await?;
        jobs.extend(page.entries.iter().filter_map(|(sort, key)| OpenJob::read(sort, key)));
        seen += page.entries.len();
        after = page.entries.last().cloned();
        if !page.more || after.is_none() {
            return Ok((jobs, false));
        }
        if seen >= COUNTED_MAX {
            return Ok((jobs, true));
        }
    }
}

impl Census {
    /// Counts these jobs; one whose priority is above `line` is a high one.
    #[must_use]
    pub fn of(jobs: &[OpenJob], line: u32) -> Self {
        let mut census = Self::default();
        for job in jobs {
            census.priorities.insert(job.priority);
            if job.state == JobState::Queued && job.priority > line {
                census.high_since = Some(census.high_since.map_or(job.since, |since| since.min(job.since)));
            }
            census.tiers.entry((job.pool.clone(), job.tier.clone())).or_default().take(job);
        }
        census
    }

    /// GPUs of jobs that run in a pool.
    #[must_use]
    pub fn running_gpus(&self, pool: &str) -> u32 {
        self.counts_in(pool).fold(0, |sum, count| sum.saturating_add(count.running_gpus))
    }

    /// GPUs of jobs that run in a pool, or are on their way to one of its nodes.
    #[must_use]
    pub fn held_gpus(&self, pool: &str) -> u32 {
        self.counts_in(pool).fold(self.running_gpus(pool), |sum, count| sum.saturating_add(count.sent_gpus))
    }

    fn counts_in<'a>(&'a self, pool: &'a str) -> impl Iterator<Item = &'a Count> {
        self.tiers.iter().filter(move |((name, _), _)| name.as_str() == pool).map(|(_, count)| count)
    }
}

impl Count {
    fn take(&mut self, job: &OpenJob) {
        let add = |sum: &mut u32, number: u32| *sum = sum.saturating_add(number);
        match job.state {
            JobState::Queued => {
                self.since.push(job.since);
                let own = (job.since, job.id);
                self.oldest = Some(self.oldest.map_or(own, |oldest| oldest.min(own)));
                add(&mut self.wanted_gpus, job.gpus);
            }
            JobState::Waiting => add(&mut self.blocked, 1),
            JobState::Claimed | JobState::Submitted => {
                add(&mut self.sent, 1);
                add(&mut self.sent_gpus, job.gpus);
            }
            JobState::Running => {
                add(&mut self.running, 1);
                add(&mut self.running_gpus, job.gpus);
            }
            JobState::Held | JobState::Succeeded | JobState::Failed | JobState::Refused | JobState::Dead => {}
        }
    }

    /// The waits at a time, milliseconds since 1970: the middle one, of two the mean, and the longest; nothing where
    /// nobody waits.
    #[must_use]
    pub fn waits_ms(&self, now: i64) -> Option<(i64, i64)> {
        let mut waits: Vec<i64> = self.since.iter().map(|since| now.saturating_sub(*since).max(0)).collect();
        waits.sort_unstable();
        Some((median(&waits)?, *waits.last()?))
    }
}

/// The middle of sorted numbers; of two, the mean.
fn median(sorted: &[i64]) -> Option<i64> {
    let high = sorted.get(sorted.len() / 2)?;
    let low = sorted.get(sorted.len().saturating_sub(1) / 2)?;
    Some(low.midpoint(*high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_counted_by_pool_and_tier_and_running_gpus_by_pool() {
        let id = |number: u128| JobId::from_uuid(uuid::Uuid::from_u128(number));
        let entries = [
            (1, "0000000001000#id#queued#8#900#4000#production#main"),
            (2, "0000000001000#id#queued#8#900#1000#production#main"),
            (3, "0000000001000#id#running#16#100#1000#experimental#main"),
            (4, "0000000001000#id#claimed#4#100#1000#experimental#main"),
            (5, "0000000001000#id#waiting#4#100#1000#experimental#main"),
        ];
        let jobs: Vec<OpenJob> =
            entries.iter().filter_map(|(number, sort)| OpenJob::read(sort, &key::job(id(*number)))).collect();
        assert_eq!(OpenJob::read("0000000001000#dead-letter", &key::dead(id(9))), None);
        let census = Census::of(&jobs, 800);
        let production = census.tiers[&("main".into(), "production".into())].clone();
        assert_eq!(production.oldest, Some((1_000, id(2))));
        assert_eq!((production.waits_ms(5_000), production.wanted_gpus), (Some((2_500, 4_000)), 16));
        let experimental = census.tiers[&("main".into(), "experimental".into())].clone();
        assert_eq!((experimental.blocked, experimental.sent, experimental.running), (1, 1, 1));
        assert_eq!(experimental.waits_ms(5_000), None);
        assert_eq!((census.running_gpus("main"), census.held_gpus("main"), census.held_gpus("other")), (16, 20, 0));
        assert_eq!((census.priorities.len(), census.high_since, census.tiers.len()), (2, Some(1_000), 2));
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        assert_eq!([median(&[]), median(&[7]), median(&[1, 4]), median(&[1, 2, 9])], [None, Some(7), Some(2), Some(2)]);
    }
}
