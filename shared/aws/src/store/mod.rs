//! DynamoDB: one table.
//!
//! | attribute | type | is |
//! |---|---|---|
//! | `pk`, `sk` | S | the key |
//! | `v` | N | the version: 1 at first, one more at each write |
//! | `w` | B | the mark of the call that wrote it |
//! | `body` | S | JSON text; a counter item has `n_NAME` (N) in its place |
//! | `due_pk`, `due_sk`, and so for `listing` and `running` | S | entries of the sparse indexes of these names |
//! | `ttl` | N | when the item may be dropped, seconds since 1970 |
//!
//! Reads are consistent, but for those of an index. One write is one plain request, several are a transaction. A put
//! over whatever is there is an update, so that the version goes on; an item within half a KiB of the limit is too large
//! for that, and is read and put at its version.
//!
//! **A lost reply.** The SDK repeats a call whose reply was lost. A transaction carries a token, which makes that safe.
//! A plain conditional write doesn't: the second time it finds its own effect and its condition no longer holds. So
//! each call leaves its mark in the item, and a condition that fails on an item with the caller's own mark has held
//! before. Additions and conditional removals have nothing to leave a mark in, and go as transactions of one.

mod item;
mod patience;
mod read;
mod write;

pub(crate) use item::key as item_key;

use aws_sdk_dynamodb::Client;
use osprey_ports::{
    GetItem, IndexPage, IndexQuery, Item, Key, Page, QueryIndex, QueryItems, SortQuery, StoreError, Write, WriteItems,
};

/// The store on DynamoDB.
#[derive(Clone, Debug)]
pub struct DynamoStore {
    client: Client,
    table: String,
}

impl DynamoStore {
    /// The store in `table`.
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>) -> Self {
        Self { client, table: table.into() }
    }
}

impl GetItem for DynamoStore {
    async fn get_item(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        self.get(key).await
    }
}

impl QueryItems for DynamoStore {
    async fn query_items(&self, query: &SortQuery) -> Result<Page, StoreError> {
        self.query(query).await
    }
}

impl QueryIndex for DynamoStore {
    async fn query_index_lagging(&self, query: &IndexQuery) -> Result<IndexPage, StoreError> {
        self.query_index(query).await
    }
}

impl WriteItems for DynamoStore {
    async fn write_items(&self, writes: &[Write]) -> Result<(), StoreError> {
        self.write(writes).await
    }
}
