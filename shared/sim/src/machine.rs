//! The running side of a simulation: the clock, what runs until when, what is free, what each job has done.

use crate::pool::Pool;
use crate::replay::Record;
use crate::schedule::{Outcome, Schedule, Segment, SegmentEnd, Sums};
use crate::workload::Job;

/// A running job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// When it will be done, in milliseconds.
    pub end_ms: u64,
    /// The job, by its place in the workload.
    pub job: usize,
}

/// What a job has done so far.
#[derive(Clone, Debug)]
struct Progress<S> {
    outcome: Outcome,
    remaining_ms: u64,
    started_ms: u64,
    /// Time of the present run in which nothing is done: nodes start up, and then the job restarts.
    overhead_ms: u64,
    /// The part of it that the restart takes.
    restart_ms: u64,
    share: Option<S>,
    is_dive: bool,
}

/// What interruptions cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A job that doesn't say how often it saves has a checkpoint after each such time of a run, in milliseconds; 0 for
    /// jobs that lose nothing.
    pub checkpoint_ms: u64,
    /// Time that a job needs to go on after an interruption, in milliseconds.
    pub restart_ms: u64,
}

impl Costs {
    /// What the reference strategies have: a checkpoint every 5 minutes, and restarts that cost nothing.
    pub const REFERENCE: Self = Self { checkpoint_ms: 300_000, restart_ms: 0 };
}

/// The machine that strategies act on.
#[derive(Clone, Debug)]
pub struct Machine<'w, P: Pool> {
    /// The jobs.
    pub jobs: &'w [Job],
    /// What is free.
    pub pool: P,
    now_ms: u64,
    costs: Costs,
    /// Running jobs by end and then by place, the last to end first: the next completion is at the back, where taking
    /// it costs nothing.
    running: Vec<Run>,
    progress: Vec<Progress<P::Share>>,
    sums: Sums,
    segments: Option<Vec<Segment>>,
    /// Starts since somebody asked, where somebody does.
    started: Option<Vec<usize>>,
}

impl<'w, P: Pool> Machine<'w, P> {
    /// A machine on which nothing runs yet.
    #[must_use]
    pub fn new(jobs: &'w [Job], pool: P, record: Record, costs: Costs) -> Self {
        let start = |job: &Job| Progress {
            outcome: Outcome::default(),
            remaining_ms: job.duration_ms,
            started_ms: 0,
            overhead_ms: 0,
            restart_ms: 0,
            share: None,
            is_dive: false,
        };
        Self {
            jobs,
            pool,
            now_ms: 0,
            costs,
            running: Vec::new(),
            progress: jobs.iter().map(start).collect(),
            sums: Sums::default(),
            segments: (record == Record::Segments).then(Vec::new),
            started: None,
        }
    }

    /// The time, in milliseconds.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Running jobs, the next to end first.
    pub fn running(&self) -> impl DoubleEndedIterator<Item = Run> + '_ {
        self.running.iter().rev().copied()
    }

    /// When the next job ends.
    #[must_use]
    pub fn next_end(&self) -> Option<u64> {
        self.running.last().map(|run| run.end_ms)
    }

    /// A job.
    #[expect(clippy::indexing_slicing, reason = "places come from this list; a check in the hottest loop costs time")]
    #[must_use]
    pub fn job(&self, job: usize) -> &'w Job {
        &self.jobs[job]
    }

    #[expect(clippy::indexing_slicing, reason = "places come from the list of jobs, which is as long")]
    fn progress(&self, job: usize) -> &Progress<P::Share> {
        &self.progress[job]
    }

    #[expect(clippy::indexing_slicing, reason = "places come from the list of jobs, which is as long")]
    fn progress_mut(&mut self, job: usize) -> &mut Progress<P::Share> {
        &mut self.progress[job]
    }

    /// What a job still has to run once it starts, in milliseconds.
    #[must_use]
    pub fn remaining_ms(&self, job: usize) -> u64 {
        self.progress(job).remaining_ms
    }

    /// When a running job started last, in milliseconds.
    #[must_use]
    pub fn started_ms(&self, job: usize) -> u64 {
        self.progress(job).started_ms
    }

    /// What a running job holds.
    #[must_use]
    pub fn share(&self, job: usize) -> Option<&P::Share> {
        self.progress(job).share.as_ref()
    }

    /// Moves the clock; `waiting` jobs waited until now.
    pub fn advance(&mut self, now_ms: u64, waiting: usize) {
        let passed = now_ms - self.now_ms;
        let capacity = u128::from(passed) * u128::from(self.pool.gpus());
        self.sums.capacity_gpu_ms += capacity;
        if waiting > 0 && passed > 0 {
            let over = u128::from(passed);
            self.sums.backlogged_capacity_gpu_ms += capacity;
            self.sums.backlogged_gpu_ms += over * u128::from(self.pool.gpus() - self.pool.free());
            self.sums.stranded_gpu_ms += over * u128::from(self.pool.stranded());
        }
        self.now_ms = now_ms;
    }

    /// Ends every job whose time has come.
    pub fn complete(&mut self) {
        while let Some(run) = self.running.pop_if(|run| run.end_ms == self.now_ms) {
            let (now, gpus) = (self.now_ms, u128::from(self.job(run.job).gpus));
            let progress = self.progress_mut(run.job);
            progress.outcome.end_ms = Some(now);
            progress.remaining_ms = 0;
            let restart_ms = progress.restart_ms;
            self.sums.lost_gpu_ms += u128::from(restart_ms) * gpus;
            self.release(run.job, SegmentEnd::Done);
        }
    }

    /// Starts a job where it fits best. Answers whether it fits.
    pub fn start(&mut self, job: usize) -> bool {
        let Some(share) = self.pool.place(self.job(job).gpus) else { return false };
        self.start_on(job, share, false)
    }

    /// Starts a job on a share. Answers whether the share was free.
    pub fn start_on(&mut self, job: usize, share: P::Share, is_dive: bool) -> bool {
        if !self.pool.hold(&share) {
            return false;
        }
        let now = self.now_ms;
        let start_up_ms = self.pool.start_up_ms(&share, now);
        let restart_ms = self.restart_ms(job);
        let progress = self.progress_mut(job);
        progress.started_ms = now;
        progress.outcome.start_ms.get_or_insert(now);
        progress.share = Some(share);
        progress.is_dive = is_dive;
        progress.overhead_ms = start_up_ms + restart_ms;
        progress.restart_ms = restart_ms;
        let run = Run { end_ms: now + progress.overhead_ms + progress.remaining_ms, job };
        if let Some(started) = &mut self.started {
            started.push(job);
        }
        let at = self.running.partition_point(|other| *other > run);
        self.running.insert(at, run);
        true
    }

    /// What a job has to pay before it goes on, in milliseconds: nothing before its first start.
    #[must_use]
    pub fn restart_ms(&self, job: usize) -> u64 {
        if self.progress(job).outcome.start_ms.is_some() { self.costs.restart_ms } else { 0 }
    }

    /// Work that a running job has done since its last start, in milliseconds.
    #[must_use]
    pub fn ran_ms(&self, job: usize) -> u64 {
        let progress = self.progress(job);
        (self.now_ms - progress.started_ms).saturating_sub(progress.overhead_ms)
    }

    /// The part of that work that a checkpoint holds, in milliseconds.
    #[must_use]
    pub fn saved_ms(&self, job: usize) -> u64 {
        let (every, ran) = (self.saves_every_ms(job), self.ran_ms(job));
        ran.checked_div(every).map_or(ran, |saved| saved * every)
    }

    /// How often a job saves, in milliseconds of a run; 0 for one that loses nothing.
    #[must_use]
    pub fn saves_every_ms(&self, job: usize) -> u64 {
        self.job(job).checkpoint_ms.unwrap_or(self.costs.checkpoint_ms)
    }

    /// When a running job goes on or first begins to work, in milliseconds.
    #[must_use]
    pub fn works_from_ms(&self, job: usize) -> u64 {
        self.progress(job).started_ms + self.progress(job).overhead_ms
    }

    /// What has become of a job.
    #[must_use]
    pub fn outcome(&self, job: usize) -> Outcome {
        self.progress(job).outcome
    }

    /// Notes starts from now on.
    pub fn note_starts(&mut self) {
        self.started = Some(Vec::new());
    }

    /// Starts since the last time that this was asked.
    pub fn take_started(&mut self) -> Vec<usize> {
        self.started.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Jobs that hold something of a node.
    #[must_use]
    pub fn on_node(&self, node: u32) -> Vec<usize> {
        let holds = |job: &usize| self.share(*job).is_some_and(|s| P::nodes(s).iter().any(|(held, _)| *held == node));
        self.running().map(|run| run.job).filter(holds).collect()
    }

    /// Stops a running job for others. `kept_ms` of the work since its last start is kept, the rest is lost.
    pub fn evict(&mut self, job: usize, kept_ms: u64) {
        self.stop(job, kept_ms, SegmentEnd::Preempted);
    }

    /// Stops a running job that isn't done. What no checkpoint holds is lost.
    pub fn interrupt(&mut self, job: usize, end: SegmentEnd) {
        self.stop(job, self.saved_ms(job), end);
    }

    fn stop(&mut self, job: usize, kept_ms: u64, end: SegmentEnd) {
        let now = self.now_ms;
        let gpus = u128::from(self.job(job).gpus);
        let ran = self.ran_ms(job);
        let progress = self.progress_mut(job);
        let run = Run { end_ms: progress.started_ms + progress.overhead_ms + progress.remaining_ms, job };
        let restarted = progress.restart_ms.min(now - progress.started_ms);
        progress.remaining_ms -= kept_ms;
        match end {
            SegmentEnd::HostLost => progress.outcome.host_losses += 1,
            SegmentEnd::Failed => progress.outcome.failures += 1,
            SegmentEnd::Preempted | SegmentEnd::Done => progress.outcome.preemptions += 1,
        }
        self.sums.lost_gpu_ms += u128::from(ran - kept_ms + restarted) * gpus;
        if let Ok(at) = self.running.binary_search_by(|other| run.cmp(other)) {
            self.running.remove(at);
        }
        self.release(job, end);
    }

    fn release(&mut self, job: usize, end: SegmentEnd) {
        let Some(share) = self.progress_mut(job).share.take() else { return };
        self.pool.give(&share);
        let (start_ms, is_dive) = (self.progress(job).started_ms, self.progress(job).is_dive);
        let end_ms = self.now_ms;
        if let Some(segments) = &mut self.segments {
            segments.push(Segment { job, start_ms, end_ms, nodes: P::nodes(&share), end, is_dive });
        }
    }

    /// What came of it.
    #[must_use]
    pub fn into_schedule(self) -> Schedule {
        let outcomes = self.progress.into_iter().map(|progress| progress.outcome).collect();
        Schedule { outcomes, sums: self.sums, segments: self.segments.unwrap_or_default() }
    }
}
