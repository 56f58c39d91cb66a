//! The store: one table with DynamoDB's semantics.
//!
//! Every item has a version, and every write states which version it expects: a write that lost a race is a
//! [`StoreError::Conflict`], never a silent overwrite. Bodies are JSON text.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// Largest item in bytes, keys included; DynamoDB's limit.
pub const ITEM_BYTES_MAX: usize = 400 * 1024;
/// Most writes in one transaction; DynamoDB's limit.
pub const TRANSACTION_WRITES_MAX: usize = 100;
/// Largest transaction in bytes; DynamoDB's limit.
pub const TRANSACTION_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest partition key in bytes; DynamoDB's limit.
pub const PARTITION_KEY_BYTES_MAX: usize = 2048;
/// Longest sort key in bytes; DynamoDB's limit.
pub const SORT_KEY_BYTES_MAX: usize = 1024;
/// Most items in one answer.
pub const PAGE_ITEMS_MAX: usize = 1000;

/// Where an item is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Partition key, at most 2048 bytes.
    pub partition: String,
    /// Sort key, at most 1024 bytes.
    pub sort: String,
}

impl Key {
    /// Puts the two parts together.
    pub fn new(partition: impl Into<String>, sort: impl Into<String>) -> Self {
        Self { partition: partition.into(), sort: sort.into() }
    }
}

/// An item.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Where it is.
    pub key: Key,
    /// 1 at first, one more at each write. Ignored when writing.
    pub version: u64,
    /// JSON text.
    pub body: String,
    /// Entries in the sparse indexes.
    pub indexes: Vec<IndexEntry>,
    /// When the store may drop it.
    pub expires_at: Option<Timestamp>,
}

impl Item {
    /// An item without index entries that stays.
    pub fn new(key: Key, body: impl Into<String>) -> Self {
        Self { key, version: 0, body: body.into(), indexes: Vec::new(), expires_at: None }
    }

    /// Bytes that the item counts for: keys, body and index keys, with a fixed allowance for the rest.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let indexes: usize = self.indexes.iter().map(|e| e.partition.len() + e.sort.len() + 8).sum();
        self.key.partition.len() + self.key.sort.len() + self.body.len() + indexes + 32
    }
}

/// The sparse indexes. They hold keys only, they lag, and an item has at most one entry in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Index {
    /// What has to be looked at, by time.
    Due,
    /// Jobs and dead letters, by time of creation.
    Listing,
    /// What a team has in Batch.
    Running,
}

/// An entry of an item in one index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// Which index.
    pub index: Index,
    /// Partition of the index.
    pub partition: String,
    /// Order inside the partition.
    pub sort: String,
}

/// What a write expects to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No such item.
    Absent,
    /// The item at this version.
    Version(u64),
    /// Anything.
    Any,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Creates or replaces an item (`dynamodb:PutItem`).
    Put {
        /// The item.
        item: Item,
        /// What must be there.
        expect: Expect,
    },
    /// Removes an item (`dynamodb:DeleteItem`).
    Delete {
        /// Which.
        key: Key,
        /// What must be there.
        expect: Expect,
    },
    /// Changes nothing and demands something (`dynamodb:ConditionCheckItem`); in transactions only.
    Check {
        /// Which.
        key: Key,
        /// What must be there.
        expect: Expect,
    },
    /// Adds to the numbers of a counter item, created when absent (`dynamodb:UpdateItem`, ADD). Its body is a JSON
    /// object of whole numbers.
    Add {
        /// Which.
        key: Key,
        /// Number by name.
        amounts: BTreeMap<String, i64>,
        /// The most that numbers may be afterwards, by name; one that would be more is a conflict. Only numbers that are
        /// added to.
        at_most: BTreeMap<String, i64>,
        /// When the store may drop the item.
        expires_at: Option<Timestamp>,
    },
}

/// A store call that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// A condition didn't hold; nothing was written.
    #[error("write {index} lost a race: the item isn't as expected")]
    Conflict {
        /// Which of the writes, from 0.
        index: usize,
    },
    /// Over a limit of the store; nothing was written.
    #[error("{what} is {given} where the limit is {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The limit.
        limit: usize,
        /// What was given.
        given: usize,
    },
    /// Turned away for its rate; nothing was written.
    #[error("the store throttled the call")]
    Throttled,
    /// Whether it was written isn't known.
    #[error("the write may or may not have taken effect: {0}")]
    Unknown(String),
    /// The store can't be used at all: disk full, no permission.
    #[error("the store can't be used: {0}")]
    Unusable(String),
}

/// Reads one item (`dynamodb:GetItem`), strongly consistent.
pub trait GetItem {
    /// The item, or `None`.
    fn get_item(&self, key: &Key) -> impl Future<Output = Result<Option<Item>, StoreError>> + Send;
}

/// A range of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortQuery {
    /// The partition.
    pub partition: String,
    /// Only sort keys that start so.
    pub prefix: String,
    /// Only sort keys after this one.
    pub after: Option<String>,
    /// At most so many, and never more than [`PAGE_ITEMS_MAX`].
    pub limit: usize,
}

/// Items in ascending order of their sort keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The items.
    pub items: Vec<Item>,
    /// Whether there are more after the last.
    pub more: bool,
}

/// Reads a range of a partition (`dynamodb:Query`), strongly consistent.
pub trait QueryItems {
    /// The items of the range.
    fn query_items(&self, query: &SortQuery) -> impl Future<Output = Result<Page, StoreError>> + Send;
}

/// A range of one partition of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexQuery {
    /// Which index.
    pub index: Index,
    /// Its partition.
    pub partition: String,
    /// Only sort keys from this one on, inclusive.
    pub from: Option<String>,
    /// Only sort keys up to this one, inclusive.
    pub to: Option<String>,
    /// Descending instead of ascending.
    pub newest_first: bool,
    /// Where the page before ended.
    pub after: Option<(String, Key)>,
    /// At most so many, and never more than [`PAGE_ITEMS_MAX`].
    pub limit: usize,
}

/// Keys in the order of the index, each with its sort key there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexPage {
    /// Sort key of the index, and key of the item.
    pub entries: Vec<(String, Key)>,
    /// Whether there are more after the last.
    pub more: bool,
}

/// Reads an index (`dynamodb:Query` on a global secondary index).
///
/// The answer lags: items written a moment ago may be missing and items that moved may still be shown. Callers read
/// the item itself before they act, and rely on being called again.
pub trait QueryIndex {
    /// Keys of the range, as of some moment not long ago.
    fn query_index_lagging(&self, query: &IndexQuery) -> impl Future<Output = Result<IndexPage, StoreError>> + Send;
}

/// Writes (`dynamodb:PutItem`, `UpdateItem`, `DeleteItem`, and `TransactWriteItems` for several).
pub trait WriteItems {
    /// Writes all or nothing. One write is one plain request; several are a transaction, which costs twice.
    fn write_items(&self, writes: &[Write]) -> impl Future<Output = Result<(), StoreError>> + Send;
}
