//! Goal: each checker finds what it is for, and nothing else. Method: a small log, written by hand, in which every rule
//! holds; and for each rule the same log with one thing in it that breaks the rule.

mod evicted;
mod rules;
mod sound;

use osprey_ports::{Expect, Index, IndexEntry, Item, Key, Write};

use super::super::batch::BatchJob;
use super::super::run::Finished;
use super::super::scenario::{Draft, Truth};
use super::super::world::{Sent, Told, World};

/// What the checkers say of a log that is over.
fn verdict(world: World) -> Result<(), String> {
    super::all(&Finished { world, settled_ms: Some(60_000) })
}

/// The sound log with one change is found, for this.
#[track_caller]
fn found(by: &str, change: impl FnOnce(&mut World)) {
    let mut world = sound::log();
    change(&mut world);
    let verdict = verdict(world);
    assert!(verdict.as_ref().is_err_and(|sentence| sentence.contains(by)), "{by}: {verdict:?}");
}

/// The sound log with one change is still sound.
#[track_caller]
fn sound_still(change: impl FnOnce(&mut World)) {
    let mut world = sound::log();
    change(&mut world);
    assert_eq!(verdict(world), Ok(()));
}

/// Writes an item at a time, so that it is observed like any other write.
fn write(world: &mut World, at: i64, key: (&str, &str), body: &str) {
    world.now = world.start + at;
    let listing = match key {
        (partition, "STATE") if partition.starts_with("JOB#") => Some("JOBS"),
        (partition, "STATE") if partition.starts_with("DEAD#") => Some("DEAD"),
        _ => None,
    };
    let mut item = Item::new(Key::new(key.0, key.1), body);
    item.indexes.extend(listing.map(|partition| IndexEntry {
        index: Index::Listing,
        partition: partition.to_owned(),
        sort: key.0.to_owned(),
    }));
    world.write(&[Write::Put { item, expect: Expect::Any }]).unwrap();
}

/// Drops an item at a time.
fn drop_row(world: &mut World, at: i64, key: (&str, &str)) {
    world.now = world.start + at;
    world.write(&[Write::Delete { key: Key::new(key.0, key.1), expect: Expect::Any }]).unwrap();
}

/// Changes an item behind the observer's back.
fn forge(world: &mut World, key: (&str, &str), change: impl FnOnce(&mut Item)) {
    let mut item = world.store.get(&Key::new(key.0, key.1)).expect("the item is there").clone();
    change(&mut item);
    world.store.apply(&Write::Put { item, expect: Expect::Any }, world.now);
}

/// Changes some words of an item behind the observer's back.
fn reword(world: &mut World, key: (&str, &str), from: &str, to: &str) {
    forge(world, key, |item| {
        assert!(item.body.contains(from), "{}", item.body);
        item.body = item.body.replace(from, to);
    });
}

/// Takes an item away.
fn remove(world: &mut World, key: (&str, &str)) {
    let key = Key::new(key.0, key.1);
    assert!(world.store.get(&key).is_some());
    world.store.apply(&Write::Delete { key, expect: Expect::Any }, world.now);
}

fn send(world: &mut World, at_ms: i64, id: &str, truth: Truth) {
    let draft = Draft { at_ms, body: String::new(), sender: "AROASEARCH", truth };
    world.sent.push(Sent { id: id.into(), draft });
}

fn tell(world: &mut World, key: &str) {
    world.told.push(Told { key: key.to_owned() });
}

fn batch_job<'a>(world: &'a mut World, id: &str) -> &'a mut BatchJob {
    world.batch.jobs.iter_mut().find(|job| job.id == id).expect("Batch has it")
}
