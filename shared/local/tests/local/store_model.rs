//! Random writes against a map that does the same.

use std::collections::{BTreeMap, BTreeSet};

use osprey_ports::{Expect, Index, IndexEntry, IndexQuery, Item, Key, SortQuery, StoreError, Write};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use crate::scratch::Bench;

fn keys() -> impl Strategy<Value = Key> {
    (prop::sample::select(vec!["p", "q"]), prop::sample::select(vec!["a", "aé", "b", "\u{1f9a4}"]))
        .prop_map(|(partition, sort)| Key::new(partition, sort))
}

fn expectations() -> impl Strategy<Value = Expect> {
    prop_oneof![3 => Just(Expect::Any), 2 => Just(Expect::Absent), 3 => (0..4u64).prop_map(Expect::Version)]
}

fn entries() -> impl Strategy<Value = Vec<IndexEntry>> {
    let one = |index| {
        prop::option::of(prop::sample::select(vec!["1", "2"]).prop_map(move |sort| IndexEntry {
            index,
            partition: "i".into(),
            sort: sort.into(),
        }))
    };
    (one(Index::Due), one(Index::Listing)).prop_map(|(due, listing)| due.into_iter().chain(listing).collect())
}

fn writes() -> impl Strategy<Value = Write> {
    let body = prop::sample::select(vec!["1", r#"{"n":4}"#, "{}"]);
    let put = (keys(), expectations(), body, entries())
        .prop_map(|(key, expect, body, indexes)| Write::Put { item: Item { indexes, ..Item::new(key, body) }, expect });
    let amounts = btree_map(prop::sample::select(vec!["n", "m"]), -3..9i64, 1..3);
    let add = (keys(), amounts).prop_map(|(key, amounts)| {
        let amounts = amounts.into_iter().map(|(name, amount)| (name.to_owned(), amount)).collect();
        Write::Add { key, amounts, at_most: BTreeMap::new(), expires_at: None }
    });
    prop_oneof![
        5 => put,
        2 => (keys(), expectations()).prop_map(|(key, expect)| Write::Delete { key, expect }),
        2 => (keys(), expectations()).prop_map(|(key, expect)| Write::Check { key, expect }),
        3 => add,
    ]
}

type Model = BTreeMap<Key, Item>;

fn target(write: &Write) -> (&Key, Expect) {
    match write {
        Write::Put { item, expect } => (&item.key, *expect),
        Write::Delete { key, expect } | Write::Check { key, expect } => (key, *expect),
        Write::Add { key, .. } => (key, Expect::Any),
    }
}

/// What kind of error, since the sentences are the store's own.
#[derive(Debug, PartialEq)]
enum Answer {
    Done,
    Conflict(usize),
    Refused,
}

impl From<Result<(), StoreError>> for Answer {
    fn from(result: Result<(), StoreError>) -> Self {
        match result {
            Ok(()) => Self::Done,
            Err(StoreError::Conflict { index }) => Self::Conflict(index),
            Err(_) => Self::Refused,
        }
    }
}

/// The same call on the map.
fn apply(model: &mut Model, writes: &[Write]) -> Answer {
    let distinct: BTreeSet<_> = writes.iter().map(|write| target(write).0).collect();
    if distinct.len() < writes.len() || matches!(writes, [] | [Write::Check { .. }]) {
        return Answer::Refused;
    }
    let fails = |write: &Write| {
        let (key, expect) = target(write);
        match (expect, model.get(key)) {
            (Expect::Any, _) | (Expect::Absent, None) => false,
            (Expect::Version(want), Some(item)) => item.version != want,
            (Expect::Absent, Some(_)) | (Expect::Version(_), None) => true,
        }
    };
    if let Some(index) = writes.iter().position(fails) {
        return Answer::Conflict(index);
    }
    let mut next = model.clone();
    for write in writes {
        if change(&mut next, write).is_none() {
            return Answer::Refused;
        }
    }
    *model = next;
    Answer::Done
}

fn change(model: &mut Model, write: &Write) -> Option<()> {
    let version = model.get(target(write).0).map_or(0, |item| item.version) + 1;
    match write {
        Write::Put { item, .. } => drop(model.insert(item.key.clone(), Item { version, ..item.clone() })),
        Write::Delete { key, .. } => drop(model.remove(key)),
        Write::Check { .. } => {}
        Write::Add { key, amounts, .. } => {
            let item = model.entry(key.clone()).or_insert_with(|| Item::new(key.clone(), "{}"));
            let mut counters: BTreeMap<String, i64> = serde_json::from_str(&item.body).ok()?;
            amounts.iter().for_each(|(name, amount)| *counters.entry(name.clone()).or_default() += amount);
            item.body = serde_json::to_string(&counters).ok()?;
            item.version = version;
        }
    }
    Some(())
}

/// Entries of one index of the map, in order.
fn index_of(model: &Model, index: Index) -> Vec<(String, Key)> {
    let mut rows: Vec<_> = model
        .values()
        .flat_map(|item| item.indexes.iter().map(move |entry| (entry, &item.key)))
        .filter(|(entry, _)| entry.index == index)
        .map(|(entry, key)| (entry.sort.clone(), key.clone()))
        .collect();
    rows.sort();
    rows
}

fn compare(bench: &Bench, model: &Model) {
    for partition in ["p", "q"] {
        let query = SortQuery { partition: partition.into(), prefix: String::new(), after: None, limit: 100 };
        let want: Vec<_> = model.values().filter(|item| item.key.partition == partition).cloned().collect();
        assert_eq!(bench.store.query(&query).unwrap().items, want);
    }
    for index in [Index::Due, Index::Listing] {
        let (partition, from, to, after) = ("i".to_owned(), None, None, None);
        let query = IndexQuery { index, partition, from, to, newest_first: false, after, limit: 100 };
        assert_eq!(bench.store.query_index(&query).unwrap().entries, index_of(model, index));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_store_does_what_a_map_does(calls in vec(vec(writes(), 0..4), 1..24)) {
        let (bench, mut model) = (Bench::new(), Model::new());
        for call in &calls {
            let want = apply(&mut model, call);
            prop_assert_eq!(Answer::from(bench.store.write(call)), want, "{:?}", call);
            compare(&bench, &model);
        }
    }
}
