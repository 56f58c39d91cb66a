//! What each rule of the cycle does, one table or sentence at a time.

use osprey_model::id::JobId;

use super::*;
use crate::plan::Reservation;
use crate::rules::{Aging, Headroom, TierRules};
use crate::snapshot::{Array, Node, NodeState, Shape};

fn id(number: u128) -> JobId {
    JobId::from_uuid(uuid::Uuid::from_u128(number))
}

/// Two nodes of 8, with running jobs (id, node, GPUs, expected end) and waiting ones (id, priority, GPUs, run).
fn snapshot(running: &[(u128, u32, u32, i64)], queued: &[(u128, u32, u32, u64)]) -> Snapshot {
    Snapshot {
        nodes: vec![Node::new(8); 2],
        running: running
            .iter()
            .map(|(job, node, gpus, end)| Running {
                holds: vec![Hold::gpus(*node, *gpus)],
                has_landed: true,
                expected_end_ms: Some(*end),
                ..Running::new(id(*job), Shape::gpus(*gpus))
            })
            .collect(),
        queued: queued
            .iter()
            .map(|(job, priority, gpus, expected_ms)| Queued {
                priority: *priority,
                enqueued_ms: i64::try_from(*job).unwrap(),
                expected_ms: Some(*expected_ms),
                ..Queued::new(id(*job), Shape::gpus(*gpus))
            })
            .collect(),
        ..Snapshot::default()
    }
}

fn rules(strategy: Strategy) -> Rules {
    Rules { strategy, ..Rules::default() }
}

fn started(snapshot: &Snapshot, strategy: Strategy) -> Vec<JobId> {
    decide(snapshot, &rules(strategy), 1_000).starts.into_iter().map(|start| start.job).collect()
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
    let plan = decide(&snapshot, &rules(Strategy::Priority), 1_000);
    assert_eq!(plan.starts, []);
    let why: Vec<WaitReason> = plan.waiting.iter().map(|waiting| waiting.reason).collect();
    assert_eq!(why, [WaitReason::NoRoom { gpus: 16, free: 8 }, WaitReason::BehindHead { head: id(2) }]);
}

#[test]
fn backfill_starts_what_ends_in_time_or_takes_what_is_spare() {
    // The head needs both nodes from 5,000 on. Job 3 ends exactly then; job 4 would not.
    let snapshot = snapshot(&[(1, 0, 8, 5_000)], &[(2, 900, 16, 900), (4, 400, 4, 4_001), (3, 300, 4, 4_000)]);
    let plan = decide(&snapshot, &rules(Strategy::Backfill), 1_000);
    assert_eq!(plan.starts, [Start { job: id(3), child: None, is_borrowed: false, holds: vec![Hold::gpus(1, 4)] }]);
    let whole = |node| Hold::gpus(node, 8);
    assert_eq!(plan.reservations, [Reservation { job: id(2), at_ms: 5_000, holds: vec![whole(0), whole(1)] }]);
    let late = WaitReason::WouldDelay { head: id(2), reserved_at_ms: 5_000, ends_at_ms: Some(5_001) };
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
    let plan = decide(&snapshot, &rules(Strategy::Priority), 1_000);
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

fn starts(plan: &Plan) -> Vec<JobId> {
    plan.starts.iter().map(|start| start.job).collect()
}

fn reason(plan: &Plan, job: u128) -> Option<WaitReason> {
    plan.waiting.iter().find(|waiting| waiting.job == id(job)).map(|waiting| waiting.reason)
}

const MINUTE: i64 = 60_000;

/// C12: 32 GPUs wanted, 12 free, the head is due in 90 minutes, and a job of 4 GPUs and 20 minutes goes.
#[test]
fn a_short_small_job_starts_before_the_head_is_due() {
    let now_ms = 1_000_000 * MINUTE;
    let minutes = |minutes: u64| Some(minutes * 60_000);
    let mut snapshot = Snapshot { nodes: vec![Node::new(32)], ..Snapshot::default() };
    snapshot.running.push(Running {
        holds: vec![Hold::gpus(0, 20)],
        has_landed: true,
        expected_end_ms: Some(now_ms + 90 * MINUTE),
        ..Running::new(id(1), Shape::gpus(20))
    });
    let job = |number, priority, gpus, run| Queued {
        priority,
        expected_ms: minutes(run),
        ..Queued::new(id(number), Shape::gpus(gpus))
    };
    snapshot.queued = vec![job(2, 900, 32, 600), job(3, 500, 4, 20), job(4, 500, 4, 91)];
    let plan = decide(&snapshot, &Rules::default(), now_ms);
    assert_eq!(starts(&plan), [id(3)]);
    assert_eq!(plan.reservations.first().map(|kept| (kept.job, kept.at_ms)), Some((id(2), now_ms + 90 * MINUTE)));
    let late = WaitReason::WouldDelay {
        head: id(2),
        reserved_at_ms: now_ms + 90 * MINUTE,
        ends_at_ms: Some(now_ms + 91 * MINUTE),
    };
    assert_eq!((reason(&plan, 2), reason(&plan, 4)), (Some(WaitReason::NoRoom { gpus: 32, free: 12 }), Some(late)));
}

/// D16: ten urgent jobs on eight GPUs: eight start, two wait, and each says for what.
#[test]
fn urgent_jobs_reserve_one_by_one_and_everything_else_stays_out_of_their_way() {
    let rules = Rules { dive_above: 800, ..Rules::default() };
    let mut snapshot = snapshot(&[(1, 0, 8, 5_000), (9, 1, 4, 7_000)], &[]);
    let job = |number, priority, gpus, expected_ms| Queued {
        priority,
        expected_ms: Some(expected_ms),
        ..Queued::new(id(number), Shape::gpus(gpus))
    };
    snapshot.queued = vec![job(2, 1_200, 8, 900), job(3, 1_100, 8, 900), job(4, 500, 4, 4_000), job(5, 400, 4, 4_500)];
    let plan = decide(&snapshot, &rules, 1_000);
    let kept: Vec<(JobId, i64)> = plan.reservations.iter().map(|kept| (kept.job, kept.at_ms)).collect();
    // The second one is kept node 0 behind the first, which ends before node 1 is free.
    assert_eq!(kept, [(id(2), 5_000), (id(3), 5_900)]);
    assert_eq!(starts(&plan), [id(4)]);
    // Eight of ten on eight GPUs.
    let mut crowd = Snapshot { nodes: vec![Node::new(8)], ..Snapshot::default() };
    crowd.queued = (0..10).map(|number| job(number, 1_200, 1, 900)).collect();
    let plan = decide(&crowd, &rules, 1_000);
    assert_eq!((plan.starts.len(), plan.reservations.len()), (8, 2));
    let why: Vec<WaitReason> = plan.waiting.iter().map(|waiting| waiting.reason).collect();
    assert_eq!(why, [WaitReason::NoRoom { gpus: 1, free: 0 }; 2]);
}

#[test]
fn without_urgency_only_the_head_has_a_reservation() {
    let snapshot = snapshot(&[(1, 0, 8, 5_000), (9, 1, 4, 7_000)], &[(2, 700, 8, 900), (3, 600, 8, 900)]);
    let plan = decide(&snapshot, &Rules::default(), 1_000);
    assert_eq!(plan.reservations.len(), 1);
}

/// C6: a share of the pool stays free for urgent work at any time, and B14: urgent is what is above the threshold.
#[test]
fn headroom_is_left_by_everybody_but_urgent_jobs_and_what_has_waited_long_enough() {
    let mut rules = Rules { dive_above: 800, headroom: Headroom::Percent(20), ..Rules::default() };
    // 20 % of 16 GPUs are 3.
    let jobs = [(2, 500, 8, 900), (3, 500, 5, 900), (4, 500, 1, 900), (5, 801, 3, 900)];
    let plan = decide(&snapshot(&[], &jobs), &rules, 1_000);
    // Job 3 waits for the headroom, and its place is kept: job 4 doesn't take it.
    assert_eq!(starts(&plan), [id(5), id(2)]);
    assert_eq!(reason(&plan, 3), Some(WaitReason::Headroom { gpus: 5, free: 5, kept: 3 }));
    let plan = decide(&snapshot(&[], &jobs[..3]), &rules, 1_000);
    assert_eq!(starts(&plan), [id(2), id(3)]);
    assert_eq!(reason(&plan, 4), Some(WaitReason::Headroom { gpus: 1, free: 3, kept: 3 }));
    // A job as large as the pool leaves nothing over, and needn't.
    assert_eq!(starts(&decide(&snapshot(&[], &[(2, 500, 16, 900)]), &rules, 1_000)), [id(2)]);
    let aging = Some(crate::rules::Aging { millipoints_per_hour: u32::MAX, cap: 501 });
    rules.tiers = vec![TierRules { name: "all".into(), at_least: Some(0), aging, ..TierRules::default() }];
    assert_eq!(starts(&decide(&snapshot(&[], &jobs[..3]), &rules, 1_000_000)), [id(2), id(3), id(4)]);
}

/// GPUs that are free here and there are of no use to an urgent job that needs a node.
#[test]
fn headroom_as_large_as_a_node_keeps_a_node_empty_for_urgent_jobs() {
    let rules = Rules { dive_above: 800, headroom: Headroom::Gpus(8), ..Rules::default() };
    let busy: Vec<(u128, u32, u32, i64)> = (0..11_u32).map(|node| (u128::from(node) + 100, node, 7, 5_000)).collect();
    let at = |jobs: &[(u128, u32, u32, u64)]| {
        let mut snapshot = snapshot(&busy, jobs);
        snapshot.nodes = vec![Node::new(8); 12];
        snapshot
    };
    // 19 GPUs are free, 8 of them on the one empty node.
    let plan = decide(&at(&[(2, 500, 8, 900), (3, 400, 1, 900)]), &rules, 1_000);
    assert_eq!(starts(&plan), [id(3)]);
    assert_eq!(reason(&plan, 2), Some(WaitReason::HeadroomNodes { nodes: 1, empty: 1, kept: 1 }));
    assert_eq!(starts(&decide(&at(&[(2, 801, 8, 900)]), &rules, 1_000)), [id(2)]);
    let less = Rules { headroom: Headroom::Gpus(7), ..rules.clone() };
    assert_eq!(starts(&decide(&at(&[(2, 500, 8, 900)]), &less, 1_000)), [id(2)]);
    // Where Batch chooses the nodes, nobody can keep one empty.
    let mut anywhere = at(&[(2, 500, 8, 900)]);
    anywhere.landing = Landing::Anywhere;
    assert_eq!(starts(&decide(&anywhere, &rules, 1_000)), [id(2)]);
}

/// D18: GPUs are given out whole, and nodes of a multi-node job all or none.
#[test]
fn a_multi_node_job_starts_on_all_of_its_nodes_or_on_none() {
    let multi = |number, nodes, gpus| Queued {
        priority: 900,
        expected_ms: Some(900),
        ..Queued::new(id(number), Shape { nodes, gpus, vcpus: 0 })
    };
    let mut snapshot = snapshot(&[(1, 0, 1, 5_000)], &[]);
    snapshot.queued = vec![multi(2, 2, 4)];
    let plan = decide(&snapshot, &Rules::default(), 1_000);
    assert_eq!((starts(&plan), plan.reservations.first().map(|kept| kept.at_ms)), (vec![], Some(5_000)));
    assert_eq!(reason(&plan, 2), Some(WaitReason::Scattered { gpus: 8, free: 15 }));
    snapshot.running.clear();
    let whole = |node| Hold::gpus(node, 8);
    let plan = decide(&snapshot, &Rules::default(), 1_000);
    assert_eq!(plan.starts, [Start { job: id(2), child: None, is_borrowed: false, holds: vec![whole(0), whole(1)] }]);
    snapshot.queued = vec![multi(2, 3, 4), multi(3, 2, 9)];
    let plan = decide(&snapshot, &Rules::default(), 1_000);
    let none = |nodes, gpus| Some(WaitReason::NoSuchNode { nodes, gpus, vcpus: 0 });
    assert_eq!(
        (reason(&plan, 2), reason(&plan, 3)),
        (none(3, 4), Some(WaitReason::LargerThanPool { gpus: 18, pool_gpus: 16 }))
    );
}

/// B20: where there are no GPUs, vCPUs are what is counted.
#[test]
fn jobs_without_gpus_wait_for_vcpus_and_say_so() {
    let node = Node { vcpus: 16, ..Node::new(8) };
    let job = |number, gpus, vcpus| Queued {
        priority: 900 - u32::try_from(number).unwrap(),
        expected_ms: Some(900),
        ..Queued::new(id(number), Shape { nodes: 1, gpus, vcpus })
    };
    let queued = vec![job(2, 0, 12), job(3, 2, 8), job(4, 1, 4), job(5, 0, 17)];
    let snapshot = Snapshot { nodes: vec![node], queued, ..Snapshot::default() };
    let plan = decide(&snapshot, &Rules::default(), 1_000);
    // Job 4 ends no later than job 2, behind which job 3 is to start.
    assert_eq!(starts(&plan), [id(2), id(4)]);
    assert_eq!(reason(&plan, 3), Some(WaitReason::NoVcpus { vcpus: 8, free: 4 }));
    let none = WaitReason::NoSuchNode { nodes: 1, gpus: 0, vcpus: 17 };
    assert_eq!(reason(&plan, 5), Some(none));
}

#[test]
fn children_of_an_array_start_one_by_one_where_they_may_and_all_at_once_where_not() {
    let array = |singly, waiting| Queued {
        expected_ms: Some(900),
        array: Some(Array { waiting, singly }),
        ..Queued::new(id(2), Shape::gpus(3))
    };
    let mut snapshot = snapshot(&[], &[]);
    snapshot.queued = vec![array(true, 7)];
    let plan = decide(&snapshot, &Rules::default(), 1_000);
    let children: Vec<Option<u32>> = plan.starts.iter().map(|start| start.child).collect();
    assert_eq!(children, [Some(0), Some(1), Some(2), Some(3)]);
    assert_eq!(reason(&plan, 2), Some(WaitReason::Scattered { gpus: 3, free: 4 }));
    // Four fit the pool at once, and one that starts as a whole is given room for so many.
    snapshot.queued = vec![array(false, 7)];
    let plan = decide(&snapshot, &Rules::default(), 1_000);
    assert_eq!(
        plan.starts,
        [Start { job: id(2), child: None, is_borrowed: false, holds: vec![Hold::gpus(0, 6), Hold::gpus(1, 6)] }]
    );
    snapshot.queued = vec![array(false, 3)];
    assert_eq!(decide(&snapshot, &Rules::default(), 1_000).starts[0].holds, [Hold::gpus(0, 6), Hold::gpus(1, 3)]);
    snapshot.running.push(Running {
        holds: vec![Hold::gpus(0, 4)],
        has_landed: true,
        expected_end_ms: Some(6_000),
        ..Running::new(id(9), Shape::gpus(4))
    });
    snapshot.queued = vec![array(false, 4)];
    let plan = decide(&snapshot, &Rules::default(), 1_000);
    assert_eq!((starts(&plan), plan.reservations[0].at_ms), (vec![], 6_000));
}

/// A dispatch of which nobody has heard may be what seems to be others' work, and may not: an array that waited for the
/// wider pool lost its reservation until the news came.
#[test]
fn an_array_keeps_its_reservation_beside_others_work_whatever_is_in_flight() {
    let array = Some(Array { waiting: 4, singly: false });
    let queued = vec![Queued { array, ..Queued::new(id(2), Shape::gpus(2)) }];
    let nodes = vec![Node { foreign_gpus: 1, ..Node::new(8) }];
    let in_flight =
        Running { holds: vec![Hold::gpus(0, 2)], expected_end_ms: Some(6_000), ..Running::new(id(9), Shape::gpus(2)) };
    let snapshot = |has_landed| Snapshot {
        nodes: nodes.clone(),
        queued: queued.clone(),
        running: vec![Running { has_landed, ..in_flight.clone() }],
        landing: Landing::Anywhere,
        ..Snapshot::default()
    };
    let kept = |has_landed| decide(&snapshot(has_landed), &Rules::default(), 1_000).reservations;
    assert_eq!(kept(true), [Reservation { job: id(2), at_ms: 6_000, holds: vec![Hold::gpus(0, 6)] }]);
    assert_eq!(kept(false), kept(true));
}

/// A node that is kept empty kept a job without GPUs waiting, until one with a GPU, which may start, had taken the node.
#[test]
fn a_job_without_gpus_starts_wherever_one_of_a_gpu_would() {
    let rules = Rules { headroom: Headroom::Gpus(8), dive_above: 900, ..Rules::default() };
    let starts = |nodes: usize, gpus: u32| {
        let queued = vec![Queued { priority: 187, ..Queued::new(id(1), Shape::gpus(gpus)) }];
        let snapshot = Snapshot { nodes: vec![Node::new(8); nodes], queued, ..Snapshot::default() };
        decide(&snapshot, &rules, 1_000).starts.len()
    };
    assert_eq!([0, 1].map(|gpus| starts(1, gpus)), [1, 1]);
    assert_eq!([0, 1].map(|gpus| starts(2, gpus)), [1, 1]);
}

/// Where Batch chooses the nodes, a job in flight may land elsewhere than on the node that it was planned for, and a job of
/// eight GPUs then on that one, where a GPU is kept. It was started once the other one was in flight.
#[test]
fn where_another_in_flight_is_taken_to_land_is_no_place_that_nobody_can_get() {
    let aging = Some(Aging { millipoints_per_hour: 15_000, cap: 1 });
    let tiers = vec![TierRules { aging, at_least: Some(0), ..TierRules::default() }];
    let rules = Rules { tiers, dive_above: 429, headroom: Headroom::Gpus(16), ..Rules::default() };
    let nodes = vec![Node::new(8), Node { foreign_gpus: 8, ..Node::new(8) }, Node::new(8)];
    let head = Queued { lent: 429, ..Queued::new(id(3), Shape::gpus(1)) };
    let large = Queued { tier: 0, ..Queued::new(id(1), Shape::gpus(8)) };
    let alone = Snapshot {
        nodes,
        queued: vec![large, Queued { tier: 0, ..head }],
        landing: Landing::Anywhere,
        ..Snapshot::default()
    };
    let in_flight = Running { holds: vec![Hold::gpus(0, 1)], ..Running::new(id(2), Shape::gpus(1)) };
    let beside = Snapshot { running: vec![in_flight], ..alone.clone() };
    let starts = |snapshot: &Snapshot| decide(snapshot, &rules, 100_000_000).starts;
    assert_eq!((starts(&alone), starts(&beside)), (Vec::new(), Vec::new()));
}

#[test]
fn a_job_of_unknown_run_time_starts_wherever_nothing_is_kept() {
    let mut snapshot = snapshot(&[(1, 0, 8, 5_000)], &[(2, 900, 16, 900), (3, 300, 4, 10)]);
    snapshot.queued[1].expected_ms = None;
    let plan = decide(&snapshot, &Rules::default(), 1_000);
    let unknown = WaitReason::WouldDelay { head: id(2), reserved_at_ms: 5_000, ends_at_ms: None };
    assert_eq!((starts(&plan), reason(&plan, 3)), (vec![], Some(unknown)));
    snapshot.queued.remove(0);
    assert_eq!(starts(&decide(&snapshot, &Rules::default(), 1_000)), [id(3)]);
    // A running job of which nobody knows is taken to run for the usual time.
    snapshot.running[0].expected_end_ms = None;
    snapshot.queued[0].shape = Shape::gpus(16);
    let rules = Rules { unknown_ms: 50_000, ..Rules::default() };
    assert_eq!(decide(&snapshot, &rules, 1_000).reservations[0].at_ms, 50_000);
}

#[test]
fn a_start_fits_wherever_the_dispatches_in_flight_may_land() {
    let mut snapshot = snapshot(&[], &[(2, 900, 1, 900), (3, 800, 1, 900), (4, 700, 8, 900), (5, 600, 1, 900)]);
    assert_eq!(decide(&snapshot, &Rules::default(), 1_000).starts.len(), 4);
    snapshot.landing = Landing::Anywhere;
    // Jobs 2 and 3 may land on a node each, and no whole one is left for sure.
    let plan = decide(&snapshot, &Rules::default(), 1_000);
    assert_eq!(starts(&plan), [id(2), id(3)]);
    assert_eq!(reason(&plan, 4), Some(WaitReason::InFlight { dispatches: 2 }));
    // Job 5 may land on the node that is kept for job 4.
    assert!(matches!(reason(&plan, 5), Some(WaitReason::WouldDelay { .. })), "{plan:?}");
    // Once both have landed on one node, the other is whole for sure.
    for number in [2, 3] {
        snapshot.running.push(Running {
            holds: vec![Hold::gpus(0, 1)],
            has_landed: true,
            ..Running::new(id(number), Shape::gpus(1))
        });
    }
    snapshot.queued.drain(..2);
    let plan = decide(&snapshot, &Rules::default(), 1_000);
    assert_eq!(starts(&plan), [id(4)]);
    // Job 5 could land there before it.
    assert_eq!(reason(&plan, 5), Some(WaitReason::InFlight { dispatches: 1 }));
}

#[test]
fn a_dispatch_in_flight_holds_its_share_wherever_it_is() {
    let mut snapshot = snapshot(&[(1, 0, 8, 5_000)], &[(2, 900, 8, 900), (3, 800, 4, 900)]);
    snapshot.running.push(Running::new(id(7), Shape::gpus(4)));
    let plan = decide(&snapshot, &Rules::default(), 1_000);
    assert_eq!((starts(&plan), reason(&plan, 2)), (vec![id(3)], Some(WaitReason::NoRoom { gpus: 8, free: 4 })));
    // More in flight than there is room for: nothing starts, and nothing breaks.
    snapshot.running.push(Running::new(id(8), Shape::gpus(9)));
    assert_eq!(starts(&decide(&snapshot, &Rules::default(), 1_000)), []);
}

#[test]
fn nodes_that_start_up_take_jobs_which_end_later() {
    let absent = Node { state: NodeState::Absent { start_up_ms: 240_000 }, ..Node::new(8) };
    let mut snapshot = Snapshot { nodes: vec![absent, Node::new(8)], ..snapshot(&[(1, 1, 8, 300_000)], &[]) };
    snapshot.nodes = vec![absent, Node::new(8)];
    let job = |number, priority, gpus, expected_ms| Queued {
        priority,
        expected_ms: Some(expected_ms),
        ..Queued::new(id(number), Shape::gpus(gpus))
    };
    snapshot.queued = vec![job(2, 900, 16, 900), job(3, 300, 8, 59_000), job(4, 200, 8, 60_000)];
    let plan = decide(&snapshot, &Rules::default(), 1_000);
    // With its start-up job 3 ends just in time for job 2.
    assert_eq!((starts(&plan), plan.reservations[0].at_ms), (vec![id(3)], 300_000));
    snapshot.queued.remove(1);
    assert_eq!(starts(&decide(&snapshot, &Rules::default(), 1_000)), []);
}

#[test]
fn a_pool_without_capacity_moves_its_urgent_jobs_on() {
    let absent = Node { state: NodeState::Absent { start_up_ms: 1 }, ..Node::new(8) };
    let job = |number, priority, has_other_pools| Queued {
        priority,
        has_other_pools,
        ..Queued::new(id(number), Shape::gpus(8))
    };
    let queued = vec![job(2, 900, true), job(3, 850, false), job(4, 500, true)];
    let gate = Gate::NoCapacity { since_ms: 7 };
    let snapshot = Snapshot { nodes: vec![absent; 3], queued, gate, ..Snapshot::default() };
    let rules = Rules { dive_above: 800, ..Rules::default() };
    let plan = decide(&snapshot, &rules, 1_000);
    assert_eq!((starts(&plan), plan.moves.as_slice()), (vec![], [id(2)].as_slice()));
    assert_eq!(reason(&plan, 4), Some(WaitReason::NoCapacity { since_ms: 7 }));
    let open = Snapshot { gate: Gate::Open, ..snapshot };
    let plan = decide(&open, &rules, 1_000);
    assert_eq!((plan.starts.len(), plan.moves.len()), (3, 0));
}

#[test]
fn a_paused_pool_and_one_without_nodes_start_nothing_and_say_so() {
    let mut snapshot = snapshot(&[], &[(2, 900, 8, 900)]);
    snapshot.gate = Gate::Paused;
    assert_eq!(reason(&decide(&snapshot, &Rules::default(), 0), 2), Some(WaitReason::PoolPaused));
    snapshot.gate = Gate::Open;
    snapshot.nodes.clear();
    assert_eq!(reason(&decide(&snapshot, &Rules::default(), 0), 2), Some(WaitReason::NoNodes));
}

#[test]
fn a_job_that_runs_already_is_not_started_again_and_one_that_is_there_twice_starts_once() {
    let mut snapshot = snapshot(&[(2, 0, 1, 5_000)], &[(2, 900, 1, 900), (3, 800, 1, 900), (3, 700, 1, 900)]);
    let plan = decide(&snapshot, &Rules::default(), 1_000);
    assert_eq!(starts(&plan), [id(3)]);
    assert_eq!((reason(&plan, 2), reason(&plan, 3)), (Some(WaitReason::AlreadyRuns), Some(WaitReason::AlreadyRuns)));
    // It holds up nobody, not even where the order is strict.
    snapshot.queued.push(Queued { priority: 1, ..Queued::new(id(4), Shape::gpus(1)) });
    assert_eq!(started(&snapshot, Strategy::Priority), [id(3), id(4)]);
}

#[test]
fn what_foreign_work_holds_is_waited_for_without_holding_up_others() {
    let mut snapshot = snapshot(&[], &[(2, 900, 16, 900), (3, 500, 8, 90_000)]);
    snapshot.nodes[0].foreign_gpus = 3;
    let plan = decide(&snapshot, &Rules::default(), 1_000);
    assert_eq!(reason(&plan, 2), Some(WaitReason::ForeignWork { gpus: 16, foreign: 3 }));
    assert_eq!((starts(&plan), plan.reservations.len()), (vec![id(3)], 0));
}

#[test]
fn a_lent_number_makes_a_job_as_urgent_as_the_one_that_waits_for_it() {
    let rules = Rules { dive_above: 800, headroom: Headroom::Gpus(8), ..Rules::default() };
    let mut snapshot = snapshot(&[], &[(2, 700, 8, 900), (3, 0, 8, 900)]);
    assert_eq!(starts(&decide(&snapshot, &rules, 1_000)), [id(2)]);
    snapshot.queued[1].lent = 1_200;
    let plan = decide(&snapshot, &rules, 1_000);
    assert_eq!(
        (starts(&plan), reason(&plan, 2)),
        (vec![id(3)], Some(WaitReason::Headroom { gpus: 8, free: 8, kept: 8 }))
    );
}

/// "It would end at 4,500, and job 2 is to start at 5,000" was told of a job whose node starts up until then.
#[test]
fn a_job_that_would_delay_another_is_told_when_it_would_end_on_the_node_that_it_would_have() {
    let mut snapshot = snapshot(&[(1, 0, 8, 5_000)], &[(2, 900, 16, 900), (3, 300, 4, 3_500)]);
    snapshot.nodes[1].state = NodeState::Starting { ready_ms: 2_000 };
    let plan = decide(&snapshot, &rules(Strategy::Backfill), 1_000);
    let late = WaitReason::WouldDelay { head: id(2), reserved_at_ms: 5_000, ends_at_ms: Some(5_500) };
    assert_eq!(reason(&plan, 3), Some(late));
}

/// The short job is asked first, and what it waits for isn't what keeps the long one waiting.
#[test]
fn what_a_short_job_is_refused_for_is_not_told_a_longer_one_that_would_delay_another() {
    let mut snapshot = snapshot(&[], &[(2, 900, 8, 5_000), (3, 300, 1, 1_000), (4, 200, 1, 60_000)]);
    snapshot.nodes[0].state = NodeState::Closed;
    snapshot.landing = crate::snapshot::Landing::Anywhere;
    snapshot.running = vec![Running {
        expected_end_ms: Some(9_000),
        holds: vec![Hold::gpus(1, 7)],
        ..Running::new(id(9), Shape::gpus(7))
    }];
    let plan = decide(&snapshot, &rules(Strategy::Backfill), 1_000);
    let told: Vec<&str> = plan.waiting.iter().map(|waiting| waiting.reason.code()).collect();
    assert_eq!(plan.starts.len() + plan.waiting.len(), 3);
    assert_eq!((starts(&plan), told), (vec![id(3)], vec!["NoRoom", "NoRoom"]));
    snapshot.running[0].holds = vec![Hold::gpus(1, 6)];
    snapshot.running[0].shape = Shape::gpus(6);
    snapshot.queued.push(Queued { priority: 250, expected_ms: Some(1_000), ..Queued::new(id(5), Shape::gpus(2)) });
    let plan = decide(&snapshot, &rules(Strategy::Backfill), 1_000);
    assert_eq!(reason(&plan, 4).map(|reason| reason.code()), Some("WouldDelay"));
}

#[test]
fn a_job_that_capacity_is_missing_for_does_not_blame_work_of_others_that_is_in_nobodys_way() {
    let mut snapshot = snapshot(&[], &[(2, 0, 16, 1)]);
    snapshot.nodes.push(Node { foreign_gpus: 3, state: NodeState::Closed, ..Node::new(8) });
    snapshot.nodes[1].state = NodeState::Absent { start_up_ms: 1_000 };
    snapshot.gate = Gate::NoCapacity { since_ms: 0 };
    let plan = decide(&snapshot, &rules(Strategy::Backfill), 1_000);
    assert_eq!(reason(&plan, 2), Some(WaitReason::NoCapacity { since_ms: 0 }));
}
