//! What each rule of preemption does, one sentence at a time.

use osprey_model::id::JobId;

use super::candidate::{Spared, spared};
use super::{Opened, Receipt};
use crate::plan::{Eviction, Start};
use crate::rules::{PreemptionRules, Rules, Strategy, TierOrder, TierRules, Victims};
use crate::snapshot::{Evicted, Hold, Landing, Node, Queued, Running, Shape, Snapshot};
use crate::{Plan, WaitReason, decide};

const MINUTE: i64 = 60_000;
const NOW: i64 = 600 * MINUTE;

const CRITICAL: u16 = 0;
const PRODUCTION: u16 = 1;
const EXPERIMENTAL: u16 = 2;
const PREEMPTIBLE: u16 = 3;

fn id(number: u128) -> JobId {
    JobId::from_uuid(uuid::Uuid::from_u128(number))
}

/// The default policy's tiers: critical and production evict what stands below, critical also production when all is full.
fn rules() -> Rules {
    let tier = |name: &str, at_least, may_preempt: &[u16], when_full: &[u16]| TierRules {
        name: name.into(),
        at_least,
        may_preempt: may_preempt.to_vec(),
        may_preempt_when_full: when_full.to_vec(),
        minimum_run_ms: 300_000,
        ..TierRules::default()
    };
    let below = [PREEMPTIBLE, EXPERIMENTAL];
    Rules {
        strategy: Strategy::Osprey,
        dive_above: 800,
        tiers: vec![
            tier("critical", Some(1100), &below, &[PRODUCTION]),
            tier("production", Some(800), &below, &[]),
            tier("experimental", Some(0), &[], &[]),
            tier("preemptible", None, &[], &[]),
        ],
        ..Rules::default()
    }
}

/// A job on a node since an hour ago that goes on for so many minutes and saved its work so many minutes ago.
fn running(job: u128, tier: u16, node: u32, gpus: u32, left: i64, saved: i64) -> Running {
    Running {
        holds: vec![Hold::gpus(node, gpus)],
        has_landed: true,
        started_ms: NOW - 60 * MINUTE,
        expected_end_ms: Some(NOW + left * MINUTE),
        tier,
        saved_ms: Some(NOW - saved * MINUTE),
        ..Running::new(id(job), Shape::gpus(gpus))
    }
}

/// A job that came now and runs for 10 minutes.
fn queued(job: u128, priority: u32, gpus: u32) -> Queued {
    let tier = match priority {
        1100.. => CRITICAL,
        800.. => PRODUCTION,
        _ => EXPERIMENTAL,
    };
    Queued { priority, tier, enqueued_ms: NOW, expected_ms: Some(600_000), ..Queued::new(id(job), Shape::gpus(gpus)) }
}

fn snapshot(nodes: usize, running: &[Running], queued: &[Queued]) -> Snapshot {
    Snapshot {
        nodes: vec![Node::new(8); nodes],
        running: running.to_vec(),
        queued: queued.to_vec(),
        ..Snapshot::default()
    }
}

fn victims(plan: &Plan) -> Vec<JobId> {
    plan.evictions.iter().flat_map(|eviction| &eviction.victims).map(|victim| victim.job).collect()
}

fn evicted(snapshot: &Snapshot, rules: &Rules) -> Vec<JobId> {
    victims(&decide(snapshot, rules, NOW))
}

#[test]
fn an_urgent_job_takes_the_place_of_one_that_would_make_it_wait_too_long() {
    let snapshot = snapshot(1, &[running(1, EXPERIMENTAL, 0, 8, 60, 2)], &[queued(9, 950, 8)]);
    let plan = decide(&snapshot, &rules(), NOW);
    let receipt = Receipt {
        job: id(1),
        tier: EXPERIMENTAL,
        evicted_for: id(9),
        opened: Opened::Always,
        lost_gpu_ms: 8 * 120_000,
        kept_ms: 58 * 60_000,
    };
    let eviction = Eviction {
        start: Start { job: id(9), child: None, is_borrowed: false, holds: vec![Hold::gpus(0, 8)] },
        victims: vec![receipt],
        predicted_wait_ms: 3_600_000,
        threshold_ms: 400_000,
        is_cheapest: true,
    };
    assert_eq!((plan.evictions, plan.starts, plan.waiting), (vec![eviction], vec![], vec![]));
}

#[test]
fn nobody_is_evicted_for_a_wait_that_is_not_worth_it_and_more_victims_take_a_longer_one() {
    // One victim is worth more than 400 s, two more than 500 s.
    let one = |left_s: i64| {
        let mut job = running(1, EXPERIMENTAL, 0, 8, 0, 0);
        job.expected_end_ms = Some(NOW + left_s * 1_000);
        snapshot(1, &[job], &[queued(9, 950, 8)])
    };
    assert_eq!((evicted(&one(400), &rules()), evicted(&one(401), &rules())), (vec![], vec![id(1)]));
    let two = |left_s: i64| {
        let halves = [1, 2].map(|job| Running {
            expected_end_ms: Some(NOW + left_s * 1_000),
            ..running(job, EXPERIMENTAL, 0, 4, 0, 0)
        });
        snapshot(1, &halves, &[queued(9, 950, 8)])
    };
    assert_eq!((evicted(&two(500), &rules()), evicted(&two(501), &rules())), (vec![], vec![id(1), id(2)]));
}

#[test]
fn the_time_already_waited_counts_but_not_the_time_before_a_job_came_back() {
    let waits = |enqueued_ms: i64, not_before_ms: i64| {
        let job = Queued { enqueued_ms, not_before_ms, ..queued(9, 950, 8) };
        let young = Running { started_ms: NOW - 10 * MINUTE, ..running(1, EXPERIMENTAL, 0, 8, 6, 0) };
        evicted(&snapshot(1, &[young], &[job]), &rules())
    };
    assert_eq!(waits(NOW, 0), []);
    assert_eq!(waits(NOW - 41_000, 0), [id(1)]);
    assert_eq!(waits(NOW - 41_000, NOW), []);
}

/// C3
#[test]
fn only_a_tier_that_may_preempt_does_and_only_the_tiers_that_are_open_to_it() {
    let waits = |tier: u16, priority: u32| {
        evicted(&snapshot(1, &[running(1, tier, 0, 8, 60, 0)], &[queued(9, priority, 8)]), &rules())
    };
    assert_eq!(waits(PREEMPTIBLE, 950), [id(1)]);
    assert_eq!(waits(EXPERIMENTAL, 950), [id(1)]);
    assert_eq!(waits(PRODUCTION, 950), []);
    assert_eq!(waits(CRITICAL, 1200), []);
    // A tier that opens nothing evicts nobody, however long it waits.
    assert_eq!(waits(PREEMPTIBLE, 700), []);
}

/// C4
#[test]
fn a_policy_may_open_only_the_bottom_tier() {
    let mut rules = rules();
    rules.tiers[0].may_preempt = vec![PREEMPTIBLE];
    rules.tiers[0].may_preempt_when_full = Vec::new();
    let both = [running(1, EXPERIMENTAL, 0, 8, 60, 0), running(2, PREEMPTIBLE, 1, 8, 60, 30)];
    assert_eq!(evicted(&snapshot(2, &both, &[queued(9, 1200, 8)]), &rules), [id(2)]);
    assert_eq!(evicted(&snapshot(1, &both[..1], &[queued(9, 1200, 8)]), &rules), []);
}

/// D6, E10
#[test]
fn what_is_open_only_when_the_pool_is_full_goes_only_when_nothing_else_makes_room() {
    let production = running(1, PRODUCTION, 0, 8, 60, 0);
    let plan = decide(&snapshot(1, std::slice::from_ref(&production), &[queued(9, 1200, 8)]), &rules(), NOW);
    assert_eq!(plan.evictions[0].victims[0].opened, Opened::WhenFull);
    // Eight small jobs are dearer than the one of production, and go all the same.
    let small = |number: u32| running(u128::from(number) + 10, EXPERIMENTAL, 1, 1, 60, 50);
    let all: Vec<Running> = (0..8).map(small).chain([production]).collect();
    assert_eq!(evicted(&snapshot(2, &all, &[queued(9, 1200, 8)]), &rules()).len(), 8);
    // Where the wait isn't worth eight victims, it isn't worth one of production either.
    let mut short = all;
    short.iter_mut().for_each(|job| job.expected_end_ms = Some(NOW + 10 * MINUTE));
    assert_eq!(evicted(&snapshot(2, &short, &[queued(9, 1200, 8)]), &rules()), []);
}

/// E16: the bottom tier first, where a policy says so.
#[test]
fn tier_by_tier_the_bottom_one_goes_first_however_dear_it_is() {
    let all = [running(1, EXPERIMENTAL, 0, 8, 60, 0), running(2, PREEMPTIBLE, 1, 8, 60, 50)];
    let snapshot = snapshot(2, &all, &[queued(9, 950, 8)]);
    assert_eq!(evicted(&snapshot, &rules()), [id(1)]);
    let preemption = PreemptionRules { tier_by_tier: true, ..PreemptionRules::default() };
    assert_eq!(evicted(&snapshot, &Rules { preemption, ..rules() }), [id(2)]);
}

#[test]
fn of_the_legal_sets_the_cheapest_goes_and_of_equally_cheap_ones_the_smallest() {
    // Two halves that have just saved cost less than a whole that hasn't.
    let whole = running(1, EXPERIMENTAL, 0, 8, 60, 10);
    let halves = [running(2, EXPERIMENTAL, 1, 4, 60, 1), running(3, EXPERIMENTAL, 1, 4, 60, 1)];
    let all = [vec![whole.clone()], halves.to_vec()].concat();
    let job = [queued(9, 950, 8)];
    assert_eq!(evicted(&snapshot(2, &all, &job), &rules()), [id(2), id(3)]);
    // As cheap, and one job instead of two.
    let whole = Running { saved_ms: Some(NOW - MINUTE), ..whole };
    let all = [vec![whole], halves.to_vec()].concat();
    assert_eq!(evicted(&snapshot(2, &all, &job), &rules()), [id(1)]);
}

#[test]
fn an_eviction_may_be_given_a_price_of_its_own() {
    let all = [
        running(1, EXPERIMENTAL, 0, 8, 60, 10),
        running(2, EXPERIMENTAL, 1, 4, 60, 1),
        running(3, EXPERIMENTAL, 1, 4, 60, 1),
    ];
    // The whole loses 80 GPU-minutes and the halves 8: a price of 72 GPU-minutes or more decides for one victim.
    for (minutes, want) in [(71, vec![id(2), id(3)]), (72, vec![id(1)])] {
        let preemption = PreemptionRules { eviction_gpu_ms: minutes * 60_000, ..PreemptionRules::default() };
        let rules = Rules { preemption, ..rules() };
        assert_eq!(evicted(&snapshot(2, &all, &[queued(9, 950, 8)]), &rules), want, "{minutes}");
    }
}

#[test]
fn longest_left_takes_the_fewest_and_of_those_what_would_go_on_the_longest() {
    let all = [
        running(1, EXPERIMENTAL, 0, 8, 20, 0),
        running(2, EXPERIMENTAL, 1, 8, 90, 50),
        running(3, EXPERIMENTAL, 2, 4, 500, 0),
        running(4, EXPERIMENTAL, 2, 4, 500, 0),
    ];
    let preemption = PreemptionRules { victims: Victims::LongestLeft, ..PreemptionRules::default() };
    assert_eq!(evicted(&snapshot(3, &all, &[queued(9, 950, 8)]), &Rules { preemption, ..rules() }), [id(2)]);
}

#[test]
fn nobody_goes_who_is_not_needed() {
    let all: Vec<Running> =
        [(1, 1), (2, 2), (3, 4), (4, 1)].map(|(job, gpus)| running(job, EXPERIMENTAL, 0, gpus, 60, 1)).to_vec();
    for (gpus, want) in [(1, vec![id(1)]), (2, vec![id(2)]), (3, vec![id(1), id(2)]), (4, vec![id(3)])] {
        assert_eq!(evicted(&snapshot(1, &all, &[queued(9, 950, gpus)]), &rules()), want, "{gpus}");
    }
}

/// D7
#[test]
fn who_is_spared_whatever_it_costs() {
    let rules = rules();
    let plain = running(1, EXPERIMENTAL, 0, 8, 60, 0);
    let caps = |most| {
        let mut rules = rules.clone();
        rules.tiers[usize::from(EXPERIMENTAL)].evictions_per_job = Some(most);
        rules
    };
    let near = |percent: i64, rules: &Rules| {
        // An hour of work of which so much is done.
        let started_ms = NOW - percent * 36_000;
        let ends = Some(started_ms + 3_600_000);
        spared(&Running { started_ms, expected_end_ms: ends, ..plain.clone() }, rules, NOW)
    };
    let greedy =
        Rules { preemption: PreemptionRules { near_done_percent: 100, ..rules.preemption.clone() }, ..rules.clone() };
    for (found, want) in [
        (spared(&plain, &rules, NOW), None),
        (spared(&Running { started_ms: NOW - 299_999, ..plain.clone() }, &rules, NOW), Some(Spared::MinimumRun)),
        (spared(&Running { started_ms: NOW - 300_000, ..plain.clone() }, &rules, NOW), None),
        (spared(&Running { has_landed: false, ..plain.clone() }, &rules, NOW), Some(Spared::NotLanded)),
        (spared(&Running { leaves_for: Some(id(7)), ..plain.clone() }, &rules, NOW), Some(Spared::Leaves)),
        (spared(&Running { evictions: 2, ..plain.clone() }, &caps(3), NOW), None),
        (spared(&Running { evictions: 3, ..plain.clone() }, &caps(3), NOW), Some(Spared::EvictedEnough)),
        (near(89, &rules), None),
        (near(90, &rules), Some(Spared::NearDone)),
        // Whatever a policy says, 99 % is done enough.
        (near(98, &greedy), None),
        (near(99, &greedy), Some(Spared::NearDone)),
        // Nobody knows when one that is long overdue ends, nor one of which nobody knows how long it runs.
        (near(111, &rules), None),
        (spared(&Running { expected_end_ms: None, ..plain.clone() }, &rules, NOW), None),
        // Work of earlier attempts is work: 540 of 600 minutes are done.
        (spared(&Running { done_ms: 480 * 60_000, ..plain.clone() }, &rules, NOW), Some(Spared::NearDone)),
    ] {
        assert_eq!(found, want);
    }
}

#[test]
fn a_tier_has_a_budget_of_evictions_in_its_window() {
    let mut rules = rules();
    let tier = &mut rules.tiers[usize::from(EXPERIMENTAL)];
    (tier.evictions_per_window, tier.eviction_window_ms) = (Some(2), 3_600_000);
    let all = [running(1, EXPERIMENTAL, 0, 8, 60, 0), running(2, EXPERIMENTAL, 1, 8, 60, 0)];
    let mut full = snapshot(2, &all, &[queued(8, 950, 8), queued(9, 950, 8)]);
    assert_eq!(evicted(&full, &rules).len(), 2);
    // One within the hour leaves one; one an hour ago, or of another tier, doesn't count.
    full.evicted = vec![
        Evicted { tier: EXPERIMENTAL, at_ms: NOW - 10 * MINUTE },
        Evicted { tier: EXPERIMENTAL, at_ms: NOW - 60 * MINUTE },
        Evicted { tier: PREEMPTIBLE, at_ms: NOW },
    ];
    assert_eq!(evicted(&full, &rules), [id(1)]);
    full.evicted[1].at_ms = NOW - 59 * MINUTE;
    assert_eq!(evicted(&full, &rules), []);
}

/// C9, D8
#[test]
fn a_gang_goes_as_a_whole_or_not_at_all() {
    let gang = Running {
        holds: vec![Hold::gpus(0, 8), Hold::gpus(1, 8)],
        shape: Shape { nodes: 2, gpus: 8, vcpus: 0 },
        ..running(1, EXPERIMENTAL, 0, 16, 60, 1)
    };
    let job = [queued(9, 950, 8)];
    let plan = decide(&snapshot(2, std::slice::from_ref(&gang), &job), &rules(), NOW);
    assert_eq!((victims(&plan), plan.evictions[0].victims[0].lost_gpu_ms), (vec![id(1)], 16 * 60_000));
    // All of it counts: twice as dear as a job of one node.
    let single = running(2, EXPERIMENTAL, 2, 8, 60, 2);
    assert_eq!(evicted(&snapshot(3, &[gang.clone(), single], &job), &rules()), [id(2)]);
    // A part of it that may not go keeps all of it.
    let part = Running { started_ms: NOW, holds: vec![Hold::gpus(2, 8)], ..gang.clone() };
    assert_eq!(evicted(&snapshot(3, &[gang, part], &job), &rules()), []);
}

#[test]
fn a_job_of_whole_nodes_empties_the_cheapest_of_them() {
    let all = [
        running(1, EXPERIMENTAL, 0, 8, 60, 9),
        running(2, EXPERIMENTAL, 1, 4, 60, 1),
        running(3, EXPERIMENTAL, 1, 4, 60, 1),
        running(4, EXPERIMENTAL, 2, 1, 60, 2),
        running(5, PRODUCTION, 3, 1, 60, 0),
    ];
    let job = Queued { shape: Shape { nodes: 2, gpus: 8, vcpus: 0 }, ..queued(9, 950, 8) };
    let plan = decide(&snapshot(4, &all, &[job]), &rules(), NOW);
    assert_eq!(victims(&plan), [id(2), id(3), id(4)]);
    assert_eq!(plan.evictions[0].start.holds, [Hold::gpus(1, 8), Hold::gpus(2, 8)]);
}

#[test]
fn two_urgent_jobs_do_not_take_the_same_place() {
    let all = [running(1, EXPERIMENTAL, 0, 8, 60, 0), running(2, EXPERIMENTAL, 1, 8, 60, 1)];
    let plan = decide(&snapshot(2, &all, &[queued(8, 950, 8), queued(9, 950, 8)]), &rules(), NOW);
    assert_eq!(victims(&plan), [id(1), id(2)]);
    let nodes: Vec<u32> = plan.evictions.iter().map(|eviction| eviction.start.holds[0].node).collect();
    assert_eq!(nodes, [0, 1]);
}

#[test]
fn what_a_victim_leaves_beside_the_preemptor_goes_to_whoever_is_next() {
    let all = [running(1, EXPERIMENTAL, 0, 8, 60, 0)];
    let plan = decide(&snapshot(1, &all, &[queued(9, 950, 6), queued(8, 500, 2), queued(7, 400, 1)]), &rules(), NOW);
    assert_eq!(plan.starts.iter().map(|start| start.job).collect::<Vec<_>>(), [id(8)]);
    assert_eq!(plan.waiting.len(), 1);
}

#[test]
fn what_is_kept_for_an_urgent_job_is_not_taken_by_another_one() {
    // The first reserves all 8 GPUs in 4 minutes, which isn't long enough to evict for; the second would run into that
    // although it fits now, and evicting the job that runs until then wouldn't help.
    let all = [running(1, EXPERIMENTAL, 0, 4, 4, 0)];
    let jobs = [queued(8, 1200, 8), queued(9, 950, 4)];
    let plan = decide(&snapshot(1, &all, &jobs), &rules(), NOW);
    assert_eq!((victims(&plan), plan.starts.len(), plan.reservations.len()), (vec![], 0, 2));
}

/// C3
#[test]
fn other_strategies_never_evict() {
    let snapshot = snapshot(1, &[running(1, PREEMPTIBLE, 0, 8, 600, 0)], &[queued(9, 1200, 8)]);
    for strategy in Strategy::ALL.into_iter().filter(|strategy| *strategy != Strategy::Osprey) {
        let plan = decide(&snapshot, &Rules { strategy, ..rules() }, NOW);
        assert_eq!((plan.evictions.len(), plan.waiting.len()), (0, 1), "{}", strategy.name());
    }
}

#[test]
fn what_a_leaving_job_holds_is_the_one_s_that_it_leaves_for() {
    let leaving = Running { leaves_for: Some(id(9)), ..running(1, EXPERIMENTAL, 0, 8, 60, 0) };
    let preemptor = Running {
        holds: vec![Hold::gpus(0, 6)],
        started_ms: NOW,
        expected_end_ms: Some(NOW + 10 * MINUTE),
        ..Running::new(id(9), Shape::gpus(6))
    };
    for landing in [Landing::AsPlanned, Landing::Anywhere] {
        let both = [leaving.clone(), preemptor.clone()];
        let mut now = Snapshot { landing, ..snapshot(1, &both, &[queued(8, 500, 2)]) };
        assert_eq!(decide(&now, &rules(), NOW).starts.len(), 1, "{landing:?}");
        now.queued = vec![queued(8, 500, 3)];
        assert_eq!(decide(&now, &rules(), NOW).starts.len(), 0, "{landing:?}");
        // Once the preemptor is gone, the other still holds what it held.
        now.running.pop();
        assert_eq!(decide(&now, &rules(), NOW).waiting[0].reason, WaitReason::NoRoom { gpus: 3, free: 0 });
    }
}

#[test]
fn where_batch_chooses_the_nodes_a_victim_is_taken_only_if_the_job_fits_wherever_it_may_land() {
    let all = [running(1, EXPERIMENTAL, 0, 8, 60, 0), running(2, PRODUCTION, 1, 8, 60, 0)];
    let mut anywhere = Snapshot { landing: Landing::Anywhere, ..snapshot(2, &all, &[queued(9, 950, 8)]) };
    assert_eq!(evicted(&anywhere, &rules()), [id(1)]);
    // A dispatch in flight could land on the node that the victim leaves.
    anywhere.running[1] = Running { holds: Vec::new(), ..Running::new(id(2), Shape::gpus(8)) };
    anywhere.nodes[1].foreign_gpus = 1;
    let plan = decide(&anywhere, &rules(), NOW);
    assert_eq!((victims(&plan), plan.waiting.len()), (vec![], 1));
}

#[test]
fn an_array_child_by_child_evicts_for_each_child() {
    let array = crate::snapshot::Array { waiting: 2, singly: true };
    let all = [running(1, EXPERIMENTAL, 0, 8, 60, 0), running(2, EXPERIMENTAL, 1, 8, 60, 1)];
    let job = Queued { array: Some(array), ..queued(9, 950, 8) };
    let plan = decide(&snapshot(2, &all, &[job]), &rules(), NOW);
    let children: Vec<Option<u32>> = plan.evictions.iter().map(|eviction| eviction.start.child).collect();
    assert_eq!((victims(&plan), children), (vec![id(1), id(2)], vec![Some(0), Some(1)]));
}

#[test]
fn a_starving_job_goes_before_all_that_are_not_urgent_ignores_the_headroom_and_may_be_evicted() {
    let day = 24 * 60 * MINUTE;
    let mut rules =
        Rules { starving_after_ms: Some(1_209_600_000), headroom: crate::rules::Headroom::Gpus(4), ..rules() };
    rules.tiers.iter_mut().for_each(|tier| tier.order = TierOrder::WeightedShortest);
    let at = 20 * day;
    let old = |job: u128, days: i64, ran_ms: u64| Queued {
        enqueued_ms: at - days * day,
        ran_ms,
        expected_ms: Some(900_000_000),
        ..queued(job, 0, 8)
    };
    let fresh = Queued { enqueued_ms: at, ..queued(1, 700, 1) };
    let started = |queued: &[Queued]| {
        let plan = decide(&snapshot(1, &[], queued), &rules, at);
        plan.starts.into_iter().map(|start| start.job).collect::<Vec<_>>()
    };
    assert_eq!(started(&[fresh, old(2, 15, 0), old(3, 16, 0)]), [id(3)]);
    // Fourteen days, and none in which it ran.
    assert_eq!(started(&[fresh, old(2, 14, 0)]), [id(1)]);
    assert_eq!(started(&[fresh, old(2, 15, 2 * 86_400_000)]), [id(1)]);
    // Urgent jobs come before it, and evict it once it runs.
    assert_eq!(started(&[Queued { enqueued_ms: at, ..queued(4, 950, 8) }, old(3, 16, 0)]), [id(4)]);
}
