//! State-change events, as a consumer sees them.

use osprey_local_batch::EventOptions;
use osprey_model::request::RetryStrategy;
use serde_json::Value;

use crate::support::{options, shell, world};

fn drain(world: &crate::support::World) -> Vec<Value> {
    let events = world.batch.fetch_events(1_000).unwrap();
    world.batch.ack_events(&events.iter().map(|event| event.id).collect::<Vec<_>>()).unwrap();
    events.into_iter().map(|event| event.body).collect()
}

fn statuses(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["detail"]["status"].as_str()).collect()
}

#[test]
fn every_transition_has_one_event_and_the_submission_has_none() {
    let mut world = world("events", 1, options(1.0));
    let mut asked = shell("exit 1");
    asked.retry_strategy = Some(RetryStrategy { attempts: Some(2), evaluate_on_exit: None });
    let id = world.submit(&asked);
    assert_eq!(drain(&world), Vec::<Value>::new());
    world.end_of(&id);
    let events = drain(&world);
    assert_eq!(statuses(&events), ["RUNNABLE", "STARTING", "RUNNING", "RUNNABLE", "STARTING", "RUNNING", "FAILED"]);
    let attempts: Vec<_> = events.iter().map(|e| e["detail"]["attempts"].as_array().unwrap().len()).collect();
    assert_eq!(attempts, [0, 0, 0, 1, 1, 1, 2]);
    assert_eq!(drain(&world), Vec::<Value>::new());
}

#[test]
fn an_event_comes_again_until_it_is_acknowledged_even_after_a_crash() {
    let options = options(1.0);
    let mut world = world("again", 1, options.clone());
    world.run(&shell("true"));
    let first = world.batch.fetch_events(2).unwrap();
    assert_eq!(first.len(), 2);
    world.crash();
    world.restart(1, options);
    assert_eq!(world.batch.fetch_events(2).unwrap(), first);
    world.batch.ack_events(&[first[0].id]).unwrap();
    assert_eq!(world.batch.fetch_events(1).unwrap()[0], first[1]);
}

#[test]
fn delay_duplicates_and_loss_are_as_unkind_as_asked() {
    let mut options = options(1.0);
    options.events = EventOptions { delay_ms: 60_000..=60_000, duplicate_rate: 1.0, loss_rate: 0.0, seed: 7 };
    let mut world = world("unkind", 4, options.clone());
    world.run(&shell("true"));
    assert_eq!(world.batch.fetch_events(10).unwrap(), []);
    assert!(world.batch.next_event_due_ms().unwrap().is_some());
    world.crash();

    options.events = EventOptions { delay_ms: 0..=0, duplicate_rate: 1.0, loss_rate: 0.0, seed: 7 };
    world.restart(4, options.clone());
    assert_eq!(drain(&world).len(), 8, "what was due in a minute is now due at once, as the new settings say");
    world.run(&shell("true"));
    let events = drain(&world);
    assert_eq!(
        statuses(&events),
        ["RUNNABLE", "RUNNABLE", "STARTING", "STARTING", "RUNNING", "RUNNING", "SUCCEEDED", "SUCCEEDED"]
    );
    assert!(events.chunks(2).all(|pair| pair[0] == pair[1]), "a duplicate has the same content");
    world.crash();

    options.events.loss_rate = 1.0;
    world.restart(4, options);
    world.run(&shell("true"));
    assert_eq!(drain(&world), Vec::<Value>::new());
}
