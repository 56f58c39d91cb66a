//! AWS Batch as it is, without Osprey: queues on one shared environment, a blocked head, no backfill, no preemption.
//!
//! Rules as its documentation says, and where it is silent as observed of its open-source relatives and of the local
//! Batch: queues are served in the order of their priority; in a fair-share queue the share that has used the least
//! vCPU·time for its weight comes next, and its own jobs go by scheduling priority; a head that doesn't fit holds up its
//! queue, and lower queues go on.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::Strategy;
use crate::machine::Machine;
use crate::pool::Pool;
use crate::workload::{Job, Workload};

/// A trace says nothing of vCPUs: a GPU comes with this many, as on most GPU instances.
pub const VCPUS_PER_GPU: u32 = 8;
/// What a job that starts is charged at once, so that shares take turns inside one cycle, in milliseconds.
pub const START_CHARGE_MS: u64 = 60_000;
/// Time in which past use falls to 1/e, in milliseconds: a day.
pub const DECAY_MS: u64 = 86_400_000;

/// How Batch is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setup {
    /// One queue without a scheduling policy: by submission.
    Fifo,
    /// One fair-share queue a tier, the most urgent first; each team is a share, all of one weight.
    FairShare,
}

impl Setup {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Fifo, Self::FairShare];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "batch-fifo",
            Self::FairShare => "batch-fairshare",
        }
    }
}

/// AWS Batch's own scheduler.
#[derive(Clone, Debug)]
pub struct BatchAlone {
    setup: Setup,
    /// The order of the teams' names; a job without a team has a share of its own that comes first.
    ranks: Vec<u16>,
    queues: BTreeMap<u16, Queue>,
    running: Vec<Running>,
    waiting: usize,
}

type Queue = BTreeMap<u16, Share>;

#[derive(Clone, Debug, Default)]
struct Share {
    /// Jobs by scheduling priority, submission and id.
    jobs: BinaryHeap<Reverse<(u32, usize)>>,
    /// Past use in vCPU·milliseconds, as of a time.
    past: f64,
    as_of_ms: u64,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    job: usize,
    queue: u16,
    share: u16,
    started_ms: u64,
    vcpus: f64,
}

impl BatchAlone {
    /// Nobody waits.
    #[must_use]
    pub fn new(setup: Setup, workload: &Workload) -> Self {
        let mut names: Vec<(&String, usize)> = workload.teams.iter().zip(0..).collect();
        names.sort_unstable();
        let mut ranks = vec![0; names.len()];
        for (rank, (_, team)) in (1_u16..).zip(names) {
            if let Some(place) = ranks.get_mut(team) {
                *place = rank;
            }
        }
        Self { setup, ranks, queues: BTreeMap::new(), running: Vec::new(), waiting: 0 }
    }

    /// Queue, share and order of a job.
    fn place_of(&self, job: &Job) -> (u16, u16, u32) {
        match self.setup {
            Setup::Fifo => (0, 0, 0),
            Setup::FairShare => {
                let rank = job.team.and_then(|team| self.ranks.get(usize::from(team))).copied().unwrap_or(0);
                (job.tier, rank, u32::MAX - job.priority)
            }
        }
    }

    /// Charges the shares of jobs that have ended.
    fn charge_ended<P: Pool>(&mut self, machine: &Machine<'_, P>) {
        let now_ms = machine.now_ms();
        let queues = &mut self.queues;
        self.running.retain(|running| {
            let still_runs = machine.share(running.job).is_some();
            if let Some(share) = queues.get_mut(&running.queue).and_then(|queue| queue.get_mut(&running.share))
                && !still_runs
            {
                share.past = share.past_at(now_ms) + running.used(now_ms);
                share.as_of_ms = now_ms;
            }
            still_runs
        });
    }

    /// What each share of a queue has used by now.
    fn usage(&self, number: u16, now_ms: u64) -> BTreeMap<u16, f64> {
        let queue = self.queues.get(&number);
        let mut usage: BTreeMap<u16, f64> =
            queue.into_iter().flatten().map(|(rank, share)| (*rank, share.past_at(now_ms))).collect();
        for running in self.running.iter().filter(|running| running.queue == number) {
            *usage.entry(running.share).or_default() += running.used(now_ms);
        }
        usage
    }

    /// Serves a queue until its head doesn't fit.
    fn serve<P: Pool>(&mut self, number: u16, machine: &mut Machine<'_, P>) {
        let now_ms = machine.now_ms();
        let mut usage = self.usage(number, now_ms);
        while let Some((rank, job)) = self.head(number, &usage) {
            if !machine.start(job) {
                break;
            }
            let vcpus = f64::from(machine.job(job).gpus * VCPUS_PER_GPU);
            *usage.entry(rank).or_default() += vcpus * float(START_CHARGE_MS);
            if let Some(share) = self.queues.get_mut(&number).and_then(|queue| queue.get_mut(&rank)) {
                share.jobs.pop();
            }
            self.waiting -= 1;
            self.running.push(Running { job, queue: number, share: rank, started_ms: now_ms, vcpus });
        }
    }

    /// The share with work that has used the least, the first by name of equals, and its first job.
    fn head(&self, number: u16, usage: &BTreeMap<u16, f64>) -> Option<(u16, usize)> {
        let queue = self.queues.get(&number)?;
        let waiting = queue.iter().filter_map(|(rank, share)| share.jobs.peek().map(|Reverse((_, job))| (*rank, *job)));
        let used = |rank: &u16| usage.get(rank).copied().unwrap_or(0.0);
        waiting.min_by(|(a, _), (b, _)| used(a).total_cmp(&used(b)).then(a.cmp(b)))
    }
}

impl Share {
    fn past_at(&self, now_ms: u64) -> f64 {
        self.past * (-float(now_ms - self.as_of_ms) / float(DECAY_MS)).exp()
    }
}

impl Running {
    /// vCPU·milliseconds, at least the charge of the start.
    fn used(&self, now_ms: u64) -> f64 {
        self.vcpus * float((now_ms - self.started_ms).max(START_CHARGE_MS))
    }
}

fn float(ms: u64) -> f64 {
    ms as f64
}

impl<P: Pool> Strategy<P> for BatchAlone {
    fn submit(&mut self, job: usize, machine: &Machine<'_, P>) {
        let (queue, share, key) = self.place_of(machine.job(job));
        self.queues.entry(queue).or_default().entry(share).or_default().jobs.push(Reverse((key, job)));
        self.waiting += 1;
    }

    fn pass(&mut self, machine: &mut Machine<'_, P>) {
        self.charge_ended(machine);
        let numbers: Vec<u16> = self.queues.keys().copied().collect();
        for number in numbers {
            self.serve(number, machine);
        }
    }

    fn waiting(&self) -> usize {
        self.waiting
    }
}
