//! Waiting jobs in order.

use super::Order;
use crate::machine::Machine;
use crate::pool::Pool;

/// A waiting job, with what a pass looks at, so that a scan stays within one piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub key: u64,
    pub job: usize,
    pub remaining_ms: u64,
    pub gpus: u32,
}

/// Waiting jobs, sorted by key and then by place.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub order: Order,
    pub jobs: Vec<Waiting>,
}

impl Queue {
    pub fn new(order: Order) -> Self {
        Self { order, jobs: Vec::new() }
    }

    /// Puts a job where it belongs and answers where that is.
    pub fn insert<P: Pool>(&mut self, job: usize, machine: &Machine<'_, P>) -> usize {
        let remaining_ms = machine.remaining_ms(job);
        let spec = machine.job(job);
        let waiting = Waiting { key: self.order.key(spec, remaining_ms), job, remaining_ms, gpus: spec.gpus };
        let at = self.jobs.partition_point(|other| (other.key, other.job) < (waiting.key, waiting.job));
        self.jobs.insert(at, waiting);
        at
    }

    /// Takes the first `count` jobs out.
    pub fn drop_first(&mut self, count: usize) {
        self.jobs.drain(..count);
    }
}
