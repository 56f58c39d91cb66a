//! What each kind of change finds, one pool a kind.

use std::collections::BTreeMap;

use osprey_policy::share::{Budget, TeamUse};

use super::*;
use crate::decide;
use crate::rules::{Headroom, Reserve, Strategy, TierRules};
use crate::snapshot::{Array, Charge, Gate, Hold, Node, Queued, Running};

const NOW_MS: i64 = 1_000_000;
const MINUTE_MS: i64 = 60_000;
const HOUR_MS: u64 = 3_600_000;

fn id(number: u128) -> JobId {
    JobId::from_uuid(uuid::Uuid::from_u128(number))
}

/// A run: id, node, GPUs, minutes until its expected end.
fn run(job: u128, node: u32, gpus: u32, minutes: i64) -> Running {
    Running {
        holds: vec![Hold::gpus(node, gpus)],
        has_landed: true,
        started_ms: NOW_MS - MINUTE_MS,
        expected_end_ms: Some(NOW_MS + minutes * MINUTE_MS),
        ..Running::new(id(job), Shape::gpus(gpus))
    }
}

/// A waiting job: id, priority, GPUs, minutes of its run.
fn job(job: u128, priority: u32, gpus: u32, minutes: u64) -> Queued {
    let expected_ms = Some(minutes * 60_000);
    Queued { priority, tier: 1, enqueued_ms: NOW_MS - 1, expected_ms, ..Queued::new(id(job), Shape::gpus(gpus)) }
}

fn pool(nodes: usize, running: Vec<Running>, queued: Vec<Queued>) -> Snapshot {
    Snapshot { nodes: vec![Node::new(8); nodes], running, queued, ..Snapshot::default() }
}

/// An urgent tier and one below it.
fn rules() -> Rules {
    let tier = |name: &str, at_least| TierRules { name: name.into(), at_least: Some(at_least), ..TierRules::default() };
    Rules { tiers: vec![tier("high", 800), tier("low", 0)], dive_above: 800, ..Rules::default() }
}

/// What would start job 1, as sentences; every change is one that starts it when the decision is made once more.
fn changes(snapshot: &Snapshot, rules: &Rules) -> Vec<String> {
    let plan = decide(snapshot, rules, NOW_MS);
    let waiting = plan.waiting.iter().find(|waiting| waiting.job == id(1)).expect("job 1 waits");
    let question = Question {
        snapshot,
        rules,
        now_ms: NOW_MS,
        job: id(1),
        reason: waiting.reason,
        gpus_per_node: Some(8),
        decisions_max: DECISIONS_MAX,
    };
    let found = least(&question);
    assert!(found.is_complete && found.decisions <= DECISIONS_MAX);
    let name = |job: JobId| job.as_uuid().as_u128().to_string();
    found.changes.iter().map(|verified| verified.sentence(rules, name)).collect()
}

#[test]
fn a_job_that_finds_no_room_starts_smaller_or_when_the_first_runs_that_make_room_have_ended() {
    let running = vec![run(10, 0, 6, 30), run(11, 1, 4, 20), run(12, 1, 2, 50)];
    let snapshot = pool(2, running, vec![job(1, 500, 8, 60)]);
    assert_eq!(
        changes(&snapshot, &rules()),
        [
            "it starts with 2 GPUs instead of 8",
            // On the other node two have to end, the later one after that.
            "it starts when job 10 ends, expected at 1970-01-01T00:46:40Z",
        ]
    );
}

#[test]
fn where_one_end_is_not_enough_those_that_are_needed_are_named() {
    let running = vec![run(10, 0, 4, 30), run(11, 0, 4, 20), run(12, 1, 1, 10), run(13, 1, 7, 90)];
    let snapshot = pool(2, running, vec![job(1, 500, 8, 60)]);
    assert_eq!(
        changes(&snapshot, &rules()),
        ["it starts when jobs 11 and 10 have ended, expected at 1970-01-01T00:46:40Z"]
    );
}

#[test]
fn a_job_that_would_delay_another_starts_if_it_ends_in_time_or_without_that_one() {
    let queued = vec![job(2, 600, 16, 60), job(1, 500, 8, 90)];
    let snapshot = pool(2, vec![run(10, 0, 8, 45)], queued);
    assert_eq!(
        changes(&snapshot, &rules()),
        [
            "it starts if it declares that it runs for at most 45m instead of 1h30m (`expected-duration`)",
            // Of two alike the first id comes first. Were job 10 gone, job 2 would take all.
            "it starts with priority 600 instead of 500",
            "it starts if job 2 is cancelled or held",
        ]
    );
}

#[test]
fn of_a_job_nobody_knows_the_run_of_the_longest_declaration_that_starts_it_is_told() {
    let unknown = Queued { expected_ms: None, ..job(1, 500, 8, 0) };
    let snapshot = pool(2, vec![run(10, 0, 8, 45)], vec![job(2, 600, 16, 60), unknown]);
    assert_eq!(
        changes(&snapshot, &rules()).first().map(String::as_str),
        Some("it starts if it declares that it runs for at most 45m (`expected-duration`)")
    );
}

#[test]
fn a_higher_number_is_the_lowest_that_starts_and_may_evict() {
    let queued = vec![job(2, 600, 8, 60), job(3, 600, 8, 60), job(1, 500, 8, 90)];
    let snapshot = pool(2, vec![], queued);
    assert_eq!(changes(&snapshot, &rules()), ["it starts with priority 600 instead of 500"]);
    let mut rules = rules();
    rules.strategy = Strategy::Osprey;
    rules.tiers[0].may_preempt = vec![1];
    let running = vec![Running { tier: 1, started_ms: 0, ..run(10, 0, 8, 600) }];
    let snapshot = pool(1, running, vec![job(1, 500, 8, 90)]);
    assert_eq!(
        changes(&snapshot, &rules),
        [
            "it starts with priority 800 instead of 500, in tier `high`, in the place of 1 job",
            "it starts when job 10 ends, expected at 1970-01-01T10:16:40Z",
        ]
    );
}

#[test]
fn what_is_kept_for_urgent_jobs_is_told_with_the_most_that_could_be() {
    let rules = Rules { headroom: Headroom::Percent(50), ..rules() };
    let snapshot = pool(2, vec![run(10, 0, 6, 45)], vec![job(1, 500, 4, 90)]);
    assert_eq!(
        changes(&snapshot, &rules),
        [
            "it starts with 2 GPUs instead of 4",
            "it starts with priority 801 instead of 500, in tier `high`",
            "it starts when job 10 ends, expected at 1970-01-01T01:01:40Z",
            "it starts if 6 GPUs are kept for urgent jobs instead of 8",
        ]
    );
}

#[test]
fn what_is_reserved_for_others_is_told_with_the_share_that_could_be() {
    let reserve = Reserve { name: "chat".to_owned(), share_percent: 50, ..Reserve::default() };
    let mut rules = rules();
    rules.quota.reserves = vec![reserve];
    let snapshot = pool(2, vec![run(10, 0, 4, 45)], vec![job(1, 500, 8, 90)]);
    assert_eq!(
        changes(&snapshot, &rules),
        [
            "it starts with 4 GPUs instead of 8",
            "it starts when job 10 ends, expected at 1970-01-01T01:01:40Z",
            // 25 % of 16 GPUs are the 4 that are left.
            "it starts if 31 % of the pool are reserved for `chat` instead of 50 %",
        ]
    );
}

/// The tier of the number had a reserve of which each user holds a part at most: it was told and didn't start the job.
#[test]
fn a_higher_number_that_brings_a_job_under_the_limit_of_a_reserve_is_not_told() {
    let reserve = Reserve {
        name: "high".to_owned(),
        tiers: vec!["high".into()],
        share_percent: 50,
        user_percent: Some(25),
        ..Reserve::default()
    };
    let mut rules = rules();
    rules.quota.reserves = vec![reserve];
    let user = |gpus| Queued { charge: Charge { user: Some(1), ..Charge::NOBODY }, ..job(1, 500, gpus, 90) };
    let with = |gpus| pool(2, vec![run(10, 0, 8, 45)], vec![user(gpus)]);
    let number = "it starts with priority 800 instead of 500, in tier `high`".to_owned();
    // A user holds 2 GPUs of 8 at most.
    assert!(changes(&with(2), &rules).contains(&number));
    assert!(!changes(&with(4), &rules).contains(&number));
}

/// Of a run of weeks no more is promised than seven days of it, and no more is given back when it ends.
#[test]
fn the_end_of_a_run_of_weeks_gives_its_team_no_more_than_seven_days_back() {
    let charge = Charge { team: Some(0), ..Charge::NOBODY };
    let promised_gpu_ms = (7 + 4) * 24 * HOUR_MS;
    let week = Budget { promised_gpu_ms, limit_gpu_ms: Some(4 * 24 * HOUR_MS), ..Budget::default() };
    let running =
        vec![Running { charge, ..run(10, 0, 1, 60 * 24 * 30) }, Running { charge, ..run(11, 1, 1, 60 * 24 * 4) }];
    let team = TeamUse { week, ..TeamUse::default() };
    let snapshot = Snapshot { teams: vec![team], ..pool(2, running, vec![Queued { charge, ..job(1, 500, 4, 90) }]) };
    let told = changes(&snapshot, &rules());
    assert!(!told.iter().any(|told| told.starts_with("it starts when job 10 ends")), "{told:?}");
    assert!(told.iter().any(|told| told.starts_with("it starts when jobs 11 and 10 have ended")), "{told:?}");
}

#[test]
fn a_team_that_has_what_it_may_is_told_how_much_more_it_would_take() {
    let charge = Charge { team: Some(0), ..Charge::NOBODY };
    let held = BTreeMap::from([("low".into(), 6)]);
    let most = BTreeMap::from([("low".into(), 8)]);
    let team = TeamUse { gpus: held, gpus_max: most, ..TeamUse::default() };
    let running = vec![Running { charge, tier: 1, ..run(10, 0, 6, 45) }];
    let snapshot = Snapshot { teams: vec![team], ..pool(2, running, vec![Queued { charge, ..job(1, 500, 4, 90) }]) };
    assert_eq!(
        changes(&snapshot, &rules()),
        [
            "it starts with 2 GPUs instead of 4",
            "it starts with priority 800 instead of 500, in tier `high`",
            "it starts if its team may hold 10 GPUs at once in its tier instead of 8",
            "it starts when job 10 ends, expected at 1970-01-01T01:01:40Z",
        ]
    );
}

#[test]
fn a_team_without_gpu_hours_is_told_in_whole_hours_what_would_be_enough() {
    let charge = Charge { team: Some(0), ..Charge::NOBODY };
    let day = Budget { used_gpu_ms: 52 * HOUR_MS, limit_gpu_ms: Some(50 * HOUR_MS), ..Budget::default() };
    let team = TeamUse { day, ..TeamUse::default() };
    let snapshot = Snapshot { teams: vec![team], ..pool(2, vec![], vec![Queued { charge, ..job(1, 500, 4, 90) }]) };
    assert_eq!(changes(&snapshot, &rules()), ["it starts if its team may use 53 GPU-hours a day instead of 50"]);
}

#[test]
fn a_closed_gate_is_told_with_what_opens_it() {
    let paused = Snapshot { gate: Gate::Paused, ..pool(1, vec![], vec![job(1, 500, 8, 60)]) };
    assert_eq!(changes(&paused, &rules()), ["it starts when the pool is resumed"]);
    let drained = Snapshot { drained: vec![1], ..pool(1, vec![], vec![job(1, 500, 8, 60)]) };
    assert_eq!(changes(&drained, &rules()), ["it starts when its tier is resumed in the pool"]);
    let back_off = Queued { not_before_ms: NOW_MS + 1_000, ..job(1, 500, 8, 60) };
    assert_eq!(
        changes(&pool(1, vec![], vec![back_off]), &rules()),
        ["it starts when somebody requeues it, before its back-off ends at 1970-01-01T00:16:41Z"]
    );
    let absent = Node { state: crate::snapshot::NodeState::Absent { start_up_ms: 1 }, ..Node::new(8) };
    let mut short = pool(1, vec![run(10, 0, 8, 45)], vec![job(1, 500, 8, 60)]);
    short.nodes.push(absent);
    short.gate = Gate::NoCapacity { since_ms: 0 };
    assert!(
        changes(&short, &rules())
            .contains(&"it starts when the pool gets the capacity that it has asked for".to_owned())
    );
}

#[test]
fn work_that_is_not_ours_is_told_node_by_node() {
    let mut snapshot = pool(2, vec![], vec![job(1, 500, 8, 60)]);
    snapshot.nodes[0].foreign_gpus = 3;
    snapshot.nodes[1].foreign_gpus = 2;
    assert_eq!(
        changes(&snapshot, &rules()),
        [
            "it starts with 4 GPUs instead of 8",
            "it starts when the work on node 1 that isn't Osprey's ends, which holds 2 GPUs",
        ]
    );
}

#[test]
fn a_job_that_no_pool_could_hold_is_told_what_the_pool_lacks() {
    let gang = Queued { shape: Shape { nodes: 4, gpus: 8, vcpus: 0 }, ..job(1, 500, 8, 60) };
    assert_eq!(
        changes(&pool(2, vec![], vec![gang]), &rules()),
        [
            "it starts with 2 nodes of 8 GPUs instead of 4 nodes of 8 GPUs",
            "it starts if the pool has 2 nodes more, with 8 GPUs each"
        ]
    );
    assert_eq!(
        changes(&pool(0, vec![], vec![job(1, 500, 4, 60)]), &rules()),
        ["it starts if the pool has 1 node more, with 4 GPUs each"]
    );
}

#[test]
fn an_array_and_vcpus_are_told_with_the_most_that_start() {
    let array = Queued { array: Some(Array { waiting: 10, singly: false }), ..job(1, 500, 1, 60) };
    let snapshot = pool(2, vec![run(10, 0, 6, 45), run(11, 1, 7, 50)], vec![array]);
    assert!(changes(&snapshot, &rules()).contains(&"it starts with 3 children instead of 10".to_owned()));
    let mut snapshot =
        pool(1, vec![], vec![Queued { shape: Shape { nodes: 1, gpus: 1, vcpus: 32 }, ..job(1, 500, 1, 60) }]);
    snapshot.nodes[0].vcpus = 64;
    let holds = vec![Hold { node: 0, gpus: 1, vcpus: 50 }];
    snapshot.running = vec![Running { holds, shape: Shape { nodes: 1, gpus: 1, vcpus: 50 }, ..run(10, 0, 1, 45) }];
    assert!(changes(&snapshot, &rules()).contains(&"it starts with 14 vCPUs instead of 32".to_owned()));
}

#[test]
fn nothing_is_told_of_a_job_that_does_not_wait_there_and_no_more_decisions_are_made_than_may_be() {
    let snapshot = pool(2, vec![run(10, 0, 8, 45)], vec![job(2, 600, 16, 60), job(1, 500, 8, 90)]);
    let plan = decide(&snapshot, &rules(), NOW_MS);
    let reason = plan.waiting.iter().find(|waiting| waiting.job == id(1)).unwrap().reason;
    let rules = rules();
    let question = Question {
        snapshot: &snapshot,
        rules: &rules,
        now_ms: NOW_MS,
        job: id(9),
        reason,
        gpus_per_node: Some(8),
        decisions_max: 5,
    };
    assert_eq!(least(&question), Found { is_complete: true, ..Found::default() });
    let found = least(&Question { job: id(1), ..question });
    assert_eq!((found.decisions, found.is_complete), (5, false));
}

#[test]
fn the_kinds_are_those_that_are_given() {
    let source = include_str!("tell.rs");
    for kind in Change::KINDS {
        assert_eq!(source.matches(&format!("\"{kind}\"")).count(), 2, "{kind}");
    }
}
