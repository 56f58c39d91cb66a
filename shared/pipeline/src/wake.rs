//! Wake-ups of pools: somebody should look at a pool's line. They say nothing else, so one that is lost, doubled or
//! late changes only when that happens.

use osprey_model::id::PoolName;
use osprey_ports::{QueueKind, ReceivedMessage, SendMessage};
use serde::{Deserialize, Serialize};

use crate::repository;

/// A message of the wake queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WakePool {
    /// The pool.
    pub pool: PoolName,
    /// Seconds that it was to lie in the queue. What it is about may come about in that time, so a look at the pool
    /// before its end doesn't make it needless.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub delay_seconds: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl WakePool {
    /// A look at the pool that begins after this time, milliseconds since 1970, makes a message needless.
    #[must_use]
    pub fn due_at(&self, message: &ReceivedMessage) -> i64 {
        message.sent_at.as_millisecond().saturating_add(i64::from(self.delay_seconds).saturating_mul(1_000))
    }
}

/// Wakes a pool after so many seconds.
pub async fn pool<P: SendMessage + Sync>(ports: &P, pool: &PoolName, delay_seconds: u32) {
    let body = repository::json(&WakePool { pool: pool.clone(), delay_seconds });
    if let Err(error) = ports.send_message(QueueKind::Wake, &body, delay_seconds).await {
        tracing::warn!(%pool, %error, "a wake-up of a pool could not be sent.");
    }
}
