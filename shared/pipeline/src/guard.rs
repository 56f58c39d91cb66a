//! One plan a pool. A pool's state item has a version; a plan commits by writing it under the version that stood before
//! its snapshot was taken, and each claim of the plan writes it under the version that the plan's last step left.
//!
//! So a plan whose snapshot is older than somebody's claim can't commit, and a plan that another one has superseded
//! can't claim, however late its cycle wakes up.

use osprey_model::id::PoolName;
use osprey_ports::{Expect, GetItem, Item, QueryItems, SortQuery, StoreError, Write, WriteItems};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::{key, repository};

/// The state of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolState {
    /// The number of its plan, from 1.
    pub plan: u64,
    /// When the look began that the plan was made on, milliseconds since 1970. Whoever was woken before that has
    /// nothing to add.
    pub looked_at: i64,
    /// Since when the pool hasn't got the capacity that it asked for, as of that look, milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_capacity_since: Option<i64>,
    /// How far behind its front the line has been looked through for jobs whose wait should bring them there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searched_to: Option<String>,
}

/// What a cycle has seen of its pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// When its look began, milliseconds since 1970.
    pub looked_at: i64,
    /// As [`PoolState::no_capacity_since`].
    pub no_capacity_since: Option<i64>,
    /// As [`PoolState::searched_to`].
    pub searched_to: Option<String>,
}

/// A pool of which nobody has said for so long that it has no capacity may have some by now, milliseconds.
const MARK_MS_MAX: i64 = 1_800_000;

/// A pool's plan as somebody last saw or left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    pool: PoolName,
    version: u64,
    state: PoolState,
}

impl Guard {
    /// Reads a pool's plan; that of a pool that had none is number 0.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn read<P: GetItem + Sync>(ports: &P, pool: &PoolName) -> Result<Self, Failure> {
        let item = ports.get_item(&key::pool_state(pool)).await?;
        let version = item.as_ref().map_or(0, |item| item.version);
        let state = item.as_ref().map(repository::read).transpose()?.unwrap_or_default();
        Ok(Self { pool: pool.clone(), version, state })
    }

    /// The state that was read or left.
    #[must_use]
    pub fn state(&self) -> &PoolState {
        &self.state
    }

    /// Makes a plan the pool's, if nobody planned or claimed since this was read; `None` when somebody did.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn commit<P: WriteItems + Sync>(mut self, ports: &P, seen: Seen) -> Result<Option<Self>, Failure> {
        let Seen { looked_at, no_capacity_since, searched_to } = seen;
        let plan = self.state.plan.saturating_add(1);
        self.state = PoolState { plan, looked_at, no_capacity_since, searched_to };
        match ports.write_items(&[self.step()]).await {
            Ok(()) => {
                self.stepped();
                Ok(Some(self))
            }
            Err(StoreError::Conflict { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The pool.
    #[must_use]
    pub fn pool(&self) -> &PoolName {
        &self.pool
    }

    /// The write that demands that this plan is still the pool's, and makes every other step of it, and every plan on
    /// an older snapshot, fail.
    #[must_use]
    pub fn step(&self) -> Write {
        let expect = if self.version == 0 { Expect::Absent } else { Expect::Version(self.version) };
        Write::Put { item: Item::new(key::pool_state(&self.pool), repository::json(&self.state)), expect }
    }

    /// Notes that a step was written.
    pub fn stepped(&mut self) {
        self.version = self.version.saturating_add(1);
    }
}

/// The pools that don't get the capacity that they asked for, as their cycles have seen it not long ago.
///
/// # Errors
/// When the store fails.
pub async fn without_capacity<P: QueryItems + Sync>(ports: &P, now: i64) -> Result<Vec<PoolName>, Failure> {
    let query = SortQuery { partition: key::POOLS.to_owned(), prefix: String::new(), after: None, limit: 500 };
    let mut marked = Vec::new();
    for item in ports.query_items(&query).await?.items {
        let state: PoolState = repository::read(&item)?;
        if state.no_capacity_since.is_some() && now < state.looked_at.saturating_add(MARK_MS_MAX) {
            marked.push(PoolName::new(item.key.sort.as_str()));
        }
    }
    Ok(marked)
}

/// The pools that ever had a plan.
///
/// # Errors
/// When the store fails.
pub async fn pools<P: QueryItems + Sync>(ports: &P) -> Result<Vec<PoolName>, Failure> {
    let query = SortQuery { partition: key::POOLS.to_owned(), prefix: String::new(), after: None, limit: 500 };
    let page = ports.query_items(&query).await?;
    Ok(page.items.iter().map(|item| PoolName::new(item.key.sort.as_str())).collect())
}
