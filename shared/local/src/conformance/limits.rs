//! Limits: at the limit, and one over.

use osprey_ports::store::{ITEM_BYTES_MAX, PAGE_ITEMS_MAX, PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX};
use osprey_ports::{Expect, Index, IndexQuery, Item, Key, SortQuery, StoreError};

use super::{Bench, Store, delete, entry, put, too_large};

pub(super) async fn run<S: Store>(bench: &Bench<'_, S>) {
    item_size(bench).await;
    key_lengths(bench).await;
    index_keys(bench).await;
    empty_keys(bench).await;
    queries(bench).await;
}

async fn item_size<S: Store>(bench: &Bench<'_, S>) {
    let indexes = vec![entry(Index::Due, &bench.partition("size-due"), "1")];
    let empty = Item { indexes, ..bench.item("size", "a", "") };
    let sized = |bytes: usize| {
        let body = format!("\"{}\"", "x".repeat(bytes - empty.bytes() - 2));
        put(&Item { body, ..empty.clone() }, Expect::Any)
    };
    let error = too_large("the item in bytes", ITEM_BYTES_MAX + 1, ITEM_BYTES_MAX);
    bench.must_fail(&[sized(ITEM_BYTES_MAX + 1)], error, "a byte over 400 KiB is refused").await;
    bench.must_be_absent(&empty.key, "and not written").await;
    bench.must_write(&[sized(ITEM_BYTES_MAX)], "400 KiB are taken").await;
    let read = bench.get(&empty.key).await.map(|item| item.bytes());
    assert_eq!(read, Some(ITEM_BYTES_MAX), "and read again");
}

async fn key_lengths<S: Store>(bench: &Bench<'_, S>) {
    let start = bench.partition("long-");
    let partition = |bytes: usize| format!("{start}{}", "p".repeat(bytes - start.len()));
    let sort = |bytes: usize| "é".repeat(bytes / 2) + if bytes % 2 == 1 { "s" } else { "" };
    let longest = Key::new(partition(PARTITION_KEY_BYTES_MAX), sort(SORT_KEY_BYTES_MAX));
    bench.must_write(&[put(&Item::new(longest.clone(), "1"), Expect::Absent)], "the longest keys are taken").await;
    bench.must_hold(&longest, 1, "1", "and found").await;
    let wide = Key::new(partition(PARTITION_KEY_BYTES_MAX + 1), "a");
    let error = too_large("the partition key in bytes", PARTITION_KEY_BYTES_MAX + 1, PARTITION_KEY_BYTES_MAX);
    bench.must_fail(&[delete(&wide, Expect::Any)], error.clone(), "a longer partition key is refused").await;
    assert_eq!(bench.store.get_item(&wide).await, Err(error), "in a read too");
    let deep = Key::new(start.as_str(), sort(SORT_KEY_BYTES_MAX + 1));
    let error = too_large("the sort key in bytes", SORT_KEY_BYTES_MAX + 1, SORT_KEY_BYTES_MAX);
    bench.must_fail(&[put(&Item::new(deep, "1"), Expect::Any)], error, "a longer sort key is refused").await;
}

async fn index_keys<S: Store>(bench: &Bench<'_, S>) {
    let long = "x".repeat(SORT_KEY_BYTES_MAX + 1);
    let with = |indexes| put(&Item { indexes, ..bench.item("index-keys", "a", "1") }, Expect::Any);
    let error = too_large("the sort key in bytes", SORT_KEY_BYTES_MAX + 1, SORT_KEY_BYTES_MAX);
    let writes = [with(vec![entry(Index::Due, "p", &long)])];
    bench.must_fail(&writes, error, "an index has the limits of the table").await;
    bench.must_be_refused(&[with(vec![entry(Index::Due, "p", "")])], "an empty key in an index is refused").await;
    let error = too_large("the number of an item's entries in one index", 2, 1);
    let writes = [with(vec![entry(Index::Due, "p", "1"), entry(Index::Due, "p", "2")])];
    bench.must_fail(&writes, error, "an item has one entry in one index").await;
}

async fn empty_keys<S: Store>(bench: &Bench<'_, S>) {
    for key in [Key::new("", "a"), Key::new(bench.partition("empty"), "")] {
        bench.must_be_refused(&[put(&Item::new(key.clone(), "1"), Expect::Any)], "an empty key is refused").await;
        let read = bench.store.get_item(&key).await;
        assert!(matches!(read, Err(StoreError::Unusable(_))), "in a read too: {read:?}");
    }
}

async fn queries<S: Store>(bench: &Bench<'_, S>) {
    let partition = bench.partition("no-query");
    let items = SortQuery { partition: partition.clone(), prefix: String::new(), after: None, limit: 0 };
    let read = bench.store.query_items(&items).await;
    assert!(matches!(read, Err(StoreError::Unusable(_))), "a query for no items is refused: {read:?}");
    let (from, to, after) = (None, None, None);
    let index = IndexQuery { index: Index::Due, partition, from, to, newest_first: false, after, limit: 0 };
    let read = bench.store.query_index_lagging(&index).await;
    assert!(matches!(read, Err(StoreError::Unusable(_))), "of an index too: {read:?}");
    let most = SortQuery { limit: PAGE_ITEMS_MAX + 1, ..items };
    assert!(bench.store.query_items(&most).await.is_ok(), "a limit over the page's is the page's");
}
