//! Metadata: what a job says of itself by tags or by `OSPREY_*` variables.
//!
//! Keys ignore letter case, `-` and `_`. Tags win over variables. Values are trimmed; the words that rules compare
//! (`team`, `environment`, `workload`, `priority-class`) are lower-cased, so ` Production ` is `production`.

mod amount;
mod duration;
mod flag;
mod key;
mod read;
mod size;
mod source;

use serde::{Deserialize, Serialize};

pub use amount::AmountError;
pub use duration::{format_duration, parse_duration};
pub use flag::parse_flag;
pub use key::Key;
pub use size::parse_size;

/// The metadata of one job. Absent is `None`; durations are seconds, sizes are bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// Team, lower case.
    pub team: Option<String>,
    /// Project, as given.
    pub project: Option<String>,
    /// User (alias `owner`), as given.
    pub user: Option<String>,
    /// Environment (alias `env`), lower case.
    pub environment: Option<String>,
    /// Workload (alias `workload-type`), lower case.
    pub workload: Option<String>,
    /// Whether it may be evicted (alias `preemptible-flag`).
    pub preemptible: Option<bool>,
    /// Longest run of an attempt in seconds; a time-out counts as one.
    pub max_duration: Option<u64>,
    /// Expected run in seconds.
    pub expected_duration: Option<u64>,
    /// Seconds between two checkpoints.
    pub checkpoint_interval: Option<u64>,
    /// Size of the data in bytes.
    pub dataset_size: Option<u64>,
    /// When it should be done (alias `deadline`).
    pub sla: Option<Sla>,
    /// The job it comes from: ours or Batch's id.
    pub parent_job_id: Option<String>,
    /// The tier it asks for at most, lower case.
    pub priority_class: Option<String>,
}

/// When a job should be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sla {
    /// Seconds from submission.
    Within(u64),
    /// A fixed time, milliseconds since 1970.
    At(i64),
}
