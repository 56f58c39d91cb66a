//! Jobs: a list, a summary, and the whole record of one.

mod record;
mod story;

use osprey_model::id::BatchJobId;
use osprey_model::job::{Job, JobState};
use osprey_pipeline::view::JobView;
use serde_json::{Value, json};

use super::table::Columns;
use super::time::{rfc3339, short};

pub use record::{exported, receipt, record};
pub use story::story;

/// What is known of a job beside its record.
#[derive(Clone, Debug)]
pub struct Story {
    /// The record.
    pub view: JobView,
    /// Where the log of each attempt is, by its Batch job; those that have written one.
    pub logs: Vec<(BatchJobId, String)>,
    /// Jobs that it depends on, in the order of the record.
    pub parents: Vec<Parent>,
    /// Of an array, its children.
    pub array: Option<Array>,
    /// Now, by the pipeline's clock: milliseconds since 1970.
    pub now: i64,
}

impl Story {
    /// The log of an attempt.
    fn log(&self, id: &BatchJobId) -> Option<&String> {
        self.logs.iter().find(|(known, _)| known == id).map(|(_, log)| log)
    }
}

/// A job that another depends on.
#[derive(Clone, Debug)]
pub struct Parent {
    /// The id as the user gave it.
    pub given: String,
    /// Its name and state; `None` for one that isn't on record.
    pub known: Option<(String, JobState)>,
}

/// The children of an array.
#[derive(Clone, Debug, Default)]
pub struct Array {
    /// How many there are.
    pub size: i64,
    /// Those of its newest attempt that failed, in their order.
    pub failed: Vec<FailedChild>,
}

/// A child of an array that failed.
#[derive(Clone, Debug)]
pub struct FailedChild {
    /// Its index.
    pub index: i64,
    /// Exit code, where there was one.
    pub exit_code: Option<i64>,
    /// Batch's words.
    pub reason: Option<String>,
    /// Its log, when it wrote one.
    pub log: Option<String>,
}

/// Jobs as a table.
#[must_use]
pub fn list(jobs: &[Job], now: i64) -> String {
    let headings = ["ID", "NAME", "STATE", "TIER", ">PRIORITY", ">GPUS", "POOL", "TEAM", ">ATTEMPT", ">AGE", "WHY"];
    let mut columns = Columns::new(&headings);
    for job in jobs {
        columns.row([
            job.id.to_string(),
            job.name.clone(),
            job.state.as_str().to_owned(),
            or_dash(job.tier.as_str()),
            job.priority.to_string(),
            job.gpus.to_string(),
            or_dash(job.pool.as_str()),
            or_dash(job.team.as_deref().unwrap_or_default()),
            job.attempt.to_string(),
            short(now - job.created_at),
            why(job),
        ]);
    }
    columns.render()
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

/// Why a job is where it is, as far as its state item says.
fn why(job: &Job) -> String {
    match (&job.end, job.last_end) {
        (Some(end), _) => end.code.to_string(),
        (None, Some(class)) if !job.state.is_final() => format!("after {}", class.as_str()),
        _ => String::new(),
    }
}

/// One job in a list, as JSON.
#[must_use]
pub fn summary(job: &Job) -> Value {
    json!({
        "id": job.id,
        "name": job.name,
        "state": job.state,
        "tier": text_or_null(job.tier.as_str()),
        "priority": job.priority,
        "pool": text_or_null(job.pool.as_str()),
        "team": job.team,
        "gpus": job.gpus,
        "attempt": job.attempt,
        "created_at": rfc3339(job.created_at),
        "updated_at": rfc3339(job.updated_at),
        "not_before": (job.not_before > 0).then(|| rfc3339(job.not_before)),
        "end": job.end,
    })
}

fn text_or_null(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
