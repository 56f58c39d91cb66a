//! The lean kernel: exact run times, no overheads, one of the strategies of [`crate::strategy`] or the production
//! decision.
//!
//! At one instant all completions come first, then all submissions, then one scheduling pass. It is lean because two
//! facts make it so: completions are the running jobs themselves, ordered by end, and submissions are the workload
//! itself, so neither needs an event queue.

use osprey_scheduler::Rules;

use crate::cluster::{Cluster, Placement};
use crate::decided::Decided;
use crate::machine::Machine;
use crate::pool::{CountPool, NodePool, Pool};
use crate::schedule::Schedule;
use crate::strategy::{Blocking, Dive, Easy, FirstFit, Order, Preemptive, Reference, Strategy};
use crate::workload::Workload;

/// What is recorded beside the outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Record {
    /// Nothing.
    #[default]
    Outcomes,
    /// Every run of every job.
    Segments,
}

/// Replays a workload. Jobs that the cluster could never hold aren't started and hold up nobody.
///
/// `dive_above` is the priority above which [`Reference::Dive`] evicts.
#[must_use]
pub fn run(workload: &Workload, cluster: &Cluster, strategy: Reference, dive_above: u32, record: Record) -> Schedule {
    match cluster.placement {
        Placement::Count => on(workload, cluster, CountPool::new(cluster.gpus()), strategy, dive_above, record),
        Placement::Node => {
            let pool = NodePool::new(cluster.nodes, cluster.gpus_per_node);
            on(workload, cluster, pool, strategy, dive_above, record)
        }
    }
}

fn on<P: Pool>(
    workload: &Workload,
    cluster: &Cluster,
    pool: P,
    strategy: Reference,
    dive_above: u32,
    record: Record,
) -> Schedule {
    let machine = Machine::new(&workload.jobs, cluster.gpus(), pool, record);
    match strategy {
        Reference::Fifo => replay(machine, Blocking::new(Order::Arrival), cluster),
        Reference::Sjf => replay(machine, Blocking::new(Order::Shortest), cluster),
        Reference::Priority => replay(machine, Blocking::new(Order::Priority), cluster),
        Reference::Easy => replay(machine, Easy::new(Order::Arrival), cluster),
        Reference::PriorityEasy => replay(machine, Easy::new(Order::Priority), cluster),
        Reference::FirstFit => replay(machine, FirstFit::new(), cluster),
        Reference::Srtf => replay(machine, Preemptive::new(Order::Shortest), cluster),
        Reference::PriorityPreempt => replay(machine, Preemptive::new(Order::Priority), cluster),
        Reference::Dive => replay(machine, Dive::new(dive_above), cluster),
    }
}

/// Replays a workload under the production decision. `estimates_ms` is what is believed of run times; without it they
/// are exact.
#[must_use]
pub fn run_decided(
    workload: &Workload,
    cluster: &Cluster,
    rules: Rules,
    estimates_ms: Vec<u64>,
    record: Record,
) -> Schedule {
    let strategy = Decided::new(rules, cluster, estimates_ms);
    match cluster.placement {
        Placement::Count => {
            let pool = CountPool::new(cluster.gpus());
            replay(Machine::new(&workload.jobs, cluster.gpus(), pool, record), strategy, cluster)
        }
        Placement::Node => {
            let pool = NodePool::new(cluster.nodes, cluster.gpus_per_node);
            replay(Machine::new(&workload.jobs, cluster.gpus(), pool, record), strategy, cluster)
        }
    }
}

fn replay<P: Pool, S: Strategy<P>>(mut machine: Machine<'_, P>, mut strategy: S, cluster: &Cluster) -> Schedule {
    let jobs = machine.jobs;
    let mut submissions = jobs.iter().enumerate().filter(|(_, job)| cluster.could_hold(job.gpus)).peekable();
    loop {
        let submission = submissions.peek().map(|(_, job)| job.submit_ms);
        let Some(now) = earlier(machine.next_end(), submission) else { break };
        machine.advance(now, strategy.waiting());
        machine.complete();
        while let Some((index, _)) = submissions.next_if(|(_, job)| job.submit_ms == now) {
            strategy.submit(index, &machine);
        }
        strategy.pass(&mut machine);
    }
    machine.into_schedule()
}

fn earlier(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}
