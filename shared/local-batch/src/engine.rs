//! The engine: everything that happens without being called for.
//!
//! A tick looks at the live attempts, writes down what has changed, stops what has to stop, schedules, and launches.
//! All it decides with is in the store and in the attempts' files, so an engine that is killed at any moment is
//! continued by the next one: see `observe.rs` for how that finds its way.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::attempt::{AttemptRow, AttemptState, StopCause};
use crate::batch::{Inner, LocalBatch};
use crate::bell::Bell;
use crate::error::EngineError;
use crate::files::{AttemptFiles, Claim};
use crate::job::JobRow;
use crate::launch::Launch;
use crate::memory::MemoryWatch;
use crate::observe::{Care, Seen, look};
use crate::process::Identity;

/// How often the engine looks by itself when nobody rings.
const POLL: Duration = Duration::from_millis(20);
/// The same for live attempts where there is no bell.
const LIVE_POLL: Duration = Duration::from_millis(2);
/// How often the processes of live attempts are looked at, and not only their files.
const THOROUGH_INTERVAL: Duration = Duration::from_millis(100);
/// How often a supervisor is started for an attempt before the attempt is given up.
const LAUNCHES_MAX: u32 = 3;

/// Number of a job and of its attempt.
type Key = (i64, i64);

/// What this engine knows of an attempt beyond the store.
#[derive(Default)]
struct Launched {
    supervisor: Option<Child>,
    launches: u32,
    /// Why the last launch failed.
    trouble: Option<String>,
    command: Option<Identity>,
    /// Whether this engine has sent it SIGTERM.
    signalled: bool,
}

/// The one engine of a state directory; another can't start until it is dropped or its process ends. Dropping it
/// stops no job.
pub struct Engine {
    batch: LocalBatch,
    /// Held for its lock.
    _lock: File,
    launched: BTreeMap<Key, Launched>,
    /// Supervisors whose attempts have ended, to be collected when they end too.
    leaving: Vec<Child>,
    memory: MemoryWatch,
    data_version: i64,
    /// When the next thing is due that only a cycle does: a node that has started up takes jobs, an idle one stops, a
    /// head's time is up.
    cycle_due_at: Option<i64>,
    next_thorough: Instant,
    /// Rung by supervisors and by calls; `None` where the file system has no named pipes.
    bell: Option<Bell>,
}

impl LocalBatch {
    /// Becomes the engine of this state directory. Its first tick finds what ran and ended meanwhile.
    ///
    /// # Errors
    /// [`EngineError::AlreadyRunning`] when another process, or this one, has an engine on it.
    pub fn engine(&self) -> Result<Engine, EngineError> {
        let path = self.inner.dir.join("batch").join("engine.lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(|error| EngineError::io(format!("`{}` can't be opened", path.display()), &error))?;
        match patiently(&lock) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(EngineError::AlreadyRunning { dir: self.inner.dir.clone() });
            }
            Err(TryLockError::Error(error)) => {
                return Err(EngineError::io(format!("`{}` can't be locked", path.display()), &error));
            }
        }
        self.change(|change| change.take_over())?;
        Ok(Engine {
            batch: self.clone(),
            _lock: lock,
            launched: BTreeMap::new(),
            leaving: Vec::new(),
            memory: MemoryWatch::default(),
            data_version: -1,
            cycle_due_at: None,
            next_thorough: Instant::now(),
            bell: Bell::listen(&self.inner.bell).ok(),
        })
    }
}

/// Takes the lock, trying for a moment: a child that a dying engine was just starting holds it until its program is
/// loaded.
fn patiently(lock: &File) -> Result<(), TryLockError> {
    const TRIES_MAX: u32 = 25;
    for _ in 1..TRIES_MAX {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(POLL),
            other => return other,
        }
    }
    lock.try_lock()
}

impl Engine {
    /// The Batch it drives.
    #[must_use]
    pub fn batch(&self) -> &LocalBatch {
        &self.batch
    }

    /// Ticks until `stop` is set, waiting in between. Jobs that run then go on running.
    ///
    /// # Errors
    /// The first failure of a tick.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), EngineError> {
        while !stop.load(Ordering::Acquire) {
            let due = self.tick()?;
            self.wait(due);
        }
        Ok(())
    }

    /// Waits until a supervisor or a call of any process has news, and at most for `limit`.
    pub fn wait(&self, limit: Duration) {
        match &self.bell {
            Some(bell) => bell.wait(limit),
            None => std::thread::sleep(limit),
        }
    }

    /// Does everything that is due and answers how long, in real time, until it is worth ticking again; at most 20 ms.
    /// Calls and supervisors may make it worth earlier: [`Self::wait`] hears of them.
    ///
    /// # Errors
    /// Failures of the store; nothing is lost, and the next tick goes on.
    pub fn tick(&mut self) -> Result<Duration, EngineError> {
        let started = Instant::now();
        self.leaving.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        let mut live = self.live()?;
        let care = self.care();
        let mut work = self.observe(&live, care)?;
        if work {
            live = self.live()?;
        }
        work |= self.stop_what_must(&live)?;
        work |= self.advance()?;
        if work || care == Care::Thorough {
            live = self.live()?;
            self.launch(&live)?;
        }
        self.forget_ended(&live);
        // At most half of one core goes into looking; what has been done was worth its time.
        let looking = if work { Duration::ZERO } else { started.elapsed() };
        Ok(self.until_due(&live).max(looking))
    }

    fn inner(&self) -> &Inner {
        &self.batch.inner
    }

    fn live(&self) -> Result<Vec<AttemptRow>, EngineError> {
        Ok(self.inner().store.read(AttemptRow::live)?)
    }

    fn care(&mut self) -> Care {
        let now = Instant::now();
        if now < self.next_thorough {
            return Care::Quick;
        }
        self.next_thorough = now + THOROUGH_INTERVAL;
        Care::Thorough
    }

    /// Looks at the live attempts and writes down what has changed; answers whether anything has.
    fn observe(&mut self, live: &[AttemptRow], care: Care) -> Result<bool, EngineError> {
        let seen: Vec<(Key, Seen)> = live
            .iter()
            .map(|attempt| (key(attempt), look(self.inner(), attempt, care)))
            .filter(|(_, seen)| !matches!(seen, Seen::Nothing | Seen::Unclaimed))
            .collect();
        if seen.is_empty() {
            return Ok(false);
        }
        for (key, seen) in &seen {
            if let Seen::Started(started) = seen {
                self.launched.entry(*key).or_default().command = Some(started.command.clone());
            }
        }
        self.batch.change(|change| {
            seen.iter().try_for_each(|(key, seen)| change.settling(|ended| change.conclude(*key, seen, ended)))
        })?;
        Ok::<_, EngineError>(true)
    }

    /// Timeouts, memory limits, Spot reclaims, and the signals that they and TerminateJob ask for.
    fn stop_what_must(&mut self, live: &[AttemptRow]) -> Result<bool, EngineError> {
        let now_ms = self.inner().options.clock.now_ms();
        let over_memory = self.over_memory(live);
        let late = |a: &&AttemptRow| {
            let limit = a.started_at.zip(a.timeout_ms).map(|(start, limit)| start.saturating_add(limit));
            a.state == AttemptState::Running && a.stop_cause.is_none() && limit.is_some_and(|limit| limit <= now_ms)
        };
        let late: Vec<i64> = live.iter().filter(late).map(|a| a.job).collect();
        let spot_due = self.spot_is_due(live, now_ms)?;
        let any = spot_due || !late.is_empty() || !over_memory.is_empty();
        if any {
            self.batch.change(|change| {
                for job in &over_memory {
                    change.ask_to_stop(*job, StopCause::Memory, "")?;
                }
                for job in &late {
                    change.ask_to_stop(*job, StopCause::TimedOut, "Job attempt duration exceeded timeout")?;
                }
                if spot_due { change.tend_spot(live) } else { Ok(()) }
            })?;
        }
        let mut stopping = if any { self.live()? } else { live.to_vec() };
        stopping.retain(|attempt| attempt.stop_cause.is_some());
        self.signal(stopping, now_ms)?;
        Ok(any)
    }

    fn over_memory(&mut self, live: &[AttemptRow]) -> Vec<i64> {
        let mut groups = BTreeMap::new();
        let mut limits = BTreeMap::new();
        for attempt in live.iter().filter(|a| a.memory_mib > 0 && a.stop_cause.is_none()) {
            if let Some(command) = self.command(attempt) {
                groups.insert(command.pid, attempt.job);
                limits.insert(command.pid, attempt.memory_mib);
            }
        }
        self.memory.over(&limits).iter().filter_map(|group| groups.get(group).copied()).collect()
    }

    /// Whether a node is to be reclaimed, or has been and is empty now.
    fn spot_is_due(&self, live: &[AttemptRow], now_ms: i64) -> Result<bool, EngineError> {
        if live.iter().any(|a| a.stop_cause.is_none() && a.reclaim_at.is_some_and(|at| at <= now_ms)) {
            return Ok(true);
        }
        Ok(self.inner().store.read(|db| {
            db.prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM node n WHERE n.reclaim_at <= ?1 OR (n.draining = 1 AND NOT EXISTS
                    (SELECT 1 FROM attempt WHERE state != 'ended' AND environment = n.environment AND node = n.idx)))",
            )?
            .query_row([now_ms], |row| row.get::<_, bool>(0))
        })?)
    }

    /// Sends SIGTERM to what is to stop, and SIGKILL where the grace is over. It is written down before it is sent:
    /// after a crash in between the next engine sends it again, and an end is never taken for the command's own.
    fn signal(&mut self, stopping: Vec<AttemptRow>, now_ms: i64) -> Result<(), EngineError> {
        let grace_ms = self.inner().options.grace_ms;
        for mut attempt in stopping {
            let Some(command) = self.command(&attempt) else { continue };
            if attempt.term_at.is_none() {
                let at_once = attempt.stop_cause == Some(StopCause::Memory);
                attempt.term_at = Some(now_ms);
                attempt.kill_at = Some(if at_once { now_ms } else { now_ms.saturating_add(grace_ms) });
                self.inner().store.write(|db| attempt.save(db))?;
            }
            let known = self.launched.entry(key(&attempt)).or_default();
            if attempt.kill_at.is_some_and(|at| at <= now_ms) {
                command.signal_group(Signal::KILL);
            } else if !known.signalled {
                command.signal_group(Signal::TERM);
                known.signalled = true;
            }
        }
        Ok(())
    }

    /// The command of an attempt, once it runs.
    fn command(&mut self, attempt: &AttemptRow) -> Option<Identity> {
        let jobs = &self.batch.inner.jobs;
        let known = self.launched.entry(key(attempt)).or_default();
        if known.command.is_none() {
            let files = AttemptFiles::new(jobs, &attempt.job_id, attempt.number);
            known.command = files.read_started().map(|started| started.command);
        }
        known.command.clone()
    }

    /// Admits submitted jobs and runs scheduling cycles when something has changed.
    fn advance(&mut self) -> Result<bool, EngineError> {
        let version = self.inner().store.data_version()?;
        let called = self.inner().changed.swap(false, Ordering::AcqRel);
        let due = self.cycle_due_at.is_some_and(|at| at <= self.inner().options.clock.now_ms());
        if !called && version == self.data_version && !due {
            return Ok(false);
        }
        self.data_version = version;
        loop {
            match self.cycle() {
                Ok(true) => {}
                Ok(false) => return Ok(true),
                Err(error) => {
                    // What called for the cycle still does.
                    self.inner().changed.store(true, Ordering::Release);
                    return Err(error);
                }
            }
        }
    }

    /// One transaction: admit, then one scheduling cycle. Answers whether there is more to do at once.
    fn cycle(&mut self) -> Result<bool, EngineError> {
        let (more, due) = self.batch.change_quietly(|change| change.cycle())?;
        self.cycle_due_at = due;
        Ok(more)
    }

    /// Starts a supervisor for each attempt that has none.
    fn launch(&mut self, live: &[AttemptRow]) -> Result<(), EngineError> {
        let waits = |attempt: &AttemptRow| {
            attempt.waits_for.is_some_and(|main| {
                attempt.stop_cause.is_none() && live.iter().any(|a| a.job == main && a.state == AttemptState::Starting)
            })
        };
        for attempt in live.iter().filter(|a| a.state == AttemptState::Starting && !waits(a)) {
            let known = self.launched.entry(key(attempt)).or_default();
            let waiting = known.supervisor.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)));
            let files = AttemptFiles::new(&self.batch.inner.jobs, &attempt.job_id, attempt.number);
            if waiting || files.read_claim().is_some() {
                continue;
            }
            if attempt.stop_cause.is_some() || known.launches >= LAUNCHES_MAX {
                self.give_up(attempt, &files)?;
            } else {
                self.launch_one(attempt)?;
            }
        }
        Ok(())
    }

    fn launch_one(&mut self, attempt: &AttemptRow) -> Result<(), EngineError> {
        let inner = &self.batch.inner;
        let launch = inner.store.read(|db| {
            let job = JobRow::by_seq(db, attempt.job)?.unwrap_or_default();
            Launch::new(db, inner, &job, attempt)
        })?;
        let known = self.launched.entry(key(attempt)).or_default();
        known.launches += 1;
        match launch.start(inner, attempt) {
            Ok(child) => known.supervisor = Some(child),
            Err(trouble) => known.trouble = Some(trouble),
        }
        Ok(())
    }

    /// Claims an attempt so that no late supervisor can run it, and ends it. Where a supervisor was faster, it goes on.
    fn give_up(&mut self, attempt: &AttemptRow, files: &AttemptFiles) -> Result<(), EngineError> {
        std::fs::create_dir_all(files.dir())
            .and_then(|()| files.claim(&Claim { supervisor: None }))
            .map_err(|error| EngineError::io(format!("`{}` can't be written", files.dir().display()), &error))
            .and_then(|ours| if ours { self.end_unlaunched(attempt) } else { Ok(()) })
    }

    fn end_unlaunched(&mut self, attempt: &AttemptRow) -> Result<(), EngineError> {
        let known = self.launched.entry(key(attempt)).or_default();
        let why = known.trouble.clone();
        let why = why.unwrap_or_else(|| "the supervisor ended before it started the command".to_owned());
        self.batch.change(|change| change.settling(|ended| change.end_unlaunched(key(attempt), &why, ended)))?;
        Ok::<_, EngineError>(())
    }

    fn forget_ended(&mut self, live: &[AttemptRow]) {
        let keys: std::collections::BTreeSet<Key> = live.iter().map(key).collect();
        let ended: Vec<Key> = self.launched.keys().filter(|known| !keys.contains(known)).copied().collect();
        for gone in ended {
            self.leaving.extend(self.launched.remove(&gone).and_then(|known| known.supervisor));
        }
    }

    fn until_due(&self, live: &[AttemptRow]) -> Duration {
        let poll = if self.bell.is_none() && !live.is_empty() { LIVE_POLL } else { POLL };
        // A cycle begins at most a virtual second after what calls for it.
        poll.min(self.inner().options.clock.real_duration(1_000).max(Duration::from_millis(1)))
    }
}

fn key(attempt: &AttemptRow) -> Key {
    (attempt.job, attempt.number)
}
