use super::*;
use crate::rules::{Reserve, Strategy, TierRules};
use crate::snapshot::{Hold, Node, Queued, Running, Shape};

const NOW_MS: i64 = 1_000_000;

fn id(number: u128) -> JobId {
    JobId::from_uuid(uuid::Uuid::from_u128(number))
}

/// Nodes of 8; runs (id, node, GPUs, seconds left of 100) and waiting jobs (id, priority, GPUs, seconds).
fn pool(nodes: usize, running: &[(u128, u32, u32, i64)], queued: &[(u128, u32, u32, u64)]) -> Snapshot {
    let run = |(job, node, gpus, left): &(u128, u32, u32, i64)| Running {
        holds: vec![Hold::gpus(*node, *gpus)],
        has_landed: true,
        started_ms: NOW_MS - (100 - left) * 1_000,
        expected_end_ms: Some(NOW_MS + left * 1_000),
        ..Running::new(id(*job), Shape::gpus(*gpus))
    };
    let wait = |(job, priority, gpus, seconds): &(u128, u32, u32, u64)| Queued {
        priority: *priority,
        expected_ms: Some(seconds * 1_000),
        ..Queued::new(id(*job), Shape::gpus(*gpus))
    };
    Snapshot {
        nodes: vec![Node::new(8); nodes],
        running: running.iter().map(run).collect(),
        queued: queued.iter().map(wait).collect(),
        ..Snapshot::default()
    }
}

/// Seconds until a job starts.
fn after(snapshot: &Snapshot, job: u128, pace: Pace) -> Option<i64> {
    let rules = Rules { strategy: Strategy::Backfill, ..Rules::default() };
    starts_at(snapshot, &rules, NOW_MS, id(job), pace).map(|at_ms| (at_ms - NOW_MS) / 1_000)
}

#[test]
fn a_job_that_the_next_cycle_starts_starts_now() {
    assert_eq!(after(&pool(1, &[], &[(1, 500, 8, 60)]), 1, Pace::P50), Some(0));
}

#[test]
fn the_first_job_starts_when_enough_has_ended_and_later_at_a_slower_pace() {
    let snapshot = pool(1, &[(10, 0, 4, 30), (11, 0, 4, 50)], &[(1, 500, 8, 60)]);
    assert_eq!(after(&snapshot, 1, Pace::P50), Some(50));
    // 170 s instead of 100 s, of which 50 s have passed.
    assert_eq!(after(&snapshot, 1, Pace::P80), Some(120));
}

#[test]
fn those_before_it_run_first() {
    let snapshot = pool(1, &[(10, 0, 8, 30)], &[(2, 900, 8, 40), (3, 800, 8, 20), (1, 500, 8, 60)]);
    assert_eq!([2, 3, 1].map(|job| after(&snapshot, job, Pace::P50)), [Some(30), Some(70), Some(90)]);
}

#[test]
fn an_overdue_run_goes_on_in_proportion_to_what_it_has_run() {
    let snapshot = pool(1, &[(10, 0, 8, -20)], &[(1, 500, 8, 60)]);
    assert_eq!(after(&snapshot, 1, Pace::P50), Some(30));
}

#[test]
fn what_never_fits_or_stands_in_a_paused_pool_or_not_in_line_can_not_be_foreseen() {
    let large = pool(1, &[], &[(1, 500, 9, 60)]);
    assert_eq!(after(&large, 1, Pace::P50), None);
    let paused = Snapshot { gate: Gate::Paused, ..pool(1, &[], &[(1, 500, 8, 60)]) };
    assert_eq!((after(&paused, 1, Pace::P50), after(&paused, 7, Pace::P50)), (None, None));
    // Work that isn't ours never ends as far as anybody knows.
    let mut foreign = pool(1, &[], &[(1, 500, 8, 60)]);
    foreign.nodes[0].foreign_gpus = 1;
    assert_eq!(after(&foreign, 1, Pace::P50), None);
}

#[test]
fn a_back_off_is_waited_for() {
    let mut snapshot = pool(1, &[], &[(1, 500, 8, 60)]);
    snapshot.queued[0].not_before_ms = NOW_MS + 25_000;
    assert_eq!(after(&snapshot, 1, Pace::P50), Some(25));
}

/// It was told that it waits for the end of the run, and started minutes after it had been told so.
#[test]
fn an_urgent_job_starts_when_whom_it_may_evict_has_run_for_its_minimum() {
    let mut snapshot = pool(1, &[(10, 0, 8, 90)], &[(1, 900, 8, 60)]);
    (snapshot.queued[0].tier, snapshot.running[0].tier) = (0, 1);
    snapshot.running[0].expected_end_ms = Some(NOW_MS + 7_200_000);
    let tier = |may_preempt: Vec<u16>| TierRules { may_preempt, minimum_run_ms: 300_000, ..TierRules::default() };
    let rules = |strategy| Rules { strategy, tiers: vec![tier(vec![1]), tier(Vec::new())], ..Rules::default() };
    let starts = |strategy| starts_at(&snapshot, &rules(strategy), NOW_MS, id(1), Pace::P50);
    // It has run for 10 s of 300 s.
    assert_eq!(starts(Strategy::Osprey), Some(NOW_MS + 290_000));
    assert_eq!(starts(Strategy::Backfill), Some(NOW_MS + 7_200_000), "nobody is evicted");
}

#[test]
fn what_a_person_keeps_for_a_team_is_free_again_when_its_time_is_over() {
    let snapshot = pool(1, &[(10, 0, 4, 5_000)], &[(1, 500, 4, 60)]);
    let kept = Reserve {
        name: "kept for team search".to_owned(),
        gpus: Some(4),
        until_ms: Some(NOW_MS + 1_800_000),
        ..Reserve::default()
    };
    let mut rules = Rules { strategy: Strategy::Backfill, ..Rules::default() };
    rules.quota.reserves = vec![kept];
    assert_eq!(starts_at(&snapshot, &rules, NOW_MS, id(1), Pace::P50), Some(NOW_MS + 1_800_000));
}
