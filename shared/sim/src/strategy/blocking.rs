//! Strict order: the head starts when it fits, and until then nobody behind it does.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Order, Strategy};
use crate::machine::Machine;
use crate::pool::Pool;

/// `fifo`, `sjf` and `priority`: only the head counts, so a heap is enough.
#[derive(Clone, Debug)]
pub struct Blocking {
    order: Order,
    heap: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Blocking {
    /// Nobody waits.
    #[must_use]
    pub fn new(order: Order) -> Self {
        Self { order, heap: BinaryHeap::new() }
    }
}

impl<P: Pool> Strategy<P> for Blocking {
    fn submit(&mut self, job: usize, machine: &Machine<'_, P>) {
        let spec = machine.job(job);
        self.heap.push(Reverse((self.order.key(spec, machine.remaining_ms(job)), job)));
    }

    fn pass(&mut self, machine: &mut Machine<'_, P>) {
        while let Some(Reverse((_, job))) = self.heap.peek() {
            if !machine.start(*job) {
                break;
            }
            self.heap.pop();
        }
    }

    fn waiting(&self) -> usize {
        self.heap.len()
    }
}
