//! What holds of every eviction, whatever runs and waits.

use std::collections::BTreeMap;

use osprey_model::id::JobId;
use proptest::collection::vec;
use proptest::strategy::Strategy as Strategy_;
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::candidate::spared;
use super::cover::{Covered, Item, cheapest};
use crate::rules::{PreemptionRules, Rules, Strategy, TierRules, Victims};
use crate::snapshot::{Evicted, Hold, Node, Queued, Running, Shape, Snapshot};
use crate::{Plan, decide};

const NOW_MS: i64 = 100_000_000;

fn id(number: u128) -> JobId {
    JobId::from_uuid(uuid::Uuid::from_u128(number))
}

/// Four nodes of 8 that are full or nearly so: jobs as (GPUs, whether it is a gang of two nodes, times, tier, evictions).
fn any_full_pool() -> impl Strategy_<Value = Snapshot> {
    let job = (1_u32..9, proptest::bool::weighted(0.2), (0_i64..20_000_000, 0_i64..20_000_000), 1_u16..4, 0_u32..4);
    let waiting = (1_u32..18, 700_u32..1_300, 1_u64..2_000_000, 0_i64..2_000_000);
    let evicted = (1_u16..4, 0_i64..7_200_000);
    (vec(job, 4..40), vec(waiting, 1..6), vec(evicted, 0..4)).prop_map(|(jobs, waiting, evicted)| {
        let mut free = [8_u32; 4];
        let mut running = Vec::new();
        for ((gpus, is_gang, (ran_ms, left_ms), tier, evictions), number) in jobs.into_iter().zip(100..) {
            let empty: Vec<usize> = (0..4).filter(|node| free[*node] == 8).take(2).collect();
            let holds: Vec<Hold> = match (is_gang, empty.as_slice(), (0..4).find(|node| free[*node] >= gpus)) {
                (true, [a, b], _) => [*a, *b].map(|node| Hold::gpus(u32::try_from(node).unwrap(), 8)).to_vec(),
                (false, _, Some(node)) => vec![Hold::gpus(u32::try_from(node).unwrap(), gpus)],
                _ => continue,
            };
            holds.iter().for_each(|hold| free[hold.node as usize] -= hold.gpus);
            let shape = if is_gang { Shape { nodes: 2, gpus: 8, vcpus: 0 } } else { Shape::gpus(gpus) };
            running.push(Running {
                holds,
                has_landed: true,
                started_ms: NOW_MS - ran_ms,
                expected_end_ms: Some(NOW_MS + left_ms),
                tier,
                evictions,
                saves_every_ms: Some(300_000),
                ..Running::new(id(number), shape)
            });
        }
        let queued = waiting.into_iter().zip(1..).map(|((gpus, priority, run_ms, waited_ms), number)| Queued {
            priority,
            enqueued_ms: NOW_MS - waited_ms,
            expected_ms: Some(run_ms),
            ..Queued::new(id(number), Shape::gpus(gpus))
        });
        Snapshot {
            nodes: vec![Node::new(8); 4],
            running,
            queued: queued.collect(),
            evicted: evicted.into_iter().map(|(tier, ago_ms)| Evicted { tier, at_ms: NOW_MS - ago_ms }).collect(),
            ..Snapshot::default()
        }
    })
}

fn any_rules() -> impl Strategy_<Value = Rules> {
    let choice = (proptest::bool::ANY, proptest::bool::ANY);
    (choice, 0_u64..600_000, 0_u64..200_000, 0_u32..5, 0_u64..3_600_000).prop_map(
        |((is_longest, tier_by_tier), wait_ms, wait_per_victim_ms, budget, eviction_gpu_ms)| {
            let tier = |at_least, may_preempt: &[u16], when_full: &[u16]| TierRules {
                at_least,
                may_preempt: may_preempt.to_vec(),
                may_preempt_when_full: when_full.to_vec(),
                minimum_run_ms: 300_000,
                evictions_per_job: Some(2),
                evictions_per_window: Some(budget),
                eviction_window_ms: 3_600_000,
                ..TierRules::default()
            };
            let victims = if is_longest { Victims::LongestLeft } else { Victims::Cheapest };
            Rules {
                strategy: Strategy::Osprey,
                dive_above: 800,
                tiers: vec![
                    tier(Some(1100), &[3, 2], &[1]),
                    tier(Some(800), &[3, 2], &[]),
                    tier(Some(0), &[], &[]),
                    tier(None, &[], &[]),
                ],
                preemption: PreemptionRules {
                    wait_ms,
                    wait_per_victim_ms,
                    eviction_gpu_ms,
                    victims,
                    tier_by_tier,
                    ..PreemptionRules::default()
                },
                ..Rules::default()
            }
        },
    )
}

/// GPUs of each node that stay free if these go.
fn free_without(snapshot: &Snapshot, gone: &[JobId]) -> Vec<i64> {
    let mut free: Vec<i64> = snapshot.nodes.iter().map(|node| i64::from(node.gpus)).collect();
    for running in snapshot.running.iter().filter(|running| !gone.contains(&running.job)) {
        running.holds.iter().for_each(|hold| free[hold.node as usize] -= i64::from(hold.gpus));
    }
    free
}

fn all_victims(plan: &Plan) -> Vec<JobId> {
    plan.evictions.iter().flat_map(|eviction| &eviction.victims).map(|victim| victim.job).collect()
}

proptest! {
    /// Victims are legal: of a tier that is open to the job, not spared, none twice, within cap and budget, and the wait is
    /// longer than what so many of them take.
    #[test]
    fn victims_are_legal(snapshot in any_full_pool(), rules in any_rules()) {
        let plan = decide(&snapshot, &rules, NOW_MS);
        let mut all = all_victims(&plan);
        for eviction in &plan.evictions {
            let job = snapshot.queued.iter().find(|queued| queued.job == eviction.start.job).unwrap();
            let tier = &rules.tiers[usize::from(job.priority < 1_100)];
            prop_assert!(job.priority >= 800);
            prop_assert!(eviction.predicted_wait_ms > eviction.threshold_ms);
            let count = eviction.victims.len() as u64;
            let PreemptionRules { wait_ms, wait_per_victim_ms, .. } = rules.preemption;
            prop_assert_eq!(eviction.threshold_ms, wait_ms + wait_per_victim_ms * count);
            for victim in &eviction.victims {
                let running = snapshot.running.iter().find(|running| running.job == victim.job).unwrap();
                prop_assert!(tier.may_preempt.contains(&running.tier) || tier.may_preempt_when_full.contains(&running.tier));
                prop_assert_eq!(spared(running, &rules, NOW_MS), None);
            }
        }
        for (place, tier) in (0_u16..).zip(&rules.tiers) {
            let recent = snapshot.evicted.iter().filter(|was| was.tier == place && was.at_ms > NOW_MS - 3_600_000).count();
            let now = plan.evictions.iter().flat_map(|eviction| &eviction.victims).filter(|v| v.tier == place).count();
            prop_assert!(now == 0 || recent + now <= tier.evictions_per_window.unwrap() as usize);
        }
        all.sort();
        all.dedup();
        prop_assert_eq!(all.len(), all_victims(&plan).len());
    }

    /// Victims go as a whole, none of a single eviction could be left out, and nothing is given out twice.
    #[test]
    fn victims_are_whole_and_minimal(snapshot in any_full_pool(), rules in any_rules()) {
        let plan = decide(&snapshot, &rules, NOW_MS);
        let all = all_victims(&plan);
        let mut free = free_without(&snapshot, &all);
        let starts = plan.starts.iter().chain(plan.evictions.iter().map(|eviction| &eviction.start));
        starts.flat_map(|start| &start.holds).for_each(|hold| free[hold.node as usize] -= i64::from(hold.gpus));
        prop_assert!(free.iter().all(|free| *free >= 0), "{:?}", &plan);
        // Only the first eviction of a plan without starts before it is easy to judge from outside.
        let [first, ..] = plan.evictions.as_slice() else { return Ok(()) };
        let urgent_starts = plan.starts.iter().any(|start| {
            snapshot.queued.iter().any(|queued| queued.job == start.job && queued.priority >= 800)
        });
        if !urgent_starts && plan.reservations.is_empty() {
            for victim in &first.victims {
                let others: Vec<JobId> = first.victims.iter().map(|v| v.job).filter(|job| *job != victim.job).collect();
                let free = free_without(&snapshot, &others);
                let shape = snapshot.queued.iter().find(|queued| queued.job == first.start.job).unwrap().shape;
                let empty = free.iter().filter(|free| **free == 8).count();
                let fits = if shape.gpus > 8 {
                    empty * 8 >= shape.gpus as usize
                } else {
                    free.iter().any(|free| *free >= i64::from(shape.gpus))
                };
                prop_assert!(!fits, "{} needn't go: {:?}", victim.job, &plan);
            }
        }
    }

    /// The same snapshot has the same evictions, in whatever order it lists what runs and waits.
    #[test]
    fn evictions_do_not_depend_on_the_order_of_the_input(snapshot in any_full_pool(), rules in any_rules(), turn in 0_usize..9) {
        let mut turned = snapshot.clone();
        let middle = turn.min(turned.running.len());
        turned.running.rotate_left(middle);
        turned.queued.reverse();
        prop_assert_eq!(decide(&turned, &rules, NOW_MS), decide(&snapshot, &rules, NOW_MS));
    }

    /// No set of victims is cheaper than the one that the search says is the cheapest, and a found one is always enough.
    #[test]
    fn the_cheapest_cover_is_the_cheapest(
        items in vec((0_i64..9, 0_i64..5, 0_u64..50, 0_u16..3), 1..11), needs in (0_i64..25, 0_i64..12), most in 1_usize..11,
        budget in 0_u32..6,
    ) {
        let items: Vec<Item> = items
            .into_iter()
            .map(|(gpus, vcpus, cost, tier)| Item {
                gives: vec![gpus, vcpus],
                cost,
                budget: (tier == 0).then_some((tier, budget)),
            })
            .collect();
        let needs = [needs.0, needs.1];
        let mut sets: BTreeMap<(u64, usize), usize> = BTreeMap::new();
        for set in 0_usize..1 << items.len() {
            let chosen = || items.iter().enumerate().filter(|(place, _)| set >> place & 1 == 1).map(|(_, item)| item);
            let is_enough = (0..2).all(|need| chosen().map(|item| item.gives[need]).sum::<i64>() >= needs[need]);
            let limited = chosen().filter(|item| item.budget.is_some()).count();
            if is_enough && chosen().count() <= most && limited <= budget as usize {
                sets.insert((chosen().map(|item| item.cost).sum(), chosen().count()), set);
            }
        }
        match (cheapest(&needs, &items, most), sets.keys().next()) {
            (Covered::By { items: taken, cost, is_cheapest }, Some((least, fewest))) => {
                prop_assert!(is_cheapest);
                prop_assert_eq!((cost, taken.len()), (*least, *fewest));
            }
            (Covered::TooMany, None) => {}
            (Covered::Never, None) => {
                prop_assert!((0..2).any(|need| items.iter().map(|item| item.gives[need]).sum::<i64>() < needs[need]));
            }
            (found, best) => prop_assert!(false, "{found:?} and {best:?}"),
        }
    }
}
