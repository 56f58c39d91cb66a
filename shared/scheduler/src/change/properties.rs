//! What holds of every change, whatever runs and waits: it starts the job, and a little less of it doesn't.

use osprey_policy::share::{Budget, TeamUse};
use proptest::collection::vec;
use proptest::strategy::Strategy as Strategy_;
use proptest::{prop_assert, proptest};

use super::*;
use crate::decide;
use crate::rules::{Headroom, Strategy, TierOrder, TierRules};
use crate::snapshot::{Charge, Hold, Node, Queued, Running};

const NOW_MS: i64 = 100_000_000;

fn id(number: u128) -> JobId {
    JobId::from_uuid(uuid::Uuid::from_u128(number))
}

/// Three nodes of 8, runs of which each holds what is left of what it asks for, and jobs of two teams that wait.
fn any_pool() -> impl Strategy_<Value = Snapshot> {
    let run = (0_u32..3, 1_u32..9, 1_i64..5_000_000, proptest::bool::ANY);
    let waiting = (0_u32..1_300, 1_u32..18, 1_u64..6_000_000, 0_i64..9_000_000, 0_u32..5);
    (vec(run, 0..12), vec(waiting, 1..12), (0_u32..30, 0_u64..40)).prop_map(|(runs, jobs, (most, hours))| {
        let mut free = [8_u32; 3];
        let mut running = Vec::new();
        for ((node, gpus, left_ms, is_ours), number) in runs.into_iter().zip(1_000..) {
            let left = &mut free[node as usize];
            let gpus = gpus.min(*left);
            *left -= gpus;
            if gpus > 0 {
                running.push(Running {
                    holds: vec![Hold::gpus(node, gpus)],
                    has_landed: true,
                    started_ms: NOW_MS - 1_000_000,
                    expected_end_ms: Some(NOW_MS + left_ms),
                    tier: 1,
                    charge: Charge { team: is_ours.then_some(0), ..Charge::NOBODY },
                    ..Running::new(id(number), Shape::gpus(gpus))
                });
            }
        }
        let queued = jobs.into_iter().zip(1..).map(|((priority, gpus, run_ms, waited_ms, kind), number)| Queued {
            priority,
            tier: u16::from(priority < 800),
            enqueued_ms: NOW_MS - waited_ms,
            expected_ms: (kind > 0).then_some(run_ms),
            charge: Charge { team: (kind > 2).then_some(0), ..Charge::NOBODY },
            ..Queued::new(id(number), Shape::gpus(gpus))
        });
        let held =
            running.iter().filter(|running| running.charge.team.is_some()).map(|running| running.shape.gpus).sum();
        let budget = Budget { used_gpu_ms: 20 * 3_600_000, limit_gpu_ms: Some(hours * 3_600_000), ..Budget::default() };
        let team = TeamUse {
            gpus: [("low".into(), held)].into(),
            gpus_max: [("low".into(), most)].into(),
            day: budget,
            ..TeamUse::default()
        };
        Snapshot {
            nodes: vec![Node::new(8); 3],
            running,
            queued: queued.collect(),
            teams: vec![team],
            ..Snapshot::default()
        }
    })
}

fn any_rules() -> impl Strategy_<Value = Rules> {
    (0_usize..5, 0_u32..60, proptest::bool::ANY).prop_map(|(strategy, headroom, is_weighted)| {
        let order = if is_weighted { TierOrder::WeightedShortest } else { TierOrder::Strict };
        let tier = |name: &str, at_least, may_preempt: &[u16]| TierRules {
            name: name.into(),
            at_least: Some(at_least),
            order,
            may_preempt: may_preempt.to_vec(),
            ..TierRules::default()
        };
        Rules {
            strategy: Strategy::ALL[strategy],
            tiers: vec![tier("high", 800, &[1]), tier("low", 0, &[])],
            dive_above: 800,
            headroom: Headroom::Percent(headroom),
            ..Rules::default()
        }
    })
}

/// A change that asks for a little less, where there is one.
fn a_step_less(change: &Change) -> Option<Change> {
    Some(match change {
        Change::ExpectedMs { from, to } if from.is_none_or(|from| to + 1_000 < from) => {
            Change::ExpectedMs { from: *from, to: to + 1_000 }
        }
        Change::Priority { from, to } if to - 1 > *from => Change::Priority { from: *from, to: to - 1 },
        Change::Quota { unit, from, to } if to - 1 > *from => Change::Quota { unit: *unit, from: *from, to: to - 1 },
        Change::Headroom { from, to } if to + 1 < *from => Change::Headroom { from: *from, to: to + 1 },
        Change::Gpus { from, to } => {
            let all = gpus::smaller(*from, Some(8));
            let at = all.iter().position(|shape| shape == to)?;
            Change::Gpus { from: *from, to: *all.get(at.checked_sub(1)?)? }
        }
        Change::Ends { jobs, at_ms } if jobs.len() > 1 => Change::Ends { jobs: jobs[1..].to_vec(), at_ms: *at_ms },
        Change::Without { jobs } if jobs.len() > 1 => Change::Without { jobs: jobs[1..].to_vec() },
        _ => return None,
    })
}

/// Whether a change starts the job, with a decision of its own.
fn starts(question: &Question<'_>, change: &Change) -> bool {
    let (mut snapshot, mut rules) = (question.snapshot.clone(), question.rules.clone());
    apply::apply(change, question, &mut snapshot, &mut rules);
    let plan = decide(&snapshot, &rules, question.now_ms);
    matches!(trial::outcome(&plan, question.job), Some(Ok(_)))
}

proptest! {
    #[test]
    fn every_change_starts_the_job_and_a_step_less_does_not(snapshot in any_pool(), rules in any_rules()) {
        let plan = decide(&snapshot, &rules, NOW_MS);
        for waiting in plan.waiting.iter().take(3) {
            let question = Question {
                snapshot: &snapshot,
                rules: &rules,
                now_ms: NOW_MS,
                job: waiting.job,
                reason: waiting.reason,
                gpus_per_node: Some(8),
                decisions_max: 100_000,
            };
            let found = least(&question);
            prop_assert!(found.is_complete);
            for verified in &found.changes {
                prop_assert!(starts(&question, &verified.change), "{verified:?} of {waiting:?}");
                if let Some(less) = a_step_less(&verified.change) {
                    prop_assert!(!starts(&question, &less), "{less:?} would do for {verified:?} of {waiting:?}");
                }
            }
        }
    }
}
