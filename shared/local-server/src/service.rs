//! What the calls work on.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use osprey_local::{LocalDocuments, LocalQueues, LocalWorld};
use osprey_local_batch::LocalBatch;
use osprey_ports::Clock as _;

use crate::credentials::{Credentials, REGION};

/// The world of a state directory, its key, and where it is served.
pub struct Service {
    world: LocalWorld,
    credentials: Credentials,
    /// Such as `http://127.0.0.1:9324`.
    endpoint: String,
    stopping: AtomicBool,
    /// When each queue was purged.
    purges: Mutex<HashMap<String, Instant>>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Service {
    /// Puts a service together.
    #[must_use]
    pub fn new(world: LocalWorld, credentials: Credentials, endpoint: String) -> Self {
        Self { world, credentials, endpoint, stopping: AtomicBool::new(false), purges: Mutex::default() }
    }

    /// The key that calls are signed with.
    #[must_use]
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Where it is served.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The local Batch.
    #[must_use]
    pub fn batch(&self) -> &LocalBatch {
        self.world.batch()
    }

    /// The queues.
    #[must_use]
    pub fn queues(&self) -> &LocalQueues {
        self.world.queues()
    }

    /// What is kept beside both.
    #[must_use]
    pub fn documents(&self) -> &LocalDocuments {
        self.world.documents()
    }

    /// Virtual milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.world.now().as_millisecond()
    }

    /// Account in ARNs and queue URLs.
    #[must_use]
    pub fn account(&self) -> &str {
        &self.batch().options().account
    }

    /// ARN of a scheduling policy, job queue and so on.
    #[must_use]
    pub fn arn(&self, kind: &str, name: &str) -> String {
        format!("arn:aws:batch:{}:{}:{kind}/{name}", self.batch().options().region, self.account())
    }

    /// ARN of a message queue.
    #[must_use]
    pub fn queue_arn(&self, name: &str) -> String {
        format!("arn:aws:sqs:{REGION}:{}:{name}", self.account())
    }

    /// Asks calls that wait for a message to answer now.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Whether calls should wait no longer.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// When queues were purged.
    pub(crate) fn purges(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.purges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
