//! Everything that the handlers may ask for, in one value.

use std::sync::Arc;

use jiff::Timestamp;
use osprey_local_batch::{LocalBatch, Options};
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

use crate::batch::LocalBatchPorts;
use crate::clock::{ScaledClock, VirtualClock};
use crate::database::Database;
use crate::documents::LocalDocuments;
use crate::events;
use crate::notify::LocalNotify;
use crate::queues::LocalQueues;
use crate::state_dir::StateDir;
use crate::store::LocalStore;

/// How a process takes part in the time of a state directory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Time {
    /// It runs the pipeline (and holds the directory's lock), so that it sets how fast time goes.
    Set {
        /// How many times as fast as real time.
        speed: f64,
    },
    /// It goes by the time that the pipeline has set.
    Join,
}

/// The world on this machine: store, queues, Batch, notices and clock of one state directory. It implements every
/// port, so a handler that is generic over the ports runs on it. Clones share everything.
#[derive(Clone)]
pub struct LocalWorld {
    parts: Arc<Parts>,
}

/// What a world is made of.
#[derive(Clone)]
struct Parts {
    database: Arc<Database>,
    store: LocalStore,
    queues: LocalQueues,
    batch: LocalBatchPorts,
    notify: LocalNotify,
    documents: LocalDocuments,
    clock: Arc<dyn VirtualClock>,
    /// Queues that get a copy of every event.
    event_copies: Vec<String>,
}

/// A world that can't be opened; one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WorldError(String);

impl LocalWorld {
    /// Opens the world of a state directory. The clock of `batch` is replaced by the directory's. Whoever sets the
    /// time also drops what has expired.
    ///
    /// # Errors
    ///
    /// A sentence when the store or the local Batch can't be opened, or the speed is none.
    pub fn open(state: &StateDir, time: Time, batch: Options) -> Result<Self, WorldError> {
        let failed = |error: &dyn std::error::Error| WorldError(error.to_string());
        let database = Arc::new(Database::open(&state.database_path()).map_err(|error| failed(&error))?);
        let clock = match time {
            Time::Set { speed } => ScaledClock::open(database.clone(), speed),
            Time::Join => ScaledClock::join(database.clone()),
        };
        let clock = Arc::new(clock.map_err(|error| failed(&error))?);
        let options = Options { clock: clock.clone(), ..batch };
        let batch = LocalBatch::open(state.path(), options).map_err(|error| failed(&error))?;
        let world = Self::new(database, batch, clock.clone());
        if let Time::Set { .. } = time {
            world.store().sweep(clock.now()).map_err(|error| failed(&error))?;
        }
        Ok(world)
    }

    /// Puts a world together. `batch` has to go by `clock`.
    #[must_use]
    pub fn new(database: Arc<Database>, batch: LocalBatch, clock: Arc<dyn VirtualClock>) -> Self {
        let parts = Parts {
            store: LocalStore::new(database.clone(), clock.clone()),
            queues: LocalQueues::new(database.clone(), clock.clone()),
            batch: LocalBatchPorts::new(batch, clock.clone()),
            notify: LocalNotify::new(database.clone(), clock.clone()),
            documents: LocalDocuments::new(database.clone()),
            event_copies: Vec::new(),
            database,
            clock,
        };
        Self { parts: Arc::new(parts) }
    }

    /// The same world with another store, such as one whose indexes lag; for tests.
    #[must_use]
    pub fn with_store(self, store: LocalStore) -> Self {
        Self { parts: Arc::new(Parts { store, ..Arc::unwrap_or_clone(self.parts) }) }
    }

    /// The same world with other queues, such as ones of another sender.
    #[must_use]
    pub fn with_queues(self, queues: LocalQueues) -> Self {
        Self { parts: Arc::new(Parts { queues, ..Arc::unwrap_or_clone(self.parts) }) }
    }

    /// The same world in which the queues of these names get a copy of every event that is moved from now on.
    #[must_use]
    pub fn with_event_copies(self, queues: Vec<String>) -> Self {
        Self { parts: Arc::new(Parts { event_copies: queues, ..Arc::unwrap_or_clone(self.parts) }) }
    }

    /// The database file.
    #[must_use]
    pub fn database(&self) -> &Arc<Database> {
        &self.parts.database
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &LocalStore {
        &self.parts.store
    }

    /// The queues.
    #[must_use]
    pub fn queues(&self) -> &LocalQueues {
        &self.parts.queues
    }

    /// The local Batch.
    #[must_use]
    pub fn batch(&self) -> &LocalBatch {
        self.parts.batch.batch()
    }

    /// The notices.
    #[must_use]
    pub fn notify(&self) -> &LocalNotify {
        &self.parts.notify
    }

    /// The documents of a front door.
    #[must_use]
    pub fn documents(&self) -> &LocalDocuments {
        &self.parts.documents
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn VirtualClock> {
        &self.parts.clock
    }

    /// Moves the events of the local Batch that are due to the event queue, and says how many that were.
    ///
    /// # Errors
    ///
    /// As [`LocalBatchPorts::pump_events`].
    pub fn pump_events(&self) -> Result<usize, CallError> {
        self.parts.batch.pump_events(&self.parts.queues, &self.parts.event_copies)
    }
}

impl Clock for LocalWorld {
    fn now(&self) -> Timestamp {
        Clock::now(&*self.parts.clock)
    }
}

impl GetItem for LocalWorld {
    async fn get_item(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        self.parts.store.get(key)
    }
}

impl QueryItems for LocalWorld {
    async fn query_items(&self, query: &SortQuery) -> Result<Page, StoreError> {
        self.parts.store.query(query)
    }
}

impl QueryIndex for LocalWorld {
    async fn query_index_lagging(&self, query: &IndexQuery) -> Result<IndexPage, StoreError> {
        self.parts.store.query_index(query)
    }
}

impl WriteItems for LocalWorld {
    async fn write_items(&self, writes: &[Write]) -> Result<(), StoreError> {
        self.parts.store.write(writes)
    }
}

impl SendMessage for LocalWorld {
    async fn send_message(&self, queue: QueueKind, body: &str, delay_seconds: u32) -> Result<MessageId, CallError> {
        self.parts.queues.send(queue, body, delay_seconds)
    }
}

impl SubmitJob for LocalWorld {
    async fn submit_job(&self, call: &SubmitCall) -> Result<BatchJobId, SubmitError> {
        self.parts.batch.submit_job(call).await
    }
}

impl SubmitRate for LocalWorld {}

impl DescribeJobs for LocalWorld {
    async fn describe_jobs(&self, ids: &[BatchJobId]) -> Result<Vec<JobDetail>, CallError> {
        self.parts.batch.describe_jobs(ids).await
    }
}

impl ListJobs for LocalWorld {
    async fn list_jobs(
        &self,
        queue: &QueueName,
        name: &str,
        created_from: Timestamp,
    ) -> Result<Vec<JobSummary>, CallError> {
        self.parts.batch.list_jobs(queue, name, created_from).await
    }
}

impl ListChildren for LocalWorld {
    async fn list_failed_children(&self, parent: &BatchJobId, limit: usize) -> Result<Vec<BatchJobId>, CallError> {
        self.parts.batch.list_failed_children(parent, limit).await
    }
}

impl CancelJob for LocalWorld {
    async fn cancel_job(&self, id: &BatchJobId, reason: &str) -> Result<(), CallError> {
        self.parts.batch.cancel_job(id, reason).await
    }
}

impl TerminateJob for LocalWorld {
    async fn terminate_job(&self, id: &BatchJobId, reason: &str) -> Result<(), CallError> {
        self.parts.batch.terminate_job(id, reason).await
    }
}

impl DescribeJobDefinition for LocalWorld {
    async fn describe_job_definition(&self, name: &str) -> Result<Option<JobDefinition>, CallError> {
        self.parts.batch.describe_job_definition(name).await
    }
}

impl ObserveCapacity for LocalWorld {
    async fn observe_capacity(&self, pool: &Pool) -> Result<Capacity, CallError> {
        self.parts.batch.observe_capacity(pool).await
    }
}

impl PutEvents for LocalWorld {
    async fn put_events(&self, events: &[OutgoingEvent]) -> Result<(), CallError> {
        if self.parts.event_copies.is_empty() {
            return Ok(());
        }
        let time = self.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let bodies: Vec<String> = events.iter().map(|event| events::text(event, &time)).collect();
        let targets: Vec<&str> = self.parts.event_copies.iter().map(String::as_str).collect();
        self.parts.queues.clone().with_sender(events::SENDER).send_all(&targets, &bodies)
    }
}

impl Notify for LocalWorld {
    async fn notify(&self, notice: &Notice) -> Result<(), CallError> {
        self.parts.notify.keep(notice)
    }
}
