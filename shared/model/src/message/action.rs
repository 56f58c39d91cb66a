//! What may be asked for by message besides a job.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{JobId, PoolName, TierName};
use crate::pool::PoolMode;

/// Something to be done to a job, a dead letter, a pool or the policy; the body carries its name as `action`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Action {
    /// Ends a job for good.
    CancelJob {
        /// The job.
        job_id: JobId,
        /// Why, for the record and for Batch.
        reason: String,
    },
    /// Starts a job again that has ended.
    RequeueJob {
        /// The job.
        job_id: JobId,
        /// Why, for the record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Keeps a waiting job from starting.
    HoldJob {
        /// The job.
        job_id: JobId,
        /// Why, for the record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Lets a held job start.
    ReleaseJob {
        /// The job.
        job_id: JobId,
        /// Why, for the record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Takes a running job off its GPUs as if a more urgent one came: it comes back without a penalty.
    PreemptJob {
        /// The job.
        job_id: JobId,
        /// Why, for the record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Says where a job's newest checkpoint is: what comes after it is what an eviction would cost.
    ReportCheckpoint {
        /// The job.
        job_id: JobId,
        /// Where it is: later attempts get this as `OSPREY_RESUME_URI`.
        uri: String,
        /// How much of its work the job has done, in percent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        progress: Option<u32>,
    },
    /// Moves a waiting job to the front of its tier.
    TopJob {
        /// The job.
        job_id: JobId,
        /// Why, for the record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A step of a graph of jobs says that what comes after it matters more, or less, than was derived.
    ReportPriority {
        /// The step.
        job_id: JobId,
        /// Points above, or below 0, what is derived for the jobs after it; 0 takes an earlier report back.
        points: i32,
        /// Why, for the record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Lets a pool, or one tier of it, start nothing more. What runs goes on.
    DrainPool {
        /// The pool.
        pool: PoolName,
        /// The tier; without one, all of the pool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tier: Option<TierName>,
        /// Why, for the record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Ends that.
    ResumePool {
        /// The pool.
        pool: PoolName,
        /// The tier; without one, all of the pool, its tiers included.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tier: Option<TierName>,
        /// Why, for the record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Keeps GPUs of a pool for a team until a time.
    Reserve {
        /// The pool.
        pool: PoolName,
        /// The team.
        team: String,
        /// GPUs, what its jobs hold included; 0 ends it.
        gpus: u32,
        /// Until when, RFC 3339.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
        /// Why, for the record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Puts a policy into force.
    ApplyPolicy {
        /// The file's text.
        policy: String,
        /// Why, for the record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Sets how jobs of a pool reach Batch, and whether its cycles may evict.
    SetMode {
        /// The pool.
        pool: PoolName,
        /// The mode; without one it stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<PoolMode>,
        /// Whether running jobs may be evicted for more urgent ones; without it that stays.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preemption: Option<bool>,
        /// Why, for the record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Sends a dead letter through again.
    RedriveDeadLetter {
        /// The dead letter.
        dead_letter_id: String,
    },
    /// Closes a dead letter without sending it again.
    DiscardDeadLetter {
        /// The dead letter.
        dead_letter_id: String,
        /// Why, for the record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// What an action is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// A job.
    Job(JobId),
    /// A dead letter, by the id that was given.
    DeadLetter(&'a str),
    /// A pool.
    Pool(&'a PoolName),
    /// The policy, by the text that is to be put into force.
    Policy(&'a str),
}

impl Action {
    /// What it is about.
    #[must_use]
    pub fn subject(&self) -> Subject<'_> {
        match self {
            Self::CancelJob { job_id, .. }
            | Self::RequeueJob { job_id, .. }
            | Self::HoldJob { job_id, .. }
            | Self::ReleaseJob { job_id, .. }
            | Self::PreemptJob { job_id, .. }
            | Self::ReportCheckpoint { job_id, .. }
            | Self::TopJob { job_id, .. }
            | Self::ReportPriority { job_id, .. } => Subject::Job(*job_id),
            Self::RedriveDeadLetter { dead_letter_id } | Self::DiscardDeadLetter { dead_letter_id, .. } => {
                Subject::DeadLetter(dead_letter_id)
            }
            Self::DrainPool { pool, .. }
            | Self::ResumePool { pool, .. }
            | Self::Reserve { pool, .. }
            | Self::SetMode { pool, .. } => Subject::Pool(pool),
            Self::ApplyPolicy { policy, .. } => Subject::Policy(policy),
        }
    }
}
