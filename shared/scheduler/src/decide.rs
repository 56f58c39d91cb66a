//! The cycle: order, start what fits, reserve, backfill, and say why the rest waits.

use osprey_model::id::JobId;

use crate::order::ordered;
use crate::plan::{Plan, Start, Waiting};
use crate::reason::WaitReason;
use crate::room::Room;
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
    /// GPUs that the empty pool could give one job.
    capacity: Room<'s>,
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
        let capacity = Room::empty(&snapshot.nodes);
        Self { snapshot, now_ms, room: Room::of(snapshot), plan: Plan::default(), started: Vec::new(), capacity }
    }

    /// Why a job can't start whatever the order: it waits, and holds up nobody.
    pub(crate) fn ineligible(&self, job: &Queued) -> Option<WaitReason> {
        if job.not_before_ms > self.now_ms {
            return Some(WaitReason::NotYet { until_ms: job.not_before_ms });
        }
        let fits = job.gpus <= self.capacity.free() && self.capacity.place(job.gpus).is_some();
        (!fits).then(|| WaitReason::LargerThanPool { gpus: job.gpus, pool_gpus: self.snapshot.gpus() })
    }

    /// Starts a job if it fits.
    pub(crate) fn start(&mut self, job: &'s Queued) -> bool {
        let Some(holds) = self.room.place(job.gpus) else { return false };
        self.room.take(&holds);
        self.plan.starts.push(Start { job: job.job, holds });
        self.started.push(job);
        true
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
