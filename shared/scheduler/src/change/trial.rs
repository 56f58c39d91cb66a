//! Decisions on trial: whether a change starts the job.

use std::collections::BTreeSet;

use osprey_model::id::JobId;

use super::{Change, Question, Verified, apply};
use crate::decide;
use crate::order::{Key, ordered};
use crate::plan::Plan;
use crate::reason::WaitReason;
use crate::rules::Rules;
use crate::snapshot::{Hold, Queued, Snapshot};

/// A job, and the decisions that may still be made about it.
pub(super) struct Trial<'s> {
    pub question: &'s Question<'s>,
    /// The job as it waits.
    pub job: Queued,
    /// The snapshot with its queue in order, which decides quickest.
    snapshot: Snapshot,
    made: u32,
}

/// How a job starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Started {
    /// Where; of an array whose children start one by one, where its last one does.
    pub holds: Vec<Hold>,
    /// How many are evicted for it.
    pub victims: usize,
}

impl<'s> Trial<'s> {
    /// The job of a question; `None` when it doesn't wait there.
    pub fn new(question: &'s Question<'s>) -> Option<Self> {
        let Question { snapshot, rules, now_ms, job, .. } = *question;
        let job = *snapshot.queued.iter().find(|queued| queued.job == job)?;
        let queued = ordered(&snapshot.queued, rules, now_ms).into_iter().copied().collect();
        Some(Self { question, job, snapshot: Snapshot { queued, ..snapshot.clone() }, made: 0 })
    }

    /// What is decided on while nothing is changed.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Decisions made so far.
    pub fn decisions(&self) -> u32 {
        self.made
    }

    /// Decisions that may still be made.
    pub fn decisions_left(&self) -> u32 {
        self.question.decisions_max.saturating_sub(self.made)
    }

    /// Whether no more may be made.
    pub fn is_exhausted(&self) -> bool {
        self.made >= self.question.decisions_max
    }

    /// How the next cycle starts the job with a change; `None` when it doesn't, or when no decision is left to tell.
    pub fn starts(&mut self, change: &Change) -> Option<Started> {
        self.outcome(change)?.ok()
    }

    /// How the next cycle starts the job with a change, or why it still waits; `None` when no decision is left to tell.
    pub fn outcome(&mut self, change: &Change) -> Option<Result<Started, WaitReason>> {
        if self.is_exhausted() {
            return None;
        }
        self.made += 1;
        let (mut snapshot, mut rules) = (self.snapshot.clone(), self.question.rules.clone());
        apply::apply(change, self.question, &mut snapshot, &mut rules);
        self.put_in_order(&mut snapshot, &rules);
        outcome(&decide(&snapshot, &rules, self.question.now_ms), self.job.job)
    }

    /// A change that starts the job, with what it costs others.
    pub fn verified(&mut self, change: Change) -> Option<Verified> {
        let victims = self.starts(&change)?.victims;
        Some(Verified { change, victims })
    }

    /// Puts the job where it comes by what has changed of it.
    fn put_in_order(&self, snapshot: &mut Snapshot, rules: &Rules) {
        let now_ms = self.question.now_ms;
        let Some(at) = snapshot.queued.iter().position(|queued| queued.job == self.job.job) else { return };
        let job = snapshot.queued.remove(at);
        let key = Key::of(&job, rules, now_ms);
        let at = snapshot.queued.partition_point(|other| Key::of(other, rules, now_ms) < key);
        snapshot.queued.insert(at, job);
    }
}

/// How a plan starts a job, all of it, or why it doesn't; `None` when it says nothing of it.
pub(super) fn outcome(plan: &Plan, job: JobId) -> Option<Result<Started, WaitReason>> {
    if let Some(waiting) = plan.waiting.iter().find(|waiting| waiting.job == job) {
        return Some(Err(waiting.reason));
    }
    let evictions = plan.evictions.iter().filter(|eviction| eviction.start.job == job);
    let victims: BTreeSet<JobId> =
        evictions.clone().flat_map(|eviction| &eviction.victims).map(|victim| victim.job).collect();
    let mut starts = plan.starts.iter().chain(evictions.map(|eviction| &eviction.start));
    let last = starts.rfind(|start| start.job == job)?;
    Some(Ok(Started { holds: last.holds.clone(), victims: victims.len() }))
}
