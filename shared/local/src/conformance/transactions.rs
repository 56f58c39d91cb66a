//! Several writes: all or nothing.

use osprey_ports::store::{ITEM_BYTES_MAX, TRANSACTION_BYTES_MAX, TRANSACTION_WRITES_MAX};
use osprey_ports::{Expect, Item, StoreError, Write};

use super::{Bench, Store, check, delete, put, too_large};

pub(super) async fn run<S: Store>(bench: &Bench<'_, S>) {
    all_or_nothing(bench).await;
    the_first_failure_is_named(bench).await;
    checks(bench).await;
    malformed_transactions(bench).await;
    most_writes(bench).await;
    most_bytes(bench).await;
}

async fn all_or_nothing<S: Store>(bench: &Bench<'_, S>) {
    let [a, b, c] = ["a", "b", "c"].map(|sort| bench.item("all", sort, "1"));
    bench.must_write(&[put(&a, Expect::Absent), put(&b, Expect::Absent)], "two new items").await;
    let writes = [put(&c, Expect::Absent), delete(&a.key, Expect::Version(1)), put(&b, Expect::Version(9))];
    bench.must_fail(&writes, StoreError::Conflict { index: 2 }, "one that fails stops all").await;
    bench.must_be_absent(&c.key, "nothing is written before the write that fails").await;
    bench.must_hold(&a.key, 1, "1", "nothing is deleted either").await;
    let writes = [put(&c, Expect::Absent), delete(&a.key, Expect::Version(1)), put(&b, Expect::Version(1))];
    bench.must_write(&writes, "all that hold are made").await;
    bench.must_be_absent(&a.key, "deleted").await;
    bench.must_hold(&b.key, 2, "1", "replaced").await;
    bench.must_hold(&c.key, 1, "1", "created").await;
}

async fn the_first_failure_is_named<S: Store>(bench: &Bench<'_, S>) {
    let [a, b, c] = ["a", "b", "c"].map(|sort| bench.item("first", sort, "1"));
    let writes = [put(&a, Expect::Absent), put(&b, Expect::Version(1)), put(&c, Expect::Version(1))];
    bench.must_fail(&writes, StoreError::Conflict { index: 1 }, "of several failures the first is named").await;
}

async fn checks<S: Store>(bench: &Bench<'_, S>) {
    let [a, b] = ["a", "b"].map(|sort| bench.item("checks", sort, "1"));
    bench.must_write(&[put(&a, Expect::Absent)], "create").await;
    let second_fails = StoreError::Conflict { index: 1 };
    for expect in [Expect::Absent, Expect::Version(2)] {
        let writes = [put(&b, Expect::Absent), check(&a.key, expect)];
        bench.must_fail(&writes, second_fails.clone(), "a check that doesn't hold stops the transaction").await;
    }
    let writes = [put(&b, Expect::Absent), check(&a.key, Expect::Version(1))];
    bench.must_write(&writes, "a check that holds lets it pass").await;
    bench.must_hold(&a.key, 1, "1", "a check changes nothing").await;
    let both = [check(&a.key, Expect::Version(1)), check(&b.key, Expect::Version(1))];
    bench.must_write(&both, "a transaction may consist of checks").await;
    bench.must_be_refused(&[check(&a.key, Expect::Version(1))], "a check on its own is refused").await;
}

async fn malformed_transactions<S: Store>(bench: &Bench<'_, S>) {
    let a = bench.item("malformed", "a", "1");
    bench.must_be_refused(&[], "no writes are refused").await;
    let twice = [put(&a, Expect::Absent), delete(&a.key, Expect::Any)];
    let error = too_large("the number of writes to one item in one transaction", 2, 1);
    bench.must_fail(&twice, error.clone(), "two writes to one item are refused").await;
    bench.must_fail(&[put(&a, Expect::Any), check(&a.key, Expect::Any)], error, "a check counts as one").await;
    bench.must_be_absent(&a.key, "nothing of a refused transaction is written").await;
}

async fn most_writes<S: Store>(bench: &Bench<'_, S>) {
    let writes = |count: usize| -> Vec<Write> {
        (0..count).map(|n| put(&bench.item(&format!("most-{n}"), "a", "1"), Expect::Absent)).collect()
    };
    let error = too_large("the number of writes in one transaction", 101, TRANSACTION_WRITES_MAX);
    bench.must_fail(&writes(101), error, "101 writes are refused").await;
    bench.must_write(&writes(100), "100 writes of 100 partitions are taken").await;
    bench.must_hold(&bench.key("most-99", "a"), 1, "1", "down to the last").await;
}

async fn most_bytes<S: Store>(bench: &Bench<'_, S>) {
    let over = padded(bench, TRANSACTION_BYTES_MAX + 1);
    let error = too_large("the transaction in bytes", TRANSACTION_BYTES_MAX + 1, TRANSACTION_BYTES_MAX);
    bench.must_fail(&over, error, "a byte over 4 MiB is refused").await;
    bench.must_write(&padded(bench, TRANSACTION_BYTES_MAX - bench.slack), "4 MiB are taken").await;
}

/// Puts that count `total` bytes together.
fn padded<S: Store>(bench: &Bench<'_, S>, total: usize) -> Vec<Write> {
    let count = total.div_ceil(ITEM_BYTES_MAX);
    let one = |n: usize| {
        let empty = bench.item("bytes", &format!("{n:02}"), "");
        let want = total / count + usize::from(n < total % count);
        let body = format!("\"{}\"", "x".repeat(want - empty.bytes() - 2));
        put(&Item { body, ..empty }, Expect::Absent)
    };
    (0..count).map(one).collect()
}
