//! Strategies that ask the production decision: the scheduler crate's `decide`, once an instant.

use std::collections::BTreeMap;

use osprey_model::id::JobId;
use osprey_scheduler::snapshot::{Hold, Node, Queued, Running};
use osprey_scheduler::{Rules, Snapshot, compare, decide};

use crate::cluster::{Cluster, Placement};
use crate::machine::Machine;
use crate::pool::Pool;
use crate::strategy::Strategy;

/// The production decision behind the interface of the reference strategies.
#[derive(Clone, Debug)]
pub struct Decided {
    rules: Rules,
    snapshot: Snapshot,
    /// How long each job is believed to run in all, in milliseconds, in the order of the workload.
    estimates_ms: Vec<u64>,
    places: BTreeMap<JobId, usize>,
    /// The places of the snapshot's running jobs, in its order.
    running: Vec<usize>,
}

impl Decided {
    /// Nobody waits. Where nodes don't matter the cluster is one large node.
    ///
    /// `estimates_ms` is what is believed of the run time of each job, in the order of the workload; a job without one
    /// is believed to run for as long as it does.
    #[must_use]
    pub fn new(rules: Rules, cluster: &Cluster, estimates_ms: Vec<u64>) -> Self {
        let nodes = match cluster.placement {
            Placement::Count => vec![Node { gpus: cluster.gpus() }],
            Placement::Node => (0..cluster.nodes).map(|_| Node { gpus: cluster.gpus_per_node }).collect(),
        };
        let snapshot = Snapshot { nodes, ..Snapshot::default() };
        Self { rules, snapshot, estimates_ms, places: BTreeMap::new(), running: Vec::new() }
    }

    fn queued<P: Pool>(&self, job: usize, machine: &Machine<'_, P>) -> Queued {
        let spec = machine.job(job);
        let remaining_ms = machine.remaining_ms(job);
        Queued {
            job: id(job),
            priority: spec.priority,
            enqueued_ms: time(spec.submit_ms),
            not_before_ms: 0,
            gpus: spec.gpus,
            expected_ms: self.estimates_ms.get(job).copied().unwrap_or(remaining_ms),
        }
    }
}

impl Decided {
    /// Takes jobs that have ended out of the snapshot.
    fn forget_ended<P: Pool>(&mut self, machine: &Machine<'_, P>) {
        let runs = |job: &usize| machine.share(*job).is_some();
        let mut places = self.running.iter();
        self.snapshot.running.retain(|_| places.next().is_some_and(runs));
        self.running.retain(runs);
    }
}

/// The id of a job by its place, so that comparing ids compares places.
fn id(job: usize) -> JobId {
    // INVARIANT: a place fits 128 bits.
    JobId::from_uuid(uuid::Uuid::from_u128(u128::try_from(job).unwrap_or(u128::MAX)))
}

fn time(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

impl<P: Pool> Strategy<P> for Decided {
    fn submit(&mut self, job: usize, machine: &Machine<'_, P>) {
        let queued = self.queued(job, machine);
        self.places.insert(queued.job, job);
        // The order that decides quickest.
        let strategy = self.rules.strategy;
        let at = self.snapshot.queued.partition_point(|other| compare(strategy, other, &queued).is_lt());
        self.snapshot.queued.insert(at, queued);
    }

    fn pass(&mut self, machine: &mut Machine<'_, P>) {
        self.forget_ended(machine);
        if self.snapshot.queued.is_empty() {
            return;
        }
        let now_ms = time(machine.now_ms());
        let plan = decide(&self.snapshot, &self.rules, now_ms);
        for start in plan.starts {
            let Some(job) = self.places.get(&start.job).copied() else { continue };
            let holds: Vec<(u32, u32)> = start.holds.iter().map(|Hold { node, gpus }| (*node, *gpus)).collect();
            if machine.start_on(job, P::share_of(&holds), false) {
                let expected = self.snapshot.queued.iter().position(|queued| queued.job == start.job);
                let expected_ms = expected.map_or(0, |at| self.snapshot.queued.remove(at).expected_ms);
                let expected_end_ms = now_ms.saturating_add_unsigned(expected_ms);
                self.snapshot.running.push(Running { job: start.job, holds: start.holds, expected_end_ms });
                self.running.push(job);
            }
        }
    }

    fn waiting(&self) -> usize {
        self.snapshot.queued.len()
    }
}
