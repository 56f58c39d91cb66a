//! A world in which nothing goes wrong by itself: who tells the story says which invocation goes on, which stands still
//! and which is ended, await point by await point. For faults that seeds meet too seldom.

use osprey_model::id::MessageId;
use osprey_ports::{Key, QueueKind};

use super::{Run, WATCH_MS};
use crate::chaos::batch::Wanted;
use crate::chaos::breakage::Breakage;
use crate::chaos::check;
use crate::chaos::faults::Faults;
use crate::chaos::ports::enter;
use crate::chaos::scenario::{Draft, Truth};
use crate::chaos::script::{Outcome, Script, Step};
use crate::chaos::wiring;
use crate::chaos::world::Happening;

/// The world, and the invocations in it.
pub struct Stage {
    run: Run,
    watches: bool,
}

/// An invocation on the stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invocation(usize);

impl Default for Stage {
    fn default() -> Self {
        let mut run = Run::new(1, None, false);
        run.setup.batch_max = 1;
        {
            let mut world = enter(&run.world);
            world.clear();
            world.is_staged = true;
            world.is_guarded = false;
            world.wired = wiring::direct();
            // Every call is an await point before and after its effect.
            world.faults = Faults { at_once: 0, scatter_ms_max: 0, ..Faults::none() };
            world.scripts = vec![Script { steps: Vec::new(), refused_by_batch: false }];
        }
        Self { run, watches: false }
    }
}

impl Stage {
    /// Sends a job that succeeds at once, with an id of its message's.
    pub fn send_job(&mut self) -> MessageId {
        let truth = Truth::Job {
            script: 0,
            chosen: None,
            parents: Vec::new(),
            lineage: None,
            variant: 0,
            retries: None,
            team: "search",
            gpus: 0,
            saves_ms: None,
            urgent: false,
            forbidden: false,
        };
        self.send(r#"{"jobName":"train","jobDefinition":"train","tags":{"script":"0","team":"search"},"containerOverrides":{"resourceRequirements":[{"type":"VCPU","value":"4"},{"type":"MEMORY","value":"2048"}]}}"#, truth)
    }

    /// Sends a request that is refused.
    pub fn send_invalid(&mut self) -> MessageId {
        self.send(r#"{"jobName":"x"}"#, Truth::Invalid)
    }

    /// Discards a dead letter.
    pub fn send_discard(&mut self, letter: &str) -> MessageId {
        self.send(&format!(r#"{{"action":"DiscardDeadLetter","deadLetterId":"{letter}"}}"#), Truth::Action)
    }

    fn send(&mut self, body: &str, truth: Truth) -> MessageId {
        let mut world = enter(&self.run.world);
        let at_ms = world.now - world.start;
        world.send(Draft { at_ms, body: body.to_owned(), sender: "AROASEARCH", truth });
        world.sent.last().map(|sent| sent.id.clone()).unwrap_or_default()
    }

    /// Gives the oldest message of a queue to its function, up to the first await point. `None` when there is none.
    pub fn begin(&mut self, queue: QueueKind) -> Option<Invocation> {
        {
            let mut world = enter(&self.run.world);
            let next = world.queues.next_visible(queue)?;
            world.now = world.now.max(next);
        }
        let batch = enter(&self.run.world).receive(queue, &self.run.setup);
        if batch.messages.is_empty() {
            return None;
        }
        Some(Invocation(self.run.spawn(Some(queue), batch)))
    }

    /// Lets an invocation go on to its next await point; `false` when it has ended.
    pub fn step(&mut self, Invocation(task): Invocation) -> bool {
        self.run.resume(task);
        self.run.tasks.get(task).is_some_and(Option::is_some)
    }

    /// Lets an invocation go on by so many await points; `false` when it ended before.
    pub fn steps(&mut self, invocation: Invocation, count: usize) -> bool {
        (0..count).all(|_| self.step(invocation))
    }

    /// Lets an invocation go on to its end.
    pub fn finish(&mut self, invocation: Invocation) {
        while self.step(invocation) {}
    }

    /// Gives the oldest message of a queue to its function, which handles it to the end.
    pub fn handle(&mut self, queue: QueueKind) {
        if let Some(invocation) = self.begin(queue) {
            self.finish(invocation);
        }
    }

    /// Ends an invocation where it stands. Its messages come again.
    pub fn end(&mut self, Invocation(task): Invocation) {
        if let Some(ended) = self.run.tasks.get_mut(task).and_then(Option::take) {
            self.run.end(task, ended.queue);
        }
    }

    /// Moves every message of a queue to its dead-letter queue, received too often.
    pub fn bury(&mut self, queue: QueueKind) {
        let Some(to) = queue.dead_letter_queue() else { return };
        let mut world = enter(&self.run.world);
        let now = world.now;
        for handle in world.queues.places(queue, |_| true) {
            if let Some(message) = world.queues.delete(handle) {
                let buried = super::Stored { visible_at: now, received: 0, ..message };
                world.queues.put(to, buried);
                world.poll_at(to, now);
            }
        }
    }

    /// Loses every message of a queue.
    pub fn lose(&mut self, queue: QueueKind) -> usize {
        let mut world = enter(&self.run.world);
        let handles = world.queues.places(queue, |_| true);
        handles.iter().filter(|handle| world.queues.delete(**handle).is_some()).count()
    }

    /// Makes a second Batch job for the attempt that the newest one is for, as a request that acts late does, and
    /// brings its first event.
    pub fn second_job(&mut self) -> String {
        let mut world = enter(&self.run.world);
        let first = world.batch.jobs.last().map(|job| (job.name.clone(), job.queue.clone(), job.tags.clone()));
        let (name, queue, tags) = first.unwrap_or_default();
        let step = Step { outcome: Outcome::Success, run_ms: 3_600_000 };
        // Signed long ago, so that having two live ones is excused.
        let signed_at = world.now - 1_000_000;
        let id = world.create(Wanted { name, queue, tags, children: 0, step, signed_at, hidden_ms: i64::MAX / 4 });
        let at = world.batch.jobs.len().saturating_sub(1);
        let body = world.batch.jobs.get(at).map(|job| crate::chaos::detail::event(job, None, 0));
        world.deliver(at, None, body.unwrap_or_default().into());
        id
    }

    /// Loses every event of Batch from now on.
    pub fn deafen(&mut self) {
        enter(&self.run.world).faults.event_lost = 1_000_000;
    }

    /// Whether descriptions of jobs lag so far behind that they show none.
    pub fn blind(&mut self, is_blind: bool) {
        enter(&self.run.world).breakage = is_blind.then_some(Breakage::BlindDescriptions);
    }

    /// Jobs that Batch has made.
    #[must_use]
    pub fn batch_jobs(&self) -> usize {
        enter(&self.run.world).batch.jobs.len()
    }

    /// Lets `watch` come by every minute from now on, while time passes.
    pub fn watch(&mut self) {
        let mut world = enter(&self.run.world);
        let at = world.now + WATCH_MS;
        world.later(at, Happening::Watch);
        self.watches = true;
    }

    /// Lets everything happen that is planned for the next while.
    pub fn pass(&mut self, ms: i64) {
        let until = enter(&self.run.world).now + ms;
        loop {
            let next = {
                let mut world = enter(&self.run.world);
                if world.next_at().is_none_or(|at| at > until) {
                    world.now = until;
                    return;
                }
                world.next()
            };
            next.into_iter().for_each(|happening| self.run.happen(happening));
        }
    }

    /// What a row of the table says; `None` when it isn't there.
    #[must_use]
    pub fn row(&self, partition: &str, sort: &str) -> Option<String> {
        let world = enter(&self.run.world);
        world.store.get(&Key::new(partition, sort)).map(|item| item.body.clone())
    }

    /// How often Batch was asked to stop a job.
    #[must_use]
    pub fn stops_of(&self, batch_job: &str) -> usize {
        let world = enter(&self.run.world);
        world.batch.find(batch_job).and_then(|(at, _)| world.batch.jobs.get(at)).map_or(0, |job| job.stops.len())
    }

    /// Lets everything go on until it rests, `watch` included, and checks what came of it.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn settle(mut self) -> Result<(), String> {
        if !self.watches {
            self.watch();
        }
        self.run.calm = true;
        let bound = enter(&self.run.world).start + 2 * super::SETTLED_MS_MAX;
        self.run.go_on(bound);
        check::all(&self.run.finish())
    }
}
