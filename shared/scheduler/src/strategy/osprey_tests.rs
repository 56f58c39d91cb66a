use std::collections::BTreeMap;

use osprey_model::id::JobId;
use proptest::collection::vec;
use proptest::{prop_assert, proptest};

use crate::decide;
use crate::plan::Plan;
use crate::rules::{Rules, Strategy};
use crate::snapshot::{Hold, Node, Queued, Running, Shape, Snapshot};

const NOW_MS: i64 = 1_000_000;
/// The price of a GPU that is left free on a partly used node.
const ALPHA: f64 = 0.25;

fn id(number: usize) -> JobId {
    JobId::from_uuid(uuid::Uuid::from_u128(number as u128))
}

/// A job that waits: number, GPUs and seconds of its run.
type Job = (u32, u32, u32);

/// Nodes of 8 of which so many GPUs are held for so many seconds, and jobs that wait.
fn snapshot(held: &[(u32, u32)], jobs: &[Job]) -> Snapshot {
    let end = |seconds: u32| NOW_MS + 1_000 * i64::from(seconds);
    let running = (0_u32..).zip(held).filter(|(_, (gpus, _))| *gpus > 0).map(|(node, (gpus, seconds))| Running {
        holds: vec![Hold::gpus(node, *gpus)],
        has_landed: true,
        expected_end_ms: Some(end(*seconds)),
        ..Running::new(id(1_000 + node as usize), Shape::gpus(*gpus))
    });
    let queued = jobs.iter().enumerate().map(|(number, (priority, gpus, seconds))| Queued {
        priority: *priority,
        expected_ms: Some(1_000 * u64::from(*seconds)),
        ..Queued::new(id(number), Shape::gpus(*gpus))
    });
    Snapshot {
        nodes: vec![Node::new(8); held.len()],
        running: running.collect(),
        queued: queued.collect(),
        ..Snapshot::default()
    }
}

fn plan(snapshot: &Snapshot, strategy: Strategy) -> Plan {
    decide(snapshot, &Rules { strategy, ..Rules::default() }, NOW_MS)
}

/// What a plan is worth, from the snapshot and the formula alone.
fn worth(snapshot: &Snapshot, plan: &Plan) -> f64 {
    let mut held: BTreeMap<u32, u32> = BTreeMap::new();
    let running = snapshot.running.iter().flat_map(|running| &running.holds);
    let started = plan.starts.iter().flat_map(|start| &start.holds);
    running.chain(started).for_each(|hold| *held.entry(hold.node).or_default() += hold.gpus);
    let stranded: u32 = held.values().map(|held| 8 - held % 8).filter(|left| *left < 8).sum();
    let of = |job: JobId| snapshot.queued.iter().find(|queued| queued.job == job).unwrap();
    let value = |job: &Queued| f64::from(job.priority) / 1000.0 * f64::from(job.shape.gpus);
    plan.starts.iter().map(|start| value(of(start.job))).sum::<f64>() - ALPHA * f64::from(stranded)
}

/// Says where the search is worse than backfill, starts less, or delays what is kept.
fn fault(snapshot: &Snapshot, searched: &Plan, walked: &Plan) -> Option<String> {
    let starts = |plan: &Plan, job: JobId| plan.starts.iter().any(|start| start.job == job);
    let (found, base) = (worth(snapshot, searched), worth(snapshot, walked));
    if found < base - 1e-9 {
        return Some(format!("worth {found} instead of {base}"));
    }
    if let Some(missing) = walked.starts.iter().find(|start| !starts(searched, start.job)) {
        return Some(format!("{missing:?} is missing"));
    }
    let kept = |job: JobId| searched.reservations.iter().find(|kept| kept.job == job).map(|kept| kept.at_ms);
    let is_late = |at_ms: i64, job: JobId| !starts(searched, job) && kept(job).is_none_or(|kept| kept > at_ms);
    let late = walked.reservations.iter().find(|was| is_late(was.at_ms, was.job));
    late.map(|late| format!("{late:?} is kept later, or not any more"))
}

proptest! {
    /// Never worse in a cycle than backfill, by the objective of both; nobody waits for it and nothing kept is delayed.
    #[test]
    fn a_cycle_is_never_worse_than_that_of_backfill(
        held in vec((0_u32..=8, 1_u32..5_000), 2..7),
        jobs in vec((0_u32..=800, 1_u32..=12, 1_u32..5_000), 1..30),
    ) {
        let snapshot = snapshot(&held, &jobs);
        let (searched, walked) = (plan(&snapshot, Strategy::Osprey), plan(&snapshot, Strategy::Backfill));
        let fault = fault(&snapshot, &searched, &walked);
        prop_assert!(fault.is_none(), "{fault:?}: {searched:?} {walked:?}");
    }
}

/// Best fit in the order of the queue puts the small job where the third one would have gone.
#[test]
fn the_search_starts_what_backfill_leaves_no_room_for() {
    let snapshot = snapshot(&[(1, 900), (3, 900)], &[(700, 2, 60), (600, 5, 60), (500, 5, 60)]);
    let started = |strategy| plan(&snapshot, strategy).starts.len();
    assert_eq!((started(Strategy::Backfill), started(Strategy::Osprey)), (2, 3));
}

/// The judge of the property sees what is wrong: otherwise it could never fail.
#[test]
fn a_worse_plan_is_found_by_the_judge() {
    let snapshot = snapshot(&[(1, 900), (3, 900)], &[(700, 2, 60), (600, 5, 60), (500, 5, 60)]);
    let (better, worse) = (plan(&snapshot, Strategy::Osprey), plan(&snapshot, Strategy::Backfill));
    assert_eq!(fault(&snapshot, &better, &worse), None);
    assert!(fault(&snapshot, &worse, &better).is_some_and(|fault| fault.starts_with("worth")));
    let late = Plan { reservations: Vec::new(), ..worse.clone() };
    assert!(fault(&snapshot, &late, &worse).is_some_and(|fault| fault.contains("kept later")));
}
