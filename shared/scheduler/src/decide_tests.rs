use osprey_model::id::JobId;
use proptest::collection::vec;
use proptest::strategy::Strategy as Strategy_;
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::plan::Reservation;
use crate::snapshot::{Hold, Node, Running};

fn id(number: u128) -> JobId {
    JobId::from_uuid(uuid::Uuid::from_u128(number))
}

/// Two nodes of 8, with running jobs (id, node, GPUs, expected end) and waiting ones (id, priority, GPUs, run).
fn snapshot(running: &[(u128, u32, u32, i64)], queued: &[(u128, u32, u32, u64)]) -> Snapshot {
    Snapshot {
        nodes: vec![Node { gpus: 8 }; 2],
        running: running
            .iter()
            .map(|(job, node, gpus, end)| Running {
                job: id(*job),
                holds: vec![Hold { node: *node, gpus: *gpus }],
                expected_end_ms: *end,
            })
            .collect(),
        queued: queued
            .iter()
            .map(|(job, priority, gpus, expected_ms)| Queued {
                job: id(*job),
                priority: *priority,
                enqueued_ms: i64::try_from(*job).unwrap(),
                not_before_ms: 0,
                gpus: *gpus,
                expected_ms: *expected_ms,
            })
            .collect(),
    }
}

fn started(snapshot: &Snapshot, strategy: Strategy) -> Vec<JobId> {
    decide(snapshot, &Rules { strategy }, 1_000).starts.into_iter().map(|start| start.job).collect()
}

#[test]
fn each_strategy_has_its_own_order() {
    let snapshot = snapshot(&[(1, 0, 8, 5_000)], &[(2, 100, 8, 900), (3, 300, 8, 800), (4, 200, 8, 700)]);
    assert_eq!(started(&snapshot, Strategy::Fifo), [id(2)]);
    assert_eq!(started(&snapshot, Strategy::Priority), [id(3)]);
    assert_eq!(started(&snapshot, Strategy::Sjf), [id(4)]);
    assert_eq!(started(&snapshot, Strategy::Backfill), [id(3)]);
}

#[test]
fn a_strict_order_passes_nobody_and_says_so() {
    let snapshot = snapshot(&[(1, 0, 8, 5_000)], &[(2, 900, 16, 900), (3, 300, 1, 10)]);
    let plan = decide(&snapshot, &Rules { strategy: Strategy::Priority }, 1_000);
    assert_eq!(plan.starts, []);
    let why: Vec<WaitReason> = plan.waiting.iter().map(|waiting| waiting.reason).collect();
    assert_eq!(why, [WaitReason::NoRoom { gpus: 16, free: 8 }, WaitReason::BehindHead { head: id(2) }]);
}

#[test]
fn backfill_starts_what_ends_in_time_or_takes_what_is_spare() {
    // The head needs both nodes from 5,000 on. Job 3 ends exactly then; job 4 would not.
    let snapshot = snapshot(&[(1, 0, 8, 5_000)], &[(2, 900, 16, 900), (4, 400, 4, 4_001), (3, 300, 4, 4_000)]);
    let plan = decide(&snapshot, &Rules { strategy: Strategy::Backfill }, 1_000);
    assert_eq!(plan.starts, [Start { job: id(3), holds: vec![Hold { node: 1, gpus: 4 }] }]);
    let whole = |node| Hold { node, gpus: 8 };
    assert_eq!(plan.reservations, [Reservation { job: id(2), at_ms: 5_000, holds: vec![whole(0), whole(1)] }]);
    let late = WaitReason::WouldDelay { head: id(2), reserved_at_ms: 5_000, ends_at_ms: 5_001 };
    assert!(plan.waiting.contains(&Waiting { job: id(4), reason: late }));
    // A head that needs one node leaves the other: a long job may take it.
    let snapshot =
        super::tests::snapshot(&[(1, 0, 8, 5_000), (9, 1, 4, 9_000)], &[(2, 900, 8, 900), (3, 300, 4, 90_000)]);
    assert_eq!(started(&snapshot, Strategy::Backfill), [id(3)]);
}

#[test]
fn what_backs_off_or_never_fits_holds_up_nobody() {
    let mut snapshot = snapshot(&[], &[(2, 900, 17, 900), (3, 800, 8, 900), (4, 100, 8, 900)]);
    snapshot.queued[1].not_before_ms = 2_000;
    let plan = decide(&snapshot, &Rules { strategy: Strategy::Priority }, 1_000);
    assert_eq!(plan.starts.iter().map(|start| start.job).collect::<Vec<_>>(), [id(4)]);
    let why: Vec<WaitReason> = plan.waiting.iter().map(|waiting| waiting.reason).collect();
    assert_eq!(why, [WaitReason::LargerThanPool { gpus: 17, pool_gpus: 16 }, WaitReason::NotYet { until_ms: 2_000 }]);
}

#[test]
fn free_gpus_that_are_not_together_are_told_as_such() {
    let snapshot = snapshot(&[(1, 0, 4, 5_000), (9, 1, 4, 6_000)], &[(2, 900, 8, 900)]);
    let plan = decide(&snapshot, &Rules::default(), 1_000);
    assert_eq!(plan.waiting, [Waiting { job: id(2), reason: WaitReason::Scattered { gpus: 8, free: 8 } }]);
    assert_eq!(plan.reservations.first().map(|reservation| reservation.at_ms), Some(5_000));
}

#[test]
fn an_overdue_job_is_expected_to_end_at_any_moment() {
    let snapshot = snapshot(&[(1, 0, 8, 10), (9, 1, 8, 50_000)], &[(2, 900, 8, 900)]);
    let plan = decide(&snapshot, &Rules::default(), 1_000);
    assert_eq!(plan.reservations.first().map(|reservation| reservation.at_ms), Some(1_001));
}

fn any_snapshot() -> impl Strategy_<Value = Snapshot> {
    let running = vec((0_u32..3, 1_u32..=4, 0_i64..5_000), 0..5);
    let queued = vec((0_u32..4, 1_u32..=24, 0_u64..5_000, 0_i64..3, 0_i64..2_000), 0..30);
    (running, queued).prop_map(|(running, queued)| {
        let mut room = [8_u32; 3];
        let mut snapshot = Snapshot { nodes: vec![Node { gpus: 8 }; 3], ..Snapshot::default() };
        for (number, (node, gpus, expected_end_ms)) in (1_000_u128..).zip(running) {
            let free = &mut room[node as usize];
            if *free >= gpus {
                *free -= gpus;
                snapshot.running.push(Running { job: id(number), holds: vec![Hold { node, gpus }], expected_end_ms });
            }
        }
        for (number, (priority, gpus, expected_ms, enqueued_ms, not_before_ms)) in (0_u128..).zip(queued) {
            let job = id(number);
            snapshot.queued.push(Queued { job, priority, enqueued_ms, not_before_ms, gpus, expected_ms });
        }
        snapshot
    })
}

proptest! {
    /// No node is given out twice, every job has a start or a reason, and the order of the input means nothing.
    #[test]
    fn plans_are_feasible_complete_and_independent_of_the_input_order(snapshot in any_snapshot(), rotate in 0_usize..30) {
        for strategy in crate::rules::Strategy::ALL {
            let rules = Rules { strategy };
            let plan = decide(&snapshot, &rules, 1_000);
            let mut used = [0_u32; 3];
            let running = snapshot.running.iter().flat_map(|running| &running.holds);
            for hold in running.chain(plan.starts.iter().flat_map(|start| &start.holds)) {
                used[hold.node as usize] += hold.gpus;
            }
            prop_assert!(used.iter().all(|used| *used <= 8), "{used:?}");
            let mut named: Vec<JobId> = plan.starts.iter().map(|start| start.job).collect();
            named.extend(plan.waiting.iter().map(|waiting| waiting.job));
            named.sort_unstable();
            let mut all: Vec<JobId> = snapshot.queued.iter().map(|queued| queued.job).collect();
            all.sort_unstable();
            prop_assert_eq!(named, all);
            let mut turned = snapshot.clone();
            let middle = rotate.min(turned.queued.len());
            turned.queued.rotate_left(middle);
            prop_assert_eq!(decide(&turned, &rules, 1_000), plan);
        }
    }

    /// What backfill starts doesn't move the head's reservation: with it running, the head alone is to start as early.
    #[test]
    fn backfill_never_delays_the_head(snapshot in any_snapshot()) {
        let rules = Rules { strategy: crate::rules::Strategy::Backfill };
        let plan = decide(&snapshot, &rules, 1_000);
        let mut after = snapshot.clone();
        for start in &plan.starts {
            let queued = snapshot.queued.iter().find(|queued| queued.job == start.job).unwrap();
            let expected_end_ms = 1_000 + i64::try_from(queued.expected_ms).unwrap().max(1);
            after.running.push(Running { job: start.job, holds: start.holds.clone(), expected_end_ms });
        }
        after.queued.retain(|queued| plan.reservations.iter().any(|reservation| reservation.job == queued.job));
        let again = decide(&after, &rules, 1_000);
        let at = |plan: &Plan| plan.reservations.first().map(|reservation| (reservation.job, reservation.at_ms));
        prop_assert_eq!(at(&again), at(&plan));
    }
}
