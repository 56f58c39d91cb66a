//! What Batch says of a job: `DescribeJobs` and the "Batch Job State Change" event carry the same detail.
//!
//! Everything that AWS does not promise to send is optional, and unknown members are ignored: AWS announces that
//! it will add some.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Envelope of an EventBridge event from Batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BatchEvent {
    /// Id of the event; a repeated event may have another one.
    #[serde(default)]
    pub id: String,
    /// `Batch Job State Change`, `Batch Job Queue Blocked`, …
    pub detail_type: String,
    /// `aws.batch`.
    pub source: String,
    /// When the event was made.
    pub time: Timestamp,
    /// ARNs of what it is about.
    #[serde(default)]
    pub resources: Vec<String>,
    /// The job.
    pub detail: JobDetail,
}

/// The detail type of a job's state change.
pub const JOB_STATE_CHANGE: &str = "Batch Job State Change";

/// One job as Batch describes it. Times are milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobDetail {
    /// ARN.
    pub job_arn: String,
    /// Name, as submitted.
    pub job_name: String,
    /// Batch's id; a child of an array is `PARENT:INDEX`.
    pub job_id: String,
    /// ARN of the queue.
    pub job_queue: String,
    /// `SUBMITTED`, `PENDING`, `RUNNABLE`, `STARTING`, `RUNNING`, `SUCCEEDED`, `FAILED`.
    pub status: BatchStatus,
    /// Why it is so.
    pub status_reason: Option<String>,
    /// Share it is charged to.
    pub share_identifier: Option<String>,
    /// Priority inside the share.
    pub scheduling_priority: Option<i64>,
    /// Attempts that ended.
    pub attempts: Vec<AttemptDetail>,
    /// When it was submitted.
    pub created_at: Option<i64>,
    /// When the latest attempt started.
    pub started_at: Option<i64>,
    /// When the latest attempt ended.
    pub stopped_at: Option<i64>,
    /// ARN of the definition, with revision.
    pub job_definition: String,
    /// The container, merged from definition and overrides.
    pub container: Option<ContainerDetail>,
    /// Array size, index, and how many children are in which status.
    pub array_properties: Option<ArrayDetail>,
    /// Tags, and in events the injected key `resourceArn`.
    pub tags: BTreeMap<String, String>,
    /// Whether CancelJob was called.
    pub is_cancelled: Option<bool>,
    /// Whether TerminateJob was called.
    pub is_terminated: Option<bool>,
}

/// The states of a Batch job, in the order it passes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum BatchStatus {
    /// Accepted.
    #[default]
    Submitted,
    /// Waits for dependencies, or an array whose children run.
    Pending,
    /// Waits for capacity.
    Runnable,
    /// Placed, its container is being started.
    Starting,
    /// Runs.
    Running,
    /// Ended well.
    Succeeded,
    /// Ended otherwise.
    Failed,
}

impl BatchStatus {
    /// Whether the job has ended.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }

    /// The word in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "SUBMITTED",
            Self::Pending => "PENDING",
            Self::Runnable => "RUNNABLE",
            Self::Starting => "STARTING",
            Self::Running => "RUNNING",
            Self::Succeeded => "SUCCEEDED",
            Self::Failed => "FAILED",
        }
    }
}

/// One attempt that ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AttemptDetail {
    /// The container of the attempt.
    pub container: ContainerDetail,
    /// Start.
    pub started_at: Option<i64>,
    /// End.
    pub stopped_at: Option<i64>,
    /// Why it ended.
    pub status_reason: Option<String>,
}

/// What is known of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerDetail {
    /// Exit code, where there was one.
    pub exit_code: Option<i64>,
    /// Short text of the container agent.
    pub reason: Option<String>,
    /// The log stream.
    pub log_stream_name: Option<String>,
    /// The instance it ran on.
    pub container_instance_arn: Option<String>,
}

/// Array members of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ArrayDetail {
    /// Number of children, on the parent.
    pub size: Option<i64>,
    /// Index, on a child.
    pub index: Option<i64>,
    /// Children by status, on the parent.
    pub status_summary: BTreeMap<String, i64>,
}

impl JobDetail {
    /// Whether this is a child of an array, or a node of a multi-node job, and not the job itself.
    #[must_use]
    pub fn is_part(&self) -> bool {
        self.job_id.contains(':') || self.job_id.contains('#')
    }

    /// Every text that says why the job ended, none twice: status reasons first, then container reasons.
    #[must_use]
    pub fn reasons(&self) -> Vec<&str> {
        let last = self.attempts.last();
        let texts = [
            self.status_reason.as_deref(),
            last.and_then(|a| a.status_reason.as_deref()),
            last.and_then(|a| a.container.reason.as_deref()),
            self.container.as_ref().and_then(|c| c.reason.as_deref()),
        ];
        let mut reasons: Vec<&str> = Vec::new();
        for text in texts.into_iter().flatten() {
            if !text.is_empty() && !reasons.contains(&text) {
                reasons.push(text);
            }
        }
        reasons
    }

    /// Exit code of the newest attempt, where there was one.
    #[must_use]
    pub fn exit_code(&self) -> Option<i64> {
        self.attempts
            .last()
            .and_then(|a| a.container.exit_code)
            .or_else(|| self.container.as_ref().and_then(|c| c.exit_code))
    }
}
