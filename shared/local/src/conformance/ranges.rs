//! Ranges of a partition.

use osprey_ports::store::PAGE_ITEMS_MAX;
use osprey_ports::{Expect, Item, Page, SortQuery, Write};

use super::{Bench, Store, put};

pub(super) async fn run<S: Store>(bench: &Bench<'_, S>) {
    order_and_prefix(bench).await;
    pages(bench).await;
    the_longest_page(bench).await;
    pages_of_large_items(bench).await;
}

async fn query<S: Store>(bench: &Bench<'_, S>, name: &str, prefix: &str, after: Option<&str>, limit: usize) -> Page {
    let (partition, prefix) = (bench.partition(name), prefix.to_owned());
    let query = SortQuery { partition, prefix, after: after.map(str::to_owned), limit };
    let answer = bench.store.query_items(&query).await;
    assert!(answer.is_ok(), "a partition must be readable: {answer:?}");
    answer.unwrap_or_default()
}

fn sorts(page: &Page) -> Vec<&str> {
    page.items.iter().map(|item| item.key.sort.as_str()).collect()
}

/// Follows pages of `limit` to the end.
async fn follow<S: Store>(bench: &Bench<'_, S>, name: &str, prefix: &str, limit: usize) -> Vec<Item> {
    let (mut all, mut after): (Vec<Item>, Option<String>) = (Vec::new(), None);
    loop {
        let page = query(bench, name, prefix, after.as_deref(), limit).await;
        assert!(page.items.len() <= limit, "a page is no longer than asked for");
        after = page.items.last().map(|item| item.key.sort.clone()).or(after);
        all.extend(page.items);
        if !page.more {
            return all;
        }
    }
}

/// In the order of their bytes in UTF-8, which is not that of UTF-16.
const ORDERED: [&str; 9] = ["A", "a", "a#1", "a#10", "a#2", "b", "é", "\u{ffff}", "\u{1f9a4}"];

async fn order_and_prefix<S: Store>(bench: &Bench<'_, S>) {
    for sort in ORDERED.iter().rev() {
        bench.must_write(&[put(&bench.item("order", sort, "1"), Expect::Absent)], "create").await;
        bench.must_write(&[put(&bench.item("order-next", sort, "1"), Expect::Absent)], "a neighbour").await;
    }
    let (a, b) = (Some("a"), Some("b"));
    let cases: [(&str, Option<&str>, &[&str]); 9] = [
        ("", None, &ORDERED),
        ("a", None, &["a", "a#1", "a#10", "a#2"]),
        ("a#1", None, &["a#1", "a#10"]),
        ("a", a, &["a#1", "a#10", "a#2"]),
        ("a", Some("a#10"), &["a#2"]),
        ("b", a, &["b"]),
        ("a", b, &[]),
        ("\u{1f9a4}", None, &["\u{1f9a4}"]),
        ("zz", None, &[]),
    ];
    for (prefix, after, want) in cases {
        let page = query(bench, "order", prefix, after, 100).await;
        assert_eq!((sorts(&page), page.more), (want.to_vec(), false), "prefix {prefix:?} after {after:?}");
    }
    assert_eq!(query(bench, "order-none", "", None, 10).await, Page::default(), "an empty partition is an empty page");
}

async fn pages<S: Store>(bench: &Bench<'_, S>) {
    for limit in 1..=10 {
        let all = follow(bench, "order", "", limit).await;
        let found: Vec<_> = all.iter().map(|item| item.key.sort.as_str()).collect();
        assert_eq!(found, ORDERED, "pages of {limit} give each item once");
    }
    let page = query(bench, "order", "", None, 2).await;
    assert_eq!((sorts(&page), page.more), (vec!["A", "a"], true), "a page says that more follows");
}

async fn the_longest_page<S: Store>(bench: &Bench<'_, S>) {
    let count = PAGE_ITEMS_MAX + 1;
    let writes: Vec<Write> =
        (0..count).map(|n| put(&bench.item("longest", &format!("{n:04}"), "1"), Expect::Absent)).collect();
    for some in writes.chunks(100) {
        bench.must_write(some, "create").await;
    }
    let page = query(bench, "longest", "", None, usize::MAX).await;
    assert!(page.items.len() <= PAGE_ITEMS_MAX && page.more, "a page ends at {PAGE_ITEMS_MAX} items");
    assert_eq!(follow(bench, "longest", "", PAGE_ITEMS_MAX).await.len(), count, "and the next goes on");
}

async fn pages_of_large_items<S: Store>(bench: &Bench<'_, S>) {
    let body = format!("\"{}\"", "x".repeat(390 * 1024));
    for sort in ["1", "2", "3", "4"] {
        bench.must_write(&[put(&bench.item("large", sort, &body), Expect::Absent)], "create").await;
    }
    let all = follow(bench, "large", "", 100).await;
    assert_eq!(all.len(), 4, "large items come in as many pages as they need");
    assert!(all.iter().all(|item| item.body == body), "whole");
}
