//! A job that waits at a moment of a simulated cluster, and why.

use std::collections::BTreeSet;

use osprey_model::id::JobId;
use osprey_scheduler::plan::Plan;
use osprey_scheduler::snapshot::{Queued, Shape};
use osprey_scheduler::{Rules, Snapshot, WaitReason, decide};
use osprey_sim::kernel::random::{Random, fork};

use crate::draw::one_of;
use crate::richer::richer;
use crate::world::{Moment, moments};

/// Moments that are made richer of each that the simulator gives.
const RICHER: u32 = 3;
/// Kinds of reason of which a job of a moment is taken.
const KINDS: usize = 3;

/// A job that waits.
#[derive(Clone, Debug)]
pub struct Case {
    /// The world's number and its own within it.
    pub number: (u64, u32),
    /// Where and when.
    pub moment: Moment,
    /// What was decided.
    pub plan: Plan,
    /// The job.
    pub job: JobId,
    /// Why it waits.
    pub reason: WaitReason,
}

/// How the next cycle starts a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Starts {
    /// Others that are evicted for it.
    pub victims: usize,
}

impl Case {
    /// The job as it waits.
    pub fn queued(&self) -> Queued {
        let found = self.moment.snapshot.queued.iter().find(|queued| queued.job == self.job);
        found.copied().unwrap_or(Queued::new(self.job, Shape::gpus(0)))
    }

    /// How the next cycle of a pool starts the job, or why it doesn't.
    pub fn next_cycle(&self, snapshot: &Snapshot, rules: &Rules) -> Result<Starts, Option<WaitReason>> {
        outcome(&decide(snapshot, rules, self.moment.now_ms), self.job)
    }
}

/// How a plan starts a job, all of it, or why it doesn't.
pub fn outcome(plan: &Plan, job: JobId) -> Result<Starts, Option<WaitReason>> {
    if let Some(waiting) = plan.waiting.iter().find(|waiting| waiting.job == job) {
        return Err(Some(waiting.reason));
    }
    let evictions = plan.evictions.iter().filter(|eviction| eviction.start.job == job);
    let victims = evictions.clone().flat_map(|eviction| &eviction.victims).map(|victim| victim.job);
    let victims: BTreeSet<JobId> = victims.collect();
    let starts = plan.starts.iter().any(|start| start.job == job) || !victims.is_empty();
    if starts { Ok(Starts { victims: victims.len() }) } else { Err(None) }
}

/// The cases of a world: of each of its moments, and of richer ones, one job for each of a few kinds of reason.
///
/// # Errors
/// When the world can't be made.
pub fn cases(seed: u64, world: u64) -> Result<Vec<Case>, String> {
    let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(world);
    let mut random = fork(seed, "cases");
    let mut cases = Vec::new();
    for moment in moments(seed)? {
        let more: Vec<Moment> = (0..RICHER).map(|_| richer(&moment, &mut random)).collect();
        for moment in std::iter::once(moment).chain(more) {
            of_moment(world, &moment, &mut random, &mut cases);
        }
    }
    Ok(cases)
}

fn of_moment(world: u64, moment: &Moment, random: &mut Random, cases: &mut Vec<Case>) {
    let plan = decide(&moment.snapshot, &moment.rules, moment.now_ms);
    let mut codes: Vec<&str> = plan.waiting.iter().map(|waiting| waiting.reason.code()).collect();
    codes.sort_unstable();
    codes.dedup();
    for _ in 0..KINDS.min(codes.len()) {
        let Some(code) = one_of(random, &codes).copied() else { return };
        codes.retain(|other| *other != code);
        let jobs: Vec<_> = plan.waiting.iter().filter(|waiting| waiting.reason.code() == code).copied().collect();
        let Some(waiting) = one_of(random, &jobs) else { return };
        let number = (world, u32::try_from(cases.len()).unwrap_or(u32::MAX));
        let (moment, plan) = (moment.clone(), plan.clone());
        cases.push(Case { number, moment, plan, job: waiting.job, reason: waiting.reason });
    }
}
