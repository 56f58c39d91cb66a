//! Ports that count what they are asked for. The store is the embedded one; Batch takes everything.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use osprey_local::{Database, LocalStore, ManualClock, StateDir};
use osprey_model::definition::JobDefinition;
use osprey_model::event::JobDetail;
use osprey_model::id::{BatchJobId, MessageId};
use osprey_ports::{
    CallError, Clock, DescribeJobDefinition, DescribeJobs, GetItem, IndexPage, IndexQuery, Item, Key, ListChildren,
    OutgoingEvent, Page, PutEvents, QueryIndex, QueryItems, QueueKind, SendMessage, SortQuery, StoreError, SubmitCall,
    SubmitError, SubmitJob, SubmitRate, TerminateJob, Write, WriteItems,
};

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    pub submissions: u32,
    pub reads: u32,
    pub write_requests: u32,
    /// Of the table: a kilobyte begun is a unit, and two in a transaction.
    pub write_units: usize,
    /// Of the indexes: an entry that is new, moved or gone.
    pub index_units: usize,
    pub largest_state: usize,
}

pub struct Counting {
    store: LocalStore,
    dir: std::path::PathBuf,
    counted: Mutex<Counted>,
}

impl Counting {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("osprey-submit-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let state = StateDir::open(&dir).unwrap();
        let database = Arc::new(Database::open(&state.database_path()).unwrap());
        let clock = Arc::new(ManualClock::new(Timestamp::now()));
        Self { store: LocalStore::new(database, clock), dir, counted: Mutex::default() }
    }

    pub fn counted(&self) -> Counted {
        self.counted.lock().unwrap().clone()
    }

    fn count(&self, change: impl FnOnce(&mut Counted)) {
        change(&mut self.counted.lock().unwrap());
    }

    fn index_units(&self, write: &Write) -> usize {
        let Write::Put { item, .. } = write else { return 0 };
        let before = self.store.get(&item.key).unwrap().map(|there| there.indexes).unwrap_or_default();
        let new = item.indexes.iter().filter(|entry| !before.contains(entry)).count();
        let gone = before.iter().filter(|entry| !item.indexes.contains(entry)).count();
        new + gone
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Bytes of an item in DynamoDB: names count too. Its version and its writer's mark are 15 bytes.
fn bytes(item: &Item) -> usize {
    let names: usize = item.indexes.iter().map(|entry| 2 * format!("{:?}_pk", entry.index).len()).sum();
    let indexes: usize = item.indexes.iter().map(|entry| entry.partition.len() + entry.sort.len()).sum();
    "pkskbody".len() + 15 + item.key.partition.len() + item.key.sort.len() + item.body.len() + names + indexes
}

impl WriteItems for Counting {
    async fn write_items(&self, writes: &[Write]) -> Result<(), StoreError> {
        let factor = if writes.len() > 1 { 2 } else { 1 };
        for write in writes {
            let index_units = self.index_units(write);
            let size = if let Write::Put { item, .. } = write { bytes(item) } else { 1 };
            let is_state = osprey_ports::limits::key(write).sort == "STATE";
            self.count(|counted| {
                counted.write_units += size.div_ceil(1024) * factor;
                counted.index_units += index_units;
                if is_state {
                    counted.largest_state = counted.largest_state.max(size);
                }
            });
        }
        self.count(|counted| counted.write_requests += 1);
        self.store.write(writes)
    }
}

impl GetItem for Counting {
    async fn get_item(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        self.count(|counted| counted.reads += 1);
        self.store.get(key)
    }
}

impl QueryItems for Counting {
    async fn query_items(&self, query: &SortQuery) -> Result<Page, StoreError> {
        self.count(|counted| counted.reads += 1);
        self.store.query(query)
    }
}

impl QueryIndex for Counting {
    async fn query_index_lagging(&self, query: &IndexQuery) -> Result<IndexPage, StoreError> {
        self.count(|counted| counted.reads += 1);
        self.store.query_index(query)
    }
}

impl SubmitJob for Counting {
    async fn submit_job(&self, _: &SubmitCall) -> Result<BatchJobId, SubmitError> {
        self.count(|counted| counted.submissions += 1);
        let number = self.counted().submissions;
        Ok(BatchJobId::new(format!("0f7a4a3c-6a0e-4f0e-9a11-{number:012}")))
    }
}

impl SubmitRate for Counting {}

impl PutEvents for Counting {
    async fn put_events(&self, _: &[OutgoingEvent]) -> Result<(), CallError> {
        Ok(())
    }
}

impl DescribeJobDefinition for Counting {
    async fn describe_job_definition(&self, _: &str) -> Result<Option<JobDefinition>, CallError> {
        let text =
            r#"{"jobDefinitionName":"train","revision":7,"type":"container","containerProperties":{"image":"train"}}"#;
        Ok(serde_json::from_str(text).ok())
    }
}

impl SendMessage for Counting {
    async fn send_message(&self, _: QueueKind, _: &str, _: u32) -> Result<MessageId, CallError> {
        Ok(MessageId::new("m"))
    }
}

impl TerminateJob for Counting {
    async fn terminate_job(&self, _: &BatchJobId, _: &str) -> Result<(), CallError> {
        Ok(())
    }
}

impl DescribeJobs for Counting {
    async fn describe_jobs(&self, _: &[BatchJobId]) -> Result<Vec<JobDetail>, CallError> {
        Ok(Vec::new())
    }
}

impl ListChildren for Counting {
    async fn list_failed_children(&self, _: &BatchJobId, _: usize) -> Result<Vec<BatchJobId>, CallError> {
        Ok(Vec::new())
    }
}

impl Clock for Counting {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
