//! What a scheduling cycle asks of the table: the same, however many jobs wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use std::pin::pin;
use std::task::{Context as TaskContext, Poll, Waker};

use jiff::Timestamp;
use osprey_local::{Database, LocalStore, ManualClock, StateDir};
use osprey_model::definition::JobDefinition;
use osprey_model::id::{BatchJobId, MessageId};
use osprey_model::job::Job;
use osprey_model::pool::{CapacityType, Pool, PoolMode};
use osprey_pipeline::context::{Context, Settings};
use osprey_pipeline::{line, repository, wake};
use osprey_policy::Policy;
use osprey_ports::{
    CallError, Capacity, Clock, DescribeJobDefinition, Expect, GetItem, IndexPage, IndexQuery, Item, Key, NodeCapacity,
    ObserveCapacity, Page, QueryIndex, QueryItems, QueueKind, ReceivedMessage, SendMessage, SortQuery, StoreError,
    SubmitCall, SubmitError, SubmitJob, SubmitRate, TerminateJob, Write, WriteItems,
};

type Checked = Result<(), Box<dyn std::error::Error>>;

/// Everything here is done at the first poll.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())) {
            return output;
        }
    }
}

/// A full pool of one node, and a table that counts what it is asked for.
struct World {
    store: LocalStore,
    dir: std::path::PathBuf,
    requests: AtomicU32,
}

impl World {
    fn new(name: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let dir = std::env::temp_dir().join(format!("osprey-cycle-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let state = StateDir::open(&dir)?;
        let database = Arc::new(Database::open(&state.database_path())?);
        let store = LocalStore::new(database, Arc::new(ManualClock::new(Timestamp::now())));
        Ok(Self { store, dir, requests: AtomicU32::new(0) })
    }

    fn count(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
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
        self.store.write(writes)
    }
}

impl SubmitJob for World {
    async fn submit_job(&self, _: &SubmitCall) -> Result<BatchJobId, SubmitError> {
        Err(SubmitError::Refused("nothing is to start".to_owned()))
    }
}

impl SubmitRate for World {}

impl TerminateJob for World {
    async fn terminate_job(&self, _: &BatchJobId, _: &str) -> Result<(), CallError> {
        Ok(())
    }
}

impl DescribeJobDefinition for World {
    async fn describe_job_definition(&self, _: &str) -> Result<Option<JobDefinition>, CallError> {
        Ok(None)
    }
}

impl SendMessage for World {
    async fn send_message(&self, _: QueueKind, _: &str, _: u32) -> Result<MessageId, CallError> {
        Ok(MessageId::new("m"))
    }
}

impl Clock for World {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

impl ObserveCapacity for World {
    async fn observe_capacity(&self, _: &Pool) -> Result<Capacity, CallError> {
        let node = NodeCapacity { id: "n-1".to_owned(), gpus: 8, gpus_used: 8, ..NodeCapacity::default() };
        Ok(Capacity { nodes: vec![node], obtainable: 0 })
    }
}

fn pool(policy: &Policy) -> Pool {
    Pool {
        name: "main".into(),
        mode: PoolMode::Held,
        capacity: CapacityType::OnDemand,
        gpus_per_node: 8,
        nodes_max: Some(1),
        vcpus_per_node: None,
        memory_mib_per_node: None,
        queues: policy.tiers().iter().map(|tier| (tier.name.clone(), "q".into())).collect(),
        fair_share: true,
    }
}

fn waiting(number: usize, tier: &str) -> Job {
    let message = MessageId::new(format!("{tier}-{number}"));
    let created_at = i64::try_from(number).unwrap_or(0);
    Job {
        payload: "0".repeat(16),
        name: "train".to_owned(),
        tier: tier.into(),
        priority: 500,
        pool: "main".into(),
        policy: "0123456789ab".into(),
        gpus: 8,
        scheduled: true,
        updated_at: 0,
        ..Job::new(osprey_model::id::JobId::of_message(&message), message, created_at)
    }
}

/// Requests of one cycle with so many jobs waiting in each of two tiers.
fn requests(jobs: usize) -> Result<u32, Box<dyn std::error::Error>> {
    let world = World::new(&jobs.to_string())?;
    let settings = Settings::default();
    for tier in ["production", "experimental"] {
        for number in 0..jobs {
            world.store.write(&repository::writes(None, &waiting(number, tier), &settings, Expect::Absent)?)?;
        }
    }
    let policy = Policy::load(osprey_policy::DEFAULT).map_err(|_| "the default policy")?.policy;
    let pools = [pool(&policy)];
    let context = Context { policy: &policy, pools: &pools, settings: &settings };
    let body = repository::json(&wake::WakePool { pool: "main".into(), delay_seconds: 0 });
    let message = ReceivedMessage {
        id: MessageId::new("wake"),
        body,
        sender: osprey_model::sender::Sender::new(QueueKind::Wake.name(), "osprey"),
        sent_at: Timestamp::now(),
        receive_count: 1,
    };
    let failed = block_on(osprey_schedule::handle(&context, &world, &[message]));
    assert_eq!(failed, [], "the cycle ran");
    Ok(world.requests.load(Ordering::Relaxed))
}

#[test]
fn a_cycles_requests_dont_grow_with_the_backlog() -> Checked {
    let few = requests(3)?;
    let many = requests(osprey_schedule::load::WINDOW * 2)?;
    // The plan twice, what is held, and of each tier that is longer than a window its front and where it ends.
    assert_eq!((few, many), (4, 6));
    Ok(())
}

#[test]
fn the_front_of_a_line_is_the_first_of_each_tier() -> Checked {
    let world = World::new("front")?;
    let settings = Settings::default();
    for (number, tier) in [(1, "a"), (2, "a"), (3, "a"), (4, "a-b"), (5, "b"), (6, "b")] {
        world.store.write(&repository::writes(None, &waiting(number, tier), &settings, Expect::Absent)?)?;
    }
    for (window, want, is_cut) in
        [(1, vec![1, 4, 5], true), (2, vec![1, 2, 4, 5, 6], true), (9, (1..=6).collect(), false)]
    {
        let (front, cut) = block_on(line::front(&world, &"main".into(), window))?;
        let found: Vec<i64> = front.iter().map(|job| job.enqueued_at).collect();
        assert_eq!((found, cut), (want, is_cut), "window {window}");
    }
    Ok(())
}
