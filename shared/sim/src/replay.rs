//! The kernel: jobs on a machine, one of the strategies of [`crate::strategy`] or the production decision.
//!
//! At one instant all completions come first, then what happens to the cluster, then all submissions, then one
//! scheduling pass. Where nothing happens to the cluster the kernel is lean: completions are the running jobs themselves,
//! ordered by end, and submissions are the workload itself, so neither needs an event queue.

use std::iter::Peekable;

use crate::cluster::{Cluster, Placement};
use crate::decided::{Decided, Onlooker, Production};
use crate::machine::{Costs, Machine};
use crate::pool::{CountPool, MixedPool, NodePool, Pool};
use crate::scenario::Scenario;
use crate::schedule::Schedule;
use crate::strategy::{BatchAlone, Blocking, Dive, Easy, FirstFit, Order, Preemptive, Reference, Setup, Strategy};
use crate::workload::{Job, Workload};
use crate::world::World;

/// What is recorded beside the outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Record {
    /// Nothing.
    #[default]
    Outcomes,
    /// Every run of every job.
    Segments,
}

/// Where and how a workload is replayed.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// What happens to it; nodes then matter, and its pools stand in place of the cluster. `None` where nothing does.
    pub scenario: Option<&'a Scenario>,
    /// What interruptions cost under a strategy that is no reference.
    pub costs: Costs,
    /// What is recorded.
    pub record: Record,
    /// Is told now and then how many jobs have been submitted.
    pub watch: Option<&'a dyn Fn(usize)>,
    /// Is told what each pass of the production decision saw and decided.
    pub onlooker: Option<Onlooker<'a>>,
}

impl<'a> Setting<'a> {
    /// A cluster to which nothing happens.
    #[must_use]
    pub fn of(cluster: &'a Cluster) -> Self {
        Self { cluster, scenario: None, costs: Costs::REFERENCE, record: Record::Outcomes, watch: None, onlooker: None }
    }

    /// The same, with every run recorded.
    #[must_use]
    pub fn recording(self, record: Record) -> Self {
        Self { record, ..self }
    }
}

/// Instants between two looks of whoever watches.
const WATCHED_EVERY: u32 = 4_096;

/// Replays a workload. Jobs that the cluster could never hold aren't started and hold up nobody.
///
/// `dive_above` is the number above which [`Reference::Dive`] evicts. Restarts cost nothing.
#[must_use]
pub fn run(workload: &Workload, strategy: Reference, dive_above: u32, setting: &Setting<'_>) -> Schedule {
    let costs = Costs { restart_ms: Costs::REFERENCE.restart_ms, ..setting.costs };
    let setting = &Setting { costs, ..*setting };
    match strategy {
        Reference::Fifo => with(workload, Blocking::new(Order::Arrival), setting, false),
        Reference::Sjf => with(workload, Blocking::new(Order::Shortest), setting, false),
        Reference::Priority => with(workload, Blocking::new(Order::Priority), setting, false),
        Reference::Easy => with(workload, Easy::new(Order::Arrival), setting, false),
        Reference::PriorityEasy => with(workload, Easy::new(Order::Priority), setting, false),
        Reference::FirstFit => with(workload, FirstFit::new(), setting, false),
        Reference::Srtf => with(workload, Preemptive::new(Order::Shortest), setting, false),
        Reference::PriorityPreempt => with(workload, Preemptive::new(Order::Priority), setting, false),
        Reference::Dive => with(workload, Dive::new(dive_above), setting, false),
    }
}

/// Replays a workload under the production decision.
#[must_use]
pub fn run_decided(workload: &Workload, production: Production, setting: &Setting<'_>) -> Schedule {
    let decided = Decided::new(production, setting.cluster, setting.scenario).seen_by(setting.onlooker);
    with(workload, decided, setting, true)
}

/// Replays a workload under AWS Batch alone.
#[must_use]
pub fn run_batch(workload: &Workload, setup: Setup, setting: &Setting<'_>) -> Schedule {
    with(workload, BatchAlone::new(setup, workload), setting, false)
}

/// Replays a workload under a strategy that takes every kind of pool. `pauses` says whether interrupted jobs pause.
fn with<S>(workload: &Workload, strategy: S, setting: &Setting<'_>, pauses: bool) -> Schedule
where
    S: Strategy<CountPool> + Strategy<NodePool> + Strategy<MixedPool>,
{
    let Setting { cluster, scenario, costs, record, watch, .. } = *setting;
    let jobs = &workload.jobs;
    match (scenario, cluster.placement) {
        (Some(scenario), _) => {
            let mut pool = MixedPool::new(&scenario.shapes());
            let world = World::new(scenario, pauses, &mut pool);
            live(Machine::new(jobs, pool, record, costs), strategy, world, &mut Watch::new(watch))
        }
        (None, Placement::Count) => {
            let pool = CountPool::new(cluster.gpus());
            replay(Machine::new(jobs, pool, record, costs), strategy, cluster, &mut Watch::new(watch))
        }
        (None, Placement::Node) => {
            let pool = NodePool::new(cluster.nodes, cluster.gpus_per_node);
            replay(Machine::new(jobs, pool, record, costs), strategy, cluster, &mut Watch::new(watch))
        }
        (None, Placement::Spread) => {
            let pool = NodePool::new(cluster.nodes, cluster.gpus_per_node).spread();
            replay(Machine::new(jobs, pool, record, costs), strategy, cluster, &mut Watch::new(watch))
        }
    }
}

/// Where nothing happens to the cluster.
fn replay<P: Pool, S: Strategy<P>>(
    mut machine: Machine<'_, P>,
    mut strategy: S,
    cluster: &Cluster,
    watch: &mut Watch<'_>,
) -> Schedule {
    let mut submissions = submissions(machine.jobs, |job| cluster.could_hold(job.gpus));
    loop {
        let submission = submissions.peek().map(|(_, job)| job.submit_ms);
        let next = earliest([machine.next_end(), submission, strategy.comes_back_at(machine.now_ms())]);
        let Some(now) = next.map(|next| strategy.looks_again_at(machine.now_ms()).map_or(next, |look| next.min(look)))
        else {
            break;
        };
        machine.advance(now, strategy.waiting());
        machine.complete();
        while let Some((index, _)) = submissions.next_if(|(_, job)| job.submit_ms == now) {
            strategy.submit(index, &machine);
            watch.submitted = index + 1;
        }
        strategy.pass(&mut machine);
        watch.look();
    }
    machine.into_schedule()
}

/// Where things happen to it.
fn live<S: Strategy<MixedPool>>(
    mut machine: Machine<'_, MixedPool>,
    mut strategy: S,
    mut world: World<'_>,
    watch: &mut Watch<'_>,
) -> Schedule {
    let scenario = world.scenario();
    let mut submissions = submissions(machine.jobs, |job| scenario.could_run(job.gpus));
    machine.note_starts();
    let mut idle = 0;
    loop {
        let (submission, end) = (submissions.peek().map(|(_, job)| job.submit_ms), machine.next_end());
        // Reclaims go on for ever. Once nothing runs and no job is on its way, what waits has the idle cluster for
        // itself; what doesn't start there while every node comes back in its turn never will.
        idle = if end.is_none() && submission.is_none() { idle + 1 } else { 0 };
        let back = strategy.comes_back_at(machine.now_ms());
        let has_hope = world.has_hope() || back.is_some();
        let is_over = !world.returns() && (strategy.waiting() == 0 || !has_hope || idle > world.patience());
        if idle > 0 && is_over {
            break;
        }
        let next = earliest([end, submission, world.next_at_ms(), back]);
        let Some(now) = next.map(|next| strategy.looks_again_at(machine.now_ms()).map_or(next, |look| next.min(look)))
        else {
            break;
        };
        machine.advance(now, strategy.waiting());
        machine.complete();
        world.happen(&mut machine, &mut strategy);
        while let Some((index, _)) = submissions.next_if(|(_, job)| job.submit_ms == now) {
            strategy.submit(index, &machine);
            watch.submitted = index + 1;
        }
        strategy.pass(&mut machine);
        world.started(&mut machine);
        watch.look();
    }
    machine.into_schedule()
}

fn submissions(jobs: &[Job], could_run: impl Fn(&Job) -> bool) -> Peekable<impl Iterator<Item = (usize, &Job)>> {
    jobs.iter().enumerate().filter(move |(_, job)| could_run(job)).peekable()
}

fn earliest<const N: usize>(times: [Option<u64>; N]) -> Option<u64> {
    times.into_iter().flatten().min()
}

/// Whoever watches.
struct Watch<'a> {
    tell: Option<&'a dyn Fn(usize)>,
    submitted: usize,
    instants: u32,
}

impl<'a> Watch<'a> {
    fn new(tell: Option<&'a dyn Fn(usize)>) -> Self {
        Self { tell, submitted: 0, instants: 0 }
    }

    fn look(&mut self) {
        self.instants = self.instants.wrapping_add(1);
        if self.instants.is_multiple_of(WATCHED_EVERY)
            && let Some(tell) = self.tell
        {
            tell(self.submitted);
        }
    }
}
