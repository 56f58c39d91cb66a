//! Step 8, osprey: backfill, and the placement search for a plan that starts more.
//!
//! Backfill takes the jobs one by one, each to the tightest node, so what comes early can scatter what is left. The
//! search looks for an order in which all that backfill starts still starts, and more besides, or less is stranded. What
//! it finds is walked through like any order, with every reservation, and is taken only if it starts everything that
//! backfill starts, delays nothing that is kept, and is worth more. So it is never worse, and nobody is passed for it.

use std::collections::{BTreeMap, BTreeSet};

use osprey_model::id::JobId;

use crate::placement::swarm::{self, InTurn, Settings};
use crate::placement::{self, Head, Problem};
use crate::plan::Plan;
use crate::priority::Standing;
use crate::reason::WaitReason;
use crate::room::{Room, is_empty};
use crate::rules::Rules;
use crate::snapshot::{Hold, Landing, Queued, Snapshot};

/// Most jobs that the search looks at: those that backfill starts, and the first of those that wait for room.
const WINDOW: usize = 64;
/// Orders that a search tries, and syncs without anything better after which it ends: a millisecond of a cycle.
const SETTINGS: (u32, u32) = (400, 2);
/// Agents in all.
const AGENTS: u32 = 20;
/// The price of a GPU left free on a partly used node: a quarter of one that a job of number 1000 would use.
const ALPHA: f64 = 0.25;
/// What a GPU of a job that backfill starts is worth, in thousandths: more than all others together can be.
const STARTED_WORTH: u32 = 1_000_000;
/// The price of a GPU that is taken from a reserved job: a delay is never bought.
const SLOT_PRICE: f64 = 1e9;

/// The better plan of two: that of backfill, or that of the order which the search finds. `walk` makes a plan of an order.
pub(crate) fn choose<'s>(
    snapshot: &'s Snapshot,
    rules: &Rules,
    now_ms: i64,
    queue: &[&'s Queued],
    walk: impl Fn(&[&'s Queued]) -> Plan,
) -> Plan {
    let base = walk(queue);
    // Who goes was chosen for this order, and so was where the others start.
    if !base.evictions.is_empty() {
        return base;
    }
    let Some(search) = Search::of(snapshot, rules, now_ms, queue, &base) else { return base };
    let Some(order) = search.order() else { return base };
    let candidate = walk(&order);
    if candidate.evictions.is_empty() && search.is_better(&candidate, &base) { candidate } else { base }
}

/// What is searched.
struct Search<'s, 'q> {
    snapshot: &'s Snapshot,
    queue: &'q [&'s Queued],
    /// Jobs of the window, those that backfill starts first.
    window: Vec<&'s Queued>,
    problem: Problem,
    seed: u64,
}

impl<'s, 'q> Search<'s, 'q> {
    /// The search of a cycle; `None` where nothing can be gained: nobody waits for room, nothing is free, there is one node
    /// only, or Batch chooses the nodes.
    fn of(snapshot: &'s Snapshot, rules: &Rules, now_ms: i64, queue: &'q [&'s Queued], base: &Plan) -> Option<Self> {
        if snapshot.landing == Landing::Anywhere || snapshot.nodes.len() < 2 {
            return None;
        }
        let mut room = Room::of(snapshot, |_| true);
        let now = free(&room);
        base.starts.iter().for_each(|start| room.take(&start.holds));
        let started: BTreeSet<JobId> = base.starts.iter().map(|start| start.job).collect();
        let waiting: BTreeSet<JobId> =
            base.waiting.iter().filter(|job| is_for_room(job.reason)).map(|job| job.job).collect();
        let widest = free(&room).iter().map(|(_, free)| *free).max().unwrap_or(0);
        if widest == 0 || waiting.is_empty() {
            return None;
        }
        let of = |set: &BTreeSet<JobId>| queue.iter().copied().filter(|job| set.contains(&job.job)).collect::<Vec<_>>();
        let mut window = of(&started);
        if window.len() >= WINDOW || window.iter().any(|job| job.array.is_some() || job.shape.nodes > 1) {
            return None;
        }
        let simple = of(&waiting).into_iter().filter(|job| job.array.is_none() && job.shape.nodes == 1);
        let fitting = simple.filter(|job| job.shape.gpus > 0 && job.shape.gpus <= room.free());
        window.extend(fitting.take(WINDOW - window.len()));
        if window.len() == started.len() {
            return None;
        }
        let kept = Kept::of(snapshot, base, now_ms);
        let nodes = now.iter().map(|(slots, free)| placement::Node { slots: *slots, free: *free, spare: *free });
        let nodes =
            (0_u32..).zip(nodes).map(|(number, node)| placement::Node { spare: kept.spare(number, node.free), ..node });
        let job = |job: &&Queued| {
            let standing = Standing::of(job, rules, now_ms);
            let worth = if started.contains(&job.job) { STARTED_WORTH } else { 0 };
            placement::Job {
                slots: job.shape.gpus.max(1),
                weight: standing.number + worth,
                is_urgent: standing.is_urgent,
                outlasts: kept.is_outlasted_by(job, rules, now_ms),
            }
        };
        let problem = Problem::new(nodes.collect(), window.iter().map(job).collect(), ALPHA).ok()?;
        let seed = u64::try_from(now_ms).unwrap_or(0);
        Some(Self { snapshot, queue, window, problem: problem.beside(Head { slot_price: SLOT_PRICE }), seed })
    }

    /// The queue in the order that the search prefers; `None` when it finds nothing that is worth more.
    fn order(&self) -> Option<Vec<&'s Queued>> {
        let (evaluations_max, patience_syncs) = SETTINGS;
        let settings =
            Settings { seed: self.seed, agents: Some(AGENTS), evaluations_max, patience_syncs, ..Settings::default() };
        let start: Vec<u32> = (0_u32..).zip(&self.window).map(|(place, _)| place).collect();
        let flown = swarm::search(&self.problem, &settings, &start, &InTurn);
        if !flown.is_better {
            return None;
        }
        let chosen = flown.placed.iter().filter_map(|job| self.window.get(usize::try_from(*job).ok()?).copied());
        let chosen: Vec<&Queued> = chosen.collect();
        let first: BTreeSet<JobId> = chosen.iter().map(|job| job.job).collect();
        let rest = self.queue.iter().copied().filter(|job| !first.contains(&job.job));
        Some(chosen.into_iter().chain(rest).collect())
    }

    /// Whether a plan starts all that another starts, delays nothing that the other keeps, and is worth more.
    fn is_better(&self, candidate: &Plan, base: &Plan) -> bool {
        let starts = |plan: &Plan| plan.starts.iter().map(|start| (start.job, start.child)).collect::<BTreeSet<_>>();
        let (started, before) = (starts(candidate), starts(base));
        let kept: BTreeMap<JobId, i64> = candidate.reservations.iter().map(|kept| (kept.job, kept.at_ms)).collect();
        let is_no_later = base.reservations.iter().all(|was| {
            started.contains(&(was.job, None)) || kept.get(&was.job).is_some_and(|at_ms| *at_ms <= was.at_ms)
        });
        started.is_superset(&before) && is_no_later && self.worth(candidate) > self.worth(base)
    }

    /// Priority-weighted GPUs that start, minus what is left free on partly used nodes.
    fn worth(&self, plan: &Plan) -> f64 {
        let numbers: BTreeMap<JobId, u32> = self.window.iter().map(|job| (job.job, job.priority)).collect();
        let mut room = Room::of(self.snapshot, |_| true);
        let mut worth = 0.0;
        for start in &plan.starts {
            room.take(&start.holds);
            let gpus: u32 = start.holds.iter().map(|hold| hold.gpus).sum();
            worth += f64::from(numbers.get(&start.job).copied().unwrap_or(0)) / 1000.0 * f64::from(gpus);
        }
        let partly = room.all().filter(|(_, node, free)| !is_empty(node, *free));
        let stranded: u32 = partly.map(|(_, _, free)| free.gpus).sum();
        worth - ALPHA * f64::from(stranded)
    }
}

/// Slots and free GPUs of each node.
fn free(room: &Room<'_>) -> Vec<(u32, u32)> {
    // What foreign work holds, or a node that takes no jobs, is no room that could be emptied.
    room.all().map(|(_, node, free)| (node.gpus.max(free.gpus), free.gpus)).collect()
}

fn is_for_room(reason: WaitReason) -> bool {
    matches!(reason, WaitReason::NoRoom { .. } | WaitReason::Scattered { .. } | WaitReason::WouldDelay { .. })
}

/// What is kept for the first job that doesn't fit.
struct Kept {
    at_ms: i64,
    /// GPUs of each node that stay free at that time beside what is kept.
    spare: BTreeMap<u32, u32>,
}

impl Kept {
    fn of(snapshot: &Snapshot, base: &Plan, now_ms: i64) -> Self {
        let Some(kept) = base.reservations.first() else { return Self { at_ms: i64::MAX, spare: BTreeMap::new() } };
        let at_ms = kept.at_ms;
        let holding = |hold: &Hold| {
            let running =
                snapshot.running.iter().filter(|running| running.expected_end_ms.is_none_or(|end| end > at_ms));
            let held = running.flat_map(|running| &running.holds).filter(|held| held.node == hold.node);
            held.fold(hold.gpus, |sum, held| sum.saturating_add(held.gpus))
        };
        let gpus = |node: u32| {
            usize::try_from(node).ok().and_then(|node| snapshot.nodes.get(node)).map_or(0, |node| node.gpus)
        };
        let spare = kept.holds.iter().map(|hold| (hold.node, gpus(hold.node).saturating_sub(holding(hold))));
        Self { at_ms: at_ms.max(now_ms), spare: spare.collect() }
    }

    fn spare(&self, node: u32, free: u32) -> u32 {
        self.spare.get(&node).map_or(free, |spare| free.min(*spare))
    }

    /// Whether a job that starts now runs beyond that time.
    fn is_outlasted_by(&self, job: &Queued, rules: &Rules, now_ms: i64) -> bool {
        let run_ms = job.expected_ms.unwrap_or(rules.unknown_ms).max(1);
        self.at_ms < i64::MAX && now_ms.saturating_add_unsigned(run_ms) > self.at_ms
    }
}

#[cfg(test)]
#[path = "osprey_tests.rs"]
mod tests;
