//! Preemption without cost: at every event the best jobs that fit together run, and everything else doesn't.

use super::queue::{Queue, Waiting};
use super::{Order, Strategy};
use crate::machine::Machine;
use crate::pool::Pool;

/// `srtf` and `priority-preempt`.
///
/// All jobs, running and waiting, are looked at in order; each is given what is left if that is enough, and skipped if
/// it isn't. Where nodes matter a running job keeps its nodes or is evicted: it doesn't move.
#[derive(Clone, Debug)]
pub struct Preemptive {
    queue: Queue,
}

/// A job in the order of a pass.
#[derive(Clone, Copy)]
struct Candidate {
    key: u64,
    job: usize,
    gpus: u32,
    is_running: bool,
}

impl Preemptive {
    /// Nobody waits.
    #[must_use]
    pub fn new(order: Order) -> Self {
        Self { queue: Queue::new(order) }
    }

    /// Running jobs in the order of the pass.
    fn running<P: Pool>(&self, machine: &Machine<'_, P>) -> Vec<Candidate> {
        let mut running: Vec<Candidate> = machine
            .running()
            .map(|run| {
                let spec = machine.job(run.job);
                let key = self.queue.order.key(spec, run.end_ms - machine.now_ms());
                Candidate { key, job: run.job, gpus: spec.gpus, is_running: true }
            })
            .collect();
        running.sort_unstable_by_key(|candidate| (candidate.key, candidate.job));
        running
    }
}

impl From<&Waiting> for Candidate {
    fn from(waiting: &Waiting) -> Self {
        Self { key: waiting.key, job: waiting.job, gpus: waiting.gpus, is_running: false }
    }
}

/// What a pass decides.
struct Choice<S> {
    starts: Vec<(usize, S)>,
    evictions: Vec<usize>,
}

/// Gives out an empty cluster in order.
fn choose<P: Pool>(
    machine: &Machine<'_, P>,
    running: &[Candidate],
    waiting: impl Iterator<Item = Candidate>,
) -> Choice<P::Share> {
    let mut trial = machine.pool.clone();
    running.iter().filter_map(|candidate| machine.share(candidate.job)).for_each(|share| trial.give(share));
    let mut choice = Choice { starts: Vec::new(), evictions: Vec::new() };
    let (mut running, mut waiting) = (running.iter().copied().peekable(), waiting.peekable());
    loop {
        // Once nothing is left, waiting jobs can't start; running ones behind are still evicted.
        let waits = if trial.free() == 0 { None } else { waiting.peek() };
        let next = match (running.peek(), waits) {
            (Some(a), Some(b)) if (b.key, b.job) < (a.key, a.job) => waiting.next(),
            (Some(_), _) => running.next(),
            (None, Some(_)) => waiting.next(),
            (None, None) => break,
        };
        let Some(candidate) = next else { break };
        if candidate.is_running {
            let keeps = machine.share(candidate.job).is_some_and(|share| trial.hold(share));
            choice.evictions.extend((!keeps).then_some(candidate.job));
        } else if let Some(share) = trial.place(candidate.gpus) {
            trial.hold(&share);
            choice.starts.push((candidate.job, share));
        }
    }
    choice
}

impl<P: Pool> Strategy<P> for Preemptive {
    fn submit(&mut self, job: usize, machine: &Machine<'_, P>) {
        self.queue.insert(job, machine);
    }

    fn pass(&mut self, machine: &mut Machine<'_, P>) {
        if self.queue.jobs.is_empty() {
            return;
        }
        let running = self.running(machine);
        let choice = choose(machine, &running, self.queue.jobs.iter().map(Candidate::from));
        for job in choice.evictions {
            machine.evict(job, machine.ran_ms(job));
            self.queue.insert(job, machine);
        }
        let mut started: Vec<usize> = Vec::with_capacity(choice.starts.len());
        for (job, share) in choice.starts {
            if machine.start_on(job, share, false) {
                started.push(job);
            }
        }
        self.queue.jobs.retain(|waiting| !started.contains(&waiting.job));
    }

    fn waiting(&self) -> usize {
        self.queue.jobs.len()
    }
}
