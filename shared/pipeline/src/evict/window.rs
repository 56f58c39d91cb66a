//! What the budgets of tiers count: a row for each eviction of a pool, by time.

use jiff::Timestamp;
use osprey_model::id::{JobId, PoolName, TierName};
use osprey_ports::{Expect, Item, Key, QueryItems, SortQuery, Write};
use serde::{Deserialize, Serialize};

use super::receipt::Receipt;
use crate::failure::Failure;
use crate::{key, repository};

/// Rows are dropped after so long, milliseconds: a year.
const KEPT_MS: i64 = 365 * 86_400_000;
/// Most evictions in one answer.
const PAGE_MAX: usize = 500;

/// An eviction that counts in its tier's budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// The tier.
    pub tier: TierName,
    /// When, milliseconds since 1970.
    pub at: i64,
}

/// Where an eviction is counted.
#[must_use]
pub fn key_of(job: JobId, receipt: &Receipt) -> Key {
    key::evicted(&receipt.pool, receipt.at, job, receipt.attempt)
}

/// The write that counts an eviction.
#[must_use]
pub fn write(job: JobId, receipt: &Receipt) -> Write {
    let counted = Counted { tier: receipt.tier.clone(), at: receipt.at };
    let expires_at = Timestamp::from_millisecond(receipt.at.saturating_add(KEPT_MS)).ok();
    let item = Item { expires_at, ..Item::new(key_of(job, receipt), repository::json(&counted)) };
    Write::Put { item, expect: Expect::Any }
}

/// The evictions of a pool since a time, milliseconds since 1970.
///
/// # Errors
/// When the store fails.
pub async fn since<P: QueryItems + Sync>(ports: &P, pool: &PoolName, from: i64) -> Result<Vec<Counted>, Failure> {
    let mut counted = Vec::new();
    let mut after = Some(key::sortable(from));
    loop {
        let partition = key::evicted_partition(pool);
        let query = SortQuery { partition, prefix: String::new(), after: after.take(), limit: PAGE_MAX };
        let page = ports.query_items(&query).await?;
        for item in &page.items {
            counted.push(repository::read(item)?);
        }
        after = page.items.last().map(|item| item.key.sort.clone());
        if !page.more || after.is_none() {
            return Ok(counted);
        }
    }
}
