//! What people order of pools and of the order of jobs, in one run of three: drains that are ended, reserves, jobs moved to
//! the front, steps that report. None of it may lose a job, or keep one waiting for ever.

use super::random::Random;
use super::scenario::{Draft, PHASE_MS, Truth};
use super::senders::OPERATOR;
use super::world::{Happening, World};

/// Runs with orders, in a million.
const WITH_ORDERS: u32 = 330_000;
/// Most orders of a run.
const ORDERS_MAX: u64 = 12;
/// Longest time until a drain is ended.
const DRAINED_MS_MAX: i64 = 1_500_000;

/// Plans the orders of a run, and what ends them once faults have stopped: a drain that was overtaken by its own end.
pub fn plan(world: &mut World, seed: u64) {
    let mut random = Random::fork(seed, "orders");
    if !random.chance(WITH_ORDERS) {
        return;
    }
    for _ in 0..=random.below(ORDERS_MAX) {
        let at = world.start + random.between(60_000, PHASE_MS);
        world.later(at, Happening::Order(random.below(u64::MAX)));
    }
    for after in [0, 1_200_000, 3_600_000] {
        let at = world.start + PHASE_MS + after;
        for pool in pools(world) {
            later(world, at, format!(r#"{{"action":"ResumePool","pool":"{pool}"}}"#));
        }
    }
}

fn pools(world: &World) -> Vec<String> {
    world.wired.pools.iter().map(|pool| pool.name.to_string()).collect()
}

/// Gives an order: which one, and of what, is in `number`.
pub fn give(world: &mut World, number: u64) {
    let mut random = Random::fork(number, "order");
    let jobs: Vec<String> = world.observer.jobs.keys().cloned().collect();
    let pools = pools(world);
    let Some(pool) = random.pick(&pools).cloned() else { return };
    let now = world.now;
    let Some(job) = random.pick(&jobs).filter(|_| number.is_multiple_of(2)).cloned() else {
        return on_pool(world, &mut random, &pool);
    };
    let points = random.between(-9_999, 9_999);
    let body = if random.chance(500_000) {
        format!(r#"{{"action":"TopJob","jobId":"{job}"}}"#)
    } else {
        format!(r#"{{"action":"ReportPriority","jobId":"{job}","points":{points}}}"#)
    };
    later(world, now, body);
}

/// An order about a pool: it is drained for a while, or GPUs of it are kept for a team for a while.
fn on_pool(world: &mut World, random: &mut Random, pool: &str) {
    let now = world.now;
    let until = now + random.between(1_000, DRAINED_MS_MAX);
    if random.chance(500_000) {
        let tier = if random.chance(500_000) { r#","tier":"experimental""# } else { "" };
        later(world, now, format!(r#"{{"action":"DrainPool","pool":"{pool}"{tier}}}"#));
        later(world, until, format!(r#"{{"action":"ResumePool","pool":"{pool}"}}"#));
        return;
    }
    let (team, gpus) = (random.pick(&["search", "vision", "nobody"]).copied().unwrap_or("search"), random.below(9));
    let until = jiff::Timestamp::from_millisecond(until).unwrap_or_default();
    let order = format!(r#"{{"action":"Reserve","pool":"{pool}","team":"{team}","gpus":{gpus},"until":"{until}"}}"#);
    later(world, now, order);
}

fn later(world: &mut World, at: i64, body: String) {
    let draft = Draft { at_ms: at - world.start, body, sender: OPERATOR, truth: Truth::Action };
    world.later(at, Happening::Send(Box::new(draft)));
}
