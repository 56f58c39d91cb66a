//! The cycle: order, start what fits, reserve, backfill, and say why the rest waits.

use osprey_model::id::JobId;

use crate::order::ordered;
use crate::plan::{Plan, Start, Waiting};
use crate::reason::WaitReason;
use crate::room::{Place, Room};
use crate::rules::{Rules, Strategy};
use crate::snapshot::{Queued, Snapshot};
use crate::strategy::{backfill, strict};

/// A plan on its way.
pub(crate) struct Cycle<'s> {
    pub snapshot: &'s Snapshot,
    pub now_ms: i64,
    pub room: Room<'s>,
    pub plan: Plan,
    /// Jobs started in this cycle, as the queue had them.
    pub started: Vec<&'s Queued>,
    pool_gpus: u32,
}

/// Decides what starts now, milliseconds since 1970.
#[must_use]
pub fn decide(snapshot: &Snapshot, rules: &Rules, now_ms: i64) -> Plan {
    let mut cycle = Cycle::new(snapshot, now_ms);
    let queue = ordered(rules.strategy, &snapshot.queued);
    match rules.strategy {
        Strategy::Fifo | Strategy::Priority | Strategy::Sjf => strict::walk(&mut cycle, &queue),
        Strategy::Backfill => backfill::walk(&mut cycle, &queue),
    }
    cycle.plan
}

impl<'s> Cycle<'s> {
    fn new(snapshot: &'s Snapshot, now_ms: i64) -> Self {
        Self {
            snapshot,
            now_ms,
            room: Room::of(snapshot),
            plan: Plan::default(),
            started: Vec::new(),
            pool_gpus: snapshot.gpus(),
        }
    }

    /// Why a job can't start whatever the order: it waits, and holds up nobody.
    pub(crate) fn ineligible(&self, job: &Queued) -> Option<WaitReason> {
        if job.not_before_ms > self.now_ms {
            return Some(WaitReason::NotYet { until_ms: job.not_before_ms });
        }
        // A job larger than any node takes whole ones until they are enough, and all of them are the most.
        let pool_gpus = self.pool_gpus;
        (job.gpus > pool_gpus).then_some(WaitReason::LargerThanPool { gpus: job.gpus, pool_gpus })
    }

    /// Starts a job if it fits.
    pub(crate) fn start(&mut self, job: &'s Queued) -> bool {
        let Some(place) = self.room.place(job.gpus) else { return false };
        self.start_at(job, place);
        true
    }

    /// Starts a job where it was found to fit.
    pub(crate) fn start_at(&mut self, job: &'s Queued, place: Place) {
        self.room.take(place.holds());
        self.plan.starts.push(Start { job: job.job, holds: place.into() });
        self.started.push(job);
    }

    /// Why a job doesn't fit now.
    pub(crate) fn no_room(&self, job: &Queued) -> WaitReason {
        let (gpus, free) = (job.gpus, self.room.free());
        if gpus > free { WaitReason::NoRoom { gpus, free } } else { WaitReason::Scattered { gpus, free } }
    }

    /// Notes that a job waits.
    pub(crate) fn wait(&mut self, job: JobId, reason: WaitReason) {
        self.plan.waiting.push(Waiting { job, reason });
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
