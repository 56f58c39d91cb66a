//! Where records are and messages go: the state directory of a local pipeline, or a stack on AWS. It implements the
//! ports that commands need, so that they ask both in the same words.

use std::future::Future;
use std::path::PathBuf;

use jiff::Timestamp;
use osprey_local::{LocalWorld, StateDir};
use osprey_model::definition::JobDefinition;
use osprey_model::event::JobDetail;
use osprey_model::id::{BatchJobId, MessageId};
use osprey_model::pool::Pool;
use osprey_ports::{
    CallError, Capacity, Clock, DescribeJobDefinition, DescribeJobs, GetItem, IndexPage, IndexQuery, Item, Key,
    ObserveCapacity, Page, QueryIndex, QueryItems, QueueKind, SendMessage, SortQuery, StoreError,
};

use super::stack::Stack;
use crate::local::block_on;

/// The one or the other.
pub enum Home {
    /// A pipeline on this machine.
    Local(Box<Local>),
    /// A stack on AWS.
    Aws(Box<Stack>),
}

/// The state of a local pipeline.
pub struct Local {
    /// Its world.
    pub world: LocalWorld,
    /// Its lock.
    pub state: StateDir,
    /// Its folder.
    pub dir: PathBuf,
}

impl Home {
    /// Runs a future to its end.
    pub fn run<F: Future>(&self, future: F) -> F::Output {
        match self {
            Self::Local(_) => block_on(future),
            Self::Aws(stack) => stack.run(future),
        }
    }
}

impl Clock for Home {
    fn now(&self) -> Timestamp {
        match self {
            Self::Local(local) => local.world.now(),
            Self::Aws(stack) => stack.world().now(),
        }
    }
}

impl GetItem for Home {
    async fn get_item(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        match self {
            Self::Local(local) => local.world.get_item(key).await,
            Self::Aws(stack) => stack.world().get_item(key).await,
        }
    }
}

impl QueryItems for Home {
    async fn query_items(&self, query: &SortQuery) -> Result<Page, StoreError> {
        match self {
            Self::Local(local) => local.world.query_items(query).await,
            Self::Aws(stack) => stack.world().query_items(query).await,
        }
    }
}

impl QueryIndex for Home {
    async fn query_index_lagging(&self, query: &IndexQuery) -> Result<IndexPage, StoreError> {
        match self {
            Self::Local(local) => local.world.query_index_lagging(query).await,
            Self::Aws(stack) => stack.world().query_index_lagging(query).await,
        }
    }
}

impl SendMessage for Home {
    async fn send_message(&self, queue: QueueKind, body: &str, delay_seconds: u32) -> Result<MessageId, CallError> {
        match self {
            Self::Local(local) => local.world.send_message(queue, body, delay_seconds).await,
            Self::Aws(stack) => stack.world().send_message(queue, body, delay_seconds).await,
        }
    }
}

impl DescribeJobs for Home {
    async fn describe_jobs(&self, ids: &[BatchJobId]) -> Result<Vec<JobDetail>, CallError> {
        match self {
            Self::Local(local) => local.world.describe_jobs(ids).await,
            Self::Aws(stack) => stack.world().describe_jobs(ids).await,
        }
    }
}

impl DescribeJobDefinition for Home {
    async fn describe_job_definition(&self, name: &str) -> Result<Option<JobDefinition>, CallError> {
        match self {
            Self::Local(local) => local.world.describe_job_definition(name).await,
            Self::Aws(stack) => stack.world().describe_job_definition(name).await,
        }
    }
}

impl ObserveCapacity for Home {
    async fn observe_capacity(&self, pool: &Pool) -> Result<Capacity, CallError> {
        match self {
            Self::Local(local) => local.world.observe_capacity(pool).await,
            Self::Aws(stack) => stack.world().observe_capacity(pool).await,
        }
    }
}
