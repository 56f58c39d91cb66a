//! Reasons: a closed set of codes, stable in metrics, records and JSON. The sentence goes with each use.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a message was refused, or kept as a dead letter, or a job ended without success.
///
/// The code is an interface: a code is never renamed or given another meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ReasonCode {
    // The message.
    /// The body is not JSON.
    NotJson,
    /// The body is not text that a queue can carry.
    NotText,
    /// The body is JSON and no object.
    NotAnObject,
    /// A member that the request doesn't have.
    UnknownMember,
    /// A member of the wrong type.
    WrongType,
    /// A member that must be there and isn't.
    MissingMember,
    /// A member given twice.
    DuplicateMember,
    /// Text with a character that nothing further on can carry.
    InvalidText,
    /// An action that doesn't exist.
    UnknownAction,
    /// A job id that is no UUID.
    InvalidJobId,
    /// An id that belongs to a job with another payload or another sender.
    IdReused,
    /// A metadata value that can't be read.
    InvalidMetadata,
    /// One metadata key given twice with different values.
    AmbiguousMetadata,
    // Limits of Batch.
    /// The request is larger than Batch takes.
    RequestTooLarge,
    /// The overrides are longer than a container takes.
    OverridesTooLong,
    /// A job name that Batch would refuse.
    InvalidJobName,
    /// More dependencies than Batch takes.
    TooManyDependencies,
    /// A dependency entry that says nothing or contradicts itself.
    InvalidDependency,
    /// More tags than Batch takes, with Osprey's own.
    TooManyTags,
    /// A tag that Batch would refuse.
    InvalidTag,
    /// An environment variable that Batch would refuse.
    InvalidEnvironment,
    /// A command that Batch would refuse.
    InvalidCommand,
    /// A share identifier that Batch would refuse.
    InvalidShare,
    /// A scheduling priority outside 0 to 9999.
    InvalidPriority,
    /// An array size outside 2 to 10,000.
    InvalidArraySize,
    /// A time-out below 60 seconds.
    InvalidTimeout,
    /// A retry strategy that Batch would refuse.
    InvalidRetryStrategy,
    /// Overrides that exclude each other.
    ConflictingOverrides,
    /// A resource amount that is no positive whole number, or out of range.
    InvalidResource,
    // What the pools and the policy allow.
    /// A queue name that is neither a pool nor a tier queue.
    UnknownQueue,
    /// A job definition that isn't registered.
    UnknownDefinition,
    /// Nothing to run.
    MissingCommand,
    /// GPUs that neither divide a node nor fill whole nodes.
    GpuShape,
    /// More than the pool has.
    LargerThanPool,
    /// No pool is open to the job.
    NoEligiblePool,
    /// A multi-node job without an On-Demand pool.
    MultiNodeOnSpot,
    /// A multi-node job where none can run.
    MultiNodeUnsupported,
    /// An array wider than the policy allows.
    ArrayTooWide,
    /// A checkpoint interval above the tier's window.
    CheckpointTooRare,
    /// No checkpoint interval, and it may run longer than the tier's window.
    CheckpointMissing,
    /// A duration above the policy's cap.
    DurationOverCap,
    /// Metadata that the policy demands.
    MissingMetadata,
    /// More jobs than the sender's identity lets in within a day.
    TooManyJobs,
    /// More than the team's quota allows.
    QuotaExceeded,
    // Dependencies.
    /// A dependency that nobody knows.
    UnknownDependency,
    /// A dependency that ended without success.
    FailedDependency,
    /// A job that depends on itself.
    SelfDependency,
    /// A job that names itself as its parent.
    SelfParent,
    /// Jobs that wait for each other.
    DependencyCycle,
    // Ends.
    /// The failure budget is spent.
    FailuresExhausted,
    /// The interruption budget is spent.
    InterruptionsExhausted,
    /// It ended in a way that another try can't mend.
    NotRetryable,
    /// Batch refused the submission for good.
    BatchRefused,
    /// A person cancelled it.
    Cancelled,
    /// The message came back more often than a queue allows.
    TooManyReceives,
    /// A broken invariant: a fault of Osprey.
    Broken,
    // Actions.
    /// An action on a job that nobody knows.
    UnknownJob,
    /// An action that the job's state doesn't allow.
    WrongState,
    /// A policy that can't be put into force.
    InvalidPolicy,
    /// A pool that doesn't exist.
    UnknownPool,
    /// A tier that the policy doesn't have.
    UnknownTier,
    /// More than the sender's identity allows.
    NotAllowed,
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A code and the one sentence that goes with it: what was wrong, the limit, what was given, the way out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Stable code.
    pub code: ReasonCode,
    /// The sentence, lower case, without a final period, user input in backticks.
    pub message: String,
}

impl Refusal {
    /// Puts a code and its sentence together.
    pub fn new(code: ReasonCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}
