//! Batch.

use jiff::Timestamp;
use osprey_model::definition::JobDefinition;
use osprey_model::event::JobDetail;
use osprey_model::id::{BatchJobId, QueueName};
use osprey_model::request::SubmitJobRequest;

use crate::CallError;

/// One submission, made at most once by the adapter: it never repeats a call whose outcome it doesn't know.
#[derive(Clone, Debug, PartialEq)]
pub struct SubmitCall {
    /// The request, ready for Batch.
    pub request: SubmitJobRequest,
    /// The adapter reads the clock right before it signs and sends, and refuses with [`SubmitError::NotSent`] after
    /// this time: a claim that was taken long ago must not act.
    pub not_after: Timestamp,
}

/// A submission that gave no job id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// Turned away for its rate; no job was made.
    #[error("the call was throttled")]
    Throttled,
    /// It was too late to send, or no connection was had; no job was made.
    #[error("the call was not sent: {0}")]
    NotSent(String),
    /// Batch refused the request (400); no job was made, and the same request will be refused again.
    #[error("batch refused the request: {0}")]
    Refused(String),
    /// Whether a job was made isn't known.
    #[error("whether a job was made isn't known: {0}")]
    Unknown(String),
}

/// Submits a job (`batch:SubmitJob`).
pub trait SubmitJob {
    /// Submits once.
    fn submit_job(&self, call: &SubmitCall) -> impl Future<Output = Result<BatchJobId, SubmitError>> + Send;
}

/// The pipeline's share of the account's SubmitJob calls.
pub trait SubmitRate {
    /// Whether a submission may be made now; else the time before which none should be tried. A world that is alone
    /// with its Batch always says yes.
    fn may_submit(&self) -> impl Future<Output = Result<(), Timestamp>> + Send {
        std::future::ready(Ok(()))
    }
}

/// Describes jobs (`batch:DescribeJobs`).
pub trait DescribeJobs {
    /// Describes at most 100 jobs. A job that Batch has forgotten is left out.
    fn describe_jobs(&self, ids: &[BatchJobId]) -> impl Future<Output = Result<Vec<JobDetail>, CallError>> + Send;
}

/// Most ids in one DescribeJobs call; a limit of Batch.
pub const DESCRIBE_JOBS_MAX: usize = 100;

/// A row of a job list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSummary {
    /// Batch's id.
    pub id: BatchJobId,
    /// Name.
    pub name: String,
    /// When it was submitted.
    pub created_at: Timestamp,
}

/// Lists jobs by name (`batch:ListJobs`).
pub trait ListJobs {
    /// Lists jobs of `queue` named `name` (Batch ignores letter case) that were created at or after `created_from`,
    /// newest first, whatever their status. The list may lag behind, without bound.
    fn list_jobs(
        &self,
        queue: &QueueName,
        name: &str,
        created_from: Timestamp,
    ) -> impl Future<Output = Result<Vec<JobSummary>, CallError>> + Send;
}

/// Lists an array's children that failed (`batch:ListJobs`).
pub trait ListChildren {
    /// Ids of the children of `parent` that are FAILED; at most `limit`.
    fn list_failed_children(
        &self,
        parent: &BatchJobId,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<BatchJobId>, CallError>> + Send;
}

/// Cancels a job that has not started (`batch:CancelJob`).
pub trait CancelJob {
    /// Cancels; succeeds without effect on a job that is starting or running.
    fn cancel_job(&self, id: &BatchJobId, reason: &str) -> impl Future<Output = Result<(), CallError>> + Send;
}

/// Stops a job in any state (`batch:TerminateJob`).
pub trait TerminateJob {
    /// Stops a job; `reason` comes back as its status reason.
    fn terminate_job(&self, id: &BatchJobId, reason: &str) -> impl Future<Output = Result<(), CallError>> + Send;
}

/// Reads a job definition (`batch:DescribeJobDefinitions`).
pub trait DescribeJobDefinition {
    /// The definition that `name` (name, `name:revision` or ARN) stands for; the newest active revision when none is
    /// given; `None` when there is none.
    fn describe_job_definition(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<Option<JobDefinition>, CallError>> + Send;
}
