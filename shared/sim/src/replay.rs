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
use crate::strategy::{BatchAlone, Blocking, Dive, Easy, FirstFit, Order, Preemptive, Reference, Setup, Strategy};
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
    match strategy {
        Reference::Fifo => with(workload, cluster, Blocking::new(Order::Arrival), record),
        Reference::Sjf => with(workload, cluster, Blocking::new(Order::Shortest), record),
        Reference::Priority => with(workload, cluster, Blocking::new(Order::Priority), record),
        Reference::Easy => with(workload, cluster, Easy::new(Order::Arrival), record),
        Reference::PriorityEasy => with(workload, cluster, Easy::new(Order::Priority), record),
        Reference::FirstFit => with(workload, cluster, FirstFit::new(), record),
        Reference::Srtf => with(workload, cluster, Preemptive::new(Order::Shortest), record),
        Reference::PriorityPreempt => with(workload, cluster, Preemptive::new(Order::Priority), record),
        Reference::Dive => with(workload, cluster, Dive::new(dive_above), record),
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
    with(workload, cluster, Decided::new(rules, cluster, estimates_ms), record)
}

/// Replays a workload under AWS Batch alone.
#[must_use]
pub fn run_batch(workload: &Workload, cluster: &Cluster, setup: Setup, record: Record) -> Schedule {
    with(workload, cluster, BatchAlone::new(setup, workload), record)
}

/// Replays a workload under a strategy that takes either kind of pool.
fn with<S>(workload: &Workload, cluster: &Cluster, strategy: S, record: Record) -> Schedule
where
    S: Strategy<CountPool> + Strategy<NodePool>,
{
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
