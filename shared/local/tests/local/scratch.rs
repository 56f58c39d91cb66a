//! What the tests stand on: a directory of one's own, a clock that stands still, futures that are ready.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use jiff::{SignedDuration, Timestamp};
use osprey_local::{Database, LocalQueues, LocalStore, ManualClock};

/// A directory that is removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("osprey-local-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn file(&self) -> PathBuf {
        self.0.join("osprey.db")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The value of a future that is ready at once.
pub fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future isn't ready"),
    }
}

pub fn second(n: i64) -> Timestamp {
    Timestamp::from_second(n).unwrap()
}

/// A store and queues in memory, and the clock that both go by.
pub struct Bench {
    pub clock: Arc<ManualClock>,
    pub database: Arc<Database>,
    pub store: LocalStore,
    pub queues: LocalQueues,
}

impl Bench {
    pub fn new() -> Self {
        Self::on(Database::in_memory().unwrap())
    }

    pub fn on(database: Database) -> Self {
        let clock = Arc::new(ManualClock::new(second(1_000)));
        let database = Arc::new(database);
        let store = LocalStore::new(database.clone(), clock.clone());
        let queues = LocalQueues::new(database.clone(), clock.clone());
        Self { clock, database, store, queues }
    }

    pub fn pass(&self, seconds: i64) {
        self.clock.advance(SignedDuration::from_secs(seconds));
    }
}
