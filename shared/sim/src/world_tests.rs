use osprey_scheduler::Rules;

use super::*;
use crate::cluster::{Cluster, Placement};
use crate::machine::Costs;
use crate::replay::{self, Record, Setting};
use crate::scenario::{Budgets, Change, PoolSpec};
use crate::schedule::Schedule;
use crate::strategy::Reference;
use crate::workload::{Job, Workload};

const CLUSTER: Cluster = Cluster { nodes: 4, gpus_per_node: 8, placement: Placement::Node };
const HOUR: u64 = 3_600_000;

fn scenario(pools: Vec<PoolSpec>) -> Scenario {
    let budgets = Budgets {
        failures_max: 3,
        host_losses_max: 10,
        on_demand_after: 2,
        back_off_ms: 5_000,
        back_off_max_ms: 900_000,
    };
    Scenario { pools, changes: Vec::new(), failure_chance: 0.0, budgets, seed: 1 }
}

fn spot(nodes: u32, mean_hours: u64) -> PoolSpec {
    let reclaim_mean_ms = Some(mean_hours * HOUR);
    PoolSpec {
        capacity: CapacityType::Spot,
        reclaim_mean_ms,
        away_ms: 600_000,
        ..PoolSpec::on_demand("spot", nodes, 8)
    }
}

fn setting(scenario: &Scenario) -> Setting<'_> {
    let costs = Costs { checkpoint_ms: 300_000, restart_ms: 60_000 };
    Setting {
        cluster: &CLUSTER,
        scenario: Some(scenario),
        costs,
        record: Record::Segments,
        watch: None,
        onlooker: None,
    }
}

fn job(number: u64, submit_ms: u64, duration_ms: u64, gpus: u32) -> Job {
    Job { id: number.to_string(), submit_ms, duration_ms, gpus, ..Job::default() }
}

fn workload(jobs: Vec<Job>) -> Workload {
    Workload::new(jobs, Vec::new(), Vec::new())
}

/// Work enough that every reclaim of four nodes hits something for days.
fn busy() -> Workload {
    workload((0..60).map(|number| job(number, number * 1_000_000, 5 * HOUR + number * 1_000, 4)).collect())
}

fn fifo(workload: &Workload, scenario: &Scenario) -> Schedule {
    replay::run(workload, Reference::Fifo, 800, &setting(scenario))
}

fn backfill(workload: &Workload, scenario: &Scenario) -> Schedule {
    replay::run_decided(workload, Rules::default().into(), &setting(scenario))
}

/// When nodes lost their jobs, and which.
fn losses(schedule: &Schedule) -> Vec<(u64, Vec<(u32, u32)>)> {
    let lost = schedule.segments.iter().filter(|segment| segment.end == SegmentEnd::HostLost);
    lost.map(|segment| (segment.end_ms, segment.nodes.clone())).collect()
}

#[test]
fn a_quiet_scenario_gives_the_schedule_of_the_lean_kernel() {
    let scenario = scenario(vec![PoolSpec::on_demand("all", 4, 8)]);
    assert!(is_quiet(&scenario));
    let busy = busy();
    for reference in Reference::ALL {
        let live = replay::run(&busy, reference, 800, &setting(&scenario));
        let lean = replay::run(&busy, reference, 800, &Setting::of(&CLUSTER));
        assert_eq!(live.outcomes, lean.outcomes, "{}", reference.name());
        assert_eq!(live.sums, lean.sums, "{}", reference.name());
    }
    let lean = replay::run_decided(&busy, Rules::default().into(), &Setting::of(&CLUSTER));
    assert_eq!(backfill(&busy, &scenario).outcomes, lean.outcomes);
}

#[test]
fn equal_seeds_give_equal_histories_and_other_seeds_others() {
    let mut scenario = scenario(vec![spot(4, 20)]);
    scenario.failure_chance = 0.2;
    let busy = busy();
    let first = fifo(&busy, &scenario);
    assert_eq!(fifo(&busy, &scenario), first);
    assert!(!losses(&first).is_empty());
    scenario.seed = 2;
    assert_ne!(fifo(&busy, &scenario), first);
}

#[test]
fn one_process_more_does_not_disturb_the_others() {
    let mut scenario = scenario(vec![spot(2, 20)]);
    let busy = busy();
    let reclaims = |scenario: &Scenario| -> Vec<u64> {
        // All four nodes are busy long after this.
        losses(&fifo(&busy, scenario)).into_iter().map(|(at, _)| at).filter(|at| *at < 20 * HOUR).collect()
    };
    let before = reclaims(&scenario);
    assert!(!before.is_empty());
    scenario.pools.push(PoolSpec::on_demand("more", 2, 8));
    scenario.changes.push(Change { at_ms: HOUR, pool: 1, nodes: 1 });
    assert_eq!(reclaims(&scenario), before);
}

#[test]
fn a_reclaim_costs_what_no_checkpoint_holds_and_a_restart() {
    let mut scenario = scenario(vec![spot(1, 4)]);
    scenario.budgets.back_off_ms = 0;
    let one = workload(vec![job(1, 0, 8 * HOUR, 8)]);
    let (reference, production) = (fifo(&one, &scenario), backfill(&one, &scenario));
    let [run, ..] = reference.segments.as_slice() else { panic!("it ran") };
    assert_eq!(run.end, SegmentEnd::HostLost);
    let host_losses = u64::from(reference.outcomes[0].host_losses);
    let lost = |schedule: &Schedule| {
        schedule
            .segments
            .iter()
            .filter(|s| s.end == SegmentEnd::HostLost)
            .map(|s| (s.end_ms - s.start_ms) % 300_000)
            .sum::<u64>()
    };
    assert_eq!(reference.sums.lost_gpu_ms, u128::from(lost(&reference)) * 8);
    // The node was away for 10 minutes each time, in which nothing ran.
    let away = host_losses * 600_000;
    assert_eq!(reference.outcomes[0].end_ms, Some(8 * HOUR + lost(&reference) + away));
    // A production strategy pays a minute for each restart that it gets to.
    assert!(production.sums.lost_gpu_ms > reference.sums.lost_gpu_ms);
    assert_eq!(reference.outcomes[0].preemptions, 0);
}

#[test]
fn a_job_that_loses_its_host_too_often_is_given_up_or_moves() {
    let mut pools = scenario(vec![PoolSpec { reclaim_mean_ms: Some(60_000), ..spot(1, 1) }]);
    let one = workload(vec![job(1, 0, 8 * HOUR, 8)]);
    let outcome = fifo(&one, &pools).outcomes[0];
    assert_eq!((outcome.end_ms, outcome.host_losses), (None, 11));
    pools.pools.push(PoolSpec::on_demand("stays", 1, 8));
    let moved = backfill(&one, &pools);
    assert_eq!((moved.outcomes[0].host_losses, moved.outcomes[0].end_ms.is_some()), (2, true));
    assert_eq!(moved.segments.last().map(|segment| segment.nodes.clone()), Some(vec![(1, 8)]));
}

#[test]
fn failures_come_as_often_as_asked_and_are_retried_within_the_budget() {
    let mut scenario = scenario(vec![PoolSpec::on_demand("all", 4, 8)]);
    scenario.failure_chance = 0.3;
    let jobs = workload((0..4_000).map(|number| job(number, number * 500_000, HOUR, 8)).collect());
    let schedule = fifo(&jobs, &scenario);
    let failures: u32 = schedule.outcomes.iter().map(|outcome| outcome.failures).sum();
    let runs = schedule.segments.len() as f64;
    assert!((f64::from(failures) / runs - 0.3).abs() < 0.02, "{failures} of {runs}");
    let given_up = schedule.outcomes.iter().filter(|outcome| outcome.end_ms.is_none()).count();
    // Four failures in a row: 0.3⁴ of 4,000.
    assert!((15..50).contains(&given_up), "{given_up}");
    assert!(schedule.outcomes.iter().all(|outcome| outcome.failures <= 4));
}

#[test]
fn a_production_strategy_pauses_before_a_retry_and_uses_the_number_derived_then() {
    let mut scenario = scenario(vec![PoolSpec::on_demand("all", 1, 8)]);
    scenario.failure_chance = 1.0;
    let one = workload(vec![job(1, 0, HOUR, 8)]);
    let schedule = backfill(&one, &scenario);
    let gaps: Vec<u64> = schedule.segments.windows(2).map(|pair| pair[1].start_ms - pair[0].end_ms).collect();
    assert_eq!(gaps, [5_000, 10_000, 20_000]);
    assert_eq!(fifo(&one, &scenario).segments.windows(2).map(|pair| pair[1].start_ms - pair[0].end_ms).max(), Some(0));
}

#[test]
fn nodes_start_up_before_they_work_and_go_when_idle() {
    let pool =
        PoolSpec { start_up_ms: 300_000, warm: 1, scale_down_ms: Some(600_000), ..PoolSpec::on_demand("p", 2, 8) };
    let scenario = scenario(vec![pool]);
    let jobs = vec![job(1, 0, HOUR, 8), job(2, 0, HOUR, 8), job(3, HOUR + 60_000, HOUR, 8), job(4, 10 * HOUR, HOUR, 8)];
    let schedule = fifo(&workload(jobs), &scenario);
    let ends: Vec<u64> = schedule.outcomes.iter().filter_map(|outcome| outcome.end_ms).collect();
    // Warm at once; started up first; warm still; cold again.
    assert_eq!(ends, [HOUR, HOUR + 300_000, 2 * HOUR + 60_000, 11 * HOUR + 300_000]);
    // Starting up is no work that is lost.
    assert_eq!(schedule.sums.lost_gpu_ms, 0);
}

#[test]
fn capacity_changes_let_what_runs_end() {
    let mut scenario = scenario(vec![PoolSpec::on_demand("p", 2, 8)]);
    scenario.changes =
        vec![Change { at_ms: HOUR / 2, pool: 0, nodes: 1 }, Change { at_ms: 4 * HOUR, pool: 0, nodes: 3 }];
    let schedule = fifo(&workload((0..7).map(|number| job(number, 0, HOUR, 8)).collect()), &scenario);
    let starts: Vec<u64> =
        schedule.outcomes.iter().filter_map(|outcome| outcome.start_ms).map(|ms| ms / HOUR).collect();
    assert_eq!(starts, [0, 0, 1, 2, 3, 4, 4]);
    // 2 nodes for an hour, since a job still runs on the second, then 1 for three, then 3 for one.
    assert_eq!(schedule.sums.capacity_gpu_ms, u128::from(HOUR) * 8 * (2 + 3 + 3));
}

#[test]
fn what_can_never_start_ends_the_replay() {
    let mut scenario = scenario(vec![PoolSpec::on_demand("gone", 1, 8), spot(2, 1)]);
    scenario.changes = vec![Change { at_ms: 1, pool: 0, nodes: 0 }];
    let jobs = vec![job(1, 0, HOUR, 1), job(2, HOUR, HOUR, 8)];
    let schedule = backfill(&workload(jobs), &scenario);
    assert_eq!(schedule.outcomes.iter().filter(|outcome| outcome.end_ms.is_some()).count(), 1);
}

#[test]
fn jobs_of_several_nodes_stay_off_spot() {
    let scenario = scenario(vec![spot(4, 1_000), PoolSpec::on_demand("stays", 2, 8)]);
    let schedule = fifo(&workload(vec![job(1, 0, HOUR, 16), job(2, 0, HOUR, 24)]), &scenario);
    assert_eq!(schedule.segments.iter().map(|segment| segment.nodes.clone()).collect::<Vec<_>>(), [[(4, 8), (5, 8)]]);
    assert_eq!(schedule.outcomes[1].start_ms, None);
}
