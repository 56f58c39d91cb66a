//! Step 7, preemption: who goes for a job that would wait too long.
//!
//! 1. `threshold`: how many victims its wait is worth.
//! 2. `candidate`: who may go at all, and what that costs.
//! 3. `stage`: who of them is open to the job: what others have borrowed, and the tiers below its own.
//! 4. `budget`: how many more of a tier may go within its window.
//! 5. `node`, `whole`: the cheapest legal victims on one node, or of whole nodes; `cover` searches for them.
//! 6. `receipt`: what each of them is told.

mod budget;
mod candidate;
mod cover;
mod node;
mod receipt;
mod stage;
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
use stage::Stage;

/// Who may be evicted in a cycle, and who has been.
#[derive(Debug, Default)]
pub(crate) struct Preempting {
    /// Everybody who may be, whoever asks; `None` until somebody does.
    candidates: Option<Vec<Candidate>>,
    /// Runs that go, by their places in the snapshot.
    goers: BTreeSet<usize>,
    /// Searches for loans to take back that found none.
    in_vain: u32,
}

/// Searches for loans that find none, after which nobody of a cycle who may evict nobody else looks for any: in a long
/// queue those behind would find none either.
const IN_VAIN_MAX: u32 = 16;

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

/// Evicts others for a job that doesn't start, if it may and its wait is worth it; else says again why it waits.
pub(crate) fn instead(
    cycle: &mut Cycle<'_>,
    job: &Queued,
    child: Option<u32>,
    standing: Standing,
    reason: WaitReason,
) -> Result<(), WaitReason> {
    if cycle.rules.strategy != Strategy::Osprey || cycle.kept.is_full() {
        return Err(reason);
    }
    let tier = tier_of(job, standing.number, cycle.rules).filter(|tier| is_for_room(reason) && evicts(tier));
    let looks_for_loans = is_for_loans(reason) && cycle.has_loans && cycle.preempting.in_vain < IN_VAIN_MAX;
    if tier.is_none() && !looks_for_loans {
        return Err(reason);
    }
    let spare = cycle.spare(job, standing);
    evict(cycle, (job, child), tier, spare).ok_or(reason)
}

fn evicts(tier: &TierRules) -> bool {
    !tier.may_preempt.is_empty() || !tier.may_preempt_when_full.is_empty()
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

/// Who takes back what is lent leaves free what he has to, so he may also when that is what he waits for.
fn is_for_loans(reason: WaitReason) -> bool {
    is_for_room(reason)
        || matches!(
            reason,
            WaitReason::Headroom { .. } | WaitReason::HeadroomNodes { .. } | WaitReason::Reserved { .. }
        )
}

fn evict(
    cycle: &mut Cycle<'_>,
    (job, child): (&Queued, Option<u32>),
    tier: Option<&TierRules>,
    spare: Spare,
) -> Option<()> {
    let wait_ms = threshold::wait_ms(job, cycle.expected_at(job)?, cycle.now_ms);
    let victims_max = threshold::victims_max(&cycle.rules.preemption, wait_ms);
    if victims_max == 0 {
        return None;
    }
    if cycle.preempting.candidates.is_none() {
        cycle.preempting.candidates = Some(candidates(cycle.snapshot, cycle.rules, cycle.now_ms));
    }
    for stage in stage::stages(cycle, job, tier) {
        let spare = if stage.is_of_loans() { spare } else { Spare::default() };
        match search(cycle, job, &stage, victims_max, spare.gpus()) {
            Search::NotEnough => {}
            // Of those that the tiers open fewer may do.
            Search::TooMany if stage.is_of_loans() => {}
            Search::TooMany => return None,
            Search::Found(found) => {
                let done = carry_out(cycle, (job, child), &found, (&stage, spare), wait_ms);
                if done.is_some() || !stage.is_of_loans() {
                    return done;
                }
            }
        }
    }
    cycle.preempting.in_vain += u32::from(tier.is_none());
    None
}

/// GPUs of the pool that must stay free beside a job which takes back what is lent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spare {
    /// Of the headroom that the job has to leave: as much as was free of it. Loans that it takes over don't make that less.
    pub headroom: u32,
    /// What is reserved for others.
    pub reserved: u32,
}

impl Spare {
    fn gpus(self) -> u32 {
        self.headroom.max(self.reserved)
    }
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
    /// GPUs of the pool that must stay free beside the job.
    spare: u32,
}

fn search(cycle: &Cycle<'_>, job: &Queued, stage: &Stage, victims_max: usize, spare: u32) -> Search {
    let all = cycle.preempting.candidates.as_deref().unwrap_or_default().iter().enumerate();
    let is_open = |candidate: &Candidate| {
        stage.opens(candidate).is_some()
            && candidate.job != job.job
            && !candidate.runs.iter().any(|run| cycle.preempting.goes_now(*run))
    };
    let candidates = all.filter(|(_, candidate)| is_open(candidate)).collect();
    let budget = budget::Budget::of(cycle.snapshot, cycle.rules, &cycle.plan, cycle.now_ms);
    let open = Open { candidates, victims_max, budget, spare };
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
    (stage, spare): (&Stage, Spare),
    predicted_wait_ms: u64,
) -> Option<()> {
    let all = cycle.preempting.candidates.take()?;
    let victims: Vec<&Candidate> = found.candidates.iter().filter_map(|place| all.get(*place)).collect();
    let goers: Vec<usize> = victims.iter().flat_map(|victim| &victim.runs).copied().collect();
    let start = cycle.start_instead(job, child, &goers, spare.headroom);
    if let Some(start) = start.clone() {
        cycle.evict(Eviction {
            victims: victims.iter().filter_map(|victim| Some(victim.receipt(job.job, stage.opens(victim)?))).collect(),
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
#[path = "loans_tests.rs"]
mod loans;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
