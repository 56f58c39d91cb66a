//! The store: the checks that every store must pass, and what only this one promises.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use osprey_local::{Database, DatabaseOptions, LocalStore, conformance};
use osprey_ports::{Expect, Index, IndexEntry, IndexQuery, Item, Key, SortQuery, StoreError, Write};

use crate::scratch::{Bench, Scratch, ready, second};

fn put(item: Item) -> Write {
    Write::Put { item, expect: Expect::Any }
}

fn add(key: &Key, name: &str, amount: i64) -> Write {
    Write::Add {
        key: key.clone(),
        amounts: BTreeMap::from([(name.to_owned(), amount)]),
        at_most: BTreeMap::new(),
        expires_at: None,
    }
}

fn due(sort: &str, at: &str) -> Item {
    let indexes = vec![IndexEntry { index: Index::Due, partition: "due".into(), sort: at.into() }];
    Item { indexes, ..Item::new(Key::new("p", sort), "1") }
}

fn shown(store: &LocalStore) -> Vec<String> {
    let partition = "due".to_owned();
    let (from, to, after) = (None, None, None);
    let query = IndexQuery { index: Index::Due, partition, from, to, newest_first: false, after, limit: 10 };
    store.query_index(&query).unwrap().entries.into_iter().map(|(at, key)| format!("{at}{}", key.sort)).collect()
}

#[test]
fn the_store_in_memory_keeps_every_rule() {
    ready(conformance::run(&Bench::new().store, "memory"));
}

#[test]
fn the_store_in_a_file_keeps_every_rule() {
    let scratch = Scratch::new();
    ready(conformance::run(&Bench::on(Database::open(&scratch.file()).unwrap()).store, "file"));
}

#[test]
fn what_was_written_is_there_when_the_file_is_opened_again() {
    let scratch = Scratch::new();
    let item = Item { expires_at: Some(second(2_000)), ..due("a", "1") };
    Bench::on(Database::open(&scratch.file()).unwrap()).store.write(&[put(item.clone())]).unwrap();
    let again = Bench::on(Database::open(&scratch.file()).unwrap());
    assert_eq!(again.store.get(&item.key).unwrap(), Some(Item { version: 1, ..item }));
    assert_eq!(shown(&again.store), ["1a"]);
}

#[test]
fn a_counter_that_would_overflow_is_refused_and_stays() {
    let store = Bench::new().store;
    let key = Key::new("p", "counter");
    for (first, second, name) in [(i64::MAX, 1, "up"), (i64::MIN, -1, "down")] {
        store.write(&[add(&key, name, first)]).unwrap();
        let error = store.write(&[add(&key, name, second)]).unwrap_err();
        assert_eq!(error, StoreError::Unusable(format!("the counter `{name}` would overflow")));
    }
    let body = format!(r#"{{"down":{},"up":{}}}"#, i64::MIN, i64::MAX);
    assert_eq!(store.get(&key).unwrap().unwrap().body, body);
}

#[test]
fn adding_to_an_item_that_is_no_counter_is_refused() {
    let store = Bench::new().store;
    let want = StoreError::Unusable("the item that should be added to is no object of whole numbers".into());
    for body in ["1", "not JSON", r#"{"n":1.5}"#, r#"{"n":"1"}"#, r#"{"n":9223372036854775808}"#, "[]"] {
        let key = Key::new("p", "a");
        store.write(&[put(Item::new(key.clone(), body))]).unwrap();
        assert_eq!(store.write(&[add(&key, "n", 1)]), Err(want.clone()), "{body}");
    }
}

#[test]
fn adding_to_a_counter_item_that_was_put_keeps_its_index_entries() {
    let store = Bench::new().store;
    let item = Item { body: r#"{"n":1}"#.into(), ..due("a", "1") };
    store.write(&[put(item.clone()), add(&Key::new("p", "b"), "n", 1)]).unwrap();
    store.write(&[add(&item.key, "n", 1)]).unwrap();
    let read = store.get(&item.key).unwrap().unwrap();
    assert_eq!((read.body.as_str(), read.version, read.indexes), (r#"{"n":2}"#, 2, item.indexes));
    assert_eq!(shown(&store), ["1a"]);
}

#[test]
fn a_counter_item_over_the_size_limit_is_refused() {
    let store = Bench::new().store;
    let error = store.write(&[add(&Key::new("p", "a"), &"n".repeat(400 * 1024), 1)]).unwrap_err();
    assert!(matches!(error, StoreError::TooLarge { what: "the item in bytes", limit: 409_600, .. }), "{error}");
}

#[test]
fn an_expired_item_is_there_until_the_sweep() {
    let bench = Bench::new();
    let expiring = |sort: &str, at| put(Item { expires_at: Some(second(at)), ..due(sort, sort) });
    bench.store.write(&[expiring("a", 1), expiring("b", 2_000), expiring("c", 2_001), put(due("d", "d"))]).unwrap();
    assert_eq!(shown(&bench.store), ["aa", "bb", "cc", "dd"]);
    assert_eq!(bench.store.sweep(second(2_000)), Ok(2));
    assert_eq!(shown(&bench.store), ["cc", "dd"]);
    assert_eq!(bench.store.get(&Key::new("p", "b")), Ok(None));
    assert_eq!(bench.store.sweep(second(2_000)), Ok(0));
}

#[test]
fn a_sweep_drops_any_number_of_items() {
    let bench = Bench::new();
    for chunk in 0..12 {
        let one = |n| Item { expires_at: Some(second(1)), ..Item::new(Key::new("p", format!("{chunk}-{n}")), "1") };
        bench.store.write(&(0..100).map(|n| put(one(n))).collect::<Vec<_>>()).unwrap();
    }
    assert_eq!(bench.store.sweep(second(1)), Ok(1_200));
}

#[test]
fn expiry_is_kept_in_whole_seconds() {
    let store = Bench::new().store;
    let precise = second(5).saturating_add(SignedDuration::from_millis(900)).unwrap();
    store.write(&[put(Item { expires_at: Some(precise), ..due("a", "1") })]).unwrap();
    assert_eq!(store.get(&Key::new("p", "a")).unwrap().unwrap().expires_at, Some(second(5)));
}

#[test]
fn an_index_that_lags_shows_the_past_and_catches_up() {
    let bench = Bench::new();
    let store = bench.store.clone().with_index_lag(SignedDuration::from_secs(10));
    store.write(&[put(due("a", "1"))]).unwrap();
    assert_eq!(shown(&store), [""; 0]);
    bench.pass(10);
    assert_eq!(shown(&store), ["1a"]);
    store.write(&[put(due("a", "2"))]).unwrap();
    bench.pass(5);
    store.write(&[put(due("a", "1"))]).unwrap();
    assert_eq!(shown(&store), ["1a"], "nothing new yet");
    bench.pass(5);
    assert_eq!(shown(&store), ["2a"], "as it was ten seconds ago");
    bench.pass(5);
    assert_eq!(shown(&store), ["1a"], "and as it is");
    store.write(&[Write::Delete { key: Key::new("p", "a"), expect: Expect::Version(3) }]).unwrap();
    assert_eq!(shown(&store), ["1a"], "an item that is gone is still shown");
    assert_eq!(store.get(&Key::new("p", "a")), Ok(None));
    bench.pass(10);
    assert_eq!(shown(&store), [""; 0]);
}

#[test]
fn an_index_that_lags_keeps_every_rule_once_it_caught_up() {
    let bench = Bench::new();
    let store = bench.store.with_index_lag(SignedDuration::from_millis(60));
    let ticking = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let (clock, tick) = (bench.clock.clone(), ticking.clone());
    let ticker = std::thread::spawn(move || {
        while tick.load(std::sync::atomic::Ordering::Relaxed) {
            clock.advance(SignedDuration::from_millis(5));
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    });
    ready(conformance::run(&store, "lag"));
    ticking.store(false, std::sync::atomic::Ordering::Relaxed);
    ticker.join().unwrap();
}

#[test]
fn a_page_of_items_ends_at_one_mebibyte() {
    let store = Bench::new().store;
    for sort in ["1", "2", "3"] {
        store.write(&[put(Item::new(Key::new("p", sort), "x".repeat(380 * 1024)))]).unwrap();
    }
    let query = SortQuery { partition: "p".into(), prefix: String::new(), after: None, limit: 3 };
    let page = store.query(&query).unwrap();
    assert_eq!((page.items.len(), page.more), (2, true));
}

#[test]
fn a_full_disk_is_said_in_one_sentence_and_writes_nothing() {
    let scratch = Scratch::new();
    let options = DatabaseOptions { pages_max: Some(64), ..DatabaseOptions::default() };
    let bench = Bench::on(Database::open_with(&scratch.file(), &options).unwrap());
    let item = |sort: &str| Item::new(Key::new("p", sort), "x".repeat(100 * 1024));
    let writes: Vec<_> = ["1", "2", "3", "4"].map(|sort| put(item(sort))).into();
    let error = bench.store.write(&writes).unwrap_err();
    let want = format!("the disk that holds `{}` is full", scratch.file().display());
    assert_eq!(error, StoreError::Unusable(want));
    assert_eq!(bench.store.get(&Key::new("p", "1")), Ok(None));
    bench.store.write(&[put(item("1"))]).unwrap();
}

#[test]
fn a_file_held_by_another_writer_for_too_long_is_a_throttle() {
    let scratch = Scratch::new();
    let options = DatabaseOptions { busy_timeout: std::time::Duration::from_millis(20), pages_max: None };
    let bench = Bench::on(Database::open_with(&scratch.file(), &options).unwrap());
    let other = rusqlite::Connection::open(scratch.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(bench.store.write(&[put(due("a", "1"))]), Err(StoreError::Throttled));
    assert_eq!(bench.store.get(&Key::new("p", "a")), Ok(None), "readers don't wait");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(bench.store.write(&[put(due("a", "1"))]), Ok(()));
}

#[test]
fn a_page_that_starts_outside_its_bounds_keeps_inside_them() {
    let store = Bench::new().store;
    for at in ["1", "2", "3", "4"] {
        store.write(&[put(due(at, at))]).unwrap();
    }
    let ask = |newest_first, after: &str| {
        let after = Some((after.to_owned(), Key::new("p", after)));
        let (from, to) = (Some("2".to_owned()), Some("3".to_owned()));
        let partition = "due".to_owned();
        let query = IndexQuery { index: Index::Due, partition, from, to, newest_first, after, limit: 10 };
        store.query_index(&query).unwrap().entries.into_iter().map(|(at, _)| at).collect::<Vec<_>>()
    };
    assert_eq!(ask(false, "1"), ["2", "3"]);
    assert_eq!(ask(true, "4"), ["3", "2"]);
    assert_eq!(ask(false, "4"), [""; 0]);
}
