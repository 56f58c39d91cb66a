//! The world of a run: the time, what is to come, and everything that the ports lead to.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use osprey_model::event::BatchStatus;
use osprey_model::id::MessageId;
use osprey_model::pool::PoolMode;
use osprey_ports::{QueueKind, StoreError, Write};

use super::batch::{Batch, Effect, Turn, Wanted};
use super::breakage::Breakage;
use super::detail;
use super::evictions::Evictions;
use super::faults::Faults;
use super::journal::Journal;
use super::observer::{Moment, Observer, number, text};
use super::pools::Pools;
use super::ports::LIFE_MS_MAX;
use super::queues::{Queues, Stored};
use super::quota::Quota;
use super::random::Random;
use super::scenario::{Draft, PHASE_MS, Scenario};
use super::script::Script;
use super::store::{Store, key_of};
use super::wiring::{self, Wired};

/// 2026-11-29T12:00:00Z: a run begins half a day before a midnight, and some a few minutes before it.
const START_MS: i64 = 1_795_953_600_000;
/// How long an invocation is at work that never stands still, and goes on within a fraction of a second at each await point.
const BRISK_LIFE_MS: i64 = 300_000;
/// Half a day less half an hour.
const BEFORE_MIDNIGHT_MS: i64 = 43_200_000 - 1_800_000;

/// What is to come.
#[derive(Debug)]
pub enum Happening {
    /// A task goes on.
    Resume(usize),
    /// Messages of a queue may be there.
    Poll(QueueKind),
    /// A message of the scenario is sent.
    Send(Box<Draft>),
    /// A message, or an event, arrives in a queue.
    Arrive(QueueKind, Arc<str>, &'static str),
    /// A job of Batch takes its next step.
    Turn(Turn),
    /// A request that was on its way makes a job.
    Create(Box<Wanted>),
    /// A stop takes effect.
    Stop(usize, String),
    /// An event of a job is delivered.
    Event(usize, Option<usize>, Arc<str>),
    /// It is time for `watch`.
    Watch,
    /// Spot hosts go away.
    Storm,
    /// The policy changes.
    Policy(usize),
    /// The mode of a pool changes, by its number.
    Mode(usize, PoolMode),
    /// A person does something to some job.
    Person,
    /// A person does something to what has just changed.
    Meddle(Moment),
    /// A person orders something of a pool, or of who goes first, by a number that says what.
    Order(u64),
    /// Faults stop.
    Calm,
}

/// Something at a time. Equal times keep the order in which they were planned.
pub struct Timer {
    at: i64,
    number: u64,
    happening: Happening,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// A message that a person sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Its number.
    pub id: MessageId,
    /// What it is.
    pub draft: Draft,
}

/// A notice that was published.
#[derive(Clone, Debug)]
pub struct Told {
    /// Job and cause.
    pub key: String,
}

/// Streams of chance, one for each part of the world.
pub struct Streams {
    /// Fates of calls.
    pub calls: Random,
    /// Batch.
    pub batch: Random,
    /// Queues.
    pub queues: Random,
    /// People and policy.
    pub people: Random,
    /// `watch`.
    pub watch: Random,
    /// How far answers lag.
    pub answers: Random,
}

/// The world.
pub struct World {
    /// The time, milliseconds since 1970.
    pub now: i64,
    /// When it began.
    pub start: i64,
    /// What goes wrong now.
    pub faults: Faults,
    /// The table.
    pub store: Store,
    /// The queues.
    pub queues: Queues,
    /// Batch.
    pub batch: Batch,
    /// What people were told.
    pub told: Vec<Told>,
    /// The newest that other systems heard of each job: its version and its state.
    pub heard: BTreeMap<String, (u64, String)>,
    /// What was sent.
    pub sent: Vec<Sent>,
    /// The scripts of jobs.
    pub scripts: Vec<Script>,
    /// What was seen of the table.
    pub observer: Observer,
    /// What was seen of the rows of pools.
    pub pools: Pools,
    /// Evictions.
    pub evictions: Evictions,
    /// The pools, and how they are set up.
    pub wired: Wired,
    /// Pools whose mode has changed, by number.
    pub changed_modes: BTreeSet<usize>,
    /// The quotas of the policies, until faults stop.
    pub quota: Quota,
    /// How far answers of DescribeJobs lag at most, until faults stop, in milliseconds.
    pub answers_lag_ms: i64,
    /// How long after it began an invocation may still act, in milliseconds.
    pub life_ms: i64,
    /// Until when the On-Demand pool gets no nodes.
    pub barren_until: i64,
    /// The account.
    pub journal: Journal,
    /// Chance.
    pub streams: Streams,
    /// How far the clock of each task is off.
    pub skews: Vec<i64>,
    /// When each task began.
    pub begun: Vec<i64>,
    /// A task that is to be ended at the await point where it is.
    pub crashed: bool,
    /// The planted breakage.
    pub breakage: Option<Breakage>,
    /// Whether somebody tells which invocation goes on.
    pub is_staged: bool,
    /// Whether the policies tell senders apart.
    pub is_guarded: bool,
    /// The policy in force.
    pub policy: usize,
    /// The policies that came into force, and when.
    pub policies: Vec<(i64, usize)>,
    /// Messages that are yet to be sent by plan.
    pub unsent: usize,
    seed: u64,
    polls: BTreeMap<QueueKind, i64>,
    timers: BinaryHeap<Reverse<Timer>>,
    planned: u64,
    messages: u64,
    events: u64,
}

impl World {
    /// Other systems hear of a job. What is older than what they know changes nothing.
    pub fn hear(&mut self, event: &str) {
        let (job, state) = (text(event, "jobId").unwrap_or_default(), text(event, "state").unwrap_or_default());
        let version = number(event, "version").unwrap_or(0);
        self.tell(|| format!("  others hear that {job} is {state}"));
        let known = self.heard.entry(job.to_owned()).or_default();
        if version >= known.0 {
            *known = (version, state.to_owned());
        }
    }

    /// The world of a seed, with its scenario planned.
    #[must_use]
    pub fn of_seed(seed: u64, breakage: Option<Breakage>, with_story: bool) -> Self {
        let fork = |label| Random::fork(seed, label);
        let streams = Streams {
            calls: fork("calls"),
            batch: fork("batch"),
            queues: fork("queues"),
            people: fork("people"),
            watch: fork("watch"),
            answers: fork("answers"),
        };
        let Scenario { drafts, scripts, is_guarded } = Scenario::of_seed(seed);
        let start = START_MS + if seed.is_multiple_of(4) { BEFORE_MIDNIGHT_MS } else { 0 };
        let faults = Faults::of_seed(seed);
        let wired = wiring::wired(seed);
        // Others' work on nodes that aren't there can't be seen.
        let barren_until = if wired.foreign_gpus > 0 { start } else { start + faults.barren_ms };
        let mut world = Self {
            now: start,
            start,
            batch: Batch::new(faults.describe_lag_ms_max > 0),
            store: Store::default(),
            queues: Queues::default(),
            told: Vec::new(),
            heard: BTreeMap::new(),
            sent: Vec::new(),
            scripts,
            observer: Observer::default(),
            pools: Pools::default(),
            evictions: Evictions::default(),
            wired,
            changed_modes: BTreeSet::new(),
            quota: Quota::of_seed(seed),
            answers_lag_ms: faults.describe_lag_ms_max,
            life_ms: life_ms(&faults),
            barren_until,
            faults,
            journal: Journal::new(with_story),
            streams,
            skews: Vec::new(),
            begun: Vec::new(),
            crashed: false,
            breakage,
            is_staged: false,
            is_guarded,
            policy: 0,
            policies: vec![(start, 0)],
            unsent: 0,
            seed,
            polls: BTreeMap::new(),
            timers: BinaryHeap::new(),
            planned: 0,
            messages: 0,
            events: 0,
        };
        for draft in drafts {
            world.later(start + draft.at_ms, Happening::Send(Box::new(draft)));
        }
        world
    }

    /// Whether this breakage is planted.
    #[must_use]
    pub fn is_broken(&self, breakage: Breakage) -> bool {
        self.breakage == Some(breakage)
    }

    /// Whether the functions read policies with identities.
    #[must_use]
    pub fn knows_senders(&self) -> bool {
        self.is_guarded && !self.is_broken(Breakage::LetEverybodyIn)
    }

    /// The quotas of the policies in force.
    #[must_use]
    pub fn quota_now(&self) -> Quota {
        let quota = if self.now >= self.start + PHASE_MS { self.quota.lifted() } else { self.quota };
        if quota == Quota::Reserve && self.is_broken(Breakage::ForgetReserves) { Quota::Caps } else { quota }
    }

    /// Plans something.
    pub fn later(&mut self, at: i64, happening: Happening) {
        self.planned += 1;
        self.unsent += usize::from(matches!(happening, Happening::Send(_)));
        self.timers.push(Reverse(Timer { at: at.max(self.now), number: self.planned, happening }));
    }

    /// Plans that a queue is looked at, unless that is planned for an earlier time: then it is planned anew there.
    pub fn poll_at(&mut self, queue: QueueKind, at: i64) {
        if self.polls.get(&queue).is_none_or(|planned| at < *planned) {
            self.polls.insert(queue, at);
            self.later(at, Happening::Poll(queue));
        }
    }

    /// Notes that a queue is looked at now.
    pub fn polled(&mut self, queue: QueueKind) {
        if self.polls.get(&queue).is_some_and(|planned| *planned <= self.now) {
            self.polls.remove(&queue);
        }
    }

    /// The next thing that happens; the time goes on to it.
    pub fn next(&mut self) -> Option<Happening> {
        let Reverse(timer) = self.timers.pop()?;
        self.now = timer.at.max(self.now);
        self.journal.number(timer.at.unsigned_abs());
        Some(timer.happening)
    }

    /// When that is.
    #[must_use]
    pub fn next_at(&self) -> Option<i64> {
        self.timers.peek().map(|Reverse(timer)| timer.at)
    }

    /// Forgets everything that was planned.
    pub fn clear(&mut self) {
        self.timers.clear();
        self.polls.clear();
        self.unsent = 0;
    }

    /// Tells a line of the story.
    pub fn tell(&mut self, line: impl FnOnce() -> String) {
        let since = self.now - self.start;
        self.journal.tell(since, line);
    }

    /// Sends a message of a person, which gets a number.
    pub fn send(&mut self, draft: Draft) {
        let id = self.put(QueueKind::Submissions, draft.body.as_str().into(), draft.sender, 0);
        self.tell(|| format!("{} sends {id}: {}", draft.sender, draft.body));
        self.sent.push(Sent { id, draft });
    }

    /// Puts a message into a queue; how long it takes to be seen is chance.
    pub fn put(&mut self, queue: QueueKind, body: Arc<str>, sender: &'static str, delay_ms: i64) -> MessageId {
        self.messages += 1;
        let id = MessageId::new(format!("{:08x}-msg-{:06}", self.seed & 0xffff_ffff, self.messages));
        self.journal.text(&body);
        let scatter = self.streams.queues.between(0, self.faults.scatter_ms_max);
        let visible_at = self.now + delay_ms + scatter;
        let message = Stored { id: id.clone(), body, sender, sent_at: self.now, visible_at, received: 0 };
        self.queues.put(queue, message);
        self.poll_at(queue, visible_at);
        id
    }

    /// Makes writes if their conditions hold.
    ///
    /// # Errors
    /// What the table says.
    pub fn write(&mut self, writes: &[Write]) -> Result<(), StoreError> {
        let broken = self.broken_writes(writes);
        let writes = broken.as_deref().unwrap_or(writes);
        self.store.check(writes)?;
        let shown_at = self.now + self.streams.calls.between(0, self.faults.index_lag_ms_max);
        for write in writes {
            self.store.apply(write, shown_at);
            if let Write::Put { item, .. } = write {
                self.journal.text(&item.body);
            }
        }
        self.tell(|| format!("  written: {}", names(writes)));
        self.observed(writes);
        Ok(())
    }

    fn observed(&mut self, writes: &[Write]) {
        let broken = self.pools.see(writes).or(self.evictions.see(writes, self.now));
        self.observer.violation = self.observer.violation.take().or(broken);
        for moment in self.observer.see(writes, self.now) {
            if let Moment::Job(job, state) = &moment {
                self.tell(|| format!("  job {job} is {state}"));
                if state == "claimed" {
                    self.parents_of_claimed(job);
                }
            }
            if self.streams.people.chance(self.faults.meddling) {
                self.later(self.now, Happening::Meddle(moment));
            }
        }
    }

    /// A job that is about to be submitted must have parents that succeeded.
    fn parents_of_claimed(&mut self, job: &str) {
        let violation = super::check::order::claimed(self, job);
        self.observer.violation = self.observer.violation.take().or(violation);
    }

    /// What follows a change in Batch.
    pub fn follow(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Next(at, turn) => {
                    let at = self.once_there_are_nodes(turn, at);
                    self.later(at, Happening::Turn(turn));
                }
                Effect::Event(job, part) => self.event(job, part),
            }
        }
    }

    /// When a step is made that is planned for a time: nothing starts where there are no nodes.
    fn once_there_are_nodes(&self, turn: Turn, at: i64) -> i64 {
        let Some(job) = self.batch.jobs.get(turn.job) else { return at };
        let starts = job.unit(turn.part).status == BatchStatus::Runnable && !wiring::is_spot(&job.queue);
        if starts && at < self.barren_until { self.barren_until + (at - self.now) } else { at }
    }

    /// Sets the mode of a pool.
    pub fn set_mode(&mut self, number: usize, mode: PoolMode) {
        let mut pools = (*self.wired.pools).clone();
        let Some(pool) = pools.get_mut(number) else { return };
        if pool.mode != mode {
            pool.mode = mode;
            self.changed_modes.insert(number);
            let name = pool.name.clone();
            self.wired.pools = Arc::new(pools);
            self.tell(|| format!("pool {name} is {} from now on", mode.as_str()));
        }
    }

    /// Makes a job in Batch.
    pub fn create(&mut self, wanted: Wanted) -> String {
        let id = format!("{:08x}-ba7c-4000-8000-{:012x}", self.seed & 0xffff_ffff, self.batch.jobs.len() + 1);
        let (name, queue) = (wanted.name.clone(), wanted.queue.clone());
        let effects = self.batch.create(wanted, id.clone(), self.now);
        self.tell(|| format!("  Batch makes {id} ({name}) in {queue}"));
        self.journal.text(&id);
        self.follow(effects);
        id
    }

    /// Sends the event of a change on its way: now, late, twice or never.
    fn event(&mut self, at: usize, part: Option<usize>) {
        let Some(job) = self.batch.jobs.get(at) else { return };
        self.events += 1;
        let body: Arc<str> = detail::event(job, part, self.events).into();
        let (id, status) = (detail::id_of(job, part), job.unit(part).status.as_str());
        let random = &mut self.streams.batch;
        let lost = random.chance(self.faults.event_lost);
        let copies = if lost { 0 } else { 1 + usize::from(random.chance(self.faults.event_doubled)) };
        let most = self.faults.event_delay_ms_max;
        let delays: Vec<i64> = (0..copies).map(|_| random.between(50, most)).collect();
        self.tell(|| format!("  Batch: {id} is {status}{}", if lost { "; its event is lost" } else { "" }));
        for delay in delays {
            self.later(self.now + delay, Happening::Event(at, part, Arc::clone(&body)));
        }
    }
}

/// The items of writes, for the story.
fn names(writes: &[Write]) -> String {
    let name = |write: &Write| {
        let key = key_of(write);
        format!("{} {}", key.partition, key.sort)
    };
    writes.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// How long after it began an invocation may still act.
fn life_ms(faults: &Faults) -> i64 {
    if faults.stall > 0 || faults.delay > 0 { LIFE_MS_MAX } else { BRISK_LIFE_MS }
}
