//! A table that counts what it is asked for, a pool as it is told to be, and a clock that is set.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll, Waker};

use jiff::Timestamp;
use osprey_local::{Database, LocalStore, ManualClock, StateDir};
use osprey_model::definition::JobDefinition;
use osprey_model::event::{BatchStatus, JobDetail};
use osprey_model::id::{BatchJobId, MessageId};
use osprey_model::pool::{CapacityType, Pool, PoolMode};
use osprey_model::sender::Sender;
use osprey_pipeline::{repository, wake};
use osprey_policy::Policy;
use osprey_ports::{
    CallError, Capacity, Clock, DescribeJobDefinition, DescribeJobs, GetItem, IndexPage, IndexQuery, Item, Key,
    ListChildren, NodeCapacity, ObserveCapacity, OutgoingEvent, Page, PutEvents, QueryIndex, QueryItems, QueueKind,
    ReceivedMessage, SendMessage, SortQuery, StoreError, SubmitCall, SubmitError, SubmitJob, SubmitRate, TerminateJob,
    Write, WriteItems,
};

pub type Checked = Result<(), Box<dyn std::error::Error>>;

/// Everything here is done at the first poll.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())) {
            return output;
        }
    }
}

/// The world. A pool is one full node unless it is told otherwise.
pub struct World {
    pub store: LocalStore,
    dir: std::path::PathBuf,
    requests: AtomicU32,
    write_units: AtomicUsize,
    write_requests: AtomicUsize,
    clock: Arc<ManualClock>,
    /// What each pool has, by name.
    pub capacity: Mutex<std::collections::BTreeMap<String, Capacity>>,
    /// What was submitted, in order.
    pub submitted: Mutex<Vec<SubmitCall>>,
    /// Messages that were sent, in order.
    pub sent: Mutex<Vec<(QueueKind, String)>>,
    /// What Batch was asked for, in order: `submit NAME`, `terminate ID REASON`.
    pub calls: Mutex<Vec<String>>,
    /// What becomes of the next submission, where it isn't taken.
    refusal: Mutex<Option<SubmitError>>,
    /// Whether stops fail.
    is_deaf: AtomicBool,
}

impl World {
    pub fn new(name: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let dir = std::env::temp_dir().join(format!("osprey-cycle-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let state = StateDir::open(&dir)?;
        let database = Arc::new(Database::open(&state.database_path())?);
        let clock = Arc::new(ManualClock::new(noon()?));
        let store = LocalStore::new(database, Arc::<ManualClock>::clone(&clock));
        let (requests, write_units, write_requests) = (AtomicU32::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let (capacity, submitted, sent) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (calls, refusal, is_deaf) = (Mutex::default(), Mutex::default(), AtomicBool::new(false));
        Ok(Self {
            store,
            dir,
            requests,
            write_units,
            write_requests,
            clock,
            capacity,
            submitted,
            sent,
            calls,
            refusal,
            is_deaf,
        })
    }

    /// The next submission fails so.
    pub fn refuse_submissions(&self, how: SubmitError) {
        *self.refusal.lock().unwrap() = Some(how);
    }

    /// Whether stops fail from now on.
    pub fn deaf(&self, is_deaf: bool) {
        self.is_deaf.store(is_deaf, Ordering::Relaxed);
    }

    /// Write requests so far.
    pub fn write_requests(&self) -> usize {
        self.write_requests.load(Ordering::Relaxed)
    }

    /// Write units of the table so far: a kilobyte begun is one, and two in a transaction.
    pub fn write_units(&self) -> usize {
        self.write_units.load(Ordering::Relaxed)
    }

    /// Requests so far.
    pub fn requests(&self) -> u32 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Where the table is.
    pub fn dir(&self) -> &std::path::Path {
        &self.dir
    }

    /// The time, milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.clock.now().as_millisecond()
    }

    /// Lets time pass.
    pub fn pass(&self, seconds: i64) {
        self.clock.advance(jiff::SignedDuration::from_secs(seconds));
    }

    /// Says what a pool has: free nodes of eight GPUs, and how many more it may have.
    pub fn has(&self, pool: &str, nodes: u32, obtainable: u32) {
        let node = |number| NodeCapacity { id: format!("n-{number}"), gpus: 8, ..NodeCapacity::default() };
        let capacity = Capacity { nodes: (0..nodes).map(node).collect(), obtainable };
        self.capacity.lock().unwrap().insert(pool.to_owned(), capacity);
    }

    fn count(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}

/// Noon of this day, so that no run of a test goes over a midnight, which costs a row more.
fn noon() -> Result<Timestamp, jiff::Error> {
    const DAY: i64 = 86_400;
    Timestamp::from_second(Timestamp::now().as_second().div_euclid(DAY) * DAY + DAY / 2)
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Bytes of an item in DynamoDB: names count too. Its version and its writer's mark are 15 bytes.
fn bytes(write: &Write) -> usize {
    let Write::Put { item, .. } = write else { return 1 };
    let entry = |entry: &osprey_ports::IndexEntry| {
        2 * format!("{:?}_pk", entry.index).len() + entry.partition.len() + entry.sort.len()
    };
    let indexes: usize = item.indexes.iter().map(entry).sum();
    "pkskbody".len() + 15 + item.key.partition.len() + item.key.sort.len() + item.body.len() + indexes
}

impl GetItem for World {
    async fn get_item(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        self.count();
        self.store.get(key)
    }
}

impl QueryItems for World {
    async fn query_items(&self, query: &SortQuery) -> Result<Page, StoreError> {
        self.count();
        self.store.query(query)
    }
}

impl QueryIndex for World {
    async fn query_index_lagging(&self, query: &IndexQuery) -> Result<IndexPage, StoreError> {
        self.count();
        self.store.query_index(query)
    }
}

impl WriteItems for World {
    async fn write_items(&self, writes: &[Write]) -> Result<(), StoreError> {
        self.count();
        let factor = if writes.len() > 1 { 2 } else { 1 };
        let units: usize = writes.iter().map(|write| bytes(write).div_ceil(1024) * factor).sum();
        self.write_requests.fetch_add(1, Ordering::Relaxed);
        self.write_units.fetch_add(units, Ordering::Relaxed);
        self.store.write(writes)
    }
}

impl SubmitJob for World {
    async fn submit_job(&self, call: &SubmitCall) -> Result<BatchJobId, SubmitError> {
        if let Some(refusal) = self.refusal.lock().unwrap().take() {
            return Err(refusal);
        }
        let mut submitted = self.submitted.lock().unwrap();
        submitted.push(call.clone());
        self.calls.lock().unwrap().push(format!("submit {}", call.request.job_name));
        Ok(BatchJobId::new(format!("b-{}", submitted.len())))
    }
}

impl SubmitRate for World {}

impl TerminateJob for World {
    async fn terminate_job(&self, id: &BatchJobId, reason: &str) -> Result<(), CallError> {
        if self.is_deaf.load(Ordering::Relaxed) {
            return Err(CallError::Unknown("no answer came".to_owned()));
        }
        self.calls.lock().unwrap().push(format!("terminate {id} {reason}"));
        Ok(())
    }
}

impl DescribeJobDefinition for World {
    async fn describe_job_definition(&self, _: &str) -> Result<Option<JobDefinition>, CallError> {
        Ok(None)
    }
}

impl SendMessage for World {
    async fn send_message(&self, queue: QueueKind, body: &str, _: u32) -> Result<MessageId, CallError> {
        self.sent.lock().unwrap().push((queue, body.to_owned()));
        Ok(MessageId::new("m"))
    }
}

impl PutEvents for World {
    async fn put_events(&self, _: &[OutgoingEvent]) -> Result<(), CallError> {
        Ok(())
    }
}

impl Clock for World {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl ObserveCapacity for World {
    async fn observe_capacity(&self, pool: &Pool) -> Result<Capacity, CallError> {
        if let Some(capacity) = self.capacity.lock().unwrap().get(pool.name.as_str()) {
            return Ok(capacity.clone());
        }
        let node = NodeCapacity { id: "n-1".to_owned(), gpus: 8, gpus_used: 8, ..NodeCapacity::default() };
        Ok(Capacity { nodes: vec![node], obtainable: 0 })
    }
}

impl DescribeJobs for World {
    /// What was submitted runs, as far as this Batch knows, and so does what a test has put there (`r-NUMBER`).
    async fn describe_jobs(&self, ids: &[BatchJobId]) -> Result<Vec<JobDetail>, CallError> {
        let made = self.submitted.lock().unwrap().len();
        let is_submitted = |id: &str| (1..=made).any(|number| id == format!("b-{number}"));
        let is_known = |id: &&BatchJobId| id.as_str().starts_with("r-") || is_submitted(id.as_str());
        let running = |id: &BatchJobId| JobDetail {
            job_id: id.to_string(),
            status: BatchStatus::Running,
            ..JobDetail::default()
        };
        Ok(ids.iter().filter(is_known).map(running).collect())
    }
}

impl ListChildren for World {
    async fn list_failed_children(&self, _: &BatchJobId, _: usize) -> Result<Vec<BatchJobId>, CallError> {
        Ok(Vec::new())
    }
}

/// A message of a queue, sent now.
pub fn message(world: &World, id: &str, queue: QueueKind, body: String) -> ReceivedMessage {
    ReceivedMessage {
        id: MessageId::new(id),
        body,
        sender: Sender::new(queue.name(), "osprey"),
        sent_at: world.now(),
        receive_count: 1,
    }
}

/// A wake-up of a pool.
pub fn wake_up(world: &World, pool: &str) -> ReceivedMessage {
    let body = repository::json(&wake::WakePool { pool: pool.into(), delay_seconds: 0 });
    message(world, "wake", QueueKind::Wake, body)
}

/// A pool that holds its jobs.
pub fn pool(name: &str, policy: &Policy) -> Pool {
    Pool {
        name: name.into(),
        mode: PoolMode::Held,
        capacity: CapacityType::OnDemand,
        gpus_per_node: 8,
        nodes_max: Some(4),
        vcpus_per_node: None,
        memory_mib_per_node: None,
        queues: policy.tiers().iter().map(|tier| (tier.name.clone(), "q".into())).collect(),
        fair_share: true,
        preemption: true,
    }
}
