//! A Batch without a client token: jobs that live by their scripts, lists that lag, stops that take their time.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use osprey_model::event::BatchStatus;

use super::random::Random;
use super::script::{Outcome, Step, Told};
use super::wiring;

/// Something that goes through the states: a job, or a child of an array.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Where it is.
    pub status: BatchStatus,
    /// When it started to run.
    pub started_at: Option<i64>,
    /// When it ended.
    pub stopped_at: Option<i64>,
    /// How it ended.
    pub told: Option<Told>,
    /// What it does.
    pub step: Step,
    /// The number of the node that it runs on, in its pool.
    pub node: Option<usize>,
    /// Raised when what was planned for it no longer holds.
    epoch: u32,
}

/// A job of Batch.
#[derive(Clone, Debug)]
pub struct BatchJob {
    /// Its id.
    pub id: String,
    /// Name.
    pub name: String,
    /// Queue.
    pub queue: String,
    /// Tags as submitted.
    pub tags: BTreeMap<String, String>,
    /// The job that our tag names.
    pub owner: String,
    /// The attempt that our tag names.
    pub attempt: u32,
    /// When the request was signed.
    pub signed_at: i64,
    /// When the job was made.
    pub created_at: i64,
    /// ListJobs shows it from then on.
    pub listed_at: i64,
    /// So long after its end ListJobs shows a child among those that failed.
    pub list_lag_ms: i64,
    /// The job itself.
    pub whole: Unit,
    /// Children of an array.
    pub children: Vec<Unit>,
    /// Calls of TerminateJob: when, and why.
    pub stops: Vec<(i64, String)>,
    /// Whether an event of it was delivered.
    pub heard: bool,
    /// Times at which a list should have shown it and didn't.
    pub hidden_at: Vec<i64>,
    /// How it was after each change: what an answer that lags shows. Empty where no answer lags.
    past: Vec<Past>,
}

/// How a job was from a time on.
#[derive(Clone, Debug)]
struct Past {
    from: i64,
    whole: Unit,
    children: Vec<Unit>,
}

/// What is to come of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// An event of a job, or of one of its children.
    Event(usize, Option<usize>),
    /// The next step of a job or a child, at a time.
    Next(i64, Turn),
}

/// A step that is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The job.
    pub job: usize,
    /// The child.
    pub part: Option<usize>,
    epoch: u32,
}

/// What a submission asks for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Name.
    pub name: String,
    /// Queue.
    pub queue: String,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Children; 0 for no array.
    pub children: usize,
    /// What the attempt does.
    pub step: Step,
    /// When it was signed.
    pub signed_at: i64,
    /// How long ListJobs doesn't show it.
    pub hidden_ms: i64,
}

/// All jobs.
#[derive(Default)]
pub struct Batch {
    /// In the order they were made.
    pub jobs: Vec<BatchJob>,
    by_id: HashMap<String, usize>,
    by_name: HashMap<String, Vec<usize>>,
    /// Jobs that have not ended.
    pub live: usize,
    /// Whether it is kept how each job was.
    keeps_past: bool,
}

impl Unit {
    fn new(step: Step) -> Self {
        Self {
            status: BatchStatus::Submitted,
            started_at: None,
            stopped_at: None,
            told: None,
            step,
            node: None,
            epoch: 0,
        }
    }

    fn end(&mut self, told: Told, now: i64) {
        self.status = if told.succeeded { BatchStatus::Succeeded } else { BatchStatus::Failed };
        self.stopped_at = Some(now);
        self.told = Some(told);
        self.epoch += 1;
    }

    /// The next state, and how long after it the one behind follows.
    fn turn(&mut self, now: i64, random: &mut Random) -> Option<i64> {
        let outcome = self.step.outcome;
        match self.status {
            BatchStatus::Submitted | BatchStatus::Pending => {
                self.status = BatchStatus::Runnable;
                Some(random.between(500, 30_000))
            }
            BatchStatus::Runnable if outcome != Outcome::Capacity => {
                self.status = BatchStatus::Starting;
                Some(random.between(200, 20_000))
            }
            BatchStatus::Starting if !outcome.is_before_start() => {
                self.status = BatchStatus::Running;
                self.started_at = Some(now);
                Some(self.step.run_ms)
            }
            BatchStatus::Runnable | BatchStatus::Starting | BatchStatus::Running => {
                self.end(outcome.told(false), now);
                None
            }
            BatchStatus::Succeeded | BatchStatus::Failed => None,
        }
    }
}

impl BatchJob {
    /// The job or one of its children.
    #[must_use]
    pub fn unit(&self, part: Option<usize>) -> &Unit {
        part.and_then(|child| self.children.get(child)).unwrap_or(&self.whole)
    }

    /// Indexes of children that failed, as far as ListJobs shows them.
    pub fn failed_children_listed(&self, now: i64) -> impl Iterator<Item = usize> {
        let shown = move |child: &Unit| {
            let shown_at = child.stopped_at.map(|at| at.saturating_add(self.list_lag_ms));
            child.status == BatchStatus::Failed && shown_at.is_some_and(|at| at <= now)
        };
        self.children.iter().enumerate().filter(move |(_, child)| shown(child)).map(|(index, _)| index)
    }

    /// It as it was at a time; `None` before it was made. Where nothing is kept of how it was, as it is.
    #[must_use]
    pub fn as_of(&self, at: i64) -> Option<Cow<'_, Self>> {
        if self.past.last().is_none_or(|last| last.from <= at) {
            return Some(Cow::Borrowed(self));
        }
        let Past { whole, children, .. } = self.past.iter().rev().find(|past| past.from <= at)?.clone();
        Some(Cow::Owned(Self { whole, children, past: Vec::new(), ..self.clone() }))
    }

    /// Keeps how it is from now on.
    fn keep(&mut self, now: i64) {
        self.past.push(Past { from: now, whole: self.whole.clone(), children: self.children.clone() });
    }

    /// The job or one of its children.
    pub fn unit_mut(&mut self, part: Option<usize>) -> &mut Unit {
        match part {
            Some(child) if child < self.children.len() => self.children.get_mut(child).unwrap_or(&mut self.whole),
            _ => &mut self.whole,
        }
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.whole.status.is_final()
    }

    /// The class of the end of an array, from its children's: a person's stop before a failure before the rest.
    fn class_of_children(&self) -> &'static str {
        let classes = || self.children.iter().filter_map(|child| child.told.as_ref().map(|told| told.class));
        let failures = ["out_of_memory", "start_failure_permanent", "timeout", "exit_code", "misconfigured"];
        let bad = || classes().filter(|class| *class != "succeeded");
        let cancelled = bad().find(|class| *class == "cancelled");
        cancelled
            .or_else(|| bad().find(|class| failures.contains(class)))
            .or_else(|| bad().next())
            .unwrap_or("succeeded")
    }
}

impl Batch {
    /// A Batch without jobs. Where answers lag it must be kept how each job was.
    #[must_use]
    pub fn new(keeps_past: bool) -> Self {
        Self { keeps_past, ..Self::default() }
    }

    /// Makes a job.
    pub fn create(&mut self, wanted: Wanted, id: String, now: i64) -> Vec<Effect> {
        let at = self.jobs.len();
        let tag = |name: &str| wanted.tags.get(name).cloned().unwrap_or_default();
        let (owner, attempt) = (tag("osprey:job-id"), tag("osprey:attempt").parse().unwrap_or(0));
        let child = |index: usize| {
            // One child does what the script says, the others succeed.
            let outcome = if index == 0 { wanted.step.outcome } else { Outcome::Success };
            Unit::new(Step { outcome, ..wanted.step })
        };
        self.by_id.insert(id.clone(), at);
        self.by_name.entry(wanted.name.to_lowercase()).or_default().push(at);
        self.live += 1;
        self.jobs.push(BatchJob {
            id,
            owner,
            attempt,
            signed_at: wanted.signed_at,
            created_at: now,
            listed_at: now.saturating_add(wanted.hidden_ms),
            list_lag_ms: wanted.hidden_ms,
            whole: Unit::new(wanted.step),
            children: (0..wanted.children).map(child).collect(),
            stops: Vec::new(),
            heard: false,
            hidden_at: Vec::new(),
            past: Vec::new(),
            name: wanted.name,
            queue: wanted.queue,
            tags: wanted.tags,
        });
        self.keep(at, now);
        vec![Effect::Next(now + 1_000, Turn { job: at, part: None, epoch: 0 })]
    }

    fn keep(&mut self, at: usize, now: i64) {
        if let Some(job) = self.jobs.get_mut(at).filter(|_| self.keeps_past) {
            job.keep(now);
        }
    }

    /// A job by its id, or by the id of one of its children, with the child's index.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<(usize, Option<usize>)> {
        let (whole, part) = match id.split_once(':') {
            Some((whole, part)) => (whole, Some(part.parse().ok()?)),
            None => (id, None),
        };
        self.by_id.get(whole).map(|at| (*at, part))
    }

    /// Takes the next step of a job or a child.
    pub fn turn(&mut self, turn: Turn, now: i64, random: &mut Random) -> Vec<Effect> {
        let effects = self.step(turn, now, random);
        self.keep(turn.job, now);
        effects
    }

    fn step(&mut self, turn: Turn, now: i64, random: &mut Random) -> Vec<Effect> {
        let Some(job) = self.jobs.get_mut(turn.job) else { return Vec::new() };
        if turn.part.is_none() && !job.children.is_empty() {
            return Self::unfold(job, turn.job, now, random);
        }
        let unit = job.unit_mut(turn.part);
        if unit.epoch != turn.epoch || unit.status.is_final() {
            return Vec::new();
        }
        let mut effects = Vec::new();
        if let Some(wait) = unit.turn(now, random) {
            effects.push(Effect::Next(now + wait, turn));
        }
        effects.push(Effect::Event(turn.job, turn.part));
        self.close(turn.job, now, &mut effects);
        effects
    }

    /// The parent waits from now on, and its children begin.
    fn unfold(job: &mut BatchJob, at: usize, now: i64, random: &mut Random) -> Vec<Effect> {
        if job.whole.status != BatchStatus::Submitted {
            return Vec::new();
        }
        job.whole.status = BatchStatus::Pending;
        let begin = |part| Effect::Next(now + random.between(100, 5_000), Turn { job: at, part: Some(part), epoch: 0 });
        let mut effects: Vec<Effect> = (0..job.children.len()).map(begin).collect();
        effects.push(Effect::Event(at, None));
        effects
    }

    /// Ends an array whose children have all ended, and counts a job that has ended.
    fn close(&mut self, at: usize, now: i64, effects: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(at) else { return };
        let is_array = !job.children.is_empty();
        if is_array && !job.is_over() && job.children.iter().all(|child| child.status.is_final()) {
            let class = job.class_of_children();
            let outcome = if class == "succeeded" { Outcome::Success } else { Outcome::Exit(1) };
            let told = Told { class, exit_code: None, ..outcome.told(true) };
            job.whole.end(told, now);
            effects.push(Effect::Event(at, None));
        }
        if job.whole.stopped_at == Some(now) && effects.contains(&Effect::Event(at, None)) {
            self.live = self.live.saturating_sub(1);
        }
    }

    /// Stops a job now, with a reason that becomes its status reason.
    pub fn stop(&mut self, at: usize, reason: &str, now: i64) -> Vec<Effect> {
        let class = match reason {
            _ if reason.starts_with(super::evictions::TOKEN) => "preempted",
            _ if reason.starts_with("OSPREY") => "cancelled",
            _ => "host_lost",
        };
        let told = || Told {
            succeeded: false,
            status_reason: reason.to_owned(),
            container_reason: None,
            exit_code: (class != "host_lost").then_some(143),
            class,
        };
        let mut effects = Vec::new();
        let Some(job) = self.jobs.get_mut(at).filter(|job| !job.is_over()) else { return effects };
        for (index, child) in job.children.iter_mut().enumerate().filter(|(_, child)| !child.status.is_final()) {
            child.end(told(), now);
            effects.push(Effect::Event(at, Some(index)));
        }
        if class != "host_lost" || job.children.is_empty() {
            job.whole.end(told(), now);
            effects.push(Effect::Event(at, None));
        }
        self.close(at, now, &mut effects);
        self.keep(at, now);
        effects
    }

    /// Every job on a Spot host loses it.
    pub fn storm(&mut self, now: i64) -> Vec<Effect> {
        let on_host = |unit: &Unit| matches!(unit.status, BatchStatus::Starting | BatchStatus::Running);
        let hit: Vec<usize> = self
            .jobs
            .iter()
            .enumerate()
            .filter(|(_, job)| wiring::is_spot(&job.queue) && (on_host(&job.whole) || job.children.iter().any(on_host)))
            .map(|(at, _)| at)
            .collect();
        hit.into_iter().flat_map(|at| self.stop(at, "Host EC2 (instance i-1) terminated.", now)).collect()
    }

    /// Jobs of a queue and a name made at or after a time, newest first, as far as the list shows them.
    pub fn list(&mut self, queue: &str, name: &str, from: i64, now: i64) -> Vec<usize> {
        let mut found = Vec::new();
        for at in self.by_name.get(&name.to_lowercase()).into_iter().flatten().rev() {
            let Some(job) = self.jobs.get_mut(*at) else { continue };
            if job.queue != queue || job.created_at < from {
                continue;
            }
            if job.listed_at > now {
                job.hidden_at.push(now);
            } else {
                found.push(*at);
            }
        }
        found
    }
}
