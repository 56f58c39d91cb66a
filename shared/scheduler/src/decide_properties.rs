//! What holds of every plan, whatever the snapshot says: also one that contradicts itself.

use std::collections::BTreeMap;

use osprey_model::id::JobId;
use proptest::collection::vec;
use proptest::option;
use proptest::strategy::Strategy as Strategy_;
use proptest::{prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::*;
use crate::rules::{Aging, Headroom, TierOrder, TierRules};
use crate::snapshot::{Array, Node, NodeState, Shape, UNCOUNTED};

const NOW_MS: i64 = 100_000_000;

fn id(number: u128) -> JobId {
    JobId::from_uuid(uuid::Uuid::from_u128(number))
}

fn any_node() -> impl Strategy_<Value = Node> {
    let state = prop_oneof![
        6 => proptest::strategy::Just(NodeState::Up),
        1 => (0_i64..2 * NOW_MS).prop_map(|ready_ms| NodeState::Starting { ready_ms }),
        1 => (0_u64..3_000).prop_map(|start_up_ms| NodeState::Absent { start_up_ms }),
        1 => proptest::strategy::Just(NodeState::Closed),
    ];
    let vcpus = prop_oneof![3 => proptest::strategy::Just(UNCOUNTED), 1 => 0_u32..64];
    let foreign = prop_oneof![5 => proptest::strategy::Just(0_u32), 1 => 0_u32..12];
    (prop_oneof![5 => proptest::strategy::Just(8_u32), 1 => 0_u32..10], vcpus, foreign.clone(), foreign, state)
        .prop_map(|(gpus, vcpus, foreign_gpus, foreign_vcpus, state)| Node {
            gpus,
            vcpus,
            foreign_gpus,
            foreign_vcpus,
            state,
        })
}

fn any_shape() -> impl Strategy_<Value = Shape> {
    let nodes = prop_oneof![8 => proptest::strategy::Just(1_u32), 1 => 0_u32..4];
    (nodes, 0_u32..12, prop_oneof![3 => proptest::strategy::Just(0_u32), 1 => 0_u32..20])
        .prop_map(|(nodes, gpus, vcpus)| Shape { nodes, gpus, vcpus })
}

fn any_running() -> impl Strategy_<Value = Running> {
    let holds = vec((0_u32..6, 0_u32..9, 0_u32..9).prop_map(|(node, gpus, vcpus)| Hold { node, gpus, vcpus }), 0..3);
    let times = (0_i64..NOW_MS, option::of(0_i64..2 * NOW_MS), option::of(0_u64..NOW_MS as u64));
    (any_shape(), holds, proptest::bool::weighted(0.8), times, 0_u32..4, (0_u16..4, 0_u32..4)).prop_map(
        |(shape, holds, has_landed, (started_ms, expected_end_ms, saves_every_ms), children, (tier, evictions))| {
            Running {
                holds,
                has_landed,
                started_ms,
                expected_end_ms,
                children,
                tier,
                evictions,
                saves_every_ms,
                ..Running::new(id(0), shape)
            }
        },
    )
}

fn any_queued() -> impl Strategy_<Value = Queued> {
    let array = option::weighted(0.2, (0_u32..9, proptest::bool::ANY));
    let run = option::weighted(0.8, 0_u64..3_000_000);
    let times = (0_i64..NOW_MS, prop_oneof![5 => proptest::strategy::Just(0_i64), 1 => 0..2 * NOW_MS]);
    let numbers = (0_u32..1_300, prop_oneof![4 => proptest::strategy::Just(0_u32), 1 => 0_u32..1_300], 0_u16..6);
    (any_shape(), array, run, times, numbers, 0_u64..9, proptest::bool::ANY).prop_map(
        |(shape, array, expected_ms, (enqueued_ms, not_before_ms), (priority, lent, tier), path, has_other_pools)| {
            Queued {
                priority,
                lent,
                tier,
                enqueued_ms,
                not_before_ms,
                array: array.map(|(waiting, singly)| Array { waiting, singly }),
                expected_ms,
                critical_path_ms: path,
                has_other_pools,
                ..Queued::new(id(0), shape)
            }
        },
    )
}

fn any_snapshot() -> impl Strategy_<Value = Snapshot> {
    let gate = prop_oneof![
        8 => proptest::strategy::Just(Gate::Open),
        1 => proptest::strategy::Just(Gate::Paused),
        2 => proptest::strategy::Just(Gate::NoCapacity { since_ms: 5 }),
    ];
    let landing = prop_oneof![2 => proptest::strategy::Just(Landing::AsPlanned), 1 => proptest::strategy::Just(Landing::Anywhere)];
    (vec(any_node(), 0..6), vec(any_running(), 0..6), vec(any_queued(), 0..25), gate, landing).prop_map(
        |(nodes, mut running, mut queued, gate, landing)| {
            running.iter_mut().zip(1_000..).for_each(|(running, number)| running.job = id(number));
            queued.iter_mut().zip(1..).for_each(|(queued, number)| queued.job = id(number));
            Snapshot { nodes, running, queued, gate, landing, ..Snapshot::default() }
        },
    )
}

/// A snapshot without contradictions: what runs fits, and has landed.
fn any_sane_snapshot() -> impl Strategy_<Value = Snapshot> {
    any_snapshot().prop_map(|mut snapshot| {
        let mut nodes = snapshot.nodes.clone();
        for running in &mut snapshot.running {
            running.has_landed = true;
            running.holds.retain(|hold| {
                let Some(node) = nodes.get_mut(hold.node as usize) else { return false };
                let fits = node.gpus >= node.foreign_gpus.saturating_add(hold.gpus)
                    && (node.vcpus == UNCOUNTED || node.vcpus >= node.foreign_vcpus.saturating_add(hold.vcpus));
                if fits {
                    node.foreign_gpus += hold.gpus;
                    node.foreign_vcpus += hold.vcpus;
                }
                fits
            });
        }
        snapshot
    })
}

fn any_rules() -> impl Strategy_<Value = Rules> {
    let headroom = prop_oneof![(0_u32..30).prop_map(Headroom::Gpus), (0_u32..=100).prop_map(Headroom::Percent)];
    let order =
        prop_oneof![proptest::strategy::Just(TierOrder::Strict), proptest::strategy::Just(TierOrder::WeightedShortest)];
    let aging = option::of((0_u32..100_000, 0_u32..1_400))
        .prop_map(|aging| aging.map(|(millipoints_per_hour, cap)| Aging { millipoints_per_hour, cap }));
    let tiers = vec((order, aging), 3).prop_map(|tiers| {
        let at_least = [Some(800), Some(0), None];
        tiers.into_iter().zip(at_least).map(|((order, aging), at_least)| TierRules {
            name: "t".into(),
            at_least,
            order,
            aging,
            may_preempt: if at_least == Some(800) { vec![2] } else { Vec::new() },
            may_preempt_when_full: if at_least == Some(800) { vec![1] } else { Vec::new() },
            evictions_per_job: Some(3),
            evictions_per_window: Some(2),
            ..TierRules::default()
        })
    });
    let strategy = (0..Strategy::ALL.len()).prop_map(|place| Strategy::ALL[place]);
    (strategy, tiers, 0_u32..1_300, headroom, 0_u64..2_000_000).prop_map(
        |(strategy, tiers, dive_above, headroom, unknown_ms)| Rules {
            strategy,
            tiers: tiers.collect(),
            dive_above,
            headroom,
            unknown_ms,
            ..Rules::default()
        },
    )
}

/// Every start, with those that others make room for.
fn all_starts(plan: &Plan) -> impl Iterator<Item = &Start> {
    plan.starts.iter().chain(plan.evictions.iter().map(|eviction| &eviction.start))
}

/// Whether a job is evicted.
fn goes(plan: &Plan, job: JobId) -> bool {
    plan.evictions.iter().flat_map(|eviction| &eviction.victims).any(|victim| victim.job == job)
}

/// Whether the search found other starts than the walk down the line does.
fn is_searched(snapshot: &Snapshot, rules: &Rules, plan: &Plan) -> bool {
    let walk = Rules { strategy: Strategy::Backfill, ..rules.clone() };
    rules.strategy == Strategy::Osprey && decide(snapshot, &walk, NOW_MS).starts != plan.starts
}

/// Whether somebody waits since a node is kept empty: who needn't leave it may start there after him, and then it isn't empty
/// any more. The next cycle starts him beside.
fn waits_for_an_empty_node(plan: &Plan) -> bool {
    plan.waiting.iter().any(|waiting| matches!(waiting.reason, WaitReason::HeadroomNodes { .. }))
}

/// The snapshot after somebody has acted on the plan.
fn acted(snapshot: &Snapshot, plan: &Plan, unknown_ms: u64) -> Snapshot {
    let mut after = snapshot.clone();
    for start in &plan.starts {
        let queued = snapshot.queued.iter().find(|queued| queued.job == start.job).unwrap();
        let nodes = start.holds.iter().map(|hold| ready_ms(&snapshot.nodes[hold.node as usize], NOW_MS));
        let ready_ms = nodes.max().unwrap_or(NOW_MS);
        let run_ms = queued.expected_ms.unwrap_or(unknown_ms).max(1);
        after.running.push(Running {
            holds: start.holds.clone(),
            has_landed: snapshot.landing == Landing::AsPlanned,
            children: if start.child.is_some() { 1 } else { queued.array.map_or(1, |array| array.waiting) },
            started_ms: NOW_MS,
            expected_end_ms: Some(ready_ms.saturating_add_unsigned(run_ms)),
            ..Running::new(start.job, queued.shape)
        });
    }
    let started = |job: JobId| plan.starts.iter().filter(|start| start.job == job).count();
    for queued in &mut after.queued {
        if let Some(array) = queued.array.as_mut().filter(|array| array.singly) {
            array.waiting = array.waiting.saturating_sub(u32::try_from(started(queued.job)).unwrap());
        }
    }
    let is_waiting = |job: JobId| plan.waiting.iter().any(|waiting| waiting.job == job);
    after.queued.retain(|queued| is_waiting(queued.job));
    after
}

proptest! {
    /// Nothing is given out that isn't there, beside whatever is said to run, and every job has a start or a reason.
    #[test]
    fn plans_are_feasible_and_complete(snapshot in any_snapshot(), rules in any_rules()) {
        let plan = decide(&snapshot, &rules, NOW_MS);
        let mut used: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for hold in all_starts(&plan).flat_map(|start| &start.holds) {
            let used = used.entry(hold.node).or_default();
            *used = (used.0 + u64::from(hold.gpus), used.1 + u64::from(hold.vcpus));
        }
        for (number, (gpus, vcpus)) in &used {
            let node = &snapshot.nodes[*number as usize];
            let stays = snapshot.running.iter().filter(|running| !goes(&plan, running.job));
            let holds = stays.flat_map(|running| &running.holds).filter(|hold| hold.node == *number);
            let held = holds.fold((0, 0), |sum, hold| (sum.0 + u64::from(hold.gpus), sum.1 + u64::from(hold.vcpus)));
            let left = |has: u32, foreign: u32, held: u64| u64::from(has.saturating_sub(foreign)).saturating_sub(held);
            prop_assert!(*gpus <= left(node.gpus, node.foreign_gpus, held.0), "{plan:?}");
            prop_assert!(node.vcpus == UNCOUNTED || *vcpus <= left(node.vcpus, node.foreign_vcpus, held.1), "{plan:?}");
            prop_assert!(*gpus == 0 && *vcpus == 0 || node.state != NodeState::Closed);
        }
        for queued in &snapshot.queued {
            let starts: Vec<&Start> = all_starts(&plan).filter(|start| start.job == queued.job).collect();
            let waits = plan.waiting.iter().filter(|waiting| waiting.job == queued.job).count();
            let singly = queued.array.filter(|array| array.singly);
            let is_whole = singly.map_or(starts.len() == 1, |array| starts.len() == array.waiting.max(1) as usize);
            prop_assert_eq!(waits, usize::from(!is_whole), "{:?}", &plan);
            prop_assert!(starts.iter().all(|start| start.child.is_some() == singly.is_some()));
        }
        prop_assert!(snapshot.gate != Gate::Paused || plan.starts.is_empty());
        prop_assert!(plan.moves.iter().all(|job| plan.waiting.iter().any(|waiting| waiting.job == *job)));
    }

    /// The order of the input means nothing, and the same arguments give the same plan.
    #[test]
    fn plans_do_not_depend_on_the_order_of_the_input(
        snapshot in any_snapshot(), rules in any_rules(), rotate in 0_usize..25,
    ) {
        let mut turned = snapshot.clone();
        let middle = rotate.min(turned.queued.len());
        turned.queued.rotate_left(middle);
        let plan = decide(&snapshot, &rules, NOW_MS);
        prop_assert_eq!(format!("{:?}", decide(&turned, &rules, NOW_MS)), format!("{plan:?}"));
    }

    /// Once somebody has acted on a plan, deciding again starts nothing, keeps the same reservations and gives no other
    /// job a reason to wait.
    #[test]
    fn deciding_again_after_acting_changes_nothing(snapshot in any_sane_snapshot(), rules in any_rules()) {
        let plan = decide(&snapshot, &rules, NOW_MS);
        proptest::prop_assume!(!waits_for_an_empty_node(&plan));
        // Who is evicted leaves room behind that the next decision gives out.
        proptest::prop_assume!(plan.evictions.is_empty());
        let after = acted(&snapshot, &plan, rules.unknown_ms);
        let again = decide(&after, &rules, NOW_MS);
        // The search looks at so many orders; in the line that is left it may find what it didn't in the whole one.
        proptest::prop_assume!(!is_searched(&snapshot, &rules, &plan) && !is_searched(&after, &rules, &again));
        prop_assert_eq!(&again.starts, &Vec::new(), "{:?}", &plan);
        // Nobody has a minimum run here, so one who has just begun may have to go.
        proptest::prop_assume!(again.evictions.is_empty());
        prop_assert_eq!(&again.reservations, &plan.reservations);
        let jobs = |plan: &Plan| plan.waiting.iter().map(|waiting| waiting.job).collect::<Vec<_>>();
        prop_assert_eq!(jobs(&again), jobs(&plan));
    }

    /// Whatever is started behind a reservation, the jobs that GPUs are kept for alone are to start as early.
    #[test]
    fn backfill_never_delays_what_is_reserved(snapshot in any_sane_snapshot(), rules in any_rules()) {
        let plan = decide(&snapshot, &rules, NOW_MS);
        proptest::prop_assume!(plan.evictions.is_empty() && !waits_for_an_empty_node(&plan));
        let mut after = acted(&snapshot, &plan, rules.unknown_ms);
        after.queued.retain(|queued| plan.reservations.iter().any(|kept| kept.job == queued.job));
        let again = decide(&after, &rules, NOW_MS);
        proptest::prop_assume!(!is_searched(&snapshot, &rules, &plan) && !is_searched(&after, &rules, &again));
        // Nobody has a minimum run here, so one who has just begun may have to go.
        proptest::prop_assume!(again.evictions.is_empty());
        let at = |plan: &Plan| plan.reservations.iter().map(|kept| (kept.job, kept.at_ms)).collect::<Vec<_>>();
        prop_assert_eq!(at(&again), at(&plan));
    }

    /// A clock that goes back, or leaps to either end of time, breaks nothing.
    #[test]
    fn no_time_breaks_a_decision(snapshot in any_snapshot(), rules in any_rules()) {
        for now_ms in [i64::MIN, -1, 0, i64::MAX - 1, i64::MAX] {
            let plan = decide(&snapshot, &rules, now_ms);
            prop_assert!(all_starts(&plan).count() + plan.waiting.len() >= snapshot.queued.len());
        }
    }
}
