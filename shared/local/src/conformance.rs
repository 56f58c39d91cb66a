//! The store's rules, as checks that any implementation of the ports must pass: this one, and the one on DynamoDB.
//!
//! A check that fails panics with a sentence. Index checks ask again for up to ten seconds, since an index may lag;
//! they block the thread meanwhile. Rules that only the embedded store keeps are in this crate's own tests.

mod conditions;
mod counters;
mod indexes;
mod limits;
mod ranges;
mod transactions;

use osprey_ports::{
    Expect, GetItem, Index, IndexEntry, Item, Key, QueryIndex, QueryItems, StoreError, Write, WriteItems,
};

/// Every verb of the store.
pub trait Store: GetItem + QueryItems + QueryIndex + WriteItems {}

impl<S: GetItem + QueryItems + QueryIndex + WriteItems> Store for S {}

/// Runs every check. All partitions start with `salt`, so a table that others use will do when `salt` is new.
///
/// # Panics
///
/// When the store breaks a rule.
pub async fn run<S: Store>(store: &S, salt: &str) {
    run_with_slack(store, salt, 0).await;
}

/// Runs every check on a store that counts up to `slack` bytes more for a transaction than its items have, as an emulator
/// does that counts the request.
///
/// # Panics
///
/// When the store breaks a rule.
pub async fn run_with_slack<S: Store>(store: &S, salt: &str, slack: usize) {
    let bench = Bench { store, salt, slack };
    conditions::run(&bench).await;
    transactions::run(&bench).await;
    limits::run(&bench).await;
    counters::run(&bench).await;
    ranges::run(&bench).await;
    indexes::run(&bench).await;
}

/// A store under test.
struct Bench<'a, S> {
    store: &'a S,
    salt: &'a str,
    slack: usize,
}

impl<S: Store> Bench<'_, S> {
    /// The name of a partition that no other check uses.
    fn partition(&self, name: &str) -> String {
        format!("{}-{name}", self.salt)
    }

    fn key(&self, partition: &str, sort: &str) -> Key {
        Key::new(self.partition(partition), sort)
    }

    fn item(&self, partition: &str, sort: &str, body: &str) -> Item {
        Item::new(self.key(partition, sort), body)
    }

    async fn write(&self, writes: &[Write]) -> Result<(), StoreError> {
        self.store.write_items(writes).await
    }

    async fn must_write(&self, writes: &[Write], rule: &str) {
        assert_eq!(self.write(writes).await, Ok(()), "{rule}");
    }

    async fn must_fail(&self, writes: &[Write], error: StoreError, rule: &str) {
        assert_eq!(self.write(writes).await, Err(error), "{rule}");
    }

    async fn must_be_refused(&self, writes: &[Write], rule: &str) {
        let answer = self.write(writes).await;
        assert!(matches!(answer, Err(StoreError::Unusable(_))), "{rule}: {answer:?}");
    }

    async fn get(&self, key: &Key) -> Option<Item> {
        let answer = self.store.get_item(key).await;
        assert!(answer.is_ok(), "an item must be readable: {answer:?}");
        answer.ok().flatten()
    }

    /// Version and body of an item.
    async fn state(&self, key: &Key) -> Option<(u64, String)> {
        self.get(key).await.map(|item| (item.version, item.body))
    }

    async fn must_hold(&self, key: &Key, version: u64, body: &str, rule: &str) {
        assert_eq!(self.state(key).await, Some((version, body.to_owned())), "{rule}");
    }

    async fn must_be_absent(&self, key: &Key, rule: &str) {
        assert_eq!(self.state(key).await, None, "{rule}");
    }
}

fn put(item: &Item, expect: Expect) -> Write {
    Write::Put { item: item.clone(), expect }
}

fn delete(key: &Key, expect: Expect) -> Write {
    Write::Delete { key: key.clone(), expect }
}

fn check(key: &Key, expect: Expect) -> Write {
    Write::Check { key: key.clone(), expect }
}

fn entry(index: Index, partition: &str, sort: &str) -> IndexEntry {
    IndexEntry { index, partition: partition.to_owned(), sort: sort.to_owned() }
}

fn too_large(what: &'static str, given: usize, limit: usize) -> StoreError {
    StoreError::TooLarge { what, limit, given }
}

const FIRST_FAILS: StoreError = StoreError::Conflict { index: 0 };
