//! People: what they ask for, often at the worst moment.

use super::observer::Moment;
use super::scenario::{Draft, Truth};
use super::senders::{OPERATOR, SEARCH, STRANGER, VISION};
use super::world::World;

/// A person does something to some job or dead letter, or sends a job that depends on one of Batch's.
pub fn act(world: &mut World) {
    if world.streams.people.chance(250_000) && letter(world) {
        return;
    }
    if world.streams.people.chance(150_000) && depend_on_batch(world) {
        return;
    }
    let jobs: Vec<String> = world.observer.jobs.keys().cloned().collect();
    let Some(job) = world.streams.people.pick(&jobs).cloned() else { return };
    on_job(world, &job);
}

/// A person does something to what has just changed.
pub fn meddle(world: &mut World, moment: &Moment) {
    match moment {
        Moment::Job(job, _) => on_job(world, job),
        Moment::Letter(letter) => on_letter(world, letter),
    }
}

fn on_job(world: &mut World, job: &str) {
    let verbs = ["CancelJob", "RequeueJob", "HoldJob", "ReleaseJob", "PreemptJob"];
    let state = world.observer.jobs.get(job).map(|track| track.state.clone()).unwrap_or_default();
    let likely = match state.as_str() {
        "held" => "ReleaseJob",
        "failed" | "dead" => "RequeueJob",
        "running" => return on_running(world, job),
        _ => "HoldJob",
    };
    let random = &mut world.streams.people;
    let any = random.pick(&verbs).copied().unwrap_or("CancelJob");
    let verb = if random.chance(500_000) { likely } else { any };
    let who = somebody(world);
    send(world, who, format!(r#"{{"action":"{verb}","jobId":"{job}","reason":"a person wants it"}}"#));
    if verb == "HoldJob" && world.streams.people.chance(500_000) {
        let at = world.now + world.streams.people.between(1_000, 1_200_000);
        let body = format!(r#"{{"action":"ReleaseJob","jobId":"{job}"}}"#);
        world.later(at, super::world::Happening::Send(Box::new(draft(at - world.start, who, body))));
    }
}

/// A person has a job preempted that runs, or the job reports a checkpoint.
fn on_running(world: &mut World, job: &str) {
    let progress = world.streams.people.below(100);
    let body = if world.streams.people.chance(500_000) {
        format!(r#"{{"action":"PreemptJob","jobId":"{job}","reason":"a person wants it"}}"#)
    } else {
        format!(r#"{{"action":"ReportCheckpoint","jobId":"{job}","uri":"s3://bucket/{job}","progress":{progress}}}"#)
    };
    let who = somebody(world);
    send(world, who, body);
}

/// A person redrives or discards a dead letter, if there is one.
fn letter(world: &mut World) -> bool {
    let letters: Vec<String> = world.observer.deaths.keys().cloned().collect();
    let Some(letter) = world.streams.people.pick(&letters).cloned() else { return false };
    on_letter(world, &letter);
    true
}

fn on_letter(world: &mut World, letter: &str) {
    let verb = if world.streams.people.chance(700_000) { "RedriveDeadLetter" } else { "DiscardDeadLetter" };
    let who = somebody(world);
    send(world, who, format!(r#"{{"action":"{verb}","deadLetterId":"{letter}"}}"#));
}

/// Who asks: an operator, or where the policy tells senders apart, anybody.
fn somebody(world: &mut World) -> &'static str {
    let anybody = [OPERATOR, OPERATOR, SEARCH, VISION, STRANGER];
    let one = if world.is_guarded { world.streams.people.pick(&anybody) } else { None };
    one.copied().unwrap_or(OPERATOR)
}

/// A job that depends on a job of Batch, which may be one of ours.
fn depend_on_batch(world: &mut World) -> bool {
    let at = world.streams.people.index(world.batch.jobs.len());
    let Some(parent) = world.batch.jobs.get(at).map(|job| job.id.clone()) else { return false };
    let script = world.scripts.len();
    world.scripts.push(super::script::Script { steps: Vec::new(), refused_by_batch: false });
    let body = format!(
        r#"{{"jobName":"after-{script}","jobDefinition":"train","tags":{{"script":"{script}","team":"search","parent-job-id":"{parent}"}},"dependsOn":[{{"jobId":"{parent}"}}]}}"#
    );
    let truth = Truth::Job {
        script,
        chosen: None,
        parents: vec![parent.clone()],
        lineage: Some(parent),
        variant: 0,
        retries: None,
        team: "search",
        gpus: 0,
        saves_ms: None,
        urgent: false,
        forbidden: false,
    };
    world.send(Draft { at_ms: world.now - world.start, body, sender: OPERATOR, truth });
    true
}

fn send(world: &mut World, who: &'static str, body: String) {
    let draft = draft(world.now - world.start, who, body);
    world.send(draft);
}

fn draft(at_ms: i64, sender: &'static str, body: String) -> Draft {
    Draft { at_ms, body, sender, truth: Truth::Action }
}
