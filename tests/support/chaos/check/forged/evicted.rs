//! Evictions: the log in which one job goes for another by the rules, and one test for each rule of theirs.

use std::collections::BTreeMap;

use osprey_ports::{Expect, Key, Write};

use super::super::super::batch::Wanted;
use super::super::super::evictions::{Eviction, TOKEN};
use super::super::super::quota::{HOURS_GPU_MS, Quota};
use super::super::super::scenario::Truth;
use super::super::super::script::{Outcome, Step};
use super::super::super::wiring;
use super::super::super::world::World;
use super::sound::{PARENT, closed, job, log, of, ran, state};
use super::{batch_job, drop_row, remove, reword, send, verdict, write};

const URGENT: &str = "00000000-0000-4000-9000-000000000011";
const VICTIM: &str = "00000000-0000-4000-9000-000000000012";
const SECOND: &str = "00000000-0000-4000-9000-000000000013";
const THIRD: &str = "00000000-0000-4000-9000-000000000014";
/// Rows of the day: what the jobs of the sound log used, and those of this one.
const DAY: (&str, &str) = ("USAGE#search", "DAY#2026-11-29");

/// The row of a plan in which jobs go for the urgent one.
fn plan(world: &mut World, at: i64, victims: &[&str]) {
    let victims: Vec<String> =
        victims.iter().map(|job| format!(r#"{{"job":"{job}","attempt":1,"rule":"may_preempt"}}"#)).collect();
    let body = format!(r#"{{"job":"{URGENT}","victims":[{}]}}"#, victims.join(","));
    write(world, at, ("POOL#spot", &format!("EVICT#{URGENT}")), &body);
}

/// A job of the tier `experimental` that began to run at second 300, and goes at a time.
fn runs(world: &mut World, job_id: &str, batch: &str) {
    let message = format!("m-{batch}");
    send(world, 200_000, &message, job(job_id));
    write(world, 200_000, (&of(job_id), "RECORD#000"), "{}");
    state(world, 200_000, (job_id, &message), "queued", 0, "");
    state(world, 210_000, (job_id, &message), "claimed", 1, "");
    state(world, 211_000, (job_id, &message), "submitted", 1, "");
    state(world, 300_000, (job_id, &message), "running", 1, "");
    ran(world, batch, (job_id, 1), (300_000, 440_000), Outcome::Exit(143));
    batch_job(world, batch).queue = "osprey-spot-experimental".to_owned();
}

fn receipt(end: &str, batch: &str) -> String {
    let by = format!(r#""by":"job","job":"{URGENT}","job_tier":"critical","rule":"may_preempt""#);
    format!(r#"{{"attempt":1,"batch_job_id":"{batch}",{by},"pool":"spot","tier":"experimental"{end}}}"#)
}

/// It is told to go, goes, and succeeds the next time.
fn goes(world: &mut World, job_id: &str, batch: &str) {
    let message = format!("m-{batch}");
    write(world, 402_000, (&of(job_id), "EVICTION#0001"), &receipt("", batch));
    let told_at = world.start + 403_000;
    let gone = batch_job(world, batch);
    gone.stops.push((told_at, format!("{TOKEN} for={URGENT}")));
    if let Some(told) = &mut gone.whole.told {
        (told.class, told.status_reason) = ("preempted", format!("{TOKEN} for={URGENT}"));
    }
    closed(world, 440_000, batch, (job_id, 1), "preempted");
    write(world, 440_000, (&of(job_id), "EVICTION#0001"), &receipt(r#","end":"preempted""#, batch));
    let counts = r#","counts":{"preemptions":1,"requeues":1}"#;
    state(world, 440_000, (job_id, &message), "queued", 1, counts);
    state(world, 500_000, (job_id, &message), "claimed", 2, counts);
    state(world, 501_000, (job_id, &message), "submitted", 2, counts);
    let again = format!("{batch}-again");
    ran(world, &again, (job_id, 2), (510_000, 520_000), Outcome::Success);
    batch_job(world, &again).queue = "osprey-spot-experimental".to_owned();
    closed(world, 520_000, &again, (job_id, 2), "succeeded");
    state(world, 520_000, (job_id, &message), "succeeded", 2, counts);
}

/// The sound log, and some jobs that go for an urgent one.
fn evicted(victims: &[(&str, &str)]) -> World {
    let mut world = log();
    let mut truth = job(URGENT);
    if let Truth::Job { urgent, .. } = &mut truth {
        *urgent = true;
    }
    send(&mut world, 390_000, "m-urgent", truth);
    write(&mut world, 390_000, (&of(URGENT), "RECORD#000"), "{}");
    state(&mut world, 390_000, (URGENT, "m-urgent"), "queued", 0, "");
    victims.iter().for_each(|(job, batch)| runs(&mut world, job, batch));
    let names: Vec<&str> = victims.iter().map(|(job, _)| *job).collect();
    plan(&mut world, 400_000, &names);
    state(&mut world, 400_000, (URGENT, "m-urgent"), "claimed", 1, "");
    state(&mut world, 401_000, (URGENT, "m-urgent"), "submitted", 1, "");
    ran(&mut world, "urgent", (URGENT, 1), (402_000, 450_000), Outcome::Success);
    victims.iter().for_each(|(job, batch)| goes(&mut world, job, batch));
    drop_row(&mut world, 404_000, ("POOL#spot", &format!("EVICT#{URGENT}")));
    closed(&mut world, 450_000, "urgent", (URGENT, 1), "succeeded");
    state(&mut world, 450_000, (URGENT, "m-urgent"), "succeeded", 1, "");
    used(&mut world, i64::try_from(victims.len()).unwrap());
    world
}

/// What the urgent job and so many victims used with two GPUs each, beside what is counted already.
fn used(world: &mut World, victims: i64) {
    let (useful, lost) = (96_000 + 20_000 * victims, 280_000 * victims);
    let members = [
        format!(r#""eviction_gpu_ms":{lost},"interrupted_gpu_ms":{lost},"gpu_ms":{}"#, 85_000 + useful + lost),
        format!(r#""useful_gpu_ms":{}"#, 65_000 + useful),
        r#""crash_gpu_ms":20000,"failed_gpu_ms":20000,"queue_gpu_ms":700,"restarts":1"#.to_owned(),
    ];
    write(world, 600_000, DAY, &format!("{{{}}}", members.join(",")));
}

fn one() -> World {
    evicted(&[(VICTIM, "b6")])
}

#[track_caller]
fn found(by: &str, change: impl FnOnce(&mut World)) {
    let mut world = one();
    change(&mut world);
    let verdict = verdict(world);
    assert!(verdict.as_ref().is_err_and(|sentence| sentence.contains(by)), "{by}: {verdict:?}");
}

#[track_caller]
fn sound_still(change: impl FnOnce(&mut World)) {
    let mut world = one();
    change(&mut world);
    assert_eq!(verdict(world), Ok(()));
}

#[test]
fn a_log_with_an_eviction_by_the_rules_passes() {
    sound_still(|_| {});
    assert_eq!(verdict(evicted(&[(VICTIM, "b6"), (SECOND, "b7")])), Ok(()));
}

#[test]
fn an_eviction_that_ended_otherwise_than_its_receipt_says_is_found() {
    let row = of(VICTIM);
    found("ended as `succeeded`, and the attempt otherwise", |world| {
        reword(world, (&row, "EVICTION#0001"), r#""end":"preempted""#, r#""end":"succeeded""#);
    });
    found("ended as ``, and the attempt otherwise", |world| {
        reword(world, (&row, "EVICTION#0001"), r#","end":"preempted""#, "");
    });
    found("ended as ``, and the attempt otherwise", |world| remove(world, (&row, "EVICTION#0001")));
}

#[test]
fn an_eviction_by_a_tier_that_may_not_or_of_one_that_nobody_may_is_found() {
    let tier = |batch: &'static str, tier: &'static str| {
        move |world: &mut World| batch_job(world, batch).queue = format!("osprey-spot-{tier}")
    };
    found("whose tier may not do that", tier("urgent", "experimental"));
    found("whose tier may not do that", tier("b6", "critical"));
    sound_still(tier("b6", "preemptible"));
    // A job that an urgent one needs is as urgent.
    sound_still(|world| {
        tier("urgent", "experimental")(world);
        let mut needs = job("needs-it");
        if let Truth::Job { parents, urgent, .. } = &mut needs {
            (*parents, *urgent) = (vec![URGENT.to_owned()], true);
        }
        send(world, 0, "m-needs", needs);
        write(world, 0, (&of("needs-it"), "RECORD#000"), "{}");
        state(world, 0, ("needs-it", "m-needs"), "refused", 0, "");
    });
}

#[test]
fn a_victim_that_was_stopped_before_its_successor_was_there_is_found() {
    found("was stopped for job", |world| {
        let late = world.start + 403_001;
        batch_job(world, "urgent").created_at = late;
    });
}

#[test]
fn a_job_that_was_evicted_more_often_than_it_may_is_found() {
    found("was evicted 2 times where 1 are allowed", |world| {
        let again = world.evictions.seen.first().unwrap().clone();
        world.evictions.seen.push(again);
    });
    // What a person asks for counts in nothing.
    sound_still(|world| {
        let again = world.evictions.seen.first().unwrap().clone();
        world.evictions.seen.push(Eviction { goes_for: None, ..again });
    });
}

#[test]
fn more_evictions_of_a_tier_than_its_budget_allows_are_found() {
    let three = || evicted(&[(VICTIM, "b6"), (SECOND, "b7"), (THIRD, "b8")]);
    let told = verdict(three());
    assert!(told.as_ref().is_err_and(|told| told.contains("3 jobs of tier experimental were evicted")), "{told:?}");
    let mut apart = three();
    apart.evictions.seen.last_mut().unwrap().at += 1_200_000;
    assert_eq!(verdict(apart), Ok(()));
    let mut other = three();
    other.evictions.seen.last_mut().unwrap().pool = "steady".to_owned();
    assert_eq!(verdict(other), Ok(()));
}

#[test]
fn an_eviction_that_was_planned_and_left_is_found() {
    found("was planned, and is neither carried out nor withdrawn", |world| plan(world, 700_000, &[VICTIM]));
}

#[test]
fn an_eviction_that_nobody_planned_is_found() {
    found("whose plan says nothing of it", |world| {
        write(world, 700_000, (&of(PARENT), "EVICTION#0002"), &receipt("", "b2"));
    });
}

#[test]
fn a_stop_in_the_words_of_an_eviction_before_that_is_recorded_is_found() {
    found("Batch was asked to evict b2 before its eviction was recorded", |world| {
        world.terminate("b2", &format!("{TOKEN} for=somebody")).unwrap();
    });
}

// What is lent.

/// The same eviction as one by which the second team takes back what the first has borrowed.
fn lent(change: impl FnOnce(&mut World)) -> Result<(), String> {
    let mut world = one();
    world.quota = Quota::Lend;
    world.evictions.seen.iter_mut().for_each(|eviction| eviction.rule = "borrowing".to_owned());
    let sent = world.sent.iter_mut().find(|sent| sent.id.as_str() == "m-urgent").unwrap();
    if let Truth::Job { team, .. } = &mut sent.draft.truth {
        *team = "vision";
    }
    change(&mut world);
    let table = super::super::table::Table::read(&world.store)?;
    super::super::evictions::check(&world, &table)
}

#[test]
fn what_is_taken_back_though_it_was_not_borrowed_is_found() {
    let found = |by: &str, told: Result<(), String>| {
        assert!(told.as_ref().is_err_and(|told| told.contains(by)), "{by}: {told:?}");
    };
    // Whatever the tiers say: the victim is of the higher one.
    assert_eq!(lent(|world| batch_job(world, "urgent").queue = "osprey-spot-experimental".to_owned()), Ok(()));
    found("and its team had borrowed nothing", lent(|world| world.quota = Quota::Hold));
    found(
        "and its team had borrowed nothing",
        lent(|world| {
            world.observer.jobs.retain(|job, _| [VICTIM, URGENT].contains(&job.as_str()));
        }),
    );
    found(
        "which is preemptible",
        lent(|world| batch_job(world, "urgent").queue = "osprey-spot-preemptible".to_owned()),
    );
    let same = |world: &mut World| {
        let sent = world.sent.iter_mut().find(|sent| sent.id.as_str() == "m-urgent").unwrap();
        sent.draft.truth = job(URGENT);
    };
    found("which is of the same team", lent(same));
    let spent = |world: &mut World| {
        world.life_ms = 0;
        for sent in &mut world.sent {
            let is_first = sent.id.as_str() == "m1";
            if let Truth::Job { team, gpus, .. } = &mut sent.draft.truth
                && is_first
            {
                // 40 s with so many GPUs by second 70.
                (*team, *gpus) = ("vision", HOURS_GPU_MS / 40_000);
            }
        }
    };
    found("whose team had used", lent(spent));
}

// Hours.

/// What the checker of hours says of the sound log with one change.
fn hours(change: impl FnOnce(&mut World)) -> Result<(), String> {
    let mut world = log();
    (world.quota, world.life_ms) = (Quota::Hold, 0);
    change(&mut world);
    let table = super::super::table::Table::read(&world.store)?;
    super::super::hours::check(&world, &table)
}

/// The first job holds so many GPUs that its first run uses up the day; its second was signed at second 138.
fn wasteful(world: &mut World) {
    for sent in world.sent.iter_mut().filter(|sent| sent.id.as_str() == "m1") {
        if let Truth::Job { gpus, .. } = &mut sent.draft.truth {
            *gpus = HOURS_GPU_MS / 10_000;
        }
    }
    batch_job(world, "b2").signed_at = world.start + 138_000;
}

#[test]
fn a_start_beyond_the_hours_of_a_team_is_found() {
    assert_eq!(hours(|_| {}), Ok(()));
    let told = hours(wasteful);
    assert!(told.as_ref().is_err_and(|told| told.contains("was started at second 138")), "{told:?}");
    let sound = |change: fn(&mut World)| {
        hours(|world| {
            wasteful(world);
            change(world);
        })
    };
    assert_eq!(sound(|world| world.quota = Quota::Borrow), Ok(()));
    assert_eq!(sound(|world| world.life_ms = 60_000), Ok(()), "who began before the end was known may act on that");
    assert_eq!(
        sound(|world| world.batch.jobs.iter_mut().for_each(|job| job.queue = "osprey-spot-preemptible".to_owned())),
        Ok(())
    );
    assert_eq!(sound(|world| assert!(world.changed_modes.insert(0))), Ok(()));
}

#[test]
fn a_job_that_was_refused_for_hours_that_nobody_used_is_found() {
    let refused = |change: fn(&mut World)| {
        let mut world = log();
        world.quota = Quota::Reject;
        send(&mut world, 500_000, "m9", job("x"));
        write(&mut world, 500_000, ("JOB#x", "RECORD#000"), "{}");
        state(&mut world, 500_000, ("x", "m9"), "refused", 0, "");
        change(&mut world);
        verdict(world)
    };
    assert_eq!(refused(|_| {}), Ok(()));
    let told = refused(|world| world.quota = Quota::Hold);
    assert!(told.as_ref().is_err_and(|told| told.contains("ended in the wrong place")), "{told:?}");
    let told = refused(|world| {
        let sent = world.sent.iter_mut().find(|sent| sent.id.as_str() == "m9").unwrap();
        if let Truth::Job { team, .. } = &mut sent.draft.truth {
            *team = "vision";
        }
    });
    assert!(told.as_ref().is_err_and(|told| told.contains("ended in the wrong place")), "{told:?}");
}

#[test]
fn a_claim_that_was_not_sent_excuses_a_refusal_of_its_own_team_alone() {
    let is_excused = |claimed_at: i64, team_of_claim: &'static str| {
        let mut world = log();
        world.quota = Quota::Reject;
        for (id, message, team, at) in [("y", "m8", team_of_claim, claimed_at), ("x", "m9", "vision", 500_000)] {
            send(&mut world, 400_000, message, of_team(id, team));
            state(&mut world, at, (id, message), if id == "y" { "claimed" } else { "refused" }, 0, "");
        }
        let refused = world.sent.iter().find(|sent| sent.id.as_str() == "m9").expect("it was sent");
        super::super::hours::excuse(&world, refused, "x")
    };
    assert!(is_excused(450_000, "vision"));
    assert!(!is_excused(550_000, "vision"), "it was claimed later");
    assert!(!is_excused(450_000, "search"), "it is another team's");
}

/// What is true of a job of a team.
fn of_team(id: &str, name: &'static str) -> Truth {
    let mut truth = job(id);
    if let Truth::Job { team, .. } = &mut truth {
        *team = name;
    }
    truth
}

// What pools have.

/// The sound log in pools of one node that hold their jobs, where each job has so many GPUs and belongs to the pool.
fn held(gpus_each: i64, quota: Quota, change: impl FnOnce(&mut World)) -> World {
    let mut world = one();
    world.quota = quota;
    world.wired = wiring::held(1, 0);
    for sent in &mut world.sent {
        if let Truth::Job { gpus, .. } = &mut sent.draft.truth {
            *gpus = gpus_each;
        }
    }
    change(&mut world);
    world
}

/// A Batch job of the first job's third attempt that runs beside the victim.
fn beside(world: &mut World) {
    let tags = [("osprey:job-id", PARENT.to_owned()), ("osprey:attempt", "3".to_owned())];
    let (at, tags) = (world.start + 320_000, tags.map(|(name, value)| (name.to_owned(), value)));
    let wanted = Wanted {
        name: "train".to_owned(),
        queue: "osprey-spot-experimental".to_owned(),
        tags: tags.into_iter().collect::<BTreeMap<_, _>>(),
        children: 0,
        step: Step { outcome: Outcome::Success, run_ms: 10_000 },
        signed_at: at,
        hidden_ms: 0,
    };
    world.batch.create(wanted, "beside".to_owned(), at);
    batch_job(world, "beside").whole.stopped_at = Some(at + 10_000);
    let row = osprey_ports::Item::new(Key::new("BATCH#beside", "JOB"), format!(r#"{{"job":"{PARENT}","attempt":3}}"#));
    world.store.apply(&Write::Put { item: row, expect: Expect::Any }, at);
}

#[test]
fn a_pool_that_is_given_more_than_it_has_is_found() {
    let check =
        |world: &World| super::super::capacity::check(world, &super::super::table::Table::read(&world.store).unwrap());
    assert_eq!(check(&held(4, Quota::Nothing, beside)), Ok(()));
    let told = check(&held(5, Quota::Nothing, beside));
    assert!(
        told.as_ref().is_err_and(|told| told.contains("jobs of pool spot needed 10 GPUs at second 320")),
        "{told:?}"
    );
    // The urgent job holds what the victim held, from the plan on.
    assert_eq!(check(&held(8, Quota::Nothing, |_| {})), Ok(()));
    let told = check(&held(8, Quota::Nothing, |world| world.evictions.leaving.clear()));
    assert!(told.as_ref().is_err_and(|told| told.contains("jobs of pool spot needed 16 GPUs")), "{told:?}");
    // A victim that had ended before it was told to go may leave others' work behind that looked like it.
    let ended = |before: i64| {
        move |world: &mut World| {
            world.wired.foreign_gpus = 3;
            let at = world.start + 400_000 - before;
            let gone = batch_job(world, "b6");
            (gone.created_at, gone.whole.stopped_at) = (at - 50_000, Some(at));
            world.life_ms = 60_000;
        }
    };
    let eight = |change| check(&held(3, Quota::Nothing, change));
    assert_eq!(eight(ended(20_000)), Ok(()));
}

#[test]
fn what_is_reserved_and_given_to_others_is_found() {
    let check =
        |world: &World| super::super::reserves::check(world, &super::super::table::Table::read(&world.store).unwrap());
    assert_eq!(check(&held(3, Quota::Reserve, beside)), Ok(()));
    let told = check(&held(4, Quota::Reserve, beside));
    assert!(
        told.as_ref().is_err_and(|told| told.contains("held 8 GPUs of pool spot at second 320, where 6 aren't")),
        "{told:?}"
    );
    assert_eq!(check(&held(4, Quota::Nothing, beside)), Ok(()));
}
