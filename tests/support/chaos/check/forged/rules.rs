//! One test for each rule, in the order of the checkers.

use super::super::super::ports::LIFE_MS_MAX;
use super::super::super::quota::Quota;
use super::super::super::run::Finished;
use super::super::super::scenario::Truth;
use super::super::super::script::Outcome;
use super::super::super::senders::{OPERATOR, STRANGER, VISION};
use super::super::super::wiring::WITHOUT_TIER;
use super::sound::{CHILD, DEAD, LETTER, PARENT, REFUSED, job, log, of, ran, state};
use super::{batch_job, forge, found, remove, reword, send, sound_still, tell, verdict, write};

#[test]
fn a_log_in_which_every_rule_holds_passes() {
    assert_eq!(verdict(log()), Ok(()));
}

// The observer.

#[test]
fn a_change_along_no_edge_is_found() {
    found("which is no edge of the lifecycle", |world| state(world, 80_000, (PARENT, "m1"), "queued", 2, ""));
    found("from `` to `running`", |world| state(world, 80_000, ("x", "m1"), "running", 0, ""));
}

#[test]
fn an_attempt_with_a_wrong_number_is_found() {
    found("with attempt 5 where 3 belongs", |world| {
        state(world, 80_000, ("x", "m9"), "queued", 2, "");
        world.observer.violation = None;
        state(world, 81_000, ("x", "m9"), "claimed", 5, "");
    });
}

#[test]
fn a_child_that_is_claimed_before_its_parent_succeeded_is_found() {
    found("on which it depends, was queued", |world| {
        world.observer.jobs.get_mut(PARENT).unwrap().state = "queued".to_owned();
        world.observer.jobs.get_mut(CHILD).unwrap().state = "queued".to_owned();
        world.observer.jobs.get_mut(CHILD).unwrap().attempt = 0;
        state(world, 73_000, (CHILD, "m2"), "claimed", 1, "");
    });
}

#[test]
fn a_job_whose_wait_is_noted_otherwise_than_it_is_is_found() {
    found("is said to wait with None where its record wants Some(0)", |world| {
        state(world, 80_000, ("x", "m9"), "waiting", 0, "");
    });
    found("is said to wait with Some(7) where its record wants None", |world| {
        write(world, 80_000, ("WAITS", "9992#x"), r#"{"priority":7}"#);
        state(world, 80_000, ("x", "m9"), "queued", 0, "");
    });
}

// Liveness.

#[test]
fn what_is_never_settled_is_found() {
    let never = |change: fn(&mut super::World)| {
        let mut world = log();
        change(&mut world);
        super::super::all(&Finished { world, settled_ms: None }).unwrap_err()
    };
    assert_eq!(never(|_| ()), "not settled within the bound after faults stopped: ");
    let job = never(|world| world.observer.jobs.get_mut(DEAD).unwrap().state = "claimed".to_owned());
    assert!(job.ends_with(&format!("job {DEAD} claimed")), "{job}");
    let letter = never(|world| world.observer.under_way = ["d".to_owned()].into());
    assert!(letter.ends_with("dead letter d"), "{letter}");
}

// The table.

#[test]
fn an_item_that_is_no_json_is_found() {
    found("is no JSON", |world| forge(world, (&of(DEAD), "STATE"), |item| item.body.truncate(20)));
}

// Messages.

#[test]
fn a_message_that_is_nowhere_is_found() {
    found("message m9 ended in 0 places", |world| send(world, 0, "m9", job("x")));
    found("message m5 ended in 0 places", |world| remove(world, ("ACTION#m5", "OUTCOME")));
    found("message m3 ended in 0 places", |world| {
        reword(world, (&format!("DEAD#{LETTER}"), "STATE"), r#""status":"open""#, r#""status":"redriven""#);
    });
}

#[test]
fn a_message_in_two_places_is_found() {
    found("message m1 ended in 2 places", |world| write(world, 90_000, ("ACTION#m1", "OUTCOME"), "{}"));
    found("message m6 ended in 2 places", |world| write(world, 90_000, (&of(CHILD), "DUPLICATE#m6"), "{}"));
}

#[test]
fn a_message_that_nobody_sent_is_found() {
    found("nobody sent message m8", |world| write(world, 90_000, ("ACTION#m8", "OUTCOME"), "{}"));
}

#[test]
fn a_message_in_the_wrong_place_is_found() {
    let becomes = |id: &'static str, truth: Truth| {
        found(&format!("message {id} "), |world| {
            world.sent.iter_mut().find(|sent| sent.id.as_str() == id).unwrap().draft.truth = truth;
        });
    };
    becomes("m5", Truth::Malformed);
    becomes("m5", Truth::Invalid);
    becomes("m1", Truth::Action);
    becomes("m4", job(REFUSED));
    becomes("m7", job("another"));
    becomes("m7", Truth::Invalid);
}

#[test]
fn a_job_that_was_let_in_as_its_own_parent_is_found() {
    found("message m7 ", |world| {
        let sent = world.sent.iter_mut().find(|sent| sent.id.as_str() == "m7").unwrap();
        let Truth::Job { lineage, .. } = &mut sent.draft.truth else { unreachable!() };
        *lineage = Some(DEAD.to_owned());
    });
}

#[test]
fn a_duplicate_of_another_request_is_found() {
    found("message m6 ", |world| {
        let sent = world.sent.iter_mut().find(|sent| sent.id.as_str() == "m6").unwrap();
        let Truth::Job { variant, .. } = &mut sent.draft.truth else { unreachable!() };
        *variant = 1;
    });
}

// Runs.

#[test]
fn two_runs_of_one_attempt_are_found() {
    found("has two runs", |world| {
        remove(world, (&of(CHILD), "EXTRA#b4"));
        write(world, 90_000, ("BATCH#b4", "JOB"), &format!(r#"{{"job":"{CHILD}","attempt":1}}"#));
    });
    found("is both the run of an attempt and a second one", |world| {
        write(world, 90_000, ("BATCH#b4", "JOB"), &format!(r#"{{"job":"{CHILD}","attempt":2}}"#));
    });
}

#[test]
fn a_batch_job_that_is_recorded_for_another_attempt_is_found() {
    found("is recorded for another attempt", |world| batch_job(world, "b2").attempt = 3);
    found("is recorded as a second one of another job", |world| batch_job(world, "b4").owner = DEAD.to_owned());
}

#[test]
fn a_batch_job_that_is_recorded_nowhere_is_found_once_it_was_heard_of() {
    let unknown = |heard: bool| {
        move |world: &mut super::World| {
            ran(world, "b5", (DEAD, 1), (300_000, 310_000), Outcome::Success);
            batch_job(world, "b5").heard = heard;
        }
    };
    found("is recorded nowhere", unknown(true));
    sound_still(unknown(false));
    found("has no tags, and is nobody's run", |world| {
        unknown(true)(world);
        batch_job(world, "b5").owner = String::new();
    });
}

#[test]
fn a_second_batch_job_that_lived_on_is_found() {
    found("recorded as stopped, and nobody asked Batch for it", |world| batch_job(world, "b4").stops.clear());
    let unstopped = |world: &mut super::World| {
        batch_job(world, "b4").stops.clear();
        reword(world, (&of(CHILD), "EXTRA#b4"), "true", "false");
    };
    // It ended within the seconds by which the clock of whoever found it may be off.
    sound_still(unstopped);
    found("and nobody stopped it", |world| {
        unstopped(world);
        batch_job(world, "b4").whole.stopped_at = Some(world_end(world));
    });
}

/// Long after everything else.
fn world_end(world: &super::World) -> i64 {
    world.start + 900_000
}

#[test]
fn a_run_that_was_never_closed_or_by_another_one_is_found() {
    found("was never closed", |world| remove(world, (&of(PARENT), "ATTEMPT#0002")));
    found("was closed by another Batch job", |world| reword(world, (&of(PARENT), "ATTEMPT#0002"), "b2", "b1"));
    found("was closed and has no run", |world| {
        write(world, 90_000, (&of(PARENT), "ATTEMPT#0003"), r#"{"batch_job_id":"b2"}"#);
    });
}

#[test]
fn two_live_batch_jobs_of_one_job_are_found_unless_a_list_or_a_late_request_excuses_them() {
    found("had two live Batch jobs", |world| batch_job(world, "b4").hidden_at.clear());
    found("had two live Batch jobs", |world| {
        let second = batch_job(world, "b4");
        second.hidden_at = vec![second.created_at + 15_000];
    });
    sound_still(|world| {
        let second = batch_job(world, "b4");
        second.hidden_at.clear();
        second.signed_at = second.created_at - 300_001;
    });
}

// Order.

#[test]
fn a_batch_job_made_before_its_parent_succeeded_is_found() {
    found("was made before", |world| batch_job(world, "b4").created_at -= 20_000);
}

// Counters.

#[test]
fn a_counter_that_differs_from_batchs_log_is_found() {
    let state = of(PARENT);
    for (name, from, to) in [
        ("failures of job", r#""counts":{"failures":1"#, r#""counts":{"failures":2"#),
        ("requeues of job", r#""requeues":1"#, r#""requeues":0"#),
        ("wasted_gpu_ms of job", r#""wasted_gpu_ms":20000"#, r#""wasted_gpu_ms":19000"#),
        ("preemptions of job", r#""requeues":1"#, r#""requeues":1,"preemptions":1"#),
        ("host_losses of job", r#""requeues":1"#, r#""requeues":1,"host_losses":1"#),
        ("the budgets of job", r#""budget":{"failures":1}"#, r#""budget":{"failures":0}"#),
        ("the budgets of job", r#""budget":{"failures":1}"#, r#""budget":{"failures":1,"interruptions":1}"#),
    ] {
        found(name, |world| reword(world, (&state, "STATE"), from, to));
    }
    found("duplicate_runs of job", |world| reword(world, (&of(CHILD), "STATE"), r#""duplicate_runs":1"#, ""));
}

#[test]
fn usage_that_differs_from_batchs_log_is_found() {
    let day = ("USAGE#search", "DAY#2026-11-29");
    found("usage differs", |world| reword(world, day, "85000", "85001"));
    found("usage differs", |world| reword(world, day, r#""failed_gpu_ms":20000,"#, ""));
    found("usage differs", |world| reword(world, day, r#""crash_gpu_ms":20000,"#, ""));
    found("usage differs", |world| reword(world, day, r#""restarts":1,"#, r#""restarts":2,"#));
    found("nobody waits for less than nothing", |world| reword(world, day, ":700", ":-700"));
    found("there is more than was used", |world| {
        write(world, 0, ("USAGE#vision", "DAY#2026-11-29"), r#"{"gpu_ms":1}"#)
    });
}

#[test]
fn an_attempt_recorded_otherwise_than_it_was_is_found() {
    let attempt = of(PARENT);
    let attempt = (attempt.as_str(), "ATTEMPT#0001");
    found("ended as exit_code and is recorded as timeout", |world| reword(world, attempt, "exit_code", "timeout"));
    found("and is recorded from", |world| batch_job(world, "b1").whole.stopped_at = Some(world.start + 21_000));
    found("and is recorded from", |world| batch_job(world, "b1").whole.started_at = Some(world.start + 9_999));
    found("is a Batch job that never was", |world| {
        reword(world, attempt, "b1", "b9");
        remove(world, ("BATCH#b1", "JOB"));
        write(world, 0, ("BATCH#b9", "JOB"), &format!(r#"{{"job":"{PARENT}","attempt":1}}"#));
        batch_job(world, "b1").heard = false;
    });
}

#[test]
fn a_job_that_came_back_beyond_its_budget_is_found() {
    found("came back after 1 failures", |world| {
        let sent = world.sent.iter_mut().find(|sent| sent.id.as_str() == "m1").unwrap();
        let Truth::Job { retries, .. } = &mut sent.draft.truth else { unreachable!() };
        *retries = Some(0);
    });
}

#[test]
fn a_job_that_says_it_succeeded_and_did_not_is_found() {
    found("and its runs say otherwise", |world| reword(world, (&of(PARENT), "STATE"), r#""succeeded""#, r#""failed""#));
    found("and its runs say otherwise", |world| {
        reword(world, (&of(DEAD), "STATE"), r#""state":"dead""#, r#""state":"succeeded""#);
    });
}

// Lineage.

#[test]
fn a_depth_that_does_not_follow_from_the_parents_is_found() {
    let child = of(CHILD);
    let child = (child.as_str(), "STATE");
    found("the lineage of job", |world| reword(world, child, r#""depth":1"#, r#""depth":2"#));
    found("the lineage of job", |world| reword(world, child, r#""depth":1"#, r#""depth":0"#));
    found("the lineage of job", |world| {
        reword(world, (&of(PARENT), "STATE"), r#""attempt":2"#, r#""depth":1,"attempt":2"#)
    });
}

// Routes.

/// A job that ended in the queue, since no pool took it.
fn routeless(world: &mut super::World, urgent: bool) {
    let mut truth = job("x");
    let Truth::Job { urgent: is_urgent, .. } = &mut truth else { unreachable!() };
    *is_urgent = urgent;
    send(world, 80_000, "m9", truth);
    write(world, 81_000, ("JOB#x", "RECORD#000"), "{}");
    state(world, 81_000, ("x", "m9"), "queued", 0, "");
    state(world, 90_000, ("x", "m9"), "dead", 0, r#","end":{"code":"NoEligiblePool"}"#);
    let letter = r#"{"kind":{"job":{"name":"train"}},"died_at":90000,"status":"open","told":true}"#;
    write(world, 90_000, ("DEAD#x", "STATE"), letter);
    tell(world, "x NoEligiblePool 90000");
}

#[test]
fn a_job_that_died_in_the_queue_is_found_unless_its_tier_was_away() {
    found("and its tier wasn't away", |world| routeless(world, true));
    let away = |world: &mut super::World, from: i64| world.policies.push((world.start + from, WITHOUT_TIER));
    sound_still(|world| {
        routeless(world, true);
        away(world, 85_000);
    });
    found("and its tier wasn't away", |world| {
        routeless(world, true);
        away(world, 95_000);
    });
    found("and its tier wasn't away", |world| {
        routeless(world, false);
        away(world, 85_000);
    });
    // An invocation that began while it was away may end the job as long as it lives.
    let back = |world: &mut super::World, before: i64| {
        let at = world.start + 90_000 - before;
        world.policies = vec![(at - 1_000, WITHOUT_TIER), (at, 0)];
    };
    sound_still(|world| {
        routeless(world, true);
        back(world, LIFE_MS_MAX);
    });
    found("and its tier wasn't away", |world| {
        routeless(world, true);
        back(world, LIFE_MS_MAX + 1);
    });
}

// What others hear.

#[test]
fn an_end_of_which_nobody_heard_is_found() {
    found("and others heard None last", |world| drop(world.heard.remove(REFUSED)));
    found("and others heard Some(\"running\") last", |world| {
        world.heard.insert(PARENT.to_owned(), (1, "running".to_owned()));
    });
    let event = format!(r#"{{"jobId":"{PARENT}","state":"succeeded"}}"#);
    found("the event is still in the outbox", |world| write(world, 90_000, ("OUTBOX", "1#x#1"), &event));
}

// Dead letters.

#[test]
fn what_nobody_can_see_is_found() {
    let hide =
        |world: &mut super::World, partition: &str| forge(world, (partition, "STATE"), |item| item.indexes.clear());
    found("is in no listing", |world| hide(world, &of(REFUSED)));
    found("is in no listing", |world| hide(world, &format!("DEAD#{LETTER}")));
    found("is not kept", |world| remove(world, (&of(CHILD), "RECORD#000")));
}

#[test]
fn a_dead_job_without_an_open_dead_letter_is_found() {
    found("is dead, and its dead letter is None", |world| remove(world, (&format!("DEAD#{DEAD}"), "STATE")));
    found("is dead, and its dead letter is Some(\"redriven\")", |world| {
        reword(world, (&format!("DEAD#{DEAD}"), "STATE"), r#""open""#, r#""redriven""#);
    });
}

#[test]
fn a_dead_letter_of_which_nobody_was_told_or_too_often_is_found() {
    found("nobody was told of dead letter", |world| world.told.retain(|told| !told.key.starts_with(LETTER)));
    found("nobody was told of dead letter", |world| {
        reword(world, (&format!("DEAD#{LETTER}"), "STATE"), r#""died_at":9000"#, r#""died_at":9500"#);
    });
    found("was told of more often", |world| tell(world, &format!("{LETTER} NotJson 9001")));
    // The same notice again is the same notice.
    sound_still(|world| tell(world, &format!("{LETTER} NotJson 9000")));
}

// Authority.

#[test]
fn a_job_that_its_sender_may_not_send_is_found() {
    found("message m1 ", |world| forbid(world, "m1"));
    found("is of team `vision` where it may only be of `search`", |world| {
        reword(world, (&of(DEAD), "STATE"), r#""team":"search""#, r#""team":"vision""#);
    });
    found("Batch got b1, which nobody who sent it may send", |world| {
        batch_job(world, "b1").tags.insert("script".to_owned(), "9".to_owned());
    });
    found("which is above what it may reach", |world| {
        world.sent.iter_mut().for_each(|sent| sent.draft.sender = VISION);
        reword(world, ("ACTION#m5", "OUTCOME"), "AROASEARCH", VISION);
        batch_job(world, "b1").tags.insert("script".to_owned(), "0".to_owned());
    });
}

fn forbid(world: &mut super::World, id: &str) {
    let sent = world.sent.iter_mut().find(|sent| sent.id.as_str() == id).unwrap();
    let Truth::Job { forbidden, .. } = &mut sent.draft.truth else { unreachable!() };
    *forbidden = true;
}

#[test]
fn an_act_on_the_job_of_another_is_found() {
    let by = |world: &mut super::World, who| {
        world.sent.iter_mut().find(|sent| sent.id.as_str() == "m5").unwrap().draft.sender = who;
        reword(world, ("ACTION#m5", "OUTCOME"), "AROASEARCH", who);
    };
    found("may not ask for what it asked for with m5", |world| by(world, STRANGER));
    sound_still(|world| by(world, OPERATOR));
    sound_still(|world| {
        by(world, STRANGER);
        reword(world, ("ACTION#m5", "OUTCOME"), r#""sender""#, r#""refusal":{"code":"NotAllowed"},"sender""#);
    });
    found("is kept as one of `AROASTRANGER`", |world| {
        reword(world, ("ACTION#m5", "OUTCOME"), "AROASEARCH", STRANGER);
    });
    found("may ask for what it asked for with m5, and may not", |world| {
        reword(world, ("ACTION#m5", "OUTCOME"), r#""sender""#, r#""refusal":{"code":"NotAllowed"},"sender""#);
    });
}

// Quotas.

#[test]
fn what_is_still_held_when_nothing_runs_is_found() {
    found("is said to hold 8 GPUs in tier critical, and nothing runs", |world| {
        write(world, 0, ("USAGE#search", "GPUS"), r#"{"critical":8}"#);
    });
    found("job x is said to hold GPUs of its team", |world| write(world, 0, ("USAGE#search", "HOLD#x"), "{}"));
    found("no policy asks for it", |world| write(world, 0, ("USAGE#search", "GPUS"), r#"{"critical":0}"#));
    sound_still(|world| {
        world.quota = Quota::Borrow;
        write(world, 0, ("USAGE#search", "GPUS"), r#"{"critical":0}"#);
    });
}

#[test]
fn a_team_that_holds_more_than_it_may_is_found() {
    let more = |world: &mut super::World| {
        world.quota = Quota::Borrow;
        for sent in &mut world.sent {
            if let Truth::Job { gpus, .. } = &mut sent.draft.truth {
                *gpus = 33;
            }
        }
    };
    let world = |change: fn(&mut super::World)| {
        let mut world = log();
        more(&mut world);
        change(&mut world);
        world
    };
    let read = |world: &super::World| super::super::table::Table::read(&world.store).unwrap();
    let checked = |world: super::World| super::super::quotas::check(&world, &read(&world));
    let told = checked(world(|_| {}));
    assert!(told.as_ref().is_err_and(|told| told.contains("held 33 GPUs in tier")), "{told:?}");
    // Without quotas, and where somebody changed the mode of a pool, nobody is held back.
    assert_eq!(checked(world(|world| world.quota = Quota::Nothing)), Ok(()));
    let changed = |world: &mut super::World| assert!(world.changed_modes.insert(0));
    assert_eq!(checked(world(changed)), Ok(()));
}
