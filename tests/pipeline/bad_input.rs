//! What a scheduling cycle makes of a world that is out of order: each of these ends in one clear place, and nothing of it
//! stops a pool.

use osprey_model::job::JobState;
use osprey_model::reason::ReasonCode;
use osprey_pipeline::guard::Guard;
use osprey_policy::Policy;
use osprey_ports::QueueKind;
use osprey_schedule::why::Fate;
use serde_json::json;

use crate::place::Place;
use crate::world::{Checked, block_on, message, wake_up};

fn code(place: &Place, id: osprey_model::id::JobId) -> &'static str {
    match place.look().fate(id) {
        Fate::Waits(reason) => reason.code(),
        Fate::Starts => "Starts",
        Fate::Preempts { .. } => "Preempts",
        Fate::FarBehind { .. } => "FarBehind",
    }
}

#[test]
fn a_pool_that_shrinks_below_what_is_used_starts_nothing_and_grows_again() -> Checked {
    let place = Place::new("shrinks", &["main"])?;
    place.world.has("main", 4, 0);
    let running: Vec<_> = ["a", "b", "c"].map(|name| place.send(name, "dev", "training", &[])).into();
    place.cycle("main");
    assert!(
        running.iter().all(|id| place.job(*id).state == JobState::Submitted),
        "four nodes for three jobs, and some headroom"
    );
    place.world.has("main", 1, 0);
    let next = place.send("next", "production", "inference", &[]);
    place.cycle("main");
    assert_eq!((place.job(next).state, code(&place, next)), (JobState::Queued, "NoRoom"));
    place.world.has("main", 5, 0);
    place.cycle("main");
    assert_eq!(place.job(next).state, JobState::Submitted);
    Ok(())
}

#[test]
fn a_pool_without_any_node_keeps_its_jobs_and_says_so() -> Checked {
    let place = Place::new("empty", &["main"])?;
    place.world.has("main", 0, 0);
    let job = place.send("job", "production", "inference", &[]);
    place.cycle("main");
    assert_eq!((place.job(job).state, code(&place, job)), (JobState::Queued, "NoNodes"));
    Ok(())
}

#[test]
fn a_job_larger_than_every_pool_is_refused_at_the_door() -> Checked {
    let place = Place::new("larger", &["main", "other"])?;
    let gpus = json!([{ "type": "GPU", "value": "64" }]);
    let overrides = json!({ "command": ["train"], "resourceRequirements": gpus });
    let body = json!({ "jobName": "giant", "jobDefinition": "train", "containerOverrides": overrides }).to_string();
    let sent = message(&place.world, "giant", QueueKind::Submissions, body);
    let id = osprey_model::id::JobId::of_message(&sent.id);
    assert_eq!(block_on(osprey_submit::handle(&place.context(), &place.world, QueueKind::Submissions, &[sent])), []);
    let job = place.job(id);
    assert_eq!((job.state, job.end.map(|end| end.code)), (JobState::Refused, Some(ReasonCode::LargerThanPool)));
    Ok(())
}

#[test]
fn jobs_that_wait_for_each_other_by_edges_that_came_late_lend_without_end_to_nobody() -> Checked {
    let place = Place::new("circle", &["main"])?;
    let (first, second) = ("00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b");
    for (own, other) in [(first, second), (second, first)] {
        let overrides = json!({ "command": ["train"] });
        let body = json!({
            "jobName": own, "jobDefinition": "train", "containerOverrides": overrides,
            "dependsOn": [{ "jobId": other }], "tags": { "osprey:job-id": own },
        });
        let sent = message(&place.world, own, QueueKind::Submissions, body.to_string());
        block_on(osprey_submit::handle(&place.context(), &place.world, QueueKind::Submissions, &[sent]));
    }
    let closes = osprey_model::id::JobId::parse(second).map(|id| place.job(id)).ok_or("an id")?;
    assert_eq!((closes.state, closes.end.map(|end| end.code)), (JobState::Refused, Some(ReasonCode::DependencyCycle)));
    place.cycle("main");
    assert!(place.look().loaded.lent.len() <= 2);
    Ok(())
}

#[test]
fn a_pool_is_looked_at_though_a_clock_was_ahead_once() -> Checked {
    let place = Place::new("clock", &["main"])?;
    place.world.has("main", 1, 0);
    place.world.pass(7_200);
    place.cycle("main");
    place.world.pass(-7_200);
    let job = place.send("job", "dev", "training", &[]);
    place.cycle("main");
    assert_eq!(place.job(job).state, JobState::Submitted, "a look of the future answers no wake-up");
    Ok(())
}

#[test]
fn jobs_of_a_tier_that_the_policy_has_no_more_go_by_what_it_says_now() -> Checked {
    let mut place = Place::new("tier", &["main"])?;
    place.world.has("main", 2, 0);
    let job = place.send("job", "dev", "training", &[]);
    assert_eq!(place.job(job).tier.as_str(), "experimental");
    let text = "name = \"one\"\n[order]\nunbounded_wait = true\n[[tier]]\nname = \"production\"\nat_least = 0\n";
    place.policy = Policy::load(text).map_err(|mistakes| format!("{mistakes:?}"))?.policy;
    assert_eq!(code(&place, job), "Starts", "a cycle knows what to do with it");
    place.cycle("main");
    place.world.pass(1);
    place.cycle("main");
    let started = place.job(job);
    assert_eq!((started.tier.as_str(), started.state), ("production", JobState::Submitted));
    Ok(())
}

#[test]
fn a_storm_of_wake_ups_is_one_cycle() -> Checked {
    let place = Place::new("storm", &["main"])?;
    place.send("job", "dev", "training", &[]);
    let storm: Vec<_> = (0..200).map(|_| wake_up(&place.world, "main")).collect();
    place.world.pass(1);
    assert_eq!(block_on(osprey_schedule::handle(&place.context(), &place.world, &storm)), []);
    assert_eq!(block_on(Guard::read(&place.world, &"main".into()))?.state().plan, 1);
    Ok(())
}
