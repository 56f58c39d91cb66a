//! What the handlers may ask of the world: one trait a verb, each verb one call of an AWS API.
//!
//! A handler's trait bounds are therefore its permissions. The store's verbs have DynamoDB's semantics (conditions,
//! transactions, limits, an index that lags), the queue's SQS's, and the Batch verbs Batch's, so one implementation
//! of everything above them runs on AWS, on the embedded store and in the test harness.
//!
//! Errors say whether the call may have had an effect; that is the only thing a caller has to know to be safe.

pub mod batch;
pub mod capacity;
pub mod clock;
pub mod events;
pub mod limits;
pub mod notify;
pub mod queue;
pub mod store;

pub use batch::{
    CancelJob, DescribeJobDefinition, DescribeJobs, JobSummary, ListChildren, ListJobs, SubmitCall, SubmitError,
    SubmitJob, SubmitRate, TerminateJob,
};
pub use capacity::{Capacity, NodeCapacity, ObserveCapacity};
pub use clock::Clock;
pub use events::{OutgoingEvent, PutEvents};
pub use notify::{Notice, Notify};
pub use queue::{QueueKind, ReceivedMessage, SendMessage};
pub use store::{
    Expect, GetItem, Index, IndexEntry, IndexPage, IndexQuery, Item, Key, Page, QueryIndex, QueryItems, SortQuery,
    StoreError, Write, WriteItems,
};

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// It was turned away for its rate; nothing happened.
    #[error("the call was throttled")]
    Throttled,
    /// It was refused; nothing happened, and the same call will be refused again.
    #[error("the call was refused: {0}")]
    Refused(String),
    /// The role may not make it; nothing happened. It will be made once somebody has permitted it.
    #[error("the call was denied: {0}")]
    Denied(String),
    /// Whether it took effect isn't known.
    #[error("the call may or may not have taken effect: {0}")]
    Unknown(String),
}
