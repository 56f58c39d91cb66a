//! Everything that the handlers may ask for, in one value.

use std::collections::BTreeMap;

use jiff::Timestamp;
use osprey_model::definition::JobDefinition;
use osprey_model::event::JobDetail;
use osprey_model::id::{BatchJobId, MessageId, QueueName};
use osprey_model::pool::Pool;
use osprey_ports::{
    CallError, CancelJob, Capacity, Clock, DescribeJobDefinition, DescribeJobs, GetItem, IndexPage, IndexQuery, Item,
    JobSummary, Key, ListChildren, ListJobs, Notice, Notify, ObserveCapacity, OutgoingEvent, Page, PutEvents,
    QueryIndex, QueryItems, QueueKind, SendMessage, SortQuery, StoreError, SubmitCall, SubmitError, SubmitJob,
    SubmitRate, TerminateJob, Write, WriteItems,
};

use crate::batch::AwsBatch;
use crate::capacity::PoolCapacity;
use crate::clients::Clients;
use crate::clock::SystemClock;
use crate::events::EventBus;
use crate::notify::SnsTopic;
use crate::queues::SqsQueues;
use crate::store::DynamoStore;
use crate::tokens::SubmitTokens;

/// The names of what a process uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wiring {
    /// The table.
    pub table: String,
    /// The URLs of the queues that it may send to.
    pub queue_urls: BTreeMap<QueueKind, String>,
    /// The operators' topic.
    pub topic_arn: Option<String>,
    /// The bus for our events; the account's default bus without it.
    pub event_bus: Option<String>,
    /// SubmitJob calls a second, all processes together.
    pub submit_rate: u32,
}

/// The world on AWS. It implements every port, so a handler that is generic over the ports runs on it.
#[derive(Debug)]
pub struct World {
    store: DynamoStore,
    queues: SqsQueues,
    batch: AwsBatch,
    notify: SnsTopic,
    events: EventBus,
    capacity: PoolCapacity,
}

impl World {
    /// Puts a world together. Nothing is sent.
    #[must_use]
    pub fn new(clients: &Clients, wiring: &Wiring) -> Self {
        let tokens = SubmitTokens::new(clients.dynamodb.clone(), &wiring.table, wiring.submit_rate);
        Self {
            store: DynamoStore::new(clients.dynamodb.clone(), &wiring.table),
            queues: SqsQueues::new(clients.sqs.clone(), wiring.queue_urls.clone()),
            batch: AwsBatch::new(clients, tokens),
            notify: SnsTopic::new(clients.sns.clone(), wiring.topic_arn.clone()),
            events: EventBus::new(clients.events.clone(), wiring.event_bus.clone()),
            capacity: PoolCapacity::new(clients),
        }
    }

    /// Batch.
    #[must_use]
    pub fn batch(&self) -> &AwsBatch {
        &self.batch
    }
}

impl Clock for World {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }
}

impl GetItem for World {
    async fn get_item(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        self.store.get_item(key).await
    }
}

impl QueryItems for World {
    async fn query_items(&self, query: &SortQuery) -> Result<Page, StoreError> {
        self.store.query_items(query).await
    }
}

impl QueryIndex for World {
    async fn query_index_lagging(&self, query: &IndexQuery) -> Result<IndexPage, StoreError> {
        self.store.query_index_lagging(query).await
    }
}

impl WriteItems for World {
    async fn write_items(&self, writes: &[Write]) -> Result<(), StoreError> {
        self.store.write_items(writes).await
    }
}

impl SendMessage for World {
    async fn send_message(&self, queue: QueueKind, body: &str, delay_seconds: u32) -> Result<MessageId, CallError> {
        self.queues.send_message(queue, body, delay_seconds).await
    }
}

impl Notify for World {
    async fn notify(&self, notice: &Notice) -> Result<(), CallError> {
        self.notify.notify(notice).await
    }
}

impl PutEvents for World {
    async fn put_events(&self, events: &[OutgoingEvent]) -> Result<(), CallError> {
        self.events.put_events(events).await
    }
}

impl SubmitJob for World {
    async fn submit_job(&self, call: &SubmitCall) -> Result<BatchJobId, SubmitError> {
        self.batch.submit_job(call).await
    }
}

impl SubmitRate for World {
    async fn may_submit(&self) -> Result<(), Timestamp> {
        self.batch.tokens().ready().await
    }
}

impl DescribeJobs for World {
    async fn describe_jobs(&self, ids: &[BatchJobId]) -> Result<Vec<JobDetail>, CallError> {
        self.batch.describe_jobs(ids).await
    }
}

impl ListJobs for World {
    async fn list_jobs(
        &self,
        queue: &QueueName,
        name: &str,
        created_from: Timestamp,
    ) -> Result<Vec<JobSummary>, CallError> {
        self.batch.list_jobs(queue, name, created_from).await
    }
}

impl ListChildren for World {
    async fn list_failed_children(&self, parent: &BatchJobId, limit: usize) -> Result<Vec<BatchJobId>, CallError> {
        self.batch.list_failed_children(parent, limit).await
    }
}

impl CancelJob for World {
    async fn cancel_job(&self, id: &BatchJobId, reason: &str) -> Result<(), CallError> {
        self.batch.cancel_job(id, reason).await
    }
}

impl TerminateJob for World {
    async fn terminate_job(&self, id: &BatchJobId, reason: &str) -> Result<(), CallError> {
        self.batch.terminate_job(id, reason).await
    }
}

impl DescribeJobDefinition for World {
    async fn describe_job_definition(&self, name: &str) -> Result<Option<JobDefinition>, CallError> {
        self.batch.describe_job_definition(name).await
    }
}

impl ObserveCapacity for World {
    async fn observe_capacity(&self, pool: &Pool) -> Result<Capacity, CallError> {
        self.capacity.observe(&self.batch, pool).await
    }
}
