//! Strategies that ask the production decision: the scheduler crate's `decide`, once an instant and pool.

use std::collections::BTreeMap;
use std::fmt;

use osprey_model::id::JobId;
use osprey_model::pool::CapacityType;
use osprey_scheduler::order::Key;
use osprey_scheduler::plan::{Eviction, Plan, Receipt, Start};
use osprey_scheduler::snapshot::{Charge, Evicted, Hold, Node, Queued, Running, Shape};
use osprey_scheduler::{Rules, Snapshot, Strategy as Rule, WaitReason, decide};

use crate::cluster::{Cluster, Placement};
use crate::estimates::Believed;
use crate::machine::Machine;
use crate::pool::Pool;
use crate::scenario::Scenario;
use crate::strategy::Strategy;
use crate::teams::{Teams, next_midnight};
use crate::workload::Job;

/// While a job waits that others may be evicted for, and estimates may be wrong, it is looked at this often.
const LOOK_AGAIN_MS: u64 = 60_000;
/// While something is borrowed and others wait, they are looked at this often: what they have waited is what they take it
/// back for.
const LOANS_LOOK_AGAIN_MS: u64 = 300_000;
/// Midnights without anything that runs after which a job that no quota lets start is given up: a week's quota passes.
const MIDNIGHTS_MAX: u32 = 8;

/// A production strategy.
#[derive(Clone, Debug)]
pub struct Production {
    /// What the decision follows in each pool, in the order of the scenario's; the last one in all that follow.
    pub rules: Vec<Rules>,
    /// What is believed of run times.
    pub believed: Believed,
    /// What teams use, where the policy asks for it.
    pub teams: Option<Teams>,
}

impl From<Rules> for Production {
    /// The same rules everywhere, with exact run times.
    fn from(rules: Rules) -> Self {
        Self { rules: vec![rules], believed: Believed::Exact, teams: None }
    }
}

/// What a pass of the production decision saw, and what it decided.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// The pool, by its place in the scenario; 0 where nothing happens to the cluster.
    pub pool: usize,
    /// What it was decided on. Jobs are named by their places in the workload ([`place_of`]).
    pub snapshot: &'a Snapshot,
    /// By which rules.
    pub rules: &'a Rules,
    /// When, milliseconds since the first submission.
    pub now_ms: i64,
    /// What was decided.
    pub plan: &'a Plan,
}

/// Is told of every pass in which somebody waits.
#[derive(Clone, Copy)]
pub struct Onlooker<'a>(pub &'a dyn Fn(&Sight<'_>));

impl fmt::Debug for Onlooker<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Onlooker")
    }
}

/// The production decision behind the interface of the reference strategies.
#[derive(Clone, Debug)]
pub struct Decided<'s> {
    believed: Believed,
    scenario: Option<&'s Scenario>,
    lots: Vec<Lot>,
    places: BTreeMap<JobId, usize>,
    onlooker: Option<Onlooker<'s>>,
    teams: Option<Teams>,
    /// Midnights on which nothing ran, since something started.
    midnights: u32,
}

/// One pool: each has a plan of its own.
#[derive(Clone, Debug)]
struct Lot {
    rules: Rules,
    /// The number of its first node.
    first: u32,
    snapshot: Snapshot,
    /// The places of the snapshot's running jobs, in its order.
    running: Vec<usize>,
    /// Whether a job waits for its team's GPU-hours.
    waits_for_hours: bool,
}

/// What a pass did.
#[derive(Default)]
struct Passed {
    evicted: Vec<usize>,
    /// Runs that ended by it.
    closed: Vec<Running>,
    has_started: bool,
}

impl<'s> Decided<'s> {
    /// Nobody waits. Where nodes don't matter the cluster is one large node.
    #[must_use]
    pub fn new(production: Production, cluster: &Cluster, scenario: Option<&'s Scenario>) -> Self {
        let Production { rules, believed, teams } = production;
        let nodes: Vec<Vec<u32>> = match (scenario, cluster.placement) {
            (Some(scenario), _) => {
                let shapes = scenario.shapes();
                shapes.iter().map(|shape| (0..shape.nodes).map(|_| shape.gpus_per_node).collect()).collect()
            }
            (None, Placement::Count) => vec![vec![cluster.gpus()]],
            (None, Placement::Node | Placement::Spread) => {
                vec![(0..cluster.nodes).map(|_| cluster.gpus_per_node).collect()]
            }
        };
        let (mut first, mut rules) = (0, rules.into_iter());
        let mut last = Rules::default();
        let lots = nodes.into_iter().map(|nodes| {
            last = rules.next().unwrap_or_else(|| last.clone());
            let lot = Lot::new(last.clone(), first, nodes);
            first += u32::try_from(lot.snapshot.nodes.len()).unwrap_or(0);
            lot
        });
        let lots = lots.collect();
        Self { believed, scenario, lots, places: BTreeMap::new(), onlooker: None, teams, midnights: 0 }
    }

    /// The same, and somebody is told of every pass.
    #[must_use]
    pub fn seen_by(self, onlooker: Option<Onlooker<'s>>) -> Self {
        Self { onlooker, ..self }
    }

    fn queued<P: Pool>(&self, job: usize, machine: &Machine<'_, P>) -> Queued {
        let spec = machine.job(job);
        let done_ms = spec.duration_ms - machine.remaining_ms(job);
        let believed_ms = self.believed.of(job, spec).map(|ms| ms.saturating_sub(done_ms));
        Queued {
            priority: priority(spec, machine.outcome(job).failures),
            tier: spec.tier,
            enqueued_ms: time(spec.submit_ms),
            ran_ms: done_ms,
            not_before_ms: time(machine.now_ms()),
            expected_ms: believed_ms.map(|ms| ms + machine.restart_ms(job)),
            charge: Charge { team: spec.team.filter(|_| self.teams.is_some()), reserve: spec.reserve, user: None },
            ..Queued::new(id(job), Shape::gpus(spec.gpus))
        }
    }

    /// The pool of a job: its own, or one that stays after it has lost its host too often.
    fn lot_of<P: Pool>(&self, job: usize, machine: &Machine<'_, P>) -> usize {
        let spec = machine.job(job);
        let moved = self.scenario.filter(|scenario| {
            let after = scenario.budgets.on_demand_after;
            after > 0 && machine.outcome(job).host_losses >= after
        });
        let moved = moved.and_then(|scenario| scenario.pool_for(spec.gpus, &[CapacityType::OnDemand]));
        usize::from(moved.unwrap_or(spec.pool)).min(self.lots.len().saturating_sub(1))
    }

    /// Takes jobs that have ended out of the snapshots, and learns from them.
    fn forget_ended<P: Pool>(&mut self, machine: &Machine<'_, P>) {
        for lot in &mut self.lots {
            let runs = |job: &usize| machine.share(*job).is_some();
            for job in lot.running.iter().filter(|job| machine.outcome(**job).end_ms.is_some()) {
                self.believed.learn(machine.job(*job));
            }
            let mut places = lot.running.iter();
            let (running, ended): (Vec<Running>, Vec<Running>) =
                lot.snapshot.running.drain(..).partition(|_| places.next().is_some_and(runs));
            lot.snapshot.running = running;
            lot.running.retain(runs);
            close(&mut self.teams, &ended, time(machine.now_ms()));
        }
    }

    /// Decides about a pool and acts on it. Answers who was evicted.
    fn pass_lot<P: Pool>(&mut self, pool: usize, machine: &mut Machine<'_, P>) -> Vec<usize> {
        let now_ms = time(machine.now_ms());
        if let Some(teams) = self.teams.as_ref().filter(|_| self.lots.get(pool).is_some_and(Lot::has_waiting)) {
            let uses = teams.uses(self.lots.iter().flat_map(|lot| &lot.snapshot.running), now_ms);
            if let Some(lot) = self.lots.get_mut(pool) {
                lot.snapshot.teams = uses;
            }
        }
        let onlooker = self.onlooker;
        let tell = |lot: &Lot, now_ms: i64, plan: &Plan| {
            if let Some(Onlooker(see)) = onlooker {
                see(&Sight { pool, snapshot: &lot.snapshot, rules: &lot.rules, now_ms, plan });
            }
        };
        let Some(lot) = self.lots.get_mut(pool) else { return Vec::new() };
        let Passed { evicted, closed, has_started } = lot.pass(&self.places, machine, tell);
        close(&mut self.teams, &closed, now_ms);
        if has_started {
            self.midnights = 0;
        }
        evicted
    }
}

/// Closes runs in the accounts of their teams.
fn close(teams: &mut Option<Teams>, ended: &[Running], now_ms: i64) {
    if let Some(teams) = teams {
        ended.iter().for_each(|running| teams.close(running, now_ms));
    }
}

impl Lot {
    fn new(rules: Rules, first: u32, nodes: Vec<u32>) -> Self {
        let nodes = nodes.into_iter().map(Node::new).collect();
        let snapshot = Snapshot { nodes, ..Snapshot::default() };
        Self { rules, first, snapshot, running: Vec::new(), waits_for_hours: false }
    }

    fn has_waiting(&self) -> bool {
        !self.snapshot.queued.is_empty()
    }

    fn has_loans(&self) -> bool {
        self.has_waiting() && self.snapshot.running.iter().any(|running| running.is_borrowed)
    }

    /// Takes over which nodes are there.
    fn look<P: Pool>(&mut self, pool: &P) {
        for (number, node) in (self.first..).zip(&mut self.snapshot.nodes) {
            let Some(gpus) = pool.gpus_of(number) else { return };
            node.gpus = gpus;
        }
    }

    /// Decides and acts on it.
    fn pass<P: Pool>(
        &mut self,
        places: &BTreeMap<JobId, usize>,
        machine: &mut Machine<'_, P>,
        tell: impl Fn(&Self, i64, &Plan),
    ) -> Passed {
        self.waits_for_hours = false;
        if !self.has_waiting() {
            return Passed::default();
        }
        self.look(&machine.pool);
        let now_ms = time(machine.now_ms());
        let plan = decide(&self.snapshot, &self.rules, now_ms);
        tell(self, now_ms, &plan);
        let is_of_hours = |reason| matches!(reason, WaitReason::OverQuota { limit, .. } if limit.is_of_time());
        self.waits_for_hours = plan.waiting.iter().any(|waiting| is_of_hours(waiting.reason));
        let mut passed = Passed { has_started: !plan.starts.is_empty(), ..Passed::default() };
        for start in plan.starts {
            self.start(start, false, places, machine);
        }
        for Eviction { start, victims, .. } in plan.evictions {
            for (job, running) in victims.iter().filter_map(|victim| self.evict(victim, places, machine)) {
                passed.evicted.push(job);
                passed.closed.push(running);
            }
            self.start(start, true, places, machine);
        }
        passed
    }

    fn start<P: Pool>(
        &mut self,
        start: Start,
        is_dive: bool,
        places: &BTreeMap<JobId, usize>,
        machine: &mut Machine<'_, P>,
    ) {
        let now_ms = time(machine.now_ms());
        let Some(job) = places.get(&start.job).copied() else { return };
        let holds: Vec<(u32, u32)> =
            start.holds.iter().map(|Hold { node, gpus, .. }| (self.first + *node, *gpus)).collect();
        if !machine.start_on(job, P::share_of(&holds), is_dive) {
            return;
        }
        let at = self.snapshot.queued.iter().position(|queued| queued.job == start.job);
        let Some(queued) = at.map(|at| self.snapshot.queued.remove(at)) else { return };
        self.snapshot.running.push(Running {
            holds: start.holds,
            has_landed: true,
            started_ms: now_ms,
            expected_end_ms: queued.expected_ms.map(|ms| now_ms.saturating_add_unsigned(ms)),
            priority: queued.priority,
            tier: queued.tier,
            done_ms: queued.ran_ms,
            evictions: machine.outcome(job).preemptions,
            saves_every_ms: Some(machine.saves_every_ms(job)),
            charge: queued.charge,
            is_borrowed: start.is_borrowed,
            ..Running::new(start.job, queued.shape)
        });
        self.running.push(job);
    }

    /// Stops a job at once; what it saved last is kept.
    fn evict<P: Pool>(
        &mut self,
        victim: &Receipt,
        places: &BTreeMap<JobId, usize>,
        machine: &mut Machine<'_, P>,
    ) -> Option<(usize, Running)> {
        let job = places.get(&victim.job).copied()?;
        machine.evict(job, machine.saved_ms(job));
        let at = self.running.iter().position(|running| *running == job)?;
        self.running.remove(at);
        let running = self.snapshot.running.remove(at);
        let now_ms = time(machine.now_ms());
        let window_ms = self.rules.tiers.iter().map(|tier| tier.eviction_window_ms).max().unwrap_or(0);
        self.snapshot.evicted.retain(|was| was.at_ms > now_ms.saturating_sub_unsigned(window_ms));
        self.snapshot.evicted.push(Evicted { tier: victim.tier, at_ms: now_ms });
        Some((job, running))
    }

    /// Whether a job waits that others may be evicted for.
    fn has_preemptor(&self) -> bool {
        let may = |job: &Queued| {
            let tier = self.rules.tiers.get(usize::from(job.tier));
            tier.is_some_and(|tier| !tier.may_preempt.is_empty() || !tier.may_preempt_when_full.is_empty())
        };
        self.rules.strategy == Rule::Osprey && self.snapshot.queued.iter().any(may)
    }
}

/// The number derived after so many failures.
fn priority(job: &Job, failures: u32) -> u32 {
    let last = job.after_failures.len().min(usize::try_from(failures).unwrap_or(usize::MAX));
    last.checked_sub(1).and_then(|last| job.after_failures.get(last)).copied().unwrap_or(job.priority)
}

/// The id of a job by its place, so that comparing ids compares places.
fn id(job: usize) -> JobId {
    // INVARIANT: a place fits 128 bits.
    JobId::from_uuid(uuid::Uuid::from_u128(u128::try_from(job).unwrap_or(u128::MAX)))
}

/// The place in the workload of the job that an id of a snapshot names.
#[must_use]
pub fn place_of(job: JobId) -> Option<usize> {
    usize::try_from(job.as_uuid().as_u128()).ok()
}

fn time(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

impl<P: Pool> Strategy<P> for Decided<'_> {
    fn submit(&mut self, job: usize, machine: &Machine<'_, P>) {
        let (queued, lot) = (self.queued(job, machine), self.lot_of(job, machine));
        self.places.insert(queued.job, job);
        let Some(lot) = self.lots.get_mut(lot) else { return };
        // The order that decides quickest.
        let (rules, now_ms) = (&lot.rules, time(machine.now_ms()));
        let key = Key::of(&queued, rules, now_ms);
        let waiting = &mut lot.snapshot.queued;
        let at = waiting.partition_point(|other| Key::of(other, rules, now_ms) < key);
        waiting.insert(at, queued);
    }

    fn pass(&mut self, machine: &mut Machine<'_, P>) {
        let is_midnight = machine.now_ms() > 0 && next_midnight(machine.now_ms() - 1) == machine.now_ms();
        let is_idle = self.lots.iter().all(|lot| lot.running.is_empty());
        self.midnights = self.midnights.saturating_add(u32::from(is_midnight && is_idle));
        self.forget_ended(machine);
        for pool in 0..self.lots.len() {
            // Who was evicted waits again, and may fit elsewhere.
            loop {
                let evicted = self.pass_lot(pool, machine);
                if evicted.is_empty() {
                    break;
                }
                evicted.into_iter().for_each(|job| self.submit(job, machine));
            }
        }
    }

    fn looks_again_at(&self, now_ms: u64) -> Option<u64> {
        // Exact times tell nothing new until the next event.
        let is_exact = matches!(self.believed, Believed::Exact);
        let urgent = (!is_exact && self.lots.iter().any(Lot::has_preemptor)).then_some(LOOK_AGAIN_MS);
        let loans = self.lots.iter().any(Lot::has_loans).then_some(LOANS_LOOK_AGAIN_MS);
        let soon = urgent.into_iter().chain(loans).min().map(|ms| now_ms.saturating_add(ms));
        soon.into_iter().chain(Strategy::<P>::comes_back_at(self, now_ms)).min()
    }

    fn comes_back_at(&self, now_ms: u64) -> Option<u64> {
        let waits = self.midnights < MIDNIGHTS_MAX && self.lots.iter().any(|lot| lot.waits_for_hours);
        waits.then(|| next_midnight(now_ms))
    }

    fn waiting(&self) -> usize {
        self.lots.iter().map(|lot| lot.snapshot.queued.len()).sum()
    }
}
