//! EASY backfill (Lifka, 1995): the head has a reservation at the earliest time its GPUs can be free, and others may
//! start before it if they can't delay that.

use super::queue::Queue;
use super::{Order, Strategy};
use crate::machine::Machine;
use crate::pool::Pool;

/// `easy` and `priority-easy`.
///
/// A job behind the head may start if it ends by the head's shadow time (inclusively), or if what it takes is still
/// spare at the shadow time once the head has started. The spare is counted again after every start.
#[derive(Clone, Debug)]
pub struct Easy {
    pub(super) queue: Queue,
}

/// The head's reservation.
struct Reservation<P> {
    /// The earliest time at which enough has ended for the head to fit.
    shadow_ms: u64,
    /// What is free then, without what the head takes.
    spare: P,
}

impl Easy {
    /// Nobody waits.
    #[must_use]
    pub fn new(order: Order) -> Self {
        Self { queue: Queue::new(order) }
    }

    /// Starts jobs from the head on until one doesn't fit.
    pub(super) fn start_heads<P: Pool>(&mut self, machine: &mut Machine<'_, P>) {
        let started = self.queue.jobs.iter().take_while(|waiting| machine.start(waiting.job)).count();
        self.queue.drop_first(started);
    }

    /// Starts what can't delay the head.
    pub(super) fn backfill<P: Pool>(&mut self, machine: &mut Machine<'_, P>) {
        let Some((head, rest)) = self.queue.jobs.split_first() else { return };
        if machine.pool.free() == 0 || rest.is_empty() {
            return;
        }
        let mut reservation = reserve(machine, head.gpus);
        let mut place = 0;
        self.queue.jobs.retain(|waiting| {
            place += 1;
            let is_head = place == 1;
            is_head
                || waiting.gpus > machine.pool.free()
                || !reservation.allows(machine, waiting.job, waiting.gpus, waiting.remaining_ms)
        });
    }
}

/// The reservation of a head of this many GPUs that doesn't fit now.
fn reserve<P: Pool>(machine: &Machine<'_, P>, gpus: u32) -> Reservation<P> {
    let mut spare = machine.pool.clone();
    let mut shadow_ms = u64::MAX;
    let mut fits = false;
    for run in machine.running() {
        // Everything that ends at the shadow time counts, not only what makes the head fit.
        if fits && run.end_ms > shadow_ms {
            break;
        }
        if let Some(share) = machine.share(run.job) {
            spare.give(share);
        }
        shadow_ms = run.end_ms;
        fits = fits || spare.fits(gpus);
    }
    if let Some(share) = spare.place(gpus) {
        spare.hold(&share);
    }
    Reservation { shadow_ms, spare }
}

impl<P: Pool> Reservation<P> {
    /// Starts the job if it fits and can't delay the head.
    fn allows(&mut self, machine: &mut Machine<'_, P>, job: usize, gpus: u32, remaining_ms: u64) -> bool {
        let Some(share) = machine.pool.place(gpus) else { return false };
        let ends_in_time = machine.now_ms() + remaining_ms <= self.shadow_ms;
        (ends_in_time || self.spare.hold(&share)) && machine.start_on(job, share, false)
    }
}

impl<P: Pool> Strategy<P> for Easy {
    fn submit(&mut self, job: usize, machine: &Machine<'_, P>) {
        self.queue.insert(job, machine);
    }

    fn pass(&mut self, machine: &mut Machine<'_, P>) {
        self.start_heads(machine);
        self.backfill(machine);
    }

    fn waiting(&self) -> usize {
        self.queue.jobs.len()
    }
}
