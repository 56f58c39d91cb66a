//! The briefs' dive as a reference: priority order with EASY, whose urgent heads evict lower priorities at once.

use std::cmp::Reverse;

use super::easy::Easy;
use super::{Order, Strategy};
use crate::machine::Machine;
use crate::pool::Pool;

/// `dive`.
///
/// Only the head dives, when its priority is above the threshold. Victims have a strictly lower priority and are taken
/// by (lowest priority, most recent start, id) until the head fits; if all of them wouldn't be enough, none is taken,
/// and none is given back that turned out not to be needed. A victim keeps its submission and restarts without cost.
#[derive(Clone, Debug)]
pub struct Dive {
    easy: Easy,
    above: u32,
}

impl Dive {
    /// Nobody waits; a priority above this is urgent.
    #[must_use]
    pub fn new(above: u32) -> Self {
        Self { easy: Easy::new(Order::Priority), above }
    }

    /// Evicts for the head and starts it. Answers whether it did.
    fn dive<P: Pool>(&mut self, machine: &mut Machine<'_, P>) -> bool {
        let Some(head) = self.easy.queue.jobs.first().copied() else { return false };
        let priority = machine.job(head.job).row_priority;
        if priority <= self.above {
            return false;
        }
        let Some(victims) = victims(machine, head.gpus, priority) else { return false };
        self.easy.queue.drop_first(1);
        for victim in victims {
            machine.evict(victim, machine.saved_ms(victim));
            self.easy.queue.insert(victim, machine);
        }
        let share = machine.pool.place(head.gpus);
        share.is_some_and(|share| machine.start_on(head.job, share, true))
    }
}

/// The jobs that have to go so that this many GPUs fit; `None` when no legal set is enough.
fn victims<P: Pool>(machine: &Machine<'_, P>, gpus: u32, priority: u32) -> Option<Vec<usize>> {
    let lower = machine.running().map(|run| run.job).filter(|job| machine.job(*job).row_priority < priority);
    let mut candidates: Vec<usize> = lower.collect();
    candidates.sort_unstable_by_key(|job| (machine.job(*job).row_priority, Reverse(machine.started_ms(*job)), *job));
    let mut trial = machine.pool.clone();
    for (taken, job) in candidates.iter().enumerate() {
        if let Some(share) = machine.share(*job) {
            trial.give(share);
        }
        if trial.fits(gpus) {
            candidates.truncate(taken + 1);
            return Some(candidates);
        }
    }
    None
}

impl<P: Pool> Strategy<P> for Dive {
    fn submit(&mut self, job: usize, machine: &Machine<'_, P>) {
        self.easy.queue.insert(job, machine);
    }

    fn pass(&mut self, machine: &mut Machine<'_, P>) {
        loop {
            self.easy.start_heads(machine);
            if !self.dive(machine) {
                break;
            }
        }
        self.easy.backfill(machine);
    }

    fn waiting(&self) -> usize {
        self.easy.queue.jobs.len()
    }
}
