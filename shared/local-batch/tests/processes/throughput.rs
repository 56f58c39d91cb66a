//! How busy short jobs keep the slots.
//!
//! `LOCAL_BATCH_TEST_JOBS=1000 cargo test --release -p osprey-local-batch --test processes throughput -- --nocapture`
//! says: 82.9 to 88.7 % on 2 cores with a load of 9 to 10 from elsewhere, where the version before reached 80.4 to
//! 84.9 % (`docs/performance.md`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{options, request, world};

/// A setting from the environment, to measure with: the suite itself stays short.
fn setting(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

#[test]
fn short_jobs_keep_sixteen_slots_busy() {
    const SLOTS: u32 = 16;
    let mut world = world("throughput", SLOTS, options(1.0));
    let jobs: usize = setting("LOCAL_BATCH_TEST_JOBS", "200").parse().unwrap();
    let seconds = setting("LOCAL_BATCH_TEST_SECONDS", "0.2");
    let ids: Vec<String> = (0..jobs).map(|_| world.submit(&request(&["sleep", &seconds]))).collect();
    let started = Instant::now();
    let mut engine = world.engine.take().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let thread = std::thread::spawn({
        let stop = stop.clone();
        move || engine.run(&stop).unwrap()
    });
    let has_ended = |id: &String| ["SUCCEEDED", "FAILED"].contains(&world.status(id).as_str());
    for id in &ids {
        while !has_ended(id) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let wall_ms = started.elapsed().as_millis() as f64;
    stop.store(true, Ordering::Release);
    thread.join().unwrap();
    let described: Vec<_> = ids.chunks(100).flat_map(|ids| world.batch.describe_jobs(ids).unwrap()).collect();
    let ran_ms = |job: &serde_json::Value| job["stoppedAt"].as_i64().unwrap() - job["startedAt"].as_i64().unwrap();
    let busy_ms: i64 = described.iter().map(ran_ms).sum();
    let busy = busy_ms as f64 / (wall_ms * f64::from(SLOTS));
    println!("{jobs} jobs of {seconds} s in {wall_ms} ms, slots running commands {:.1} % of the time", busy * 100.0);
    // Other tests run beside this one.
    assert!(busy > 0.3, "{busy}");
}
