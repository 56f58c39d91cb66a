//! The store: DynamoDB's semantics and limits on two SQLite tables.
//!
//! * Every condition is checked before anything is written; the first write that fails is named.
//! * A request that DynamoDB would refuse whatever the table holds (an empty key, a check on its own, a counter that
//!   is none) is [`StoreError::Unusable`] with a sentence, or [`StoreError::TooLarge`] where a number is over a limit.
//! * An item whose `expires_at` has passed is still there until [`LocalStore::sweep`] drops it, as in DynamoDB, where
//!   that takes up to days. `expires_at` is kept in whole seconds, as there.
//! * A page holds at most 1 MiB, so it may be shorter than its limit and still have more after it, as in DynamoDB.
//! * The async verbs do their work at the first poll, blocking.

mod read;
mod write;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use osprey_ports::limits;
use osprey_ports::{
    Clock, GetItem, IndexPage, IndexQuery, Item, Key, Page, QueryIndex, QueryItems, SortQuery, StoreError, Write,
    WriteItems,
};
use rusqlite::params;

use crate::database::Database;

/// Most bytes in one page of items; DynamoDB's limit.
pub const PAGE_BYTES_MAX: usize = 1024 * 1024;

/// Items dropped in one transaction of a sweep, so that it never holds the file for long.
const SWEEP_ITEMS: usize = 500;

/// The embedded store. Clones share the database.
#[derive(Clone)]
pub struct LocalStore {
    database: Arc<Database>,
    clock: Arc<dyn Clock + Send + Sync>,
    index_lag: SignedDuration,
}

impl LocalStore {
    /// A store in `database`. The clock only matters to an index that lags.
    #[must_use]
    pub fn new(database: Arc<Database>, clock: Arc<dyn Clock + Send + Sync>) -> Self {
        Self { database, clock, index_lag: SignedDuration::ZERO }
    }

    /// The same store with indexes that answer as of `lag` ago; for tests. Without this they don't lag. What a store
    /// without lag removes from an index is gone for all.
    #[must_use]
    pub fn with_index_lag(mut self, lag: SignedDuration) -> Self {
        self.index_lag = lag;
        self
    }

    /// Drops what expired at or before `now`, and says how many items that were.
    ///
    /// # Errors
    ///
    /// Those of a write.
    pub fn sweep(&self, now: Timestamp) -> Result<usize, StoreError> {
        let mut dropped = 0;
        loop {
            let some = self.database.write(|t| write::drop_expired(t, now.as_second(), SWEEP_ITEMS))?;
            dropped += some;
            if some < SWEEP_ITEMS {
                break;
            }
        }
        self.forget_past_entries()?;
        Ok(dropped)
    }

    /// Reads one item.
    ///
    /// # Errors
    ///
    /// As the port says.
    pub fn get(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        limits::check_key(key)?;
        Ok(self.database.read(|c| read::item(c, key))?)
    }

    /// Reads a range of a partition.
    ///
    /// # Errors
    ///
    /// As the port says.
    pub fn query(&self, query: &SortQuery) -> Result<Page, StoreError> {
        limits::check_query(&query.partition, query.limit)?;
        Ok(self.database.read(|c| read::page(c, query))?)
    }

    /// Reads a range of an index.
    ///
    /// # Errors
    ///
    /// As the port says.
    pub fn query_index(&self, query: &IndexQuery) -> Result<IndexPage, StoreError> {
        limits::check_query(&query.partition, query.limit)?;
        let as_of = self.lags().then(|| self.clock.now().saturating_sub(self.index_lag).unwrap_or(Timestamp::MIN));
        Ok(self.database.read(|c| read::index_page(c, query, as_of))?)
    }

    /// Writes all or nothing.
    ///
    /// # Errors
    ///
    /// As the port says.
    pub fn write(&self, writes: &[Write]) -> Result<(), StoreError> {
        limits::check_writes(writes)?;
        let now = self.lags().then(|| self.clock.now().as_millisecond());
        Ok(self.database.write(|t| write::all(t, writes, now))?)
    }

    fn lags(&self) -> bool {
        self.index_lag > SignedDuration::ZERO
    }

    /// Removes entries that no store with this lag can see any more.
    fn forget_past_entries(&self) -> Result<(), StoreError> {
        let seen = self.clock.now().saturating_sub(self.index_lag).unwrap_or(Timestamp::MIN).as_millisecond();
        Ok(self
            .database
            .write(|t| Ok(t.execute("DELETE FROM entries WHERE until <= ?1", params![seen]).map(drop)?))?)
    }
}

impl GetItem for LocalStore {
    async fn get_item(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        self.get(key)
    }
}

impl QueryItems for LocalStore {
    async fn query_items(&self, query: &SortQuery) -> Result<Page, StoreError> {
        self.query(query)
    }
}

impl QueryIndex for LocalStore {
    async fn query_index_lagging(&self, query: &IndexQuery) -> Result<IndexPage, StoreError> {
        self.query_index(query)
    }
}

impl WriteItems for LocalStore {
    async fn write_items(&self, writes: &[Write]) -> Result<(), StoreError> {
        self.write(writes)
    }
}
