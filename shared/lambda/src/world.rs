//! The world that the functions run in. The adapters for AWS aren't in this version: a function says so when it
//! starts, and does nothing.

use jiff::Timestamp;
use osprey_model::definition::JobDefinition;
use osprey_model::event::JobDetail;
use osprey_model::id::{BatchJobId, MessageId, QueueName};
use osprey_ports::{
    CallError, CancelJob, Clock, DescribeJobDefinition, DescribeJobs, GetItem, IndexPage, IndexQuery, Item, JobSummary,
    Key, ListChildren, ListJobs, Notice, Notify, Page, QueryIndex, QueryItems, QueueKind, SendMessage, SortQuery,
    StoreError, SubmitCall, SubmitError, SubmitJob, TerminateJob, Write, WriteItems,
};

/// The ports of a function that can't be connected: there is no value of this type, so no call can ever be made.
#[derive(Clone, Copy, Debug)]
pub enum Unconnected {}

/// Why a function can't be connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this version has no adapters for AWS yet; run the pipeline with `osprey local run`")]
pub struct NoAdapters;

/// Connects a function to its world.
///
/// # Errors
/// Always, in this version.
pub fn connect() -> Result<Unconnected, NoAdapters> {
    Err(NoAdapters)
}

impl Clock for Unconnected {
    fn now(&self) -> Timestamp {
        match *self {}
    }
}

impl GetItem for Unconnected {
    async fn get_item(&self, _: &Key) -> Result<Option<Item>, StoreError> {
        match *self {}
    }
}

impl QueryItems for Unconnected {
    async fn query_items(&self, _: &SortQuery) -> Result<Page, StoreError> {
        match *self {}
    }
}

impl QueryIndex for Unconnected {
    async fn query_index_lagging(&self, _: &IndexQuery) -> Result<IndexPage, StoreError> {
        match *self {}
    }
}

impl WriteItems for Unconnected {
    async fn write_items(&self, _: &[Write]) -> Result<(), StoreError> {
        match *self {}
    }
}

impl SendMessage for Unconnected {
    async fn send_message(&self, _: QueueKind, _: &str, _: u32) -> Result<MessageId, CallError> {
        match *self {}
    }
}

impl Notify for Unconnected {
    async fn notify(&self, _: &Notice) -> Result<(), CallError> {
        match *self {}
    }
}

impl SubmitJob for Unconnected {
    async fn submit_job(&self, _: &SubmitCall) -> Result<BatchJobId, SubmitError> {
        match *self {}
    }
}

impl DescribeJobs for Unconnected {
    async fn describe_jobs(&self, _: &[BatchJobId]) -> Result<Vec<JobDetail>, CallError> {
        match *self {}
    }
}

impl ListJobs for Unconnected {
    async fn list_jobs(&self, _: &QueueName, _: &str, _: Timestamp) -> Result<Vec<JobSummary>, CallError> {
        match *self {}
    }
}

impl ListChildren for Unconnected {
    async fn list_failed_children(&self, _: &BatchJobId, _: usize) -> Result<Vec<BatchJobId>, CallError> {
        match *self {}
    }
}

impl CancelJob for Unconnected {
    async fn cancel_job(&self, _: &BatchJobId, _: &str) -> Result<(), CallError> {
        match *self {}
    }
}

impl TerminateJob for Unconnected {
    async fn terminate_job(&self, _: &BatchJobId, _: &str) -> Result<(), CallError> {
        match *self {}
    }
}

impl DescribeJobDefinition for Unconnected {
    async fn describe_job_definition(&self, _: &str) -> Result<Option<JobDefinition>, CallError> {
        match *self {}
    }
}
