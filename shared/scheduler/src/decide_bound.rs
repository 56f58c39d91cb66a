//! Adversaries against the bound that `osprey policy check` prints: whatever is submitted afterwards, a job starts at the
//! latest when its bound has passed and what ran then has ended.

use osprey_model::id::{JobId, PoolName};
use osprey_policy::Policy;
use osprey_policy::waits::WaitBound;
use proptest::collection::vec;
use proptest::{prop_assert, proptest};

use super::*;
use crate::rules::TierOrder;
use crate::snapshot::{Node, Shape};

const MINUTE: i64 = 60_000;
/// The longest run.
const LONGEST_MINUTES: i64 = 120;
/// Two nodes of so many GPUs.
const GPUS: u32 = 4;

fn id(number: usize) -> JobId {
    JobId::from_uuid(uuid::Uuid::from_u128(number as u128))
}

/// A policy of three tiers with numbers up to 1000, whose orders are these.
fn policy(high: &str, low: &str) -> Policy {
    let aging = "aging = 100\naging_cap = 1001";
    let text = format!(
        "name = \"t\"\n[[rule]]\nid = \"p\"\nwhen = \"job.gpus > 1\"\nset = 1000\n\
         [[tier]]\nname = \"high\"\nat_least = 800\norder = \"{high}\"\n{aging}\n\
         [[tier]]\nname = \"low\"\nat_least = 0\norder = \"{low}\"\n{aging}\n\
         [[tier]]\nname = \"spare\"\ntakes = \"preemptible\"\norder = \"{low}\"\n{aging}\n\
         [order]\ndive_above = 850\nheadroom = 2\n"
    );
    Policy::load(&text).unwrap_or_else(|errors| panic!("{errors:#?}")).policy
}

/// A job of an adversary: minute of submission, number, preemptible, GPUs, minutes of its run.
type Spec = (i64, u32, bool, u32, i64);

fn queued(policy: &Policy, rules: &Rules, number: usize, spec: Spec) -> Queued {
    let (minute, priority, is_preemptible, gpus, run) = spec;
    Queued {
        priority,
        tier: rules.tier(&policy.tier_of(priority, is_preemptible).name),
        enqueued_ms: minute * MINUTE,
        expected_ms: Some(u64::try_from(run * MINUTE).unwrap()),
        ..Queued::new(id(number), Shape::gpus(gpus))
    }
}

/// The minute in which job 0 starts, if it does until then.
fn start_of_the_first(policy: &Policy, rules: &Rules, specs: &[Spec], until: i64) -> Option<i64> {
    let mut snapshot = Snapshot { nodes: vec![Node::new(GPUS); 2], ..Snapshot::default() };
    let mut open: Vec<(usize, Spec)> = specs.iter().copied().enumerate().collect();
    for minute in 0..=until {
        let now_ms = minute * MINUTE;
        snapshot.running.retain(|running| running.expected_end_ms > Some(now_ms));
        open.retain(|(number, spec)| {
            let is_due = spec.0 <= minute;
            if is_due {
                snapshot.queued.push(queued(policy, rules, *number, *spec));
            }
            !is_due
        });
        let plan = decide(&snapshot, rules, now_ms);
        for start in plan.starts {
            if start.job == id(0) {
                return Some(minute);
            }
            let at = snapshot.queued.iter().position(|queued| queued.job == start.job).unwrap();
            let queued = snapshot.queued.remove(at);
            let run_ms = i64::try_from(queued.expected_ms.unwrap()).unwrap();
            snapshot.running.push(Running {
                holds: start.holds,
                has_landed: true,
                started_ms: now_ms,
                expected_end_ms: Some(now_ms + run_ms),
                ..Running::new(start.job, queued.shape)
            });
        }
    }
    None
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: 48, ..Default::default() })]

    /// A guarantee against starvation, not a chart of it.
    #[test]
    fn no_stream_keeps_a_job_waiting_beyond_its_bound(
        victim in (0_u32..=1_000, proptest::bool::ANY, 1_u32..=2 * GPUS, 1_i64..LONGEST_MINUTES),
        stream in vec((0_i64..780, 0_u32..=1_000, proptest::bool::ANY, 1_u32..=2 * GPUS, 1_i64..LONGEST_MINUTES), 0..150),
        orders in (0_usize..2, 0_usize..2),
    ) {
        let order = |place: usize| TierOrder::ALL[place].as_str();
        let policy = policy(order(orders.0), order(orders.1));
        let rules = Rules::of(&policy, &PoolName::default());
        let (number, is_preemptible, gpus, run) = victim;
        let tier = &policy.tier_of(number, is_preemptible).name;
        let wait = policy.waits().into_iter().find(|wait| wait.tier == *tier).unwrap();
        let WaitBound::Within(bound_ms) = wait.bound else { panic!("a bound") };
        let bound = i64::try_from(bound_ms.div_ceil(60_000)).unwrap();
        let mut specs = vec![(0, number, is_preemptible, gpus, run)];
        // Nobody is there before it: whoever is would be served before it, and the bound says nothing of them.
        specs.extend(stream.into_iter().map(|(minute, number, preemptible, gpus, run)| (minute + 1, number, preemptible, gpus, run)));
        // At minute 0 the pool is full.
        let filler = (0, 1_000, false, 2 * GPUS, LONGEST_MINUTES);
        specs.push(filler);
        let latest = bound + LONGEST_MINUTES;
        let started = start_of_the_first(&policy, &rules, &specs, latest);
        prop_assert!(started.is_some(), "not within {bound} + {LONGEST_MINUTES} minutes");
    }
}

#[test]
fn without_aging_a_stream_keeps_a_job_waiting_for_ever_so_the_bound_is_no_accident() {
    let text = "name = \"t\"\n[[tier]]\nname = \"all\"\nat_least = 0\n";
    let policy = Policy::load(text).unwrap_or_else(|errors| panic!("{errors:#?}")).policy;
    let rules = Rules::of(&policy, &PoolName::default());
    let mut specs = vec![(0, 100, false, 1, 10), (0, 1_000, false, 2 * GPUS, 30)];
    specs.extend((1..60).map(|place| (30 * place - 1, 1_000, false, 2 * GPUS, 30)));
    assert_eq!(start_of_the_first(&policy, &rules, &specs, 59 * 30), None);
}
