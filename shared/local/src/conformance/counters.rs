//! Counter items.

use std::collections::BTreeMap;

use jiff::Timestamp;
use osprey_ports::{Expect, Key, StoreError, Write};

use super::{Bench, Store, check, delete, put};

pub(super) async fn run<S: Store>(bench: &Bench<'_, S>) {
    sums(bench).await;
    expiry(bench).await;
    in_transactions(bench).await;
    caps(bench).await;
}

fn add(key: &Key, amounts: &[(&str, i64)], expires_at: Option<Timestamp>) -> Write {
    let amounts: BTreeMap<_, _> = amounts.iter().map(|(name, amount)| ((*name).to_owned(), *amount)).collect();
    Write::Add { key: key.clone(), amounts, at_most: BTreeMap::new(), expires_at }
}

/// An addition to `x` that leaves it at `most` at most.
fn capped(key: &Key, amount: i64, most: i64) -> Write {
    let of = |number| BTreeMap::from([("x".to_owned(), number)]);
    Write::Add { key: key.clone(), amounts: of(amount), at_most: of(most), expires_at: None }
}

/// The counters of an item.
async fn counters<S: Store>(bench: &Bench<'_, S>, key: &Key) -> Option<(u64, BTreeMap<String, i64>)> {
    let (version, body) = bench.state(key).await?;
    Some((version, serde_json::from_str(&body).ok()?))
}

async fn must_count<S: Store>(bench: &Bench<'_, S>, key: &Key, version: u64, want: &[(&str, i64)], rule: &str) {
    let want: BTreeMap<_, _> = want.iter().map(|(name, amount)| ((*name).to_owned(), *amount)).collect();
    assert_eq!(counters(bench, key).await, Some((version, want)), "{rule}");
}

async fn sums<S: Store>(bench: &Bench<'_, S>) {
    let key = bench.key("sums", "a");
    bench.must_write(&[add(&key, &[("x", 2)], None)], "an absent item is created").await;
    must_count(bench, &key, 1, &[("x", 2)], "with the amounts").await;
    bench.must_write(&[add(&key, &[("x", -5), ("y", 7)], None)], "amounts may be negative and new").await;
    must_count(bench, &key, 2, &[("x", -3), ("y", 7)], "and are added").await;
    bench.must_write(&[add(&key, &[("z", 0)], None)], "zero counts as an amount").await;
    must_count(bench, &key, 3, &[("x", -3), ("y", 7), ("z", 0)], "others stay").await;
    bench.must_write(&[add(&key, &[("big", i64::MAX)], None)], "the largest number is taken").await;
    must_count(bench, &key, 4, &[("big", i64::MAX), ("x", -3), ("y", 7), ("z", 0)], "without loss").await;
    bench.must_write(&[delete(&key, Expect::Version(4))], "a counter item has a version").await;
}

async fn expiry<S: Store>(bench: &Bench<'_, S>) {
    let key = bench.key("counter-expiry", "a");
    let then = Timestamp::from_second(4_000_000_000).ok();
    bench.must_write(&[add(&key, &[("x", 1)], then)], "create").await;
    bench.must_write(&[add(&key, &[("x", 1)], None)], "add").await;
    let expires_at = bench.get(&key).await.and_then(|item| item.expires_at);
    assert_eq!(expires_at, then, "an addition without expiry leaves it as it is");
}

async fn in_transactions<S: Store>(bench: &Bench<'_, S>) {
    let (key, item) = (bench.key("counter-transaction", "a"), bench.item("counter-transaction", "b", "1"));
    let both = [add(&key, &[("x", 1)], None), put(&item, Expect::Absent)];
    bench.must_write(&both, "an addition goes with other writes").await;
    let error = StoreError::Conflict { index: 1 };
    bench.must_fail(&both, error, "and is not made when one of them fails").await;
    must_count(bench, &key, 1, &[("x", 1)], "so it is made exactly once").await;
    let guarded = [add(&key, &[("x", 1)], None), check(&item.key, Expect::Version(1))];
    bench.must_write(&guarded, "a check guards it").await;
    must_count(bench, &key, 2, &[("x", 2)], "and it is made").await;
}

async fn caps<S: Store>(bench: &Bench<'_, S>) {
    let key = bench.key("counter-caps", "a");
    let over = StoreError::Conflict { index: 0 };
    bench.must_fail(&[capped(&key, 9, 8)], over.clone(), "more than a number may be isn't added to nothing").await;
    bench.must_write(&[capped(&key, 8, 8)], "as much as it may be is").await;
    bench.must_fail(&[capped(&key, 1, 8)], over.clone(), "and then nothing more").await;
    must_count(bench, &key, 1, &[("x", 8)], "so a cap holds").await;
    bench.must_write(&[add(&key, &[("x", 4)], None)], "an addition that names no cap has none").await;
    bench.must_fail(&[capped(&key, 0, 8)], over, "what is over its cap takes nothing, not even 0").await;
    bench.must_write(&[add(&key, &[("x", -5)], None)], "what is given back").await;
    bench.must_write(&[capped(&key, 1, 8)], "may be taken again").await;
    must_count(bench, &key, 4, &[("x", 8)], "up to the cap").await;
    let item = bench.item("counter-caps", "b", "1");
    let both = [put(&item, Expect::Absent), capped(&key, 1, 8)];
    bench
        .must_fail(&both, StoreError::Conflict { index: 1 }, "the write to blame is named, and the others aren't made")
        .await;
    bench.must_write(&[put(&item, Expect::Absent)], "so they can be").await;
}
