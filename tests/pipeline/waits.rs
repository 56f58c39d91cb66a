//! What a cycle knows of a waiting job beside its own number: what others lend it, how long it has waited, and where
//! else it could go.

use osprey_model::job::JobState;
use osprey_pipeline::guard::Guard;
use osprey_pipeline::line;
use osprey_ports::QueueKind;
use osprey_schedule::load::WINDOW;
use osprey_schedule::why::Fate;
use serde_json::json;

use crate::place::Place;
use crate::world::{Checked, block_on, message};

/// A19, B5, B14, B21: an urgent job gets a decision at once, and nobody else disturbs the rhythm.
#[test]
fn an_urgent_job_wakes_its_pool_at_once_and_another_one_does_not() -> Checked {
    let place = Place::new("dives", &["main"])?;
    let wakes = || -> Result<usize, Box<dyn std::error::Error>> {
        let sent = place.world.sent.lock().map_err(|_| "a test that failed")?;
        Ok(sent.iter().filter(|(queue, _)| *queue == QueueKind::Wake).count())
    };
    place.send("patient", "dev", "training", &[]);
    assert_eq!(wakes()?, 0);
    place.send("urgent", "production", "training", &[]);
    assert_eq!(wakes()?, 1);
    Ok(())
}

/// A28
#[test]
fn a_waiting_job_lends_its_number_to_what_it_needs_and_takes_it_back_when_it_is_cancelled() -> Checked {
    let place = Place::new("lends", &["main"])?;
    let first = place.send("first", "dev", "training", &[]);
    let needed = place.send("needed", "dev", "training", &[]);
    let between = place.send("between", "dev", "training", &[needed]);
    let urgent = place.send("urgent", "production", "inference", &[between]);
    let look = place.look();
    let queued = look.snapshot.queued.iter().find(|queued| queued.job == needed).ok_or("it stands in line")?;
    // Two steps behind it, an hour each where nobody knows better.
    assert_eq!((queued.priority, queued.lent, queued.critical_path_ms), (450, 1_150, 2 * 3_600_000));
    assert_eq!((look.ahead(needed), look.ahead(first)), (Some(0), Some(1)));
    let cancel = json!({ "action": "CancelJob", "jobId": urgent, "reason": "not any more" }).to_string();
    let cancel = message(&place.world, "cancel", QueueKind::Submissions, cancel);
    let failed = block_on(osprey_submit::handle(&place.context(), &place.world, QueueKind::Submissions, &[cancel]));
    assert_eq!((failed.len(), place.job(urgent).state), (0, JobState::Failed));
    let look = place.look();
    let queued = look.snapshot.queued.iter().find(|queued| queued.job == needed).ok_or("it stands in line")?;
    assert_eq!((queued.lent, queued.critical_path_ms), (450, 3_600_000));
    Ok(())
}

#[test]
fn a_job_that_waits_again_lends_again() -> Checked {
    let place = Place::new("again", &["main"])?;
    let needed = place.send("needed", "dev", "training", &[]);
    let urgent = place.send("urgent", "production", "inference", &[needed]);
    let lent = || place.look().snapshot.queued.iter().find(|queued| queued.job == needed).map(|queued| queued.lent);
    for (action, want) in [("HoldJob", 0), ("ReleaseJob", 1_150), ("CancelJob", 0), ("RequeueJob", 1_150)] {
        let body = json!({ "action": action, "jobId": urgent, "reason": "so" }).to_string();
        let message = message(&place.world, action, QueueKind::Submissions, body);
        block_on(osprey_submit::handle(&place.context(), &place.world, QueueKind::Submissions, &[message]));
        assert_eq!(lent(), Some(want), "{action}");
    }
    Ok(())
}

#[test]
fn a_job_far_behind_is_looked_at_when_an_urgent_one_waits_for_it() -> Checked {
    let place = Place::new("far", &["main"])?;
    place.stand(0..u32::try_from(WINDOW)? + 50, 500, 0);
    let needed = place.send("needed", "dev", "training", &[]);
    assert!(matches!(place.look().fate(needed), Fate::FarBehind { .. }), "450 is behind a window of 500s");
    place.send("urgent", "production", "inference", &[needed]);
    let look = place.look();
    assert!(matches!(look.fate(needed), Fate::Waits(_)), "{:?}", look.fate(needed));
    assert_eq!(look.ahead(needed), Some(0));
    Ok(())
}

#[test]
fn a_job_behind_the_window_ages_into_a_cycle() -> Checked {
    let place = Place::new("ages", &["main"])?;
    place.stand(0..u32::try_from(WINDOW)? + 700, 500, 0);
    // By the default policy 1.5 points an hour and a cap of 1,300: at the cap after 33 days.
    let old = place.stand(5_000..5_001, 100, 24 * 40)[0];
    let young = place.stand(5_001..5_002, 100, 0)[0];
    let front = |place: &Place| block_on(line::front(&place.world, &"main".into(), WINDOW)).unwrap().0;
    assert!(!front(&place).iter().any(|job| job.job == old));
    let mut cycles = 0;
    while !place.job(old).aged {
        place.cycle("main");
        place.world.pass(30);
        cycles += 1;
        assert!(cycles <= 3, "a line of 1,200 is looked through by three cycles");
    }
    assert_eq!(front(&place).first().map(|job| job.job), Some(old), "it is the first of its tier from then on");
    assert_eq!(place.look().ahead(old), Some(0));
    assert!(!place.job(young).aged);
    Ok(())
}

#[test]
fn a_pool_without_capacity_is_marked_and_its_urgent_jobs_move_on() -> Checked {
    let place = Place::new("moves", &["main", "other"])?;
    place.world.has("main", 0, 4);
    place.world.has("other", 0, 0);
    let dispatched = place.send("dispatched", "production", "inference", &[]);
    place.cycle("main");
    assert_eq!(place.job(dispatched).state, JobState::Submitted, "nodes can be had, as far as anybody knows");
    place.world.pass(1_000);
    let urgent = place.send("urgent", "production", "inference", &[]);
    let patient = place.send("patient", "dev", "training", &[]);
    let code = |id| match place.look().fate(id) {
        Fate::Waits(reason) => reason.code(),
        _ => "none",
    };
    assert_eq!((code(urgent), code(patient)), ("NoCapacity", "NoCapacity"));
    place.cycle("main");
    let (moved, stayed) = (place.job(urgent), place.job(patient));
    assert_eq!((moved.pool.as_str(), moved.state, moved.avoid_pools), ("other", JobState::Queued, vec!["main".into()]));
    assert_eq!(stayed.pool.as_str(), "main", "a job that isn't urgent waits");
    let state = block_on(Guard::read(&place.world, &"main".into()))?;
    assert!(state.state().no_capacity_since.is_some());
    // It stays where it went, though the other pool is preferred, and runs there once there is room.
    place.world.has("other", 1, 0);
    place.cycle("other");
    assert_eq!((place.job(urgent).pool.as_str(), place.job(urgent).state), ("other", JobState::Submitted));
    Ok(())
}

#[test]
fn no_job_goes_to_a_pool_that_has_no_capacity_either() -> Checked {
    let place = Place::new("stays", &["main", "other"])?;
    for pool in ["main", "other"] {
        place.world.has(pool, 0, 4);
    }
    place.send("first", "production", "inference", &[]);
    place.cycle("main");
    place.world.pass(1_000);
    let second = place.send("second", "production", "inference", &[]);
    place.cycle("main");
    assert_eq!(place.job(second).pool.as_str(), "other");
    place.cycle("other");
    place.world.pass(1_000);
    place.cycle("other");
    let third = place.send("third", "production", "inference", &[]);
    place.cycle("main");
    assert_eq!(place.job(third).pool.as_str(), "main");
    Ok(())
}
