//! Threads for the sub-swarms of a placement search. The search says what is found, whoever flies it.

use std::num::NonZeroUsize;
use std::thread;

use osprey_scheduler::placement::swarm::{Pace, SubSwarm};

/// So many threads at most.
#[derive(Clone, Copy, Debug)]
pub struct Threads(NonZeroUsize);

impl Threads {
    /// As many as were asked for, or as many as the machine runs at once.
    #[must_use]
    pub fn of(asked: Option<NonZeroUsize>) -> Self {
        Self(asked.or_else(|| thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN))
    }
}

impl Pace for Threads {
    fn each<'p>(&self, swarms: &mut [SubSwarm<'p>], fly: &(dyn Fn(&mut SubSwarm<'p>) + Sync)) {
        let share = swarms.len().div_ceil(self.0.get()).max(1);
        if share >= swarms.len() {
            return swarms.iter_mut().for_each(fly);
        }
        thread::scope(|scope| {
            for part in swarms.chunks_mut(share) {
                scope.spawn(|| part.iter_mut().for_each(fly));
            }
        });
    }
}
