//! Where items are. One table; every key is made here.
//!
//! | partition | sort | what |
//! |---|---|---|
//! | `JOB#id` | `STATE` | the job, under 1 KB |
//! | | `RECORD#nnn` | the message, in chunks, never changed |
//! | | `DECISION#nnnn` | the decision for an attempt that differs from the first |
//! | | `DEPENDS` | what it depends on |
//! | | `ATTEMPT#nnnn` | an attempt that ended |
//! | | `CHILD#id` | a job that depends on it |
//! | | `DUPLICATE#message` | another message for the same job |
//! | | `ACTION#message` | an action on it, and what became of it |
//! | | `EXTRA#batch-id` | a second Batch job for one attempt, stopped |
//! | | `EVICTION#nnnn` | the receipt of an attempt that was told to go for another job |
//! | | `CHECKPOINT` | the newest checkpoint that it reported |
//! | `BATCH#id` | `JOB` | whose attempt a Batch job is |
//! | `ACTION#message` | `OUTCOME` | what became of an action |
//! | `DEAD#id` | `STATE`, `RECORD#nnn` | a dead letter, its message in chunks |
//! | `LINE#pool` | `tier#nnnn#time#id` | a job that waits for a cycle of its pool |
//! | `POOL#pool` | `HOLD#id` | a job that holds capacity of its pool |
//! | | `EVICT#id` | who goes for a job that was claimed |
//! | `EVICTED#pool` | `time#id#nnnn` | an eviction, for its tier's budget |
//! | `POOLS` | `pool` | the pool's plan |
//! | `WAITS` | `nnnn#id` | a job that waits for others, and for which |
//! | `RUNS#definition`, `RUNS` | `ALL`, `TEAM#team` | the newest runs of a definition, of a team |
//! | `ESTIMATES` | how they were known | how estimates of run times came out |
//! | `OUTBOX` | `time#job#version` | an event that isn't put on the bus yet |
//! | `USAGE#team` | `DAY#yyyy-mm-dd` | GPU-milliseconds of the day, by kind |
//! | | `GPUS` | GPUs that the team's jobs hold, by tier |
//! | | `HOLD#id` | what one of them holds of the team's quotas |

use std::fmt::Write as _;

use osprey_model::id::{BatchJobId, JobId, MessageId, PoolName};
use osprey_model::job::{EstimateSource, Job, JobState};
use osprey_ports::{Index, IndexEntry, Key};

/// Sort key of the state of a job or a dead letter.
pub const STATE: &str = "STATE";
/// Start of the sort keys of a recorded message.
pub const RECORD: &str = "RECORD#";
/// Start of the sort keys of later decisions.
pub const DECISION: &str = "DECISION#";
/// Start of the sort keys of attempts.
pub const ATTEMPT: &str = "ATTEMPT#";
/// Start of the sort keys of dependents.
pub const CHILD: &str = "CHILD#";
/// Start of the sort keys of other messages for the same job.
pub const DUPLICATE: &str = "DUPLICATE#";
/// Start of the sort keys of actions on a job.
pub const ACTION: &str = "ACTION#";
/// Start of the sort keys of second Batch jobs.
pub const EXTRA: &str = "EXTRA#";
/// Start of the sort keys of a team's usage.
pub const DAY: &str = "DAY#";
/// Start of the sort keys of what is held of a pool.
pub const HOLD: &str = "HOLD#";
/// Start of the sort keys of what is planned to be evicted in a pool.
pub const PLANNED: &str = "EVICT#";
/// Start of the sort keys of receipts of evictions.
pub const EVICTION: &str = "EVICTION#";
/// Partition of the plans of pools.
pub const POOLS: &str = "POOLS";
/// Partition of the jobs that wait for others.
pub const WAITS: &str = "WAITS";
/// Partition of how estimates came out.
pub const ESTIMATES: &str = "ESTIMATES";
/// Partition of the listing of jobs.
pub const JOBS: &str = "JOBS";
/// Partition of the listing of dead letters.
pub const DEAD_LETTERS: &str = "DEAD";
/// Partition of the index of what is due.
pub const DUE: &str = "DUE";

/// A key that is an id behind what tells its kind.
fn of(kind: &str, id: JobId) -> String {
    // A UUID as text.
    let mut key = String::with_capacity(kind.len() + 36);
    key.push_str(kind);
    id.push_to(&mut key);
    key
}

/// Partition of the events that aren't put on the bus yet.
pub const OUTBOX: &str = "OUTBOX";

/// An event that isn't put on the bus yet.
#[must_use]
pub fn outbox(at: i64, id: JobId, version: u64) -> Key {
    Key::new(OUTBOX, format!("{}#{id}#{version}", sortable(at)))
}

/// The partition of a job.
#[must_use]
pub fn job_partition(id: JobId) -> String {
    of("JOB#", id)
}

/// The state of a job.
#[must_use]
pub fn job(id: JobId) -> Key {
    Key::new(job_partition(id), STATE)
}

/// What a job depends on.
#[must_use]
pub fn depends(id: JobId) -> Key {
    Key::new(job_partition(id), "DEPENDS")
}

/// A later decision of a job.
#[must_use]
pub fn decision(id: JobId, attempt: u32) -> Key {
    Key::new(job_partition(id), format!("{DECISION}{attempt:04}"))
}

/// An attempt of a job.
#[must_use]
pub fn attempt(id: JobId, number: u32) -> Key {
    Key::new(job_partition(id), format!("{ATTEMPT}{number:04}"))
}

/// The edge from a job to one that depends on it.
#[must_use]
pub fn child(parent: JobId, child: JobId) -> Key {
    Key::new(job_partition(parent), of(CHILD, child))
}

/// Another message for the same job.
#[must_use]
pub fn duplicate(id: JobId, message: &MessageId) -> Key {
    Key::new(job_partition(id), format!("{DUPLICATE}{message}"))
}

/// An action on a job, and what became of it.
#[must_use]
pub fn acted(id: JobId, message: &MessageId) -> Key {
    Key::new(job_partition(id), format!("{ACTION}{message}"))
}

/// A second Batch job for one attempt.
#[must_use]
pub fn extra(id: JobId, batch: &BatchJobId) -> Key {
    Key::new(job_partition(id), format!("{EXTRA}{batch}"))
}

/// The receipt of an attempt that was told to go.
#[must_use]
pub fn eviction(id: JobId, attempt: u32) -> Key {
    Key::new(job_partition(id), format!("{EVICTION}{attempt:04}"))
}

/// The newest checkpoint of a job.
#[must_use]
pub fn checkpoint(id: JobId) -> Key {
    Key::new(job_partition(id), "CHECKPOINT")
}

/// Whose attempt a Batch job is.
#[must_use]
pub fn batch(id: &BatchJobId) -> Key {
    Key::new(format!("BATCH#{id}"), "JOB")
}

/// What became of an action.
#[must_use]
pub fn action(message: &MessageId) -> Key {
    Key::new(format!("ACTION#{message}"), "OUTCOME")
}

/// The partition of a dead letter.
#[must_use]
pub fn dead_partition(id: JobId) -> String {
    of("DEAD#", id)
}

/// The state of a dead letter.
#[must_use]
pub fn dead(id: JobId) -> Key {
    Key::new(dead_partition(id), STATE)
}

/// The usage of a team on one day.
#[must_use]
pub fn usage(team: &str, day: &str) -> Key {
    Key::new(format!("USAGE#{team}"), format!("{DAY}{day}"))
}

/// GPUs that a team's jobs hold, by tier.
#[must_use]
pub fn team_gpus(team: &str) -> Key {
    Key::new(format!("USAGE#{team}"), "GPUS")
}

/// What a job holds of its team's quotas.
#[must_use]
pub fn team_hold(team: &str, id: JobId) -> Key {
    Key::new(format!("USAGE#{team}"), format!("{HOLD}{id}"))
}

/// The partition of a pool's line.
#[must_use]
pub fn line_partition(pool: &PoolName) -> String {
    format!("LINE#{pool}")
}

/// The partition of what is held of a pool.
#[must_use]
pub fn pool_partition(pool: &PoolName) -> String {
    format!("POOL#{pool}")
}

/// What a job holds of a pool.
#[must_use]
pub fn hold(pool: &PoolName, id: JobId) -> Key {
    Key::new(pool_partition(pool), format!("{HOLD}{id}"))
}

/// Who goes for a job of a pool.
#[must_use]
pub fn planned(pool: &PoolName, id: JobId) -> Key {
    Key::new(pool_partition(pool), format!("{PLANNED}{id}"))
}

/// The partition of a pool's evictions.
#[must_use]
pub fn evicted_partition(pool: &PoolName) -> String {
    format!("EVICTED#{pool}")
}

/// An eviction of a pool, by its time.
#[must_use]
pub fn evicted(pool: &PoolName, at: i64, id: JobId, attempt: u32) -> Key {
    Key::new(evicted_partition(pool), format!("{}#{id}#{attempt:04}", sortable(at)))
}

/// The plan of a pool.
#[must_use]
pub fn pool_state(pool: &PoolName) -> Key {
    Key::new(POOLS, pool.as_str())
}

/// A job that waits for others: the highest priority first.
#[must_use]
pub fn waits(priority: u32, id: JobId) -> Key {
    Key::new(WAITS, format!("{:04}#{id}", 9999_u32.saturating_sub(priority)))
}

/// The newest runs of a definition, of all teams or of one.
#[must_use]
pub fn runs_of_definition(definition: &str, team: Option<&str>) -> Key {
    let sort = team.map_or_else(|| "ALL".to_owned(), |team| format!("TEAM#{team}"));
    Key::new(format!("RUNS#{definition}"), sort)
}

/// The newest runs of a team.
#[must_use]
pub fn runs_of_team(team: &str) -> Key {
    Key::new("RUNS", format!("TEAM#{team}"))
}

/// How estimates that were known so came out.
#[must_use]
pub fn estimates(source: EstimateSource) -> Key {
    Key::new(ESTIMATES, source.as_str())
}

/// A time as it sorts: milliseconds since 1970 in thirteen digits.
#[must_use]
pub fn sortable(ms: i64) -> String {
    let mut text = String::with_capacity(LONGEST_ENTRY_USUAL);
    push_sortable(&mut text, ms);
    text
}

/// Room for an entry of an index with names as people choose them, bytes.
const LONGEST_ENTRY_USUAL: usize = 128;

fn push_sortable(text: &mut String, ms: i64) {
    // Writing into a text can't fail.
    let _ = write!(text, "{:013}", ms.max(0));
}

/// The start of an entry: a time, and the id behind it.
fn at_of(at: i64, id: JobId) -> String {
    let mut text = sortable(at);
    text.push('#');
    id.push_to(&mut text);
    text
}

/// An entry in the listing of `partition`.
#[must_use]
pub fn listing(partition: &str, created_at: i64, id: JobId) -> IndexEntry {
    IndexEntry { index: Index::Listing, partition: partition.to_owned(), sort: at_of(created_at, id) }
}

/// The partition of the index that lists what a team has in Batch.
#[must_use]
pub fn running_partition(team: &str) -> String {
    format!("RUNNING#{team}")
}

/// An entry for a job that a team has in Batch; the sort key starts with its GPUs, so that summing needs no reads.
#[must_use]
pub fn running(team: &str, gpus: u32, id: JobId) -> IndexEntry {
    IndexEntry { index: Index::Running, partition: running_partition(team), sort: format!("{gpus:08}#{id}") }
}

/// An entry in the index of what is due.
#[must_use]
pub fn due(at: i64, id: JobId) -> IndexEntry {
    IndexEntry { index: Index::Due, partition: DUE.to_owned(), sort: at_of(at, id) }
}

/// An entry for a job in the index of what is due. It says what is counted of jobs, so that counting needs no reads.
#[must_use]
pub fn due_job(at: i64, job: &Job) -> IndexEntry {
    let Job { gpus, priority, .. } = job;
    let (state, since) = (job.state.as_str(), since(job));
    let mut sort = at_of(at, job.id);
    let _ = write!(sort, "#{state}#{gpus}#{priority}#{since}#{}#{}", job.tier, job.pool);
    IndexEntry { index: Index::Due, partition: DUE.to_owned(), sort }
}

/// Since when a job is where it is, or back in line. A look at it changes that as little as a person's word does.
fn since(job: &Job) -> i64 {
    let run = job.run.as_ref();
    let known = match job.state {
        JobState::Running => run.and_then(|run| run.started_at),
        JobState::Submitted => run.map(|run| run.submitted_at),
        JobState::Claimed => job.claim_at(),
        _ => None,
    };
    known.unwrap_or(if job.attempt == 0 { job.created_at } else { job.updated_at })
}

/// What an entry in the index of what is due says of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueJob<'a> {
    /// The job's state, in its own word.
    pub state: &'a str,
    /// GPUs that it needs.
    pub gpus: u32,
    /// Its priority.
    pub priority: u32,
    /// Since when it is where it is, or back in line, milliseconds since 1970.
    pub since: i64,
    /// Its tier.
    pub tier: &'a str,
    /// Its pool.
    pub pool: &'a str,
}

/// Reads an entry that [`due_job`] made; `None` for one of something else.
#[must_use]
pub fn read_due_job(sort: &str) -> Option<DueJob<'_>> {
    let mut parts = sort.splitn(8, '#').skip(2);
    Some(DueJob {
        state: parts.next()?,
        gpus: parts.next()?.parse().ok()?,
        priority: parts.next()?.parse().ok()?,
        since: parts.next()?.parse().ok()?,
        tier: parts.next()?,
        pool: parts.next()?,
    })
}

/// The job that a key of a job partition belongs to.
#[must_use]
pub fn job_of(key: &Key) -> Option<JobId> {
    key.partition.strip_prefix("JOB#").and_then(JobId::parse)
}

/// The dependent that an edge leads to.
#[must_use]
pub fn child_of(key: &Key) -> Option<JobId> {
    key.sort.strip_prefix(CHILD).and_then(JobId::parse)
}
