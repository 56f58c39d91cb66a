//! The cycle, a recipe of numbered steps. Each step is a file named by what it decides:
//!
//! 1. `priority`: the number that counts, derived or lent, and what waiting adds.
//! 2. `order`: the order of the queue, total.
//! 3. `eligible`: who can't start whatever the order, and holds up nobody.
//!    `quota`: whose team or user has what it may; whoever would borrow comes after all others.
//! 4. `room`, and `landing` where Batch chooses the nodes: placement, all or nothing.
//! 5. `reserve`: GPUs kept for what doesn't fit, each urgent job and the head.
//! 6. `headroom`: GPUs kept free for urgent jobs that haven't come yet.
//! 7. `preempt`: who goes for a job that would wait too long, before the rest of the queue is looked at.
//! 8. `strategy`: how far down the queue starts are looked for; `backfill` passes a job that waits, if it can't delay it.
//! 9. `reason`: why each of the others waits.

use std::collections::{BTreeMap, BTreeSet};

use osprey_model::id::JobId;

use crate::demand::Demand;
use crate::headroom;
use crate::landing::InFlight;
use crate::order::of_snapshot;
use crate::plan::{Eviction, Plan, Reservation, Start, Waiting};
use crate::preempt::{self, Preempting, Spare};
use crate::priority::Standing;
use crate::quota::Quotas;
use crate::reason::WaitReason;
use crate::reserve::{Kept, Wish};
use crate::room::{Place, Room, is_empty, ready_ms};
use crate::rules::{Rules, Strategy};
use crate::snapshot::{Gate, Hold, Landing, Node, Queued, Running, Snapshot};
use crate::strategy::{backfill, osprey, strict};

/// A plan on its way.
pub(crate) struct Cycle<'s> {
    pub snapshot: &'s Snapshot,
    pub rules: &'s Rules,
    pub now_ms: i64,
    pub room: Room<'s>,
    pub kept: Kept,
    pub plan: Plan,
    /// What teams and users have, and what is reserved.
    pub quotas: Quotas<'s>,
    /// Where Batch chooses the nodes.
    in_flight: Option<InFlight<'s>>,
    /// Places of running jobs whose nodes aren't known, as if they were planned now.
    assumed: Vec<(i64, Place)>,
    /// Ends of this cycle's starts, in the order of the plan, and of those that others make room for.
    ends_ms: Vec<i64>,
    evictors_end_ms: Vec<i64>,
    started: BTreeSet<JobId>,
    /// Whether something runs that is borrowed.
    pub has_loans: bool,
    /// Who may be evicted and has been.
    pub preempting: Preempting,
    /// What was looked for in vain. Room only shrinks while a plan grows, so whoever asks for as much and for as long is refused
    /// as well; and whoever asks for less long by dispatches in flight, which he is told only when he is in nobody's way.
    refused: BTreeMap<(Demand, bool), Refused>,
    pub pool_gpus: u32,
    /// When the last node would be ready.
    all_ready_ms: i64,
}

/// What was looked for in vain.
#[derive(Clone, Copy, Debug)]
struct Refused {
    /// From which end on it holds of those who ask, and up to which.
    from_ms: i64,
    to_ms: i64,
    refusal: Refusal,
    /// How far the plan was. What it has started and kept since may be why whoever asks now is refused, before anything else.
    at: (usize, usize),
}

/// Why a place wasn't given.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    /// There is none.
    Room(WaitReason),
    /// It would delay a job, beginning then.
    Delay { head: JobId, at_ms: i64, begins_ms: i64 },
}

/// Decides what starts now, milliseconds since 1970.
#[must_use]
pub fn decide(snapshot: &Snapshot, rules: &Rules, now_ms: i64) -> Plan {
    let queue = of_snapshot(snapshot, rules, now_ms);
    let walk = |queue: &[&_]| walked(snapshot, rules, now_ms, queue);
    match rules.strategy {
        Strategy::Osprey => osprey::choose(snapshot, rules, now_ms, &queue, walk),
        Strategy::Fifo | Strategy::Priority | Strategy::Sjf | Strategy::Backfill => walk(&queue),
    }
}

/// The plan of one walk down a queue.
fn walked(snapshot: &Snapshot, rules: &Rules, now_ms: i64, queue: &[&Queued]) -> Plan {
    let mut cycle = Cycle::new(snapshot, rules, now_ms);
    match rules.strategy {
        Strategy::Fifo | Strategy::Priority | Strategy::Sjf => strict::walk(&mut cycle, queue),
        Strategy::Backfill | Strategy::Osprey => backfill::walk(&mut cycle, queue),
    }
    cycle.plan
}

impl<'s> Cycle<'s> {
    fn new(snapshot: &'s Snapshot, rules: &'s Rules, now_ms: i64) -> Self {
        let stays = |running: &Running| !preempt::has_left(running, snapshot);
        let room = Room::of(snapshot, stays);
        let is_anywhere = snapshot.landing == Landing::Anywhere;
        let landed = |running: &Running| running.has_landed && stays(running);
        let in_flight = is_anywhere.then(|| InFlight::new(Room::of(snapshot, landed)));
        let mut cycle = Self {
            snapshot,
            rules,
            now_ms,
            room,
            kept: Kept::default(),
            plan: Plan::default(),
            quotas: Quotas::new(snapshot, rules, 0, now_ms),
            in_flight,
            assumed: Vec::new(),
            ends_ms: Vec::new(),
            evictors_end_ms: Vec::new(),
            started: BTreeSet::new(),
            has_loans: snapshot.running.iter().any(|running| running.is_borrowed),
            preempting: Preempting::default(),
            refused: BTreeMap::new(),
            pool_gpus: 0,
            all_ready_ms: snapshot.nodes.iter().map(|node| ready_ms(node, now_ms)).max().unwrap_or(now_ms),
        };
        cycle.pool_gpus = cycle.room.gpus();
        cycle.quotas = Quotas::new(snapshot, rules, cycle.pool_gpus, now_ms);
        let unheard = snapshot.running.iter().filter(|running| is_anywhere && !running.has_landed);
        let gpus = unheard.map(|running| running.shape.all_gpus().saturating_mul(running.children.max(1)));
        cycle.room.expect_unheard(gpus.fold(0, u32::saturating_add));
        snapshot.running.iter().filter(|running| !running.has_landed).for_each(|running| cycle.assume(running));
        cycle
    }

    /// Takes in a dispatch in flight; one whose plan isn't known goes where it would be planned now.
    fn assume(&mut self, running: &Running) {
        let (shape, count) = (running.shape, running.children.max(1));
        let demand = if count > 1 { Demand::Children { shape, count } } else { Demand::Nodes(shape) };
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.add(demand);
        }
        if !running.holds.is_empty() {
            return;
        }
        // What fits nowhere is a contradiction, or waits for a node that has gone: it takes what there is.
        let place = self.room.place(demand, |_| true).unwrap_or_else(|| self.room.any(demand.gpus()));
        self.room.take(place.holds());
        self.assumed.push((self.end_of_running(running), place));
    }

    pub(crate) fn end_of_running(&self, running: &Running) -> i64 {
        let unknown_ms = self.rules.unknown_ms;
        let end_ms = running.expected_end_ms.unwrap_or_else(|| running.started_ms.saturating_add_unsigned(unknown_ms));
        // An overdue job may end at any moment, which is later than now.
        end_ms.max(self.now_ms.saturating_add(1))
    }

    /// Starts a job, or one child of an array, or says why not.
    pub(crate) fn start(&mut self, job: &Queued, child: Option<u32>, headroom: u32) -> Result<(), WaitReason> {
        let demand = Demand::of(job, &self.room);
        let (gpus, free) = (demand.gpus(), self.room.free());
        let is_borrowed = self.quotas.allows(job, gpus)?;
        if gpus <= free {
            self.quotas.leaves(job, gpus, free)?;
        }
        let place = self.find(job, demand, headroom)?;
        if !self.is_new(job, child) {
            return Err(WaitReason::AlreadyRuns);
        }
        let end_ms = self.take(job, demand, &place);
        self.ends_ms.push(end_ms);
        self.plan.starts.push(Start { job: job.job, child, is_borrowed, holds: place.into() });
        Ok(())
    }

    /// Gives a place to a job. Answers when it is taken to end.
    fn take(&mut self, job: &Queued, demand: Demand, place: &Place) -> i64 {
        let end_ms = self.end_of(job, place.holds());
        self.quotas.charge(job, demand.gpus());
        self.room.take(place.holds());
        self.kept.started(place.holds(), end_ms, job.charge.reserve.is_some());
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.add(demand);
        }
        end_ms
    }

    /// Lets runs go, by their places in the snapshot, and starts a job in their place, which leaves so many GPUs free. `None`,
    /// and everything as it was, when it still doesn't fit: Batch may let it land elsewhere.
    pub(crate) fn start_instead(
        &mut self,
        job: &Queued,
        child: Option<u32>,
        goers: &[usize],
        headroom: u32,
    ) -> Option<Start> {
        let before = (self.room.clone(), self.kept.clone(), self.in_flight.clone(), self.quotas.clone());
        self.preempting.goes(goers);
        for running in goers.iter().filter_map(|place| self.snapshot.running.get(*place)) {
            self.room.give(&running.holds);
            self.kept.gone(&running.holds, self.end_of_running(running));
            self.quotas.gone(running);
            if let Some(in_flight) = &mut self.in_flight {
                in_flight.give(&running.holds);
            }
        }
        let demand = Demand::of(job, &self.room);
        let (gpus, free) = (demand.gpus(), self.room.free());
        let may = self.quotas.allows(job, gpus) == Ok(false)
            && self.quotas.leaves(job, gpus, free).is_ok()
            && free.saturating_sub(gpus) >= headroom;
        let place = self.look(job, demand).ok().filter(|place| self.leaves_nodes(place, &before.0, headroom));
        let place = place.filter(|_| may && self.is_new(job, child));
        let Some(place) = place else {
            (self.room, self.kept, self.in_flight, self.quotas) = before;
            self.preempting.stays(goers);
            return None;
        };
        let end_ms = self.take(job, demand, &place);
        self.evictors_end_ms.push(end_ms);
        // There is more room than before: what was refused may fit.
        self.refused.clear();
        Some(Start { job: job.job, child, is_borrowed: false, holds: place.into() })
    }

    /// Whether a job that starts in the place of others leaves as many whole nodes empty as it has to: it may take those that
    /// weren't empty before.
    fn leaves_nodes(&self, place: &Place, before: &Room<'_>, headroom: u32) -> bool {
        let was_empty =
            |hold: &&Hold| before.node(hold.node).is_some_and(|node| is_empty(node, before.free_of(hold.node)));
        self.in_flight.is_some()
            || !place.holds().iter().any(|hold| was_empty(&hold))
            || headroom::leaves_nodes(&self.room, place.holds(), headroom).is_ok()
    }

    /// What a job must leave free that takes back what is lent.
    pub(crate) fn spare(&self, job: &Queued, standing: Standing) -> Spare {
        let headroom = self.headroom(job, standing).min(self.room.free());
        Spare { headroom, reserved: self.quotas.kept_from(job).0 }
    }

    /// Takes in an eviction; when what runs ends is told again, without those that go.
    pub(crate) fn evict(&mut self, eviction: Eviction) {
        self.plan.evictions.push(eviction);
        self.know_ends();
    }

    /// When a job is expected to fit if nobody is evicted for it; `None` when that can't be foreseen.
    pub(crate) fn expected_at(&mut self, job: &Queued) -> Option<i64> {
        let wish = self.wish(job);
        self.kept.earliest_ms(&self.room, &wish)
    }

    fn wish(&mut self, job: &Queued) -> Wish {
        if !self.kept.is_known() {
            self.know_ends();
        }
        let run_ms = i64::try_from(job.expected_ms.unwrap_or(self.rules.unknown_ms)).unwrap_or(i64::MAX);
        let spare = self.quotas.kept_from(job).0;
        Wish { job: job.job, demand: Demand::kept(job, &self.room), spare, run_ms, now_ms: self.now_ms }
    }

    /// Whether a job isn't started twice: a snapshot may contradict itself.
    fn is_new(&mut self, job: &Queued, child: Option<u32>) -> bool {
        child.is_some()
            || !self.snapshot.running.iter().any(|running| running.job == job.job) && self.started.insert(job.job)
    }

    /// Where a job can start now without taking anything that is kept.
    fn find(&mut self, job: &Queued, demand: Demand, headroom: u32) -> Result<Place, WaitReason> {
        let (gpus, free) = (demand.gpus(), self.room.free());
        if gpus > free {
            return Err(self.short(WaitReason::NoRoom { gpus, free }));
        }
        if gpus > 0 && free - gpus < headroom {
            return Err(WaitReason::Headroom { gpus, free, kept: headroom });
        }
        let least_end_ms = self.end_from(job, self.now_ms);
        // What others have to leave free whoever it is for may take.
        let at = (self.plan.starts.len(), self.plan.reservations.len());
        let asked_ms = least_end_ms.unwrap_or(i64::MAX);
        let known = || [false, true].into_iter().filter_map(|is_in_flight| self.refused.get(&(demand, is_in_flight)));
        if job.charge.reserve.is_none()
            && let Some(refused) = known().find(|refused| refused.holds(asked_ms, at, demand))
        {
            return Err(self.reason(refused.refusal, job, free));
        }
        let place = self.look(job, demand).map_err(|(from_ms, refusal)| {
            let is_in_flight = matches!(refusal, Refusal::Room(WaitReason::InFlight { .. }));
            let to_ms = if is_in_flight { asked_ms } else { i64::MAX };
            // Whoever is of a reserve is asked less.
            if job.charge.reserve.is_none() {
                self.refused.insert((demand, is_in_flight), Refused { from_ms, to_ms, refusal, at });
            }
            self.reason(refusal, job, free)
        })?;
        // Where Batch chooses the nodes nobody can keep one empty.
        if self.in_flight.is_none() {
            headroom::leaves_nodes(&self.room, place.holds(), headroom)?;
        }
        Ok(place)
    }

    /// The same without a memory; the refusal holds for everybody who wouldn't end before the time given.
    fn look(&self, job: &Queued, demand: Demand) -> Result<Place, (i64, Refusal)> {
        // A job of several nodes begins when the last of them is ready.
        let is_one = matches!(demand, Demand::Nodes(shape) if !self.room.takes_whole(shape));
        let ready = |hold: &Hold| match self.room.node(hold.node) {
            Some(node) if is_one => ready_ms(node, self.now_ms),
            _ => self.all_ready_ms,
        };
        let delayed = |hold: &Hold| {
            let end_ms = self.end_from(job, ready(hold)).unwrap_or(i64::MAX);
            self.kept.delayed(hold, end_ms)
        };
        let least_end_ms = self.end_from(job, self.now_ms).unwrap_or(i64::MAX);
        let Some(place) = self.room.place(demand, |hold| delayed(hold).is_none()) else {
            let bare = self.room.place(demand, |_| true);
            let in_the_way = |hold: &Hold| Some((delayed(hold)?, ready(hold)));
            let keep = bare.as_ref().and_then(|place| place.holds().iter().find_map(in_the_way));
            return Err(match keep {
                Some((keep, begins_ms)) => {
                    (least_end_ms, Refusal::Delay { head: keep.job, at_ms: keep.at_ms, begins_ms })
                }
                None => (i64::MIN, Refusal::Room(self.short(self.no_room(demand)))),
            });
        };
        self.leaves_pool(job, demand, &place)?;
        self.lands_well(job, demand).map(|()| place)
    }

    /// Whether a job leaves the pool enough for every reservation whose job has to leave something free for others; whoever
    /// that is left for needn't.
    fn leaves_pool(&self, job: &Queued, demand: Demand, place: &Place) -> Result<(), (i64, Refusal)> {
        if job.charge.reserve.is_some() {
            return Ok(());
        }
        // Where Batch chooses the nodes it may be the one that is ready last.
        let begins_ms = if self.in_flight.is_some() { self.all_ready_ms } else { self.begin_on(place.holds()) };
        let end_ms = self.end_from(job, begins_ms).unwrap_or(i64::MAX);
        let Some(keep) = self.kept.delayed_by_any(demand.gpus(), end_ms) else { return Ok(()) };
        let least_end_ms = self.end_from(job, self.now_ms).unwrap_or(i64::MAX);
        Err((least_end_ms, Refusal::Delay { head: keep.job, at_ms: keep.at_ms, begins_ms }))
    }

    /// What a refusal says of a job, which may have been that of another one that asked for as much.
    fn reason(&self, refusal: Refusal, job: &Queued, free: u32) -> WaitReason {
        match refusal {
            Refusal::Room(WaitReason::Scattered { gpus, .. }) => WaitReason::Scattered { gpus, free },
            Refusal::Room(reason) => reason,
            Refusal::Delay { head, at_ms, begins_ms } => {
                WaitReason::WouldDelay { head, reserved_at_ms: at_ms, ends_at_ms: self.end_from(job, begins_ms) }
            }
        }
    }

    /// Where Batch chooses the nodes: whether a job may land on any that has room for it.
    fn lands_well(&self, job: &Queued, demand: Demand) -> Result<(), (i64, Refusal)> {
        let Some(in_flight) = &self.in_flight else { return Ok(()) };
        let end_ms = self.end_from(job, self.all_ready_ms).unwrap_or(i64::MAX);
        // Where others in flight are taken to land says nothing of where they do.
        if let Some(keep) = self.kept.delayed_anywhere(in_flight.room(), demand, end_ms) {
            let least_end_ms = self.end_from(job, self.now_ms).unwrap_or(i64::MAX);
            let begins_ms = self.all_ready_ms;
            return Err((least_end_ms, Refusal::Delay { head: keep.job, at_ms: keep.at_ms, begins_ms }));
        }
        if in_flight.allows(demand) {
            return Ok(());
        }
        Err((i64::MIN, Refusal::Room(WaitReason::InFlight { dispatches: in_flight.count() })))
    }

    /// When a job that starts now on these nodes begins: when the last of them is ready.
    fn begin_on(&self, holds: &[Hold]) -> i64 {
        let nodes = holds.iter().filter_map(|hold| self.room.node(hold.node));
        nodes.map(|node| ready_ms(node, self.now_ms)).max().unwrap_or(self.now_ms)
    }

    /// When a job that starts now on these nodes is taken to end.
    fn end_of(&self, job: &Queued, holds: &[Hold]) -> i64 {
        self.begin_on(holds).saturating_add_unsigned(job.expected_ms.unwrap_or(self.rules.unknown_ms).max(1))
    }

    /// When a job ends that begins then: later than that, however short it is; `None` when nobody knows.
    pub(crate) fn end_from(&self, job: &Queued, ready_ms: i64) -> Option<i64> {
        job.expected_ms.map(|run_ms| ready_ms.saturating_add_unsigned(run_ms.max(1)))
    }

    /// Why a demand that is no more than what is free doesn't fit.
    fn no_room(&self, demand: Demand) -> WaitReason {
        let (gpus, free) = (demand.gpus(), self.room.free());
        if let Demand::Nodes(shape) = demand
            && shape.vcpus > 0
        {
            let with_gpus = self.room.all().filter(|(_, _, free)| free.gpus >= shape.gpus);
            let most = with_gpus.map(|(_, _, free)| free.vcpus).max();
            if let Some(free) = most.filter(|free| *free < shape.vcpus) {
                return WaitReason::NoVcpus { vcpus: shape.vcpus, free };
            }
        }
        WaitReason::Scattered { gpus, free }
    }

    /// Where capacity can't be had, that is why there is too little.
    fn short(&self, reason: WaitReason) -> WaitReason {
        match self.snapshot.gate {
            Gate::NoCapacity { since_ms } => WaitReason::NoCapacity { since_ms },
            Gate::Open | Gate::Paused => reason,
        }
    }

    /// Keeps the earliest place of a job for it, whatever headroom it has to leave. `false` when none can be foreseen.
    pub(crate) fn reserve(&mut self, job: &Queued) -> bool {
        let wish = self.wish(job);
        let Some(keep) = self.kept.keep(&self.room, &wish) else { return false };
        self.plan.reservations.push(Reservation { job: keep.job, at_ms: keep.at_ms, holds: keep.holds.clone() });
        // More is kept than before: what was refused for the GPUs that were free then stays refused.
        true
    }

    /// Whether a job fits where nothing runs, neither of ours nor of others, beside what it has to leave free.
    pub(crate) fn fits_without_foreign(&self, job: &Queued) -> bool {
        let own = |node: &Node| Node { foreign_gpus: 0, foreign_vcpus: 0, ..*node };
        let nodes = self.snapshot.nodes.iter().map(own).collect();
        let bare = Snapshot { nodes, gate: self.snapshot.gate, ..Snapshot::default() };
        let room = Room::empty(&bare);
        let demand = Demand::of(job, &room);
        let all = demand.gpus().saturating_add(self.quotas.kept_from(job).0);
        all <= room.free() && room.place(demand, |_| true).is_some()
    }

    fn know_ends(&mut self) {
        let mut kept = std::mem::take(&mut self.kept);
        let running = self.snapshot.running.iter().enumerate();
        let running =
            running.filter(|(place, job)| !self.preempting.goes_now(*place) && !preempt::has_left(job, self.snapshot));
        let running = running.map(|(_, job)| (self.end_of_running(job), job.holds.as_slice()));
        let assumed = self.assumed.iter().map(|(end_ms, place)| (*end_ms, place.holds()));
        let started =
            self.ends_ms.iter().zip(&self.plan.starts).map(|(end_ms, start)| (*end_ms, start.holds.as_slice()));
        let evictors = self.evictors_end_ms.iter().zip(&self.plan.evictions);
        let evictors = evictors.map(|(end_ms, eviction)| (*end_ms, eviction.start.holds.as_slice()));
        kept.know(running.chain(assumed).chain(started).chain(evictors));
        self.kept = kept;
    }

    /// Notes that a job waits, and whether it should look elsewhere.
    pub(crate) fn wait(&mut self, job: &Queued, reason: WaitReason) {
        self.plan.waiting.push(Waiting { job: job.job, reason });
        if self.quotas.demotes(reason) {
            self.plan.demotions.push(job.job);
        }
        if let Gate::NoCapacity { .. } = self.snapshot.gate
            && job.has_other_pools
            && matches!(reason, WaitReason::NoCapacity { .. } | WaitReason::NoNodes)
            && Standing::of(job, self.rules, self.now_ms).is_urgent
        {
            self.plan.moves.push(job.job);
        }
    }

    /// Whether a job would go on beyond its team's quota if it started now.
    pub(crate) fn borrows(&self, job: &Queued) -> bool {
        self.quotas.allows(job, Demand::of(job, &self.room).gpus()) == Ok(true)
    }

    /// GPUs that must stay free when a job starts.
    pub(crate) fn headroom(&self, job: &Queued, standing: Standing) -> u32 {
        headroom::of(self.rules.headroom, self.pool_gpus, Demand::of(job, &self.room).gpus(), standing)
    }
}

impl Refused {
    /// Whether it is what is said of a job that would end then, when the plan is so far.
    fn holds(&self, end_ms: i64, at: (usize, usize), demand: Demand) -> bool {
        let (Demand::Nodes(shape) | Demand::Children { shape, .. }) = demand;
        // GPUs that aren't together don't come together, however the plan goes on.
        let stays = shape.vcpus == 0 && matches!(self.refusal, Refusal::Room(WaitReason::Scattered { .. }));
        self.from_ms <= end_ms && end_ms <= self.to_ms && (self.at == at || stays)
    }
}

#[cfg(test)]
#[path = "decide_bound.rs"]
mod bound;
#[cfg(test)]
#[path = "decide_properties.rs"]
mod properties;
#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
