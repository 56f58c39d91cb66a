//! First fit: in the order of submission whatever fits, and no reservation for what doesn't.

use super::queue::Queue;
use super::{Order, Strategy};
use crate::machine::Machine;
use crate::pool::Pool;

/// `first-fit`.
#[derive(Clone, Debug)]
pub struct FirstFit {
    queue: Queue,
}

impl FirstFit {
    /// Nobody waits.
    #[must_use]
    pub fn new() -> Self {
        Self { queue: Queue::new(Order::Arrival) }
    }
}

impl Default for FirstFit {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Pool> Strategy<P> for FirstFit {
    fn submit(&mut self, job: usize, machine: &Machine<'_, P>) {
        self.queue.insert(job, machine);
    }

    fn pass(&mut self, machine: &mut Machine<'_, P>) {
        self.queue.jobs.retain(|waiting| waiting.gpus > machine.pool.free() || !machine.start(waiting.job));
    }

    fn waiting(&self) -> usize {
        self.queue.jobs.len()
    }
}
