//! The pool as it is when a job's turn comes: what the cycle starts before it runs, whom it evicts for those has gone, and in
//! line are only the job and those that something is kept for, or that hold everybody up, before it.

use std::collections::{BTreeMap, BTreeSet};

use osprey_model::id::JobId;
use osprey_policy::share::TeamUse;
use osprey_scheduler::order::of_snapshot;
use osprey_scheduler::plan::{Eviction, Start};
use osprey_scheduler::snapshot::{Evicted, Landing, NodeState, Queued, Running};
use osprey_scheduler::{Rules, Snapshot, Strategy, WaitReason};

use crate::case::Case;
use crate::facts::Facts;

const DAY_MS: i64 = 86_400_000;

/// A job at its turn.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The pool.
    pub snapshot: Snapshot,
    /// The rules. Nobody is evicted: whom the decision evicts at the job's turn is known, since the job waits.
    pub rules: Rules,
    /// When.
    pub now_ms: i64,
    /// The job.
    pub job: JobId,
}

impl Turn {
    /// The job as it waits.
    pub fn queued(&self) -> Option<&Queued> {
        self.snapshot.queued.iter().find(|queued| queued.job == self.job)
    }

    /// The job, to be changed.
    pub fn queued_mut(&mut self) -> Option<&mut Queued> {
        self.snapshot.queued.iter_mut().find(|queued| queued.job == self.job)
    }
}

/// The turns that the job may have had. It is one, but where the search for placements may have chosen another order: then
/// the plan says who started, and not when the job was asked. And what is kept for a head was kept at its turn: what was reserved
/// for others then may be held by them since.
pub fn turns(case: &Case) -> Vec<Turn> {
    let order = Order::of(case);
    let usual = order.before();
    let mut turns = vec![order.turn(&usual)];
    turns.extend(order.when_kept(&usual));
    if case.moment.rules.strategy == Strategy::Osprey && case.plan.evictions.is_empty() {
        let starts: Vec<&Start> = case.plan.starts.iter().collect();
        turns.extend((0..=starts.len()).rev().map(|count| order.turn(starts.get(..count).unwrap_or_default())));
    }
    turns
}

/// The places of jobs in the queue.
struct Order<'c> {
    case: &'c Case,
    places: BTreeMap<JobId, usize>,
    own: usize,
    /// Whether the job would go on beyond its team's GPU-hours: then it comes after everybody who wouldn't.
    borrows: bool,
}

impl<'c> Order<'c> {
    fn of(case: &'c Case) -> Self {
        let queue = of_snapshot(&case.moment.snapshot, &case.moment.rules, case.moment.now_ms);
        let places: BTreeMap<JobId, usize> = queue.iter().map(|job| job.job).zip(0..).collect();
        let own = places.get(&case.job).copied().unwrap_or(0);
        let order = Self { case, places, own, borrows: false };
        let borrows = !is_strict(&case.moment.rules) && borrows(&order.turn(&order.before()));
        Self { borrows, ..order }
    }

    /// Whether a job comes before this one in the queue; its own children, which start one by one, do too.
    fn is_ahead(&self, job: JobId) -> bool {
        self.places.get(&job).is_some_and(|place| *place <= self.own)
    }

    /// Whether a job of a team that is within its GPU-hours has its turn before this one.
    fn is_before(&self, job: JobId) -> bool {
        self.borrows || self.is_ahead(job)
    }

    /// What starts before the job's turn.
    fn before(&self) -> Vec<&'c Start> {
        let is_before = |start: &&Start| match (start.is_borrowed, is_strict(&self.case.moment.rules)) {
            (false, _) => self.is_before(start.job),
            (true, true) => self.is_ahead(start.job),
            (true, false) => self.borrows && self.is_ahead(start.job),
        };
        self.case.plan.starts.iter().filter(is_before).collect()
    }

    /// The turn with what was reserved for others when the head was kept its place: what jobs of a reserve that started since hold of
    /// it counts as nobody's.
    fn when_kept(&self, before: &[&Start]) -> Option<Turn> {
        let WaitReason::WouldDelay { head, .. } = self.case.reason else { return None };
        let mut turn = self.turn(before);
        let is_since = |job: JobId| self.places.get(&job) > self.places.get(&head);
        let since = before.iter().map(|start| start.job).filter(|job| is_since(*job));
        let since: BTreeSet<JobId> = since.collect();
        let running = turn.snapshot.running.iter_mut().filter(|running| since.contains(&running.job));
        running.for_each(|running| running.charge.reserve = None);
        Some(turn).filter(|turn| !turn.rules.quota.reserves.is_empty())
    }

    fn turn(&self, before: &[&Start]) -> Turn {
        let moment = &self.case.moment;
        let strategy = match moment.rules.strategy {
            Strategy::Osprey => Strategy::Backfill,
            strategy => strategy,
        };
        let mut turn = Turn {
            snapshot: moment.snapshot.clone(),
            rules: Rules { strategy, ..moment.rules.clone() },
            now_ms: moment.now_ms,
            job: self.case.job,
        };
        let evictions = self.case.plan.evictions.iter().filter(|eviction| self.is_before(eviction.start.job));
        let evictions: Vec<&Eviction> = evictions.collect();
        for eviction in &evictions {
            go(eviction, &mut turn);
        }
        let instead = evictions.iter().map(|eviction| &eviction.start);
        let started: Vec<&Start> = before.iter().copied().chain(instead).collect();
        started.iter().for_each(|start| begin(start, &mut turn));
        self.leave_line(&started, &mut turn);
        turn
    }

    /// Takes everybody out of the line whom the decision about the job doesn't look at, and children that have started.
    fn leave_line(&self, started: &[&Start], turn: &mut Turn) {
        let plan = &self.case.plan;
        let mut stays: BTreeSet<JobId> = plan.reservations.iter().map(|kept| kept.job).collect();
        stays.retain(|job| self.is_before(*job));
        stays.insert(self.case.job);
        if let WaitReason::BehindHead { head } = self.case.reason {
            stays.insert(head);
        }
        turn.snapshot.queued.retain(|queued| stays.contains(&queued.job));
        for queued in &mut turn.snapshot.queued {
            let children = started.iter().filter(|start| start.job == queued.job).count();
            if let Some(array) = queued.array.as_mut().filter(|array| array.singly) {
                array.waiting = array.waiting.saturating_sub(u32::try_from(children).unwrap_or(0)).max(1);
                // Its turn is that of the first child that doesn't start.
                array.waiting = if queued.job == turn.job { 1 } else { array.waiting };
            }
        }
        self.come_last(turn);
    }

    /// Where teams take turns, its turn is the last: what its team has in line before it isn't there any more.
    fn come_last(&self, turn: &mut Turn) {
        if !turn.rules.quota.fair_share || turn.snapshot.teams.is_empty() {
            return;
        }
        let number = u16::try_from(turn.snapshot.teams.len()).unwrap_or(u16::MAX);
        let Some(job) = turn.queued_mut() else { return };
        let team = *job.charge.team.get_or_insert(number);
        if team == number {
            turn.snapshot.teams.push(TeamUse::default());
        }
        if let Some(team) = turn.snapshot.teams.get_mut(usize::from(team)) {
            team.share_gpu_ms = u64::MAX / 4;
        }
    }
}

/// Whether nobody passes a job that doesn't fit.
fn is_strict(rules: &Rules) -> bool {
    matches!(rules.strategy, Strategy::Fifo | Strategy::Priority | Strategy::Sjf)
}

/// Whether the job at its turn would go on beyond its team's GPU-hours.
fn borrows(turn: &Turn) -> bool {
    let Some(job) = turn.queued() else { return false };
    let team = job.charge.team.and_then(|team| turn.snapshot.teams.get(usize::from(team)));
    let is_free = turn.rules.tiers.get(usize::from(job.tier)).is_some_and(|tier| tier.at_least.is_none());
    let is_over = |team: &TeamUse| {
        [&team.day, &team.week]
            .into_iter()
            .any(|budget| budget.limit_gpu_ms.is_some_and(|limit| budget.used_gpu_ms + budget.promised_gpu_ms >= limit))
    };
    // Of one that is over another limit as well nobody asks.
    let may = Facts::of(turn).is_some_and(|facts| facts.gpus() > 0 && facts.over().is_none());
    turn.rules.quota.borrowing && !is_free && may && team.is_some_and(is_over)
}

/// Lets the victims of an eviction go.
fn go(eviction: &Eviction, turn: &mut Turn) {
    let now_ms = turn.now_ms;
    for victim in &eviction.victims {
        turn.snapshot.running.retain(|running| running.job != victim.job);
        turn.snapshot.evicted.push(Evicted { tier: victim.tier, at_ms: now_ms });
    }
}

/// Lets a job run that the cycle starts, and its team hold what it takes.
fn begin(start: &Start, turn: &mut Turn) {
    let Some(queued) = turn.snapshot.queued.iter().find(|queued| queued.job == start.job).copied() else { return };
    let ready_ms = |node: u32| match usize::try_from(node).ok().and_then(|node| turn.snapshot.nodes.get(node)) {
        Some(node) => match node.state {
            NodeState::Starting { ready_ms } => ready_ms.max(turn.now_ms),
            NodeState::Absent { start_up_ms } => turn.now_ms.saturating_add_unsigned(start_up_ms),
            NodeState::Up | NodeState::Closed => turn.now_ms,
        },
        None => turn.now_ms,
    };
    let begins_ms = start.holds.iter().map(|hold| ready_ms(hold.node)).max().unwrap_or(turn.now_ms);
    let run_ms = queued.expected_ms.unwrap_or(turn.rules.unknown_ms).max(1);
    let children = match queued.array {
        Some(array) if !array.singly => children(start, &queued),
        _ => 1,
    };
    let gpus = u64::from(queued.shape.all_gpus() * children);
    if let Some(team) = queued.charge.team.and_then(|team| turn.snapshot.teams.get_mut(usize::from(team))) {
        if let Some(tier) = turn.rules.tiers.get(usize::from(queued.tier)) {
            *team.gpus.entry(tier.name.clone()).or_default() += queued.shape.all_gpus() * children;
        }
        let midnight_ms = (DAY_MS - turn.now_ms.rem_euclid(DAY_MS)).unsigned_abs();
        let expected_ms = queued.expected_ms.unwrap_or(turn.rules.unknown_ms);
        team.day.promised_gpu_ms += expected_ms.min(midnight_ms) * gpus;
        team.week.promised_gpu_ms += expected_ms.min(7 * DAY_MS.unsigned_abs()) * gpus;
    }
    turn.snapshot.running.push(Running {
        children,
        holds: start.holds.clone(),
        has_landed: turn.snapshot.landing == Landing::AsPlanned,
        started_ms: turn.now_ms,
        expected_end_ms: Some(begins_ms.saturating_add_unsigned(run_ms)),
        priority: queued.priority,
        tier: queued.tier,
        charge: queued.charge,
        is_borrowed: start.is_borrowed,
        ..Running::new(start.job, queued.shape)
    });
}

/// Children of an array that starts as one.
fn children(start: &Start, queued: &Queued) -> u32 {
    let sum = |of: fn(&osprey_scheduler::snapshot::Hold) -> u32| start.holds.iter().map(of).sum::<u32>();
    let by_gpus = sum(|hold| hold.gpus).checked_div(queued.shape.gpus);
    by_gpus.or_else(|| sum(|hold| hold.vcpus).checked_div(queued.shape.vcpus)).unwrap_or(1)
}
