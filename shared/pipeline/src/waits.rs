//! Who waits for whom, so that a cycle knows what the jobs in its line are lent by those that wait for them.
//!
//! A waiting job has a row in the partition `WAITS`, the most urgent first, that names the jobs it needs. The row is there
//! as long as the job waits: it is written in the transaction that makes the job wait, and dropped in the one that ends
//! that ([`crate::repository::writes`]). One request reads those that have most to lend, however many jobs wait.

use osprey_model::id::{JobId, TierName};
use osprey_model::job::{Job, JobState};
use osprey_ports::{Expect, Item, Key, QueryItems, SortQuery, Write};
use serde::{Deserialize, Serialize};

use crate::dependents::Dependency;
use crate::failure::Failure;
use crate::{key, repository};

/// Waiting jobs that a cycle looks at, the most urgent first. What those behind them would lend is less.
pub const WAITS_MAX: usize = 500;

/// A job that waits for others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// The job.
    pub job: JobId,
    /// Its derived priority.
    pub priority: u32,
    /// Its tier; none in rows of earlier versions.
    #[serde(default)]
    pub tier: Option<TierName>,
    /// How long it is expected to run, in seconds; 0 when nobody knows.
    #[serde(default)]
    pub expected_seconds: u64,
    /// The jobs of ours that it depends on, ended ones included.
    pub needs: Vec<JobId>,
}

/// Where the row of a waiting job is; `None` for one that doesn't wait.
fn place(job: &Job) -> Option<Key> {
    (job.state == JobState::Waiting).then(|| key::waits(job.priority, job.id))
}

/// The write that notes what a job waits for, that begins to; `None` for one that doesn't wait.
#[must_use]
pub fn begin(job: &Job, dependencies: &[Dependency]) -> Option<Write> {
    let row = Waits {
        job: job.id,
        priority: job.priority,
        tier: Some(job.tier.clone()),
        expected_seconds: job.needs.expected_seconds,
        needs: dependencies.iter().filter_map(Dependency::job).collect(),
    };
    let item = Item::new(place(job)?, repository::json(&row));
    Some(Write::Put { item, expect: Expect::Any })
}

/// The write that drops the row of a job that doesn't wait any more.
#[must_use]
pub fn end(before: Option<&Job>, after: &Job) -> Option<Write> {
    let key = place(before?)?;
    (place(after).as_ref() != Some(&key)).then_some(Write::Delete { key, expect: Expect::Any })
}

/// The most urgent jobs that wait for others.
///
/// # Errors
/// When the store fails.
pub async fn most_urgent<P: QueryItems + Sync>(ports: &P) -> Result<Vec<Waits>, Failure> {
    let partition = key::WAITS.to_owned();
    let query = SortQuery { partition, prefix: String::new(), after: None, limit: WAITS_MAX };
    ports.query_items(&query).await?.items.iter().map(repository::read).collect()
}
