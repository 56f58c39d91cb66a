//! Step 7, preemption: who goes for a job that would wait too long.
//!
//! 1. `threshold`: how many victims its wait is worth.
//! 2. `candidate`: who may go at all, and what that costs.
//! 3. `budget`: how many more of a tier may go within its window.
//! 4. `node`, `whole`: the cheapest legal victims on one node, or of whole nodes; `cover` searches for them.
//! 5. `receipt`: what each of them is told.

mod budget;
mod candidate;
mod cover;
mod node;
mod receipt;
mod threshold;
mod whole;

use std::collections::BTreeSet;

use crate::decide::Cycle;
use crate::demand::Demand;
use crate::plan::Eviction;
use crate::priority::{Standing, tier_of};
use crate::reason::WaitReason;
use crate::rules::{Strategy, TierRules};
use crate::snapshot::{Queued, Running, Snapshot};

use candidate::{Candidate, candidates};
pub use receipt::{Opened, Receipt};

/// Who may be evicted in a cycle, and who has been.
#[derive(Debug, Default)]
pub(crate) struct Preempting {
    /// Everybody who may be, whoever asks; `None` until somebody does.
    candidates: Option<Vec<Candidate>>,
    /// Runs that go, by their places in the snapshot.
    goers: BTreeSet<usize>,
}

impl Preempting {
    pub fn goes(&mut self, goers: &[usize]) {
        self.goers.extend(goers);
    }

    pub fn stays(&mut self, goers: &[usize]) {
        self.goers.retain(|place| !goers.contains(place));
    }

    /// Whether this cycle evicts a run.
    pub fn goes_now(&self, place: usize) -> bool {
        self.goers.contains(&place)
    }
}

/// Whether what a run holds is another one's already: it is being evicted for it.
pub(crate) fn has_left(running: &Running, snapshot: &Snapshot) -> bool {
    running
        .leaves_for
        .is_some_and(|job| snapshot.running.iter().any(|other| other.job == job && other.leaves_for.is_none()))
}

/// Evicts others for a job that doesn't fit, if it may and its wait is worth it; else says again why it waits.
pub(crate) fn instead(
    cycle: &mut Cycle<'_>,
    job: &Queued,
    child: Option<u32>,
    standing: Standing,
    reason: WaitReason,
) -> Result<(), WaitReason> {
    if cycle.rules.strategy == Strategy::Osprey && is_for_room(reason) && !cycle.kept.is_full() {
        evict(cycle, job, child, standing).ok_or(reason)
    } else {
        Err(reason)
    }
}

fn is_for_room(reason: WaitReason) -> bool {
    matches!(
        reason,
        WaitReason::NoRoom { .. }
            | WaitReason::Scattered { .. }
            | WaitReason::NoVcpus { .. }
            | WaitReason::WouldDelay { .. }
    )
}

fn evict(cycle: &mut Cycle<'_>, job: &Queued, child: Option<u32>, standing: Standing) -> Option<()> {
    let tier = tier_of(job, standing.number, cycle.rules)?;
    if tier.may_preempt.is_empty() && tier.may_preempt_when_full.is_empty() {
        return None;
    }
    let wait_ms = threshold::wait_ms(job, cycle.expected_at(job)?, cycle.now_ms);
    let victims_max = threshold::victims_max(&cycle.rules.preemption, wait_ms);
    if victims_max == 0 {
        return None;
    }
    if cycle.preempting.candidates.is_none() {
        cycle.preempting.candidates = Some(candidates(cycle.snapshot, cycle.rules, cycle.now_ms));
    }
    for (open, opened) in stages(tier, cycle.rules.preemption.tier_by_tier) {
        match search(cycle, job, &open, victims_max) {
            Search::NotEnough => {}
            Search::TooMany => return None,
            Search::Found(found) => return carry_out(cycle, (job, child), &found, opened, wait_ms),
        }
    }
    None
}

/// The tiers that are opened one after the other, each time with all before them.
fn stages(tier: &TierRules, tier_by_tier: bool) -> Vec<(Vec<u16>, Opened)> {
    let open = tier.may_preempt.len();
    let first = if tier_by_tier { 1 } else { open };
    let counts = (first..=open).filter(|count| *count > 0);
    let mut stages: Vec<(Vec<u16>, Opened)> =
        counts.map(|count| (tier.may_preempt.iter().copied().take(count).collect(), Opened::Always)).collect();
    if !tier.may_preempt_when_full.is_empty() {
        let all = tier.may_preempt.iter().chain(&tier.may_preempt_when_full).copied().collect();
        stages.push((all, Opened::WhenFull));
    }
    stages
}

/// What a search for victims found.
enum Search {
    /// These: places of the candidates.
    Found(Found),
    /// More than the wait is worth, or than the budgets allow.
    TooMany,
    /// All that are open don't make room.
    NotEnough,
}

/// Victims.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    candidates: Vec<usize>,
    cost: u64,
    is_cheapest: bool,
}

impl Found {
    /// What makes one set better than another: what it costs, and then how many they are.
    fn rank(&self) -> (u64, usize) {
        (self.cost, self.candidates.len())
    }
}

/// What a search looks at.
struct Open<'c> {
    /// Those that may go, with their places.
    candidates: Vec<(usize, &'c Candidate)>,
    victims_max: usize,
    budget: budget::Budget,
}

fn search(cycle: &Cycle<'_>, job: &Queued, open: &[u16], victims_max: usize) -> Search {
    let all = cycle.preempting.candidates.as_deref().unwrap_or_default().iter().enumerate();
    let is_open = |candidate: &Candidate| {
        open.contains(&candidate.tier)
            && candidate.job != job.job
            && !candidate.runs.iter().any(|run| cycle.preempting.goes_now(*run))
    };
    let candidates = all.filter(|(_, candidate)| is_open(candidate)).collect();
    let budget = budget::Budget::of(cycle.snapshot, cycle.rules, &cycle.plan, cycle.now_ms);
    let open = Open { candidates, victims_max, budget };
    match Demand::of(job, &cycle.room) {
        Demand::Nodes(shape) if !cycle.room.takes_whole(shape) => node::search(cycle, job, shape, &open),
        Demand::Nodes(shape) => whole::search(cycle, job, shape, &open),
        // Room for an array as one is many places at once; it waits for them.
        Demand::Children { .. } => Search::NotEnough,
    }
}

fn carry_out(
    cycle: &mut Cycle<'_>,
    (job, child): (&Queued, Option<u32>),
    found: &Found,
    opened: Opened,
    predicted_wait_ms: u64,
) -> Option<()> {
    let all = cycle.preempting.candidates.take()?;
    let victims: Vec<&Candidate> = found.candidates.iter().filter_map(|place| all.get(*place)).collect();
    let goers: Vec<usize> = victims.iter().flat_map(|victim| &victim.runs).copied().collect();
    let start = cycle.start_instead(job, child, &goers);
    if let Some(start) = start.clone() {
        cycle.evict(Eviction {
            victims: victims.iter().map(|victim| victim.receipt(job.job, opened)).collect(),
            start,
            predicted_wait_ms,
            threshold_ms: threshold::threshold_ms(&cycle.rules.preemption, victims.len()),
            is_cheapest: found.is_cheapest,
        });
    }
    cycle.preempting.candidates = Some(all);
    start.map(|_| ())
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
