//! What people order of a pool, and what a step of a graph reports of the jobs after it.

use osprey_model::id::JobId;
use osprey_model::job::JobState;
use osprey_pipeline::acted::Acted;
use osprey_pipeline::{key, repository};
use osprey_ports::{GetItem as _, QueueKind};
use osprey_schedule::why::Fate;
use serde_json::{Value, json};

use crate::place::Place;
use crate::world::{Checked, block_on, message};

/// Carries out an action; what came of it.
fn act(place: &Place, body: &Value) -> Result<String, String> {
    let name = format!("act-{}", place.world.requests());
    let sent = message(&place.world, &name, QueueKind::Submissions, body.to_string());
    let id = sent.id.clone();
    let (context, sent) = (place.context(), [sent]);
    let handled = osprey_submit::handle(&context, &place.world, QueueKind::Submissions, &sent);
    assert_eq!(block_on(handled), []);
    let item = block_on(place.world.get_item(&key::action(&id))).unwrap().unwrap();
    let Acted { done, refusal, .. } = repository::read(&item).unwrap();
    done.ok_or_else(|| refusal.unwrap().message)
}

fn code(place: &Place, job: JobId) -> &'static str {
    match place.look().fate(job) {
        Fate::Waits(reason) => reason.code(),
        Fate::Starts => "Starts",
        Fate::Preempts { .. } => "Preempts",
        Fate::FarBehind { .. } => "FarBehind",
    }
}

#[test]
fn a_drained_pool_or_tier_starts_nothing_until_it_is_resumed() -> Checked {
    let place = Place::new("drains", &["main"])?;
    place.world.has("main", 4, 0);
    let patient = place.send("patient", "dev", "training", &[]);
    let tier = json!({ "action": "DrainPool", "pool": "main", "tier": "experimental" });
    assert_eq!(
        act(&place, &tier),
        Ok("tier `experimental` of pool `main` starts nothing more; what runs goes on".into())
    );
    let other = place.send("other", "production", "training", &[]);
    assert_eq!((code(&place, patient), code(&place, other)), ("TierPaused", "Starts"));
    let all = json!({ "action": "DrainPool", "pool": "main", "reason": "a new image" });
    assert_eq!(act(&place, &all), Ok("pool `main` starts nothing more; what runs goes on".into()));
    place.cycle("main");
    assert_eq!([patient, other].map(|job| place.job(job).state), [JobState::Queued; 2]);
    assert_eq!(code(&place, other), "PoolPaused");
    let resume = json!({ "action": "ResumePool", "pool": "main" });
    assert_eq!(act(&place, &resume), Ok("pool `main` starts jobs again".into()));
    assert_eq!(
        (code(&place, patient), code(&place, other)),
        ("Starts", "Starts"),
        "the tier's order ends with the pool's"
    );
    place.cycle("main");
    assert_eq!([patient, other].map(|job| place.job(job).state), [JobState::Submitted; 2]);
    Ok(())
}

#[test]
fn what_is_kept_for_a_team_is_left_to_it_until_its_time_is_over() -> Checked {
    let place = Place::new("keeps", &["main"])?;
    place.world.has("main", 3, 0);
    let until = jiff::Timestamp::from_millisecond(place.world.now_ms() + 3_600_000)?;
    let reserve = |team: &str, gpus: u32| json!({ "action": "Reserve", "pool": "main", "team": team, "gpus": gpus, "until": until.to_string() });
    assert!(act(&place, &reserve("Ads", 24))?.starts_with("24 GPUs of pool `main` are kept for team `ads` until "));
    let other = place.send("other", "dev", "training", &[]);
    assert_eq!(code(&place, other), "Reserved", "team search isn't team ads");
    act(&place, &reserve("search", 8))?;
    act(&place, &reserve("ads", 16))?;
    assert_eq!(code(&place, other), "Starts", "eight of them are its own team's");
    let second = place.send("second", "dev", "training", &[]);
    place.cycle("main");
    assert_eq!((place.job(other).state, code(&place, second)), (JobState::Submitted, "Reserved"));
    place.world.pass(3_600);
    assert_eq!(code(&place, second), "Starts", "nothing is kept any more");
    for (gpus, until, why) in [
        (99, Some("2099-01-01T00:00:00Z"), "99 GPUs are asked for, and pool `main` has"),
        (8, Some("2001-01-01T00:00:00Z"), "`until` has passed already"),
    ] {
        let refused = json!({ "action": "Reserve", "pool": "main", "team": "ads", "gpus": gpus, "until": until });
        let refused = act(&place, &refused).err().ok_or("it is refused")?;
        assert!(refused.starts_with(why), "{refused}");
    }
    Ok(())
}

/// A29
#[test]
fn a_step_reports_and_what_comes_after_it_moves_at_once() -> Checked {
    let place = Place::new("reports", &["main"])?;
    let step = place.send("step", "dev", "training", &[]);
    let next = place.send("next", "dev", "training", &[step]);
    let last = place.send("last", "dev", "training", &[next]);
    let stranger = place.send("stranger", "dev", "training", &[]);
    let report = |points: i32| json!({ "action": "ReportPriority", "jobId": step, "points": points, "reason": "the user waits" });
    assert_eq!(act(&place, &report(500)), Ok("+100 points for what comes after it".to_owned()), "a step at a time");
    let number = |job| place.job(job).priority;
    assert_eq!([step, next, last, stranger].map(number), [450, 550, 550, 450]);
    // What they lend the step follows.
    let lent = place.look().snapshot.queued.iter().find(|queued| queued.job == step).map(|queued| queued.lent);
    assert_eq!(lent, Some(550));
    let later = place.send("later", "dev", "training", &[last]);
    assert_eq!(number(later), 550, "one that comes afterwards has it from those before it");
    assert!(act(&place, &report(200)).is_err_and(|why| why.contains("within the last 60 s")));
    place.world.pass(61);
    assert!(act(&place, &report(104)).is_err_and(|why| why.contains("less than 10 points")));
    assert_eq!(act(&place, &report(0)), Ok("+0 points for what comes after it".to_owned()));
    assert_eq!([next, last, later].map(number), [450; 3], "it is taken back");
    Ok(())
}

#[test]
fn top_moves_a_waiting_job_to_the_front_of_its_tier() -> Checked {
    let place = Place::new("tops", &["main"])?;
    let jobs = [0, 1, 2].map(|number| place.send(&format!("job-{number}"), "dev", "training", &[]));
    let top = json!({ "action": "TopJob", "jobId": jobs[2] });
    assert_eq!(act(&place, &top), Ok("at the front of tier `experimental`, with 799".to_owned()));
    assert_eq!(jobs.map(|job| place.look().ahead(job)), [Some(1), Some(2), Some(0)]);
    place.world.has("main", 1, 0);
    place.cycle("main");
    let started = place.job(jobs[2]);
    assert_eq!((started.state, started.priority), (JobState::Submitted, 799), "it is derived again with it");
    assert!(act(&place, &top).is_err_and(|why| why.contains("only what waits can be moved forward")));
    Ok(())
}
