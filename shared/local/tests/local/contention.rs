//! Several threads and processes on one file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use osprey_local::{Database, LineOutcome, LocalQueues, LocalStore, ScaledClock, StateDir};
use osprey_ports::{Expect, Item, Key, QueueKind, StoreError, Write};

use crate::ledger::lines;
use crate::scratch::Scratch;

/// Which part a child process plays, and where.
const PART: &str = "OSPREY_LOCAL_TEST_PART";
const STATE: &str = "OSPREY_LOCAL_TEST_STATE";

fn open(directory: &Path) -> (LocalStore, LocalQueues) {
    let database = Arc::new(Database::open(&directory.join("osprey.db")).unwrap());
    let clock = Arc::new(ScaledClock::join(database.clone()).unwrap());
    (LocalStore::new(database.clone(), clock.clone()), LocalQueues::new(database, clock))
}

/// This test program again, as another process that only plays a part.
fn start(part: &str, directory: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "contention::part_of_another_process", "--nocapture"])
        .env(PART, part)
        .env(STATE, directory)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn part_of_another_process() {
    let (Ok(part), Ok(state)) = (std::env::var(PART), std::env::var(STATE)) else { return };
    let directory = Path::new(&state);
    match part.as_str() {
        "count" => count(&open(directory).0, 50),
        "consume" => consume(&open(directory).1, directory),
        "take in" => drop(open(directory).1.enqueue_lines("jobs", &many_lines()).unwrap()),
        "receive and hang" => {
            let received = open(directory).1.receive(QueueKind::Submissions, 10, 1).unwrap();
            assert_eq!(received.len(), 1);
            std::fs::write(directory.join("held"), "").unwrap();
            std::thread::sleep(Duration::from_secs(60));
        }
        "hold" => {
            let _lock = StateDir::open(directory).unwrap().lock().unwrap();
            std::fs::write(directory.join("held"), "").unwrap();
            std::thread::sleep(Duration::from_secs(60));
        }
        other => panic!("no such part: {other}"),
    }
}

/// Adds 1 to an item `times` times by read, compute and conditional write.
fn count(store: &LocalStore, times: u32) {
    let key = Key::new("p", "n");
    for _ in 0..times {
        loop {
            let there = store.get(&key).unwrap();
            let expect = there.as_ref().map_or(Expect::Absent, |item| Expect::Version(item.version));
            let n: u32 = there.map_or(0, |item| item.body.parse().unwrap());
            let item = Item::new(key.clone(), (n + 1).to_string());
            let amounts = BTreeMap::from([("n".to_owned(), 1)]);
            let add = Write::Add { key: Key::new("p", "sum"), amounts, at_most: BTreeMap::new(), expires_at: None };
            match store.write(&[Write::Put { item, expect }, add]) {
                Ok(()) => break,
                Err(StoreError::Conflict { index: 0 }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }
}

/// Receives and deletes until nothing is left, and writes what it saw to a file of its own.
fn consume(queues: &LocalQueues, directory: &Path) {
    let mut seen = String::new();
    loop {
        let some = queues.receive(QueueKind::Submissions, 3, 300).unwrap();
        if some.is_empty() {
            break;
        }
        for delivery in some {
            seen.push_str(&format!("{}\n", delivery.message.body));
            assert_eq!(queues.delete(QueueKind::Submissions, &delivery.receipt), Ok(true));
        }
    }
    std::fs::write(directory.join(format!("seen-{}", std::process::id())), seen).unwrap();
}

fn many_lines() -> Vec<osprey_local::Line> {
    let texts: Vec<String> = (0..400).map(|n| format!("line {}", n / 2)).collect();
    lines(&texts.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn conditional_writes_of_several_processes_lose_no_update() {
    let scratch = Scratch::new();
    let children: Vec<_> = (0..3).map(|_| start("count", scratch.path())).collect();
    count(&open(scratch.path()).0, 50);
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let (store, _) = open(scratch.path());
    assert_eq!(store.get(&Key::new("p", "n")).unwrap().unwrap().body, "200");
    assert_eq!(store.get(&Key::new("p", "sum")).unwrap().unwrap().body, r#"{"n":200}"#);
}

#[test]
fn conditional_writes_of_several_threads_lose_no_update() {
    let scratch = Scratch::new();
    let (store, _) = open(scratch.path());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| count(&store, 50));
        }
    });
    assert_eq!(store.get(&Key::new("p", "n")).unwrap().unwrap().body, "200");
}

#[test]
fn two_consumers_never_have_one_message_at_once() {
    let scratch = Scratch::new();
    let (_, queues) = open(scratch.path());
    for n in 0..200 {
        queues.send(QueueKind::Submissions, &n.to_string(), 0).unwrap();
    }
    let children: Vec<_> = (0..3).map(|_| start("consume", scratch.path())).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let mut all: Vec<u32> = std::fs::read_dir(scratch.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("seen-"))
        .flat_map(|path| std::fs::read_to_string(path).unwrap().lines().map(|l| l.parse().unwrap()).collect::<Vec<_>>())
        .collect();
    all.sort_unstable();
    assert_eq!(all, (0..200).collect::<Vec<_>>());
}

#[test]
fn many_processes_can_create_one_file_at_once() {
    for _ in 0..3 {
        let scratch = Scratch::new();
        let children: Vec<_> = (0..4).map(|_| start("count", scratch.path())).collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        assert_eq!(open(scratch.path()).0.get(&Key::new("p", "n")).unwrap().unwrap().body, "200");
    }
}

#[test]
fn a_kill_while_a_job_file_is_taken_in_sends_each_line_once_in_the_end() {
    for round in 0..8 {
        let scratch = Scratch::new();
        for _ in 0..3 {
            let mut child = start("take in", scratch.path());
            std::thread::sleep(Duration::from_millis(6 + 5 * round));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let (_, queues) = open(scratch.path());
        let rows = queues.enqueue_lines("jobs", &many_lines()).unwrap();
        let messages: BTreeSet<_> = rows
            .iter()
            .map(|row| match &row.outcome {
                LineOutcome::Sent(id) => id.clone(),
                LineOutcome::Refused(sentence) => panic!("{sentence}"),
            })
            .collect();
        assert_eq!(messages.len(), 400);
        assert_eq!(queues.counts(QueueKind::Submissions).unwrap().total(), 400);
    }
}

/// Until the other process has done its part.
fn wait_until_held(scratch: &Scratch) {
    while !scratch.path().join("held").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_consumer_killed_between_receive_and_delete_costs_a_redelivery_and_no_message() {
    let scratch = Scratch::new();
    let (_, queues) = open(scratch.path());
    let id = queues.send(QueueKind::Submissions, "1", 0).unwrap();
    let mut child = start("receive and hang", scratch.path());
    wait_until_held(&scratch);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(queues.receive(QueueKind::Submissions, 10, 30), Ok(vec![]), "hidden until its time-out");
    std::thread::sleep(Duration::from_millis(1_100));
    let again = queues.receive(QueueKind::Submissions, 10, 30).unwrap().remove(0);
    assert_eq!((again.message.id, again.message.receive_count), (id, 2));
}

#[test]
fn asking_for_the_holder_does_not_keep_a_pipeline_out() {
    let scratch = Scratch::new();
    let state = StateDir::open(scratch.path()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..500).all(|_| state.holder().is_ok()));
        }
        (0..50).for_each(|_| drop(state.lock().unwrap()));
    });
}

#[test]
fn the_lock_of_a_killed_pipeline_is_free() {
    let scratch = Scratch::new();
    let mut child = start("hold", scratch.path());
    wait_until_held(&scratch);
    let state = StateDir::open(scratch.path()).unwrap();
    let said = state.lock().unwrap_err().to_string();
    assert!(said.starts_with(&format!("process {} runs a pipeline", child.id())), "{said}");
    child.kill().unwrap();
    child.wait().unwrap();
    state.lock().unwrap();
}
