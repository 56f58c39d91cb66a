//! One run: an executor of one thread over virtual time, and what starts its tasks.

mod stage;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll as TaskPoll, Waker};

use osprey_model::id::MessageId;
use osprey_model::pool::{Pool, PoolMode};
use osprey_pipeline::context::{Context, Settings};
use osprey_policy::Policy;
use osprey_ports::{QueueKind, ReceivedMessage};

use super::breakage::{self, Breakage};
use super::check::order;
use super::faults::Faults;
use super::observer::is_final;
use super::orders;
use super::people;
use super::ports::{Ports, Shared, enter};
use super::queues::{Batch, Handle, Poll, Stored};
use super::random::Random;
use super::scenario::PHASE_MS;
use super::senders;
use super::wiring;
use super::world::{Happening, World};

pub use stage::{Invocation, Stage};

/// After faults stopped, everything is settled within this time.
///
/// The longest chain: a job whose events were lost is asked after (10 min), a claim is settled (10 min), up to five
/// more attempts of a script run (11 min each), and a chain of dependents does the same one after the other.
pub const SETTLED_MS_MAX: i64 = 4 * 3_600_000;
/// Time between two rounds of `watch`.
const WATCH_MS: i64 = 60_000;
/// How long Batch waits until it looks again whether there is room for a runnable job.
const ROOM_MS: i64 = 5_000;

/// Rounds of `watch` for which everything must be at rest.
const QUIET_ROUNDS: u32 = 2;

/// A handler at work on some messages.
struct Task {
    future: Pin<Box<dyn Future<Output = Vec<MessageId>> + Send>>,
    /// Where its messages are.
    messages: Vec<(Handle, MessageId)>,
    queue: Option<QueueKind>,
}

/// How the functions are set up in a run.
struct Setup {
    visibility_ms: i64,
    receives_max: u32,
    batch_max: usize,
    at_once_max: usize,
}

/// A run.
pub struct Run {
    world: Shared,
    tasks: Vec<Option<Task>>,
    running: std::collections::BTreeMap<QueueKind, usize>,
    free: Vec<usize>,
    setup: Setup,
    settings: Arc<Settings>,
    calm: bool,
    quiet_rounds: u32,
    settled_at: Option<i64>,
}

/// What the executor found.
pub struct Finished {
    /// The world at the end.
    pub world: World,
    /// When everything was settled, if it was, milliseconds after faults stopped.
    pub settled_ms: Option<i64>,
}

/// Runs a seed to its end.
#[must_use]
pub fn run(seed: u64, planted: Option<Breakage>, with_story: bool) -> Finished {
    let mut run = Run::new(seed, planted, with_story);
    run.plan(seed);
    let bound = run.bound();
    run.go_on(bound);
    run.finish()
}

impl Run {
    fn new(seed: u64, planted: Option<Breakage>, with_story: bool) -> Self {
        let mut random = Random::fork(seed, "setup");
        let setup = Setup {
            visibility_ms: random.pick(&[60_000, 120_000, 360_000]).copied().unwrap_or(120_000),
            receives_max: random.pick(&[3, 5, 8]).copied().unwrap_or(5),
            batch_max: random.pick(&[1, 3, 10]).copied().unwrap_or(10),
            at_once_max: random.pick(&[2, 4]).copied().unwrap_or(2),
        };
        Self {
            world: Arc::new(Mutex::new(World::of_seed(seed, planted, with_story))),
            tasks: Vec::new(),
            running: std::collections::BTreeMap::new(),
            free: Vec::new(),
            setup,
            settings: Arc::new(breakage::settings(planted)),
            calm: false,
            quiet_rounds: 0,
            settled_at: None,
        }
    }

    fn bound(&self) -> i64 {
        enter(&self.world).start + PHASE_MS + SETTLED_MS_MAX
    }

    /// Lets happen what is planned, until everything is settled, a rule is broken, or the bound is over.
    fn go_on(&mut self, bound: i64) {
        while self.settled_at.is_none() {
            let next = enter(&self.world).next();
            let Some(happening) = next else { return };
            self.happen(happening);
            let world = enter(&self.world);
            if world.now > bound || world.observer.violation.is_some() {
                return;
            }
        }
    }

    /// Plans what isn't a message.
    fn plan(&mut self, seed: u64) {
        let mut random = Random::fork(seed, "plan");
        let mut world = enter(&self.world);
        let start = world.start;
        let during = |random: &mut Random| start + random.between(60_000, PHASE_MS);
        world.later(start + random.between(0, WATCH_MS), Happening::Watch);
        for _ in 0..world.faults.storms {
            world.later(during(&mut random), Happening::Storm);
        }
        for _ in 0..world.faults.policy_changes {
            let policy = random.index(wiring::USUAL_POLICIES);
            world.later(during(&mut random), Happening::Policy(policy));
        }
        let people = random.pick(&[0, 3, 20]).copied().unwrap_or(0);
        for _ in 0..people {
            world.later(during(&mut random), Happening::Person);
        }
        modes_changed(&mut world, seed);
        orders::plan(&mut world, seed);
        if world.faults.tier_taken {
            tier_taken(&mut world, seed);
        }
        world.later(start + PHASE_MS, Happening::Calm);
        let faults = world.faults.clone();
        world.tell(|| format!("seed {seed}: {faults:?}"));
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Resume(task) => self.resume(task),
            Happening::Poll(queue) => self.poll(queue),
            Happening::Watch => self.watch(),
            Happening::Calm => self.calm_down(),
            Happening::Policy(policy) => {
                let mut world = enter(&self.world);
                world.policy = policy;
                let now = world.now;
                world.policies.push((now, policy));
                world.tell(|| format!("policy {policy} is in force"));
            }
            Happening::Mode(pool, mode) => enter(&self.world).set_mode(pool, mode),
            other => enter(&self.world).happen(other),
        }
    }

    fn calm_down(&mut self) {
        self.calm = true;
        let mut world = enter(&self.world);
        world.faults = Faults::none();
        world.skews.iter_mut().for_each(|skew| *skew = 0);
        let soon = world.now + world.faults.index_lag_ms_max;
        world.store.catch_up(soon);
        world.tell(|| "faults stop".to_owned());
    }

    /// A round of `watch`, and the end of the run when there is nothing left to do.
    fn watch(&mut self) {
        let (rounds, over) = {
            let mut world = enter(&self.world);
            let next = world.now + WATCH_MS;
            world.later(next, Happening::Watch);
            let (missed, doubled) = (world.faults.watch_missed, world.faults.watch_doubled);
            let random = &mut world.streams.watch;
            let rounds = if random.chance(missed) { 0 } else { 1 + usize::from(random.chance(doubled)) };
            (if world.is_broken(Breakage::NoWatch) { 0 } else { rounds }, world.is_settled())
        };
        let quiet = self.calm && over && self.tasks.iter().all(Option::is_none);
        self.quiet_rounds = if quiet { self.quiet_rounds + 1 } else { 0 };
        if self.quiet_rounds > QUIET_ROUNDS {
            self.settled_at = Some(enter(&self.world).now);
            return;
        }
        for _ in 0..rounds {
            self.spawn(None, Batch::default());
        }
    }

    /// Gives messages of a queue to its function.
    fn poll(&mut self, queue: QueueKind) {
        let running = self.running.get(&queue).copied().unwrap_or(0);
        let batch = {
            let mut world = enter(&self.world);
            world.polled(queue);
            if running >= self.setup.at_once_max {
                // The next one to end makes room.
                return;
            }
            world.receive(queue, &self.setup)
        };
        if !batch.messages.is_empty() {
            self.spawn(Some(queue), batch);
        }
    }

    fn spawn(&mut self, queue: Option<QueueKind>, batch: Batch) -> usize {
        let task = self.free.pop().unwrap_or(self.tasks.len());
        let (policy, skew) = {
            let mut world = enter(&self.world);
            let most = world.faults.skew_ms_max;
            let skew = world.streams.calls.between(-most, most);
            let (number, is_guarded, quota) = (world.policy, world.knows_senders(), world.quota_now());
            let is_lawless = world.is_broken(Breakage::LetAnybodyEvict);
            let of = if is_lawless { wiring::lawless } else { wiring::policy };
            (of(number, is_guarded, quota), skew)
        };
        {
            let mut world = enter(&self.world);
            world.begin(task, skew);
            world.tell(|| {
                let ids: Vec<&str> = batch.messages.iter().map(|(_, message)| message.id.as_str()).collect();
                let function = function_of(queue);
                format!("task {task} begins: {function} {}, clock {skew:+} ms", ids.join(" "))
            });
        }
        let of = |queue, place| (queue, place);
        let messages = batch
            .messages
            .iter()
            .filter_map(|(place, message)| queue.map(|queue| (of(queue, *place), message.id.clone())))
            .collect();
        let received: Vec<ReceivedMessage> = batch.messages.into_iter().map(|(_, message)| message).collect();
        let ports = Ports { world: Arc::clone(&self.world), task };
        let pools = Arc::clone(&enter(&self.world).wired.pools);
        let place = Place { policy, pools, settings: Arc::clone(&self.settings) };
        let future = handler(place, ports, queue, received);
        if let Some(queue) = queue {
            *self.running.entry(queue).or_insert(0) += 1;
        }
        while self.tasks.len() <= task {
            self.tasks.push(None);
        }
        if let Some(slot) = self.tasks.get_mut(task) {
            *slot = Some(Task { future, messages, queue });
        }
        self.resume(task);
        task
    }

    fn resume(&mut self, number: usize) {
        let Some(mut task) = self.tasks.get_mut(number).and_then(Option::take) else { return };
        let polled = task.future.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()));
        let crashed = std::mem::take(&mut enter(&self.world).crashed);
        match polled {
            TaskPoll::Ready(failed) => {
                self.end(number, task.queue);
                enter(&self.world).acknowledge(number, &task.messages, &failed);
            }
            TaskPoll::Pending if crashed => {
                self.end(number, task.queue);
                enter(&self.world).tell(|| format!("task {number} is ended where it stands"));
            }
            TaskPoll::Pending => {
                if let Some(slot) = self.tasks.get_mut(number) {
                    *slot = Some(task);
                }
            }
        }
    }

    fn end(&mut self, number: usize, queue: Option<QueueKind>) {
        self.free.push(number);
        let Some(queue) = queue else { return };
        if let Some(running) = self.running.get_mut(&queue) {
            *running -= 1;
        }
        let mut world = enter(&self.world);
        let soon = world.now + 1;
        world.poll_at(queue, soon);
    }

    fn finish(self) -> Finished {
        let Self { world, tasks, settled_at, .. } = self;
        drop(tasks);
        let calm_at = enter(&world).start + PHASE_MS;
        let world = match Arc::try_unwrap(world) {
            Ok(world) => world.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner),
            Err(_) => unreachable!("the tasks, which share the world, are gone"),
        };
        Finished { world, settled_ms: settled_at.map(|at| at - calm_at) }
    }
}

/// Plans that a tier is taken away, and that another policy comes into force after a while, mostly.
fn tier_taken(world: &mut World, seed: u64) {
    let mut random = Random::fork(seed, "tier taken");
    let from = world.start + random.between(60_000, PHASE_MS - 60_000);
    world.later(from, Happening::Policy(wiring::WITHOUT_TIER));
    if random.chance(700_000) {
        let policy = random.index(wiring::USUAL_POLICIES);
        world.later(from + random.between(10_000, 1_200_000), Happening::Policy(policy));
    }
}

/// Plans that the modes of pools change.
fn modes_changed(world: &mut World, seed: u64) {
    let mut random = Random::fork(seed, "modes");
    for _ in 0..world.faults.mode_changes {
        let at = world.start + random.between(60_000, PHASE_MS);
        let pool = random.index(world.wired.pools.len());
        let mode = random.pick(&PoolMode::ALL).copied().unwrap_or(PoolMode::Held);
        world.later(at, Happening::Mode(pool, mode));
    }
}

/// What a handler's context is made of.
struct Place {
    policy: Arc<Policy>,
    pools: Arc<Vec<Pool>>,
    settings: Arc<Settings>,
}

type Handler = Pin<Box<dyn Future<Output = Vec<MessageId>> + Send>>;

/// The function that takes the messages of a queue; `watch` when there is none.
fn handler(place: Place, ports: Ports, queue: Option<QueueKind>, messages: Vec<ReceivedMessage>) -> Handler {
    // One box for each function: each is as large as what it runs, and not as the largest of them.
    match queue {
        None => Box::pin(async move {
            osprey_watch::handle(&place.context(), &ports).await;
            Vec::new()
        }),
        Some(QueueKind::Events) => {
            Box::pin(async move { osprey_requeue::handle(&place.context(), &ports, &messages).await })
        }
        Some(QueueKind::Wake) => {
            Box::pin(async move { osprey_schedule::handle(&place.context(), &ports, &messages).await })
        }
        Some(queue @ (QueueKind::Submissions | QueueKind::Internal)) => {
            Box::pin(async move { osprey_submit::handle(&place.context(), &ports, queue, &messages).await })
        }
        Some(queue) => {
            Box::pin(async move { osprey_dead_letter::handle(&place.context(), &ports, queue, &messages).await })
        }
    }
}

impl Place {
    fn context(&self) -> Context<'_> {
        Context { policy: &self.policy, pools: &self.pools, settings: &self.settings }
    }
}

fn function_of(queue: Option<QueueKind>) -> &'static str {
    match queue {
        None => "watch",
        Some(QueueKind::Events) => "requeue",
        Some(QueueKind::Wake) => "schedule",
        Some(QueueKind::Submissions | QueueKind::Internal) => "submit",
        Some(_) => "dead-letter",
    }
}

impl World {
    /// Notes when a task begins, and how far its clock is off.
    fn begin(&mut self, task: usize, skew: i64) {
        while self.skews.len() <= task {
            self.skews.push(0);
            self.begun.push(0);
        }
        if let (Some(own), Some(begun)) = (self.skews.get_mut(task), self.begun.get_mut(task)) {
            (*own, *begun) = (skew, self.now);
        }
    }

    /// Everything that needs no function.
    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Send(draft) => {
                self.unsent -= 1;
                self.send(*draft);
            }
            Happening::Arrive(queue, body, sender) => drop(self.put(queue, body, sender, 0)),
            Happening::Turn(turn) if self.has_no_room(turn) => self.later(self.now + ROOM_MS, Happening::Turn(turn)),
            Happening::Turn(turn) => {
                let effects = self.batch.turn(turn, self.now, &mut self.streams.batch);
                self.land(turn.job, turn.part);
                self.follow(effects);
            }
            Happening::Create(wanted) => drop(self.create(*wanted)),
            Happening::Stop(job, reason) => {
                let effects = self.batch.stop(job, &reason, self.now);
                self.follow(effects);
            }
            Happening::Event(job, part, body) => self.deliver(job, part, body),
            Happening::Storm => {
                self.tell(|| "a storm takes every Spot host".to_owned());
                let effects = self.batch.storm(self.now);
                self.follow(effects);
            }
            Happening::Person => people::act(self),
            Happening::Order(number) => orders::give(self, number),
            Happening::Meddle(moment) => people::meddle(self, &moment),
            Happening::Resume(_)
            | Happening::Poll(_)
            | Happening::Watch
            | Happening::Policy(_)
            | Happening::Mode(..)
            | Happening::Calm => {}
        }
    }

    fn deliver(&mut self, job: usize, part: Option<usize>, body: Arc<str>) {
        if let Some(job) = self.batch.jobs.get_mut(job) {
            job.heard |= part.is_none();
        }
        self.put(QueueKind::Events, body, "events.amazonaws.com", 0);
    }

    /// Whether there is nothing left to do.
    fn is_settled(&self) -> bool {
        self.unsent == 0
            && self.queues.are_empty()
            && self.batch.live == 0
            && self.observer.under_way.is_empty()
            && self.observer.jobs.iter().all(|(id, job)| self.rests(id, &job.state))
    }

    /// Whether a job needs nothing more, or a person.
    pub(super) fn rests(&self, id: &str, state: &str) -> bool {
        is_final(state) || state == "held" || (state == "waiting" && order::waits_for_a_person(self, id))
    }

    fn receive(&mut self, queue: QueueKind, setup: &Setup) -> Batch {
        let poll = Poll {
            now: self.now,
            most: setup.batch_max,
            hidden_until: self.now + setup.visibility_ms,
            receives_max: setup.receives_max,
        };
        let mut batch = self.queues.receive(queue, &poll, &mut self.streams.queues);
        for id in &batch.dead {
            self.tell(|| format!("{id} was received too often, and goes to the dead letters of {}", queue.name()));
        }
        if !batch.dead.is_empty() {
            self.bury(queue, &batch.dead);
        }
        for (place, message) in &mut batch.messages {
            let handle = (queue, *place);
            self.received(handle, message, poll.hidden_until);
        }
        if let Some(next) = self.queues.next_visible(queue) {
            self.poll_at(queue, next.max(self.now + 1));
        }
        batch
    }

    /// Messages that went to a dead-letter queue are polled there, unless a breakage drops them.
    fn bury(&mut self, queue: QueueKind, dead: &[MessageId]) {
        let Some(to) = queue.dead_letter_queue() else { return };
        self.poll_at(to, self.now);
        if self.is_broken(Breakage::DropDeadLetters) {
            self.queues.drop_all(to, dead);
        }
    }

    /// What happens to a message that was received: it is seen again later, at times at once.
    fn received(&mut self, handle: Handle, message: &mut ReceivedMessage, hidden_until: i64) {
        let doubled = self.streams.queues.chance(self.faults.doubled);
        let again_at = if doubled { self.now + self.streams.queues.between(0, 2_000) } else { hidden_until };
        if let Some(stored) = self.queues.get_mut(handle) {
            stored.visible_at = again_at;
        }
        self.poll_at(handle.0, again_at);
        if self.is_broken(Breakage::AcknowledgeFirst) {
            self.queues.delete(handle);
        }
        if self.is_broken(Breakage::TakeAllForOperators) && message.body.contains("\"action\"") {
            message.sender.principal = senders::OPERATOR.to_owned();
        }
        if self.is_broken(Breakage::RenumberMessages) && message.receive_count > 1 {
            message.id = MessageId::new(format!("{}-{}", message.id, message.receive_count));
        }
    }

    /// Takes the messages of an invocation that ended out of their queue, but for those that failed.
    fn acknowledge(&mut self, task: usize, messages: &[(Handle, MessageId)], failed: &[MessageId]) {
        self.tell(|| format!("task {task} ends{}", failed_text(failed)));
        for (handle, id) in messages {
            if failed.contains(id) && !self.is_broken(Breakage::AcknowledgeFailures) {
                continue;
            }
            if self.streams.queues.chance(self.faults.undead) {
                self.tell(|| format!("{id} will come again though it was acknowledged"));
                continue;
            }
            self.queues.delete(*handle);
        }
    }
}

fn failed_text(failed: &[MessageId]) -> String {
    if failed.is_empty() {
        return String::new();
    }
    let ids: Vec<&str> = failed.iter().map(MessageId::as_str).collect();
    format!(", and {} must come again", ids.join(" "))
}

impl super::queues::Queues {
    /// Drops messages of a queue.
    fn drop_all(&mut self, queue: QueueKind, ids: &[MessageId]) {
        let handles: Vec<Handle> = self.places(queue, |message: &Stored| ids.contains(&message.id));
        for handle in handles {
            self.delete(handle);
        }
    }
}
