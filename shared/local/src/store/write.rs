//! Writes: all conditions first, then all changes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use osprey_ports::limits::{check_size, key, refused};
use osprey_ports::{Expect, IndexEntry, Item, Key, StoreError, Write};
use rusqlite::{Transaction, params};

use super::read::{self, entries_from, entries_text, number};
use crate::database::{Fault, Statements};

type Outcome<T> = Result<T, Fault<StoreError>>;

/// What is there before a write.
struct Found {
    version: i64,
    entries: Vec<IndexEntry>,
}

/// Makes all writes. `now` is given by a store whose indexes lag: then index entries keep their past.
pub(super) fn all(transaction: &Transaction<'_>, writes: &[Write], now: Option<i64>) -> Outcome<()> {
    let mut found = Vec::with_capacity(writes.len());
    for (index, write) in writes.iter().enumerate() {
        let there = find(transaction, key(write))?;
        if !holds(expectation(write), there.as_ref()) || !is_within(transaction, write)? {
            return Err(Fault::Refused(StoreError::Conflict { index }));
        }
        found.push(there);
    }
    let change = Change { transaction, now };
    writes.iter().zip(found).try_for_each(|(write, there)| change.make(write, there))
}

fn find(transaction: &Transaction<'_>, key: &Key) -> Outcome<Option<Found>> {
    let sql = "SELECT version, entries FROM items WHERE pk = ?1 AND sk = ?2";
    let row =
        |row: &rusqlite::Row<'_>| Ok(Found { version: row.get(0)?, entries: entries_from(&row.get::<_, String>(1)?) });
    Ok(transaction.first(sql, params![key.partition, key.sort], row)?)
}

fn expectation(write: &Write) -> Expect {
    match write {
        Write::Put { expect, .. } | Write::Delete { expect, .. } | Write::Check { expect, .. } => *expect,
        Write::Add { .. } => Expect::Any,
    }
}

fn holds(expect: Expect, there: Option<&Found>) -> bool {
    match expect {
        Expect::Any => true,
        Expect::Absent => there.is_none(),
        Expect::Version(version) => there.is_some_and(|found| i64::try_from(version) == Ok(found.version)),
    }
}

/// Whether an addition leaves every number at what it may be at most.
fn is_within(transaction: &Transaction<'_>, write: &Write) -> Outcome<bool> {
    let Write::Add { key, amounts, at_most, .. } = write else { return Ok(true) };
    if at_most.is_empty() {
        return Ok(true);
    }
    let body = read::item(transaction, key)?.map_or_else(|| "{}".to_owned(), |item| item.body);
    let sums = sums(&body, amounts).map_err(Fault::Refused)?;
    Ok(at_most.iter().all(|(name, most)| sums.get(name).is_none_or(|sum| sum <= most)))
}

/// One change in a transaction.
struct Change<'a> {
    transaction: &'a Transaction<'a>,
    now: Option<i64>,
}

impl Change<'_> {
    fn make(&self, write: &Write, there: Option<Found>) -> Outcome<()> {
        match write {
            Write::Put { item, .. } => self.put(item, there),
            Write::Delete { key, .. } => there.map_or(Ok(()), |found| self.delete(key, &found)),
            Write::Check { .. } => Ok(()),
            Write::Add { key, amounts, expires_at, .. } => self.add(key, amounts, *expires_at, there),
        }
    }

    fn put(&self, item: &Item, there: Option<Found>) -> Outcome<()> {
        let Key { partition, sort } = &item.key;
        let (before, entries) = there.map_or((0, Vec::new()), |found| (found.version, found.entries));
        self.transaction.run(
            "INSERT INTO items (pk, sk, version, body, entries, expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (pk, sk) DO UPDATE SET version = excluded.version, body = excluded.body,
                 entries = excluded.entries, expires_at = excluded.expires_at",
            params![
                partition,
                sort,
                before.saturating_add(1),
                item.body,
                entries_text(&item.indexes),
                item.expires_at.map(Timestamp::as_second),
            ],
        )?;
        self.move_entries(&item.key, &entries, &item.indexes)
    }

    fn delete(&self, key: &Key, found: &Found) -> Outcome<()> {
        self.transaction.run("DELETE FROM items WHERE pk = ?1 AND sk = ?2", params![key.partition, key.sort])?;
        self.move_entries(key, &found.entries, &[])
    }

    fn add(
        &self,
        key: &Key,
        amounts: &BTreeMap<String, i64>,
        expires_at: Option<Timestamp>,
        there: Option<Found>,
    ) -> Outcome<()> {
        let mut item = read::item(self.transaction, key)?.unwrap_or_else(|| Item::new(key.clone(), "{}"));
        item.body = sum(&item.body, amounts).map_err(Fault::Refused)?;
        item.expires_at = expires_at.or(item.expires_at);
        check_size(item.bytes()).map_err(Fault::Refused)?;
        self.put(&item, there)
    }

    /// Removes the entries that are no longer there and makes the new ones; one that stays is left alone.
    fn move_entries(&self, key: &Key, before: &[IndexEntry], after: &[IndexEntry]) -> Outcome<()> {
        for gone in before.iter().filter(|entry| !after.contains(entry)) {
            self.remove_entry(key, gone)?;
        }
        for new in after.iter().filter(|entry| !before.contains(entry)) {
            let since = self.now.unwrap_or(i64::MIN);
            self.transaction.run(
                "INSERT OR REPLACE INTO entries (which, ipk, isk, pk, sk, since) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![number(new.index), new.partition, new.sort, key.partition, key.sort, since],
            )?;
        }
        Ok(())
    }

    fn remove_entry(&self, key: &Key, entry: &IndexEntry) -> Outcome<()> {
        let (index, IndexEntry { partition, sort, .. }) = (number(entry.index), entry);
        match self.now {
            Some(now) => {
                self.transaction.run(CLOSE_ENTRY, params![index, partition, sort, key.partition, key.sort, now])
            }
            None => self.transaction.run(REMOVE_ENTRY, params![index, partition, sort, key.partition, key.sort]),
        }?;
        Ok(())
    }
}

const REMOVE_ENTRY: &str = "DELETE FROM entries
    WHERE which = ?1 AND ipk = ?2 AND isk = ?3 AND pk = ?4 AND sk = ?5 AND until IS NULL";
const CLOSE_ENTRY: &str = "UPDATE entries SET until = ?6
    WHERE which = ?1 AND ipk = ?2 AND isk = ?3 AND pk = ?4 AND sk = ?5 AND until IS NULL";

/// The body of a counter item after an addition.
fn sum(body: &str, amounts: &BTreeMap<String, i64>) -> Result<String, StoreError> {
    serde_json::to_string(&sums(body, amounts)?).map_err(|error| refused(error.to_string()))
}

/// The numbers of a counter item after an addition.
fn sums(body: &str, amounts: &BTreeMap<String, i64>) -> Result<BTreeMap<String, i64>, StoreError> {
    let mut counters: BTreeMap<String, i64> = serde_json::from_str(body)
        .map_err(|_| refused("the item that should be added to is no object of whole numbers"))?;
    for (name, amount) in amounts {
        let counter = counters.entry(name.clone()).or_insert(0);
        *counter =
            counter.checked_add(*amount).ok_or_else(|| refused(format!("the counter `{name}` would overflow")))?;
    }
    Ok(counters)
}

/// Drops at most `limit` items that expired by the second `now`.
pub(super) fn drop_expired(transaction: &Transaction<'_>, now: i64, limit: usize) -> Outcome<usize> {
    let sql = "SELECT pk, sk FROM items WHERE expires_at <= ?1 LIMIT ?2";
    let expired = params![now, i64::try_from(limit).unwrap_or(i64::MAX)];
    let keys = transaction.all(sql, expired, |row| Ok(Key { partition: row.get(0)?, sort: row.get(1)? }))?;
    let change = Change { transaction, now: None };
    for key in &keys {
        if let Some(found) = find(transaction, key)? {
            change.delete(key, &found)?;
        }
    }
    Ok(keys.len())
}
