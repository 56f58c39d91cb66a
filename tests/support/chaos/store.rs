//! A table like DynamoDB's: versions and conditions, transactions with their limits, indexes that lag.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Bound;

use osprey_ports::store::{ITEM_BYTES_MAX, TRANSACTION_BYTES_MAX, TRANSACTION_WRITES_MAX};
use osprey_ports::{Expect, Index, IndexEntry, IndexPage, IndexQuery, Item, Key, Page, SortQuery, StoreError, Write};

/// Partitions by name. The hasher has no random state, and nothing depends on the order of the map.
type Partitions = HashMap<String, BTreeMap<String, Item>, BuildHasherDefault<Folded>>;

/// A hash of keys that nobody chose to collide: eight bytes at a time, as FNV-1a does one.
#[derive(Default)]
struct Folded(u64);

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            self.0 = (self.0.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        // The table looks at the highest bits and at the lowest ones.
        self.0 ^ (self.0 >> 29)
    }
}

/// Entries of one partition of an index, in its order.
type Entries = BTreeSet<(String, Key)>;

/// The table.
#[derive(Default)]
pub struct Store {
    partitions: Partitions,
    shown: BTreeMap<(Index, String), Entries>,
    coming: VecDeque<Move>,
}

/// A change of the indexes that isn't shown yet.
struct Move {
    at: i64,
    key: Key,
    gone: Vec<IndexEntry>,
    new: Vec<IndexEntry>,
}

impl Store {
    /// An item.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<&Item> {
        self.partitions.get(&key.partition)?.get(&key.sort)
    }

    /// Every item, in the order of the keys.
    pub fn items(&self) -> Vec<&Item> {
        let mut items: Vec<&Item> = self.partitions.values().flat_map(BTreeMap::values).collect();
        items.sort_by(|a, b| a.key.cmp(&b.key));
        items
    }

    /// The items of a range.
    #[must_use]
    pub fn query(&self, query: &SortQuery) -> Page {
        let Some(partition) = self.partitions.get(&query.partition) else { return Page::default() };
        let from = match &query.after {
            Some(after) if *after >= query.prefix => Bound::Excluded(after.clone()),
            _ => Bound::Included(query.prefix.clone()),
        };
        let mut range = partition
            .range::<String, _>((from, Bound::Unbounded))
            .take_while(|(sort, _)| sort.starts_with(&query.prefix))
            .map(|(_, item)| as_read(item));
        let items = range.by_ref().take(query.limit).collect();
        Page { items, more: range.next().is_some() }
    }

    /// What the index shows at `now`.
    pub fn query_index(&mut self, query: &IndexQuery, now: i64) -> IndexPage {
        self.show(now);
        let Some(entries) = self.shown.get(&(query.index, query.partition.clone())) else {
            return IndexPage::default();
        };
        let least = |sort: &String| (sort.clone(), Key::new("", ""));
        let is_below = |(sort, _): &&(String, Key)| query.to.as_ref().is_none_or(|to| sort <= to);
        let from = query.from.as_ref().map(least);
        let most = query.limit.saturating_add(1);
        let mut found: Vec<(String, Key)> = if query.newest_first {
            let from = from.map_or(Bound::Unbounded, Bound::Included);
            let before = query.after.clone().map_or(Bound::Unbounded, Bound::Excluded);
            entries.range((from, before)).rev().filter(is_below).take(most).cloned().collect()
        } else {
            let after = query.after.clone().filter(|after| from.as_ref().is_none_or(|from| after >= from));
            let from = after.map(Bound::Excluded).or(from.map(Bound::Included)).unwrap_or(Bound::Unbounded);
            entries.range((from, Bound::Unbounded)).take_while(is_below).take(most).cloned().collect()
        };
        let more = found.len() > query.limit;
        found.truncate(query.limit);
        IndexPage { entries: found, more }
    }

    /// Shows what is due to be shown.
    fn show(&mut self, now: i64) {
        while self.coming.front().is_some_and(|next| next.at <= now) {
            let Some(Move { key, gone, new, .. }) = self.coming.pop_front() else { return };
            for entry in gone {
                if let Some(entries) = self.shown.get_mut(&(entry.index, entry.partition)) {
                    entries.remove(&(entry.sort, key.clone()));
                }
            }
            for entry in new {
                self.shown.entry((entry.index, entry.partition)).or_default().insert((entry.sort, key.clone()));
            }
        }
    }

    /// Shows everything soon from now on.
    pub fn catch_up(&mut self, until: i64) {
        for coming in &mut self.coming {
            coming.at = coming.at.min(until);
        }
    }

    /// Whether every condition holds.
    ///
    /// # Errors
    /// The first that doesn't, or a limit that is passed.
    pub fn check(&self, writes: &[Write]) -> Result<(), StoreError> {
        limits(writes)?;
        for (index, write) in writes.iter().enumerate() {
            let there = self.get(key_of(write)).map(|item| item.version);
            let holds = match expectation(write) {
                Expect::Any => true,
                Expect::Absent => there.is_none(),
                Expect::Version(version) => there == Some(version),
            };
            if !holds || !self.is_within(write) {
                return Err(StoreError::Conflict { index });
            }
        }
        Ok(())
    }

    /// Whether an addition leaves every number at what it may be at most.
    fn is_within(&self, write: &Write) -> bool {
        let Write::Add { key, amounts, at_most, .. } = write else { return true };
        let body = self.get(key).map_or("{}", |item| item.body.as_str());
        let there: BTreeMap<String, i64> = serde_json::from_str(body).unwrap_or_default();
        at_most.iter().all(|(name, most)| {
            there.get(name).copied().unwrap_or(0) + amounts.get(name).copied().unwrap_or(0) <= *most
        })
    }

    /// Makes one write; the indexes show it at `shown_at`.
    pub fn apply(&mut self, write: &Write, shown_at: i64) {
        match write {
            Write::Put { item, .. } => self.put(item, shown_at),
            Write::Check { .. } => {}
            Write::Delete { key, .. } => {
                let gone = self.partitions.get_mut(&key.partition).and_then(|items| items.remove(&key.sort));
                self.move_entries(key, gone.map(|item| item.indexes).unwrap_or_default(), Vec::new(), shown_at);
            }
            Write::Add { key, amounts, expires_at, .. } => {
                let mut item = self.get(key).cloned().unwrap_or_else(|| Item::new(key.clone(), "{}"));
                item.body = sum(&item.body, amounts);
                item.expires_at = *expires_at;
                self.put(&item, shown_at);
            }
        }
    }

    fn put(&mut self, item: &Item, shown_at: i64) {
        let Key { partition, sort } = &item.key;
        let items = match self.partitions.get_mut(partition) {
            Some(items) => items,
            None => self.partitions.entry(partition.clone()).or_default(),
        };
        let gone = match items.get_mut(sort) {
            Some(there) => {
                there.version += 1;
                there.body.clone_from(&item.body);
                there.expires_at = item.expires_at;
                if there.indexes == item.indexes {
                    return;
                }
                std::mem::replace(&mut there.indexes, item.indexes.clone())
            }
            None => {
                items.insert(sort.clone(), Item { version: 1, ..item.clone() });
                Vec::new()
            }
        };
        self.move_entries(&item.key, gone, item.indexes.clone(), shown_at);
    }

    fn move_entries(&mut self, key: &Key, gone: Vec<IndexEntry>, new: Vec<IndexEntry>, shown_at: i64) {
        if gone == new {
            return;
        }
        // One stream: what was written later is never shown earlier.
        let at = self.coming.back().map_or(shown_at, |last| shown_at.max(last.at));
        self.coming.push_back(Move { at, key: key.clone(), gone, new });
    }
}

/// An item as it is read. No handler looks at what it is indexed by, so that isn't copied.
#[must_use]
pub fn as_read(item: &Item) -> Item {
    let Item { key, version, body, indexes: _, expires_at } = item;
    Item { key: key.clone(), version: *version, body: body.clone(), indexes: Vec::new(), expires_at: *expires_at }
}

/// The item of a write.
#[must_use]
pub fn key_of(write: &Write) -> &Key {
    match write {
        Write::Put { item, .. } => &item.key,
        Write::Delete { key, .. } | Write::Check { key, .. } | Write::Add { key, .. } => key,
    }
}

fn expectation(write: &Write) -> Expect {
    match write {
        Write::Put { expect, .. } | Write::Delete { expect, .. } | Write::Check { expect, .. } => *expect,
        Write::Add { .. } => Expect::Any,
    }
}

fn limits(writes: &[Write]) -> Result<(), StoreError> {
    at_most("the number of writes in one transaction", writes.len(), TRANSACTION_WRITES_MAX)?;
    let mut bytes = 0;
    for (index, write) in writes.iter().enumerate() {
        if let Write::Put { item, .. } = write {
            at_most("the item in bytes", item.bytes(), ITEM_BYTES_MAX)?;
            bytes += item.bytes();
        }
        if writes.iter().take(index).any(|other| key_of(other) == key_of(write)) {
            at_most("the number of writes to one item in one transaction", 2, 1)?;
        }
    }
    at_most("the transaction in bytes", bytes, TRANSACTION_BYTES_MAX)
}

fn at_most(what: &'static str, given: usize, limit: usize) -> Result<(), StoreError> {
    if given > limit { Err(StoreError::TooLarge { what, limit, given }) } else { Ok(()) }
}

fn sum(body: &str, amounts: &BTreeMap<String, i64>) -> String {
    let mut counters: BTreeMap<String, i64> = serde_json::from_str(body).unwrap_or_default();
    for (name, amount) in amounts {
        *counters.entry(name.clone()).or_insert(0) += amount;
    }
    serde_json::to_string(&counters).unwrap_or_default()
}
