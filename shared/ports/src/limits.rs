//! What DynamoDB refuses without a look at the table: checked by every store before it is asked, so that a limit is
//! told in the same words everywhere.

use std::collections::BTreeSet;

use crate::store::{
    ITEM_BYTES_MAX, Index, Item, Key, PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX, StoreError, TRANSACTION_BYTES_MAX,
    TRANSACTION_WRITES_MAX, Write,
};

/// Checks the writes of one call.
///
/// # Errors
/// [`StoreError::TooLarge`] over a limit, [`StoreError::Unusable`] for what no store takes.
pub fn check_writes(writes: &[Write]) -> Result<(), StoreError> {
    check_count(writes)?;
    writes.iter().try_for_each(check_write)?;
    if writes.len() > 1 {
        check_distinct(writes)?;
        at_most("the transaction in bytes", writes.iter().map(bytes).sum(), TRANSACTION_BYTES_MAX)?;
    }
    Ok(())
}

fn check_count(writes: &[Write]) -> Result<(), StoreError> {
    match writes {
        [] => Err(refused("no writes were given")),
        [Write::Check { .. }] => Err(refused("a check on its own is no write")),
        _ => at_most("the number of writes in one transaction", writes.len(), TRANSACTION_WRITES_MAX),
    }
}

fn check_write(write: &Write) -> Result<(), StoreError> {
    check_key(key(write))?;
    match write {
        Write::Put { item, .. } => check_item(item),
        Write::Delete { .. } | Write::Check { .. } | Write::Add { .. } => Ok(()),
    }
}

fn check_item(item: &Item) -> Result<(), StoreError> {
    for entry in &item.indexes {
        check_parts(&entry.partition, &entry.sort)?;
    }
    for index in [Index::Due, Index::Listing, Index::Running] {
        let count = item.indexes.iter().filter(|e| e.index == index).count();
        at_most("the number of an item's entries in one index", count, 1)?;
    }
    check_size(item.bytes())
}

fn check_distinct(writes: &[Write]) -> Result<(), StoreError> {
    let mut seen = BTreeSet::new();
    match writes.iter().map(key).find(|key| !seen.insert(*key)) {
        Some(_) => at_most("the number of writes to one item in one transaction", 2, 1),
        None => Ok(()),
    }
}

/// Checks the size of an item.
///
/// # Errors
/// [`StoreError::TooLarge`] over the limit.
pub fn check_size(bytes: usize) -> Result<(), StoreError> {
    at_most("the item in bytes", bytes, ITEM_BYTES_MAX)
}

/// Checks an item's key.
///
/// # Errors
/// As [`check_writes`].
pub fn check_key(key: &Key) -> Result<(), StoreError> {
    check_parts(&key.partition, &key.sort)
}

fn check_parts(partition: &str, sort: &str) -> Result<(), StoreError> {
    check_partition(partition)?;
    if sort.is_empty() {
        return Err(refused("a sort key is empty"));
    }
    at_most("the sort key in bytes", sort.len(), SORT_KEY_BYTES_MAX)
}

fn check_partition(partition: &str) -> Result<(), StoreError> {
    if partition.is_empty() {
        return Err(refused("a partition key is empty"));
    }
    at_most("the partition key in bytes", partition.len(), PARTITION_KEY_BYTES_MAX)
}

/// Checks a query.
///
/// # Errors
/// As [`check_writes`].
pub fn check_query(partition: &str, limit: usize) -> Result<(), StoreError> {
    check_partition(partition)?;
    if limit == 0 { Err(refused("a query for no items is refused")) } else { Ok(()) }
}

/// The key that a write is about.
#[must_use]
pub fn key(write: &Write) -> &Key {
    match write {
        Write::Put { item, .. } => &item.key,
        Write::Delete { key, .. } | Write::Check { key, .. } | Write::Add { key, .. } => key,
    }
}

fn bytes(write: &Write) -> usize {
    let key = key(write);
    match write {
        Write::Put { item, .. } => item.bytes(),
        Write::Add { amounts, .. } => {
            key.partition.len() + key.sort.len() + amounts.keys().map(|name| name.len() + 8).sum::<usize>()
        }
        Write::Delete { .. } | Write::Check { .. } => key.partition.len() + key.sort.len(),
    }
}

fn at_most(what: &'static str, given: usize, limit: usize) -> Result<(), StoreError> {
    if given > limit { Err(StoreError::TooLarge { what, limit, given }) } else { Ok(()) }
}

/// What no store takes, whatever the table holds.
pub fn refused(sentence: impl Into<String>) -> StoreError {
    StoreError::Unusable(sentence.into())
}
