//! The log in which every rule holds.
//!
//! A job that failed once and then succeeded; one that depends on it and names it as its parent, and got a second Batch
//! job, since a list hid the first; one that Batch refused; and messages of every other kind.

use std::collections::BTreeMap;

use osprey_model::event::BatchStatus;

use super::super::super::batch::Wanted;
use super::super::super::quota::Quota;
use super::super::super::scenario::Truth;
use super::super::super::script::{Outcome, Step};
use super::super::super::world::World;
use super::{batch_job, drop_row, send, tell, write};

pub const PARENT: &str = "00000000-0000-4000-9000-00000000000a";
pub const CHILD: &str = "00000000-0000-4000-9000-00000000000b";
pub const DEAD: &str = "00000000-0000-4000-9000-00000000000d";
pub const REFUSED: &str = "00000000-0000-4000-9000-00000000000e";
pub const LETTER: &str = "00000000-0000-4000-9000-00000000000f";

/// What is true of a job with an id of its own.
pub fn job(id: &str) -> Truth {
    Truth::Job {
        script: 0,
        chosen: Some(id.to_owned()),
        parents: Vec::new(),
        lineage: None,
        variant: 0,
        retries: None,
        team: "search",
        gpus: 2,
        saves_ms: None,
        urgent: false,
        forbidden: false,
    }
}

fn child_truth() -> Truth {
    Truth::Job {
        script: 0,
        chosen: None,
        parents: vec![PARENT.to_owned()],
        lineage: Some(PARENT.to_owned()),
        variant: 0,
        retries: None,
        team: "search",
        gpus: 1,
        saves_ms: None,
        urgent: false,
        forbidden: false,
    }
}

/// The partition of a job.
pub fn of(job: &str) -> String {
    format!("JOB#{job}")
}

/// A new state of a job, of which others hear.
pub fn state(world: &mut World, at: i64, job: (&str, &str), state: &str, attempt: u32, more: &str) {
    let (job, message) = job;
    let body = format!(r#"{{"message":"{message}","state":"{state}","team":"search","attempt":{attempt}{more}}}"#);
    write(world, at, (&of(job), "STATE"), &body);
    world.hear(&format!(r#"{{"jobId":"{job}","state":"{state}","version":{at}}}"#));
}

/// A job of Batch that ran from one time to another, or never.
pub fn ran(world: &mut World, id: &str, owner: (&str, u32), from_to: (i64, i64), outcome: Outcome) {
    let (from, to) = (world.start + from_to.0, world.start + from_to.1);
    let (job, attempt) = owner;
    let tags = [("osprey:job-id", job.to_owned()), ("osprey:attempt", attempt.to_string())];
    let wanted = Wanted {
        name: "train".to_owned(),
        queue: "osprey-spot-critical".to_owned(),
        tags: tags.map(|(name, value)| (name.to_owned(), value)).into_iter().collect::<BTreeMap<_, _>>(),
        children: 0,
        step: Step { outcome, run_ms: to - from },
        signed_at: from - 2_000,
        hidden_ms: 0,
    };
    world.batch.create(wanted, id.to_owned(), from - 1_000);
    let made = batch_job(world, id);
    let told = outcome.told(false);
    made.heard = true;
    made.whole.status = if told.succeeded { BatchStatus::Succeeded } else { BatchStatus::Failed };
    (made.whole.started_at, made.whole.stopped_at, made.whole.told) = (Some(from), Some(to), Some(told));
}

/// The row of a run, and the row of its end.
pub fn closed(world: &mut World, at: i64, batch: &str, owner: (&str, u32), class: &str) {
    let (job, attempt) = owner;
    write(world, at, (&format!("BATCH#{batch}"), "JOB"), &format!(r#"{{"job":"{job}","attempt":{attempt}}}"#));
    let run = batch_job(world, batch).whole.clone();
    let (from, to) = (run.started_at.unwrap_or(0), run.stopped_at.unwrap_or(0));
    let body = format!(r#"{{"batch_job_id":"{batch}","end_class":"{class}","started_at":{from},"stopped_at":{to}}}"#);
    write(world, at, (&of(job), &format!("ATTEMPT#{attempt:04}")), &body);
}

/// An action that was carried out on a job.
pub fn cancelled(job: &str) -> String {
    format!(r#"{{"action":{{"action":"CancelJob","jobId":"{job}"}},"sender":"AROASEARCH"}}"#)
}

/// The log. Seed 1 begins at noon, so no run goes over a midnight.
pub fn log() -> World {
    let mut world = World::of_seed(1, None, false);
    world.unsent = 0;
    world.is_guarded = true;
    world.faults.meddling = 0;
    world.quota = Quota::Nothing;
    parent(&mut world);
    child(&mut world);
    dead(&mut world);
    others(&mut world);
    let day = [
        r#""crash_gpu_ms":20000"#,
        r#""failed_gpu_ms":20000"#,
        r#""gpu_ms":85000"#,
        r#""queue_gpu_ms":700"#,
        r#""restarts":1"#,
        r#""useful_gpu_ms":65000"#,
    ];
    let body = format!("{{{}}}", day.join(","));
    write(&mut world, 200_000, ("USAGE#search", "DAY#2026-11-29"), &body);
    world
}

fn parent(world: &mut World) {
    let own = (PARENT, "m1");
    send(world, 0, "m1", job(PARENT));
    write(world, 1_000, (&of(PARENT), "RECORD#000"), "{}");
    state(world, 1_000, own, "queued", 0, "");
    state(world, 2_000, own, "claimed", 1, "");
    state(world, 3_000, own, "submitted", 1, "");
    state(world, 10_000, own, "running", 1, "");
    ran(world, "b1", (PARENT, 1), (10_000, 20_000), Outcome::Exit(1));
    closed(world, 20_000, "b1", (PARENT, 1), "exit_code");
    let counts = r#","counts":{"failures":1,"requeues":1,"wasted_gpu_ms":20000},"budget":{"failures":1}"#;
    state(world, 20_000, own, "queued", 1, counts);
    state(world, 30_000, own, "claimed", 2, counts);
    state(world, 31_000, own, "submitted", 2, counts);
    ran(world, "b2", (PARENT, 2), (40_000, 70_000), Outcome::Success);
    closed(world, 70_000, "b2", (PARENT, 2), "succeeded");
    state(world, 70_000, own, "succeeded", 2, counts);
}

fn child(world: &mut World) {
    let own = (CHILD, "m2");
    send(world, 5_000, "m2", child_truth());
    write(world, 6_000, (&of(CHILD), "RECORD#000"), "{}");
    let place = format!("9999#{CHILD}");
    write(world, 6_000, ("WAITS", &place), r#"{"priority":0}"#);
    state(world, 6_000, own, "waiting", 0, r#","depth":1"#);
    drop_row(world, 71_000, ("WAITS", &place));
    state(world, 71_000, own, "queued", 0, r#","depth":1"#);
    state(world, 72_000, own, "claimed", 1, r#","depth":1"#);
    ran(world, "b4", (CHILD, 1), (75_000, 110_000), Outcome::Exit(143));
    ran(world, "b3", (CHILD, 1), (100_000, 105_000), Outcome::Success);
    let second = batch_job(world, "b4");
    second.hidden_at.push(second.created_at + 16_000);
    second.stops.push((second.created_at + 30_000, "a second one".to_owned()));
    let extra = format!(r#"{{"attempt":1,"batch_job_id":"b4","found_at":{},"stopped":true}}"#, world.start + 104_000);
    write(world, 104_000, (&of(CHILD), "EXTRA#b4"), &extra);
    state(world, 99_000, own, "submitted", 1, r#","depth":1"#);
    closed(world, 105_000, "b3", (CHILD, 1), "succeeded");
    state(world, 105_000, own, "succeeded", 1, r#","depth":1,"counts":{"duplicate_runs":1}"#);
}

fn dead(world: &mut World) {
    let own = (DEAD, "m7");
    send(world, 0, "m7", job(DEAD));
    write(world, 1_000, (&of(DEAD), "RECORD#000"), "{}");
    state(world, 1_000, own, "queued", 0, "");
    state(world, 2_000, own, "claimed", 1, "");
    state(world, 3_000, own, "dead", 0, r#","end":{"code":"BatchRefused"}"#);
    let letter = r#"{"kind":{"job":{"name":"train"}},"died_at":3000,"status":"open","told":true}"#;
    write(world, 3_000, (&format!("DEAD#{DEAD}"), "STATE"), letter);
    tell(world, &format!("{DEAD} BatchRefused 3000"));
}

fn others(world: &mut World) {
    send(world, 0, "m3", Truth::Malformed);
    let kind = r#""kind":{"message":{"queue":"submissions","message":"m3"}}"#;
    let letter = format!(r#"{{{kind},"died_at":9000,"status":"open","told":true,"checked":true}}"#);
    write(world, 9_000, (&format!("DEAD#{LETTER}"), "STATE"), &letter);
    tell(world, &format!("{LETTER} NotJson 9000"));
    send(world, 0, "m4", Truth::Invalid);
    write(world, 1_000, (&of(REFUSED), "RECORD#000"), "{}");
    state(world, 1_000, (REFUSED, "m4"), "refused", 0, "");
    send(world, 0, "m5", Truth::Action);
    write(world, 4_000, ("ACTION#m5", "OUTCOME"), &cancelled(DEAD));
    send(world, 0, "m6", job(PARENT));
    write(world, 8_000, (&of(PARENT), "DUPLICATE#m6"), "{}");
}
