//! One write and what it expects.

use jiff::Timestamp;
use osprey_ports::{Expect, Index, Item};

use super::{Bench, FIRST_FAILS, Store, delete, entry, put};

pub(super) async fn run<S: Store>(bench: &Bench<'_, S>) {
    put_of_an_absent_item(bench).await;
    put_of_a_version(bench).await;
    put_of_anything(bench).await;
    put_replaces_the_whole_item(bench).await;
    deletes(bench).await;
    odd_keys(bench).await;
}

async fn put_of_an_absent_item<S: Store>(bench: &Bench<'_, S>) {
    let item = Item { version: 77, ..bench.item("absent", "a", r#"{"n":1}"#) };
    bench.must_be_absent(&item.key, "nothing is there at first").await;
    bench.must_write(&[put(&item, Expect::Absent)], "an absent item can be put as absent").await;
    bench.must_hold(&item.key, 1, r#"{"n":1}"#, "the first version is 1, whatever the item said").await;
    let other = bench.item("absent", "a", r#"{"n":2}"#);
    bench.must_fail(&[put(&other, Expect::Absent)], FIRST_FAILS, "an item that is there isn't absent").await;
    bench.must_hold(&item.key, 1, r#"{"n":1}"#, "a write that lost its race changes nothing").await;
}

async fn put_of_a_version<S: Store>(bench: &Bench<'_, S>) {
    let item = bench.item("version", "a", "{}");
    for version in [0, 1, u64::MAX] {
        bench.must_fail(&[put(&item, Expect::Version(version))], FIRST_FAILS, "an absent item has no version").await;
    }
    bench.must_write(&[put(&item, Expect::Absent)], "create").await;
    let next = bench.item("version", "a", "[2]");
    for version in [0, 2, u64::MAX] {
        bench.must_fail(&[put(&next, Expect::Version(version))], FIRST_FAILS, "another version is refused").await;
    }
    bench.must_write(&[put(&next, Expect::Version(1))], "the right version is taken").await;
    bench.must_hold(&item.key, 2, "[2]", "each write raises the version by one").await;
    bench.must_fail(&[put(&next, Expect::Version(1))], FIRST_FAILS, "the same write can't happen twice").await;
}

async fn put_of_anything<S: Store>(bench: &Bench<'_, S>) {
    let item = bench.item("any", "a", "1");
    bench.must_write(&[put(&item, Expect::Any)], "anything creates").await;
    bench.must_write(&[put(&item, Expect::Any)], "anything replaces").await;
    bench.must_hold(&item.key, 2, "1", "an unconditional write raises the version too").await;
}

async fn put_replaces_the_whole_item<S: Store>(bench: &Bench<'_, S>) {
    let due = bench.partition("whole-due");
    let expires_at = Timestamp::from_second(4_000_000_000).ok();
    let indexes = vec![entry(Index::Due, &due, "1"), entry(Index::Listing, &due, "2")];
    let full = Item { indexes, expires_at, ..bench.item("whole", "a", "\"é\u{1f9a4}\\u0000\"") };
    bench.must_write(&[put(&full, Expect::Absent)], "create").await;
    let read = bench.get(&full.key).await;
    assert_eq!(read, Some(Item { version: 1, ..full.clone() }), "an item is read as it was written");
    let bare = bench.item("whole", "a", "{}");
    bench.must_write(&[put(&bare, Expect::Version(1))], "replace").await;
    let read = bench.get(&full.key).await;
    assert_eq!(read, Some(Item { version: 2, ..bare }), "nothing of a replaced item stays");
}

async fn deletes<S: Store>(bench: &Bench<'_, S>) {
    let item = bench.item("delete", "a", "{}");
    let key = &item.key;
    bench.must_write(&[delete(key, Expect::Any)], "to delete nothing is no error").await;
    bench.must_write(&[delete(key, Expect::Absent)], "to delete what is absent as absent is no error").await;
    bench.must_fail(&[delete(key, Expect::Version(1))], FIRST_FAILS, "an absent item has no version to delete").await;
    bench.must_write(&[put(&item, Expect::Absent)], "create").await;
    bench.must_fail(&[delete(key, Expect::Absent)], FIRST_FAILS, "an item isn't deleted as absent").await;
    bench.must_fail(&[delete(key, Expect::Version(2))], FIRST_FAILS, "another version isn't deleted").await;
    bench.must_write(&[delete(key, Expect::Version(1))], "the right version is deleted").await;
    bench.must_be_absent(key, "what was deleted is gone").await;
    bench.must_write(&[put(&item, Expect::Absent)], "a key can be used again").await;
    bench.must_hold(key, 1, "{}", "and its versions start again").await;
}

async fn odd_keys<S: Store>(bench: &Bench<'_, S>) {
    let sorts = [" ", "a#b/c", "é", "\u{1f9a4}", "'; --", "%_", "\u{ffff}", "a\tb"];
    for sort in sorts {
        let item = bench.item("odd", sort, &format!("{:?}", sort.len()));
        bench.must_write(&[put(&item, Expect::Absent)], "any text is a key").await;
        bench.must_hold(&item.key, 1, &item.body, "and finds its own item").await;
    }
}
