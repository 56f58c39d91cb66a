//! Indexes: what they show once they have caught up.

use std::time::Duration;

use osprey_ports::{Expect, Index, IndexPage, IndexQuery, Item, Key, Write};

use super::{Bench, Store, delete, entry, put};

/// How often a query is asked again before it is held against the store, and how long between.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(50);

pub(super) async fn run<S: Store>(bench: &Bench<'_, S>) {
    order_and_bounds(bench).await;
    pages_with_equal_keys(bench).await;
    entries_follow_their_items(bench).await;
}

fn query<S: Store>(bench: &Bench<'_, S>, name: &str) -> IndexQuery {
    let partition = bench.partition(name);
    let (from, to, after) = (None, None, None);
    IndexQuery { index: Index::Due, partition, from, to, newest_first: false, after, limit: 100 }
}

async fn ask<S: Store>(bench: &Bench<'_, S>, query: &IndexQuery) -> IndexPage {
    let answer = bench.store.query_index_lagging(query).await;
    assert!(answer.is_ok(), "an index must be readable: {answer:?}");
    answer.unwrap_or_default()
}

/// Sort keys of the index and of the items.
fn shown(page: &IndexPage) -> Vec<(&str, &str)> {
    page.entries.iter().map(|(sort, key)| (sort.as_str(), key.sort.as_str())).collect()
}

async fn must_show<S: Store>(bench: &Bench<'_, S>, query: &IndexQuery, want: &[(&str, &str)], rule: &str) {
    let mut page = IndexPage::default();
    for _ in 0..TRIES {
        page = ask(bench, query).await;
        if shown(&page) == want {
            return;
        }
        std::thread::sleep(PAUSE);
    }
    assert_eq!(shown(&page), want, "{rule}");
}

/// Puts an item with one entry.
fn indexed<S: Store>(bench: &Bench<'_, S>, name: &str, sort: &str, index: Index, at: &str) -> Write {
    let indexes = vec![entry(index, &bench.partition(name), at)];
    put(&Item { indexes, ..bench.item(name, sort, "1") }, Expect::Any)
}

async fn order_and_bounds<S: Store>(bench: &Bench<'_, S>) {
    for (sort, at) in [("a", "30"), ("b", "10"), ("c", "20"), ("d", "200")] {
        bench.must_write(&[indexed(bench, "bounds", sort, Index::Due, at)], "create").await;
    }
    bench.must_write(&[indexed(bench, "bounds", "other", Index::Listing, "15")], "in the other index").await;
    bench.must_write(&[put(&bench.item("bounds", "none", "1"), Expect::Any)], "in none").await;
    let all = query(bench, "bounds");
    let order = [("10", "b"), ("20", "c"), ("200", "d"), ("30", "a")];
    must_show(bench, &all, &order, "in the order of its own sort key, from this index alone").await;
    let bounds = |from: Option<&str>, to: Option<&str>, newest_first| {
        let (from, to) = (from.map(str::to_owned), to.map(str::to_owned));
        IndexQuery { from, to, newest_first, ..query(bench, "bounds") }
    };
    let [b, c, d, a] = order;
    let cases: [(IndexQuery, &[(&str, &str)]); 7] = [
        (bounds(None, None, true), &[a, d, c, b]),
        (bounds(Some("20"), None, false), &[c, d, a]),
        (bounds(None, Some("20"), false), &[b, c]),
        (bounds(Some("20"), Some("200"), false), &[c, d]),
        (bounds(Some("20"), Some("200"), true), &[d, c]),
        (bounds(Some("11"), Some("19"), false), &[]),
        (bounds(Some("30"), Some("10"), false), &[]),
    ];
    for (query, want) in cases {
        must_show(bench, &query, want, "bounds are inclusive").await;
    }
}

/// Follows pages of `limit` to the end.
async fn follow<S: Store>(bench: &Bench<'_, S>, query: &IndexQuery, limit: usize) -> Vec<(String, Key)> {
    let mut all: Vec<(String, Key)> = Vec::new();
    loop {
        let page = ask(bench, &IndexQuery { after: all.last().cloned(), limit, ..query.clone() }).await;
        assert!(page.entries.len() <= limit, "a page is no longer than asked for");
        all.extend(page.entries);
        if !page.more {
            return all;
        }
    }
}

async fn pages_with_equal_keys<S: Store>(bench: &Bench<'_, S>) {
    for n in 0..12 {
        let at = format!("{}", n / 5);
        bench.must_write(&[indexed(bench, "equal", &format!("{n:02}"), Index::Due, &at)], "create").await;
    }
    let ascending = query(bench, "equal");
    let all = wait_for(bench, &ascending, 12).await;
    for (newest_first, limit) in [(false, 1), (false, 3), (false, 5), (true, 1), (true, 4), (true, 12)] {
        let paged = follow(bench, &IndexQuery { newest_first, ..ascending.clone() }, limit).await;
        let mut keys: Vec<_> = paged.iter().map(|(_, key)| key.clone()).collect();
        keys.sort();
        keys.dedup();
        assert_eq!((paged.len(), keys.len()), (12, 12), "pages of {limit} show each entry once");
        let mut times: Vec<_> = paged.iter().map(|(at, _)| at.clone()).collect();
        if newest_first {
            times.reverse();
        }
        assert!(times.is_sorted(), "pages of {limit} keep the order");
    }
    let bounded = IndexQuery { from: Some("1".to_owned()), to: Some("1".to_owned()), ..ascending };
    let middle: Vec<_> = all.into_iter().filter(|(at, _)| at == "1").collect();
    assert_eq!(follow(bench, &bounded, 2).await, middle, "pages keep inside their bounds");
}

async fn wait_for<S: Store>(bench: &Bench<'_, S>, query: &IndexQuery, count: usize) -> Vec<(String, Key)> {
    for _ in 0..TRIES {
        let page = ask(bench, query).await;
        if page.entries.len() == count {
            return page.entries;
        }
        std::thread::sleep(PAUSE);
    }
    ask(bench, query).await.entries
}

async fn entries_follow_their_items<S: Store>(bench: &Bench<'_, S>) {
    let all = query(bench, "follow");
    bench.must_write(&[indexed(bench, "follow", "a", Index::Due, "1")], "create").await;
    must_show(bench, &all, &[("1", "a")], "a new entry is shown").await;
    bench.must_write(&[indexed(bench, "follow", "a", Index::Due, "2")], "move").await;
    must_show(bench, &all, &[("2", "a")], "an entry that moved is shown where it is, once").await;
    let failing = [indexed(bench, "follow", "b", Index::Due, "3"), delete(&bench.key("follow", "a"), Expect::Absent)];
    assert!(bench.write(&failing).await.is_err(), "a transaction that fails");
    must_show(bench, &all, &[("2", "a")], "changes no index").await;
    bench.must_write(&[indexed(bench, "follow", "a", Index::Listing, "2")], "to the other index").await;
    must_show(bench, &all, &[], "an item without entry isn't shown").await;
    bench.must_write(&[indexed(bench, "follow", "a", Index::Due, "1")], "back").await;
    must_show(bench, &all, &[("1", "a")], "it is shown where it was").await;
    bench.must_write(&[delete(&bench.key("follow", "a"), Expect::Any)], "delete").await;
    must_show(bench, &all, &[], "a deleted item isn't shown").await;
}
