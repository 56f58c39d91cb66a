//! A run: take a file in, drive the pipeline until every job has ended, and give the account.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use osprey_local::{LocalWorld, StateDir, StateLock, Time};
use osprey_local_batch::{EventOptions, Options};
use osprey_model::id::JobId;
use osprey_model::job::JobState;
use osprey_pipeline::context::{Context, Settings};
use osprey_policy::Policy;
use osprey_ports::Clock as _;

use super::account::{self, Fate, Summary, Time as RunTime};
use super::board::Board;
use super::cluster::{Cluster, Kept};
use super::engine::EngineThread;
use super::ingest;
use super::lines::Lines;
use super::patience::Patience;
use super::pipeline::Pipeline;
use super::place;
use super::progress::{Progress, Scene};
use super::signal;
use crate::SUPERVISE;
use crate::definitions::Definitions;
use crate::error::{CliError, ErrorCode};
use crate::input::Entry;
use crate::render::{news, run as render};
use crate::ui::Ui;

/// Sleep when there was nothing to do.
const IDLE: Duration = Duration::from_millis(5);
/// Records are read again at most so often, and at most for a tenth of the time.
const REFRESH_EVERY: Duration = Duration::from_millis(50);
/// Rounds without anything to do in which a line may still be without an end.
const UNACCOUNTED_ROUNDS_MAX: u32 = 200;

/// What a run is started with.
pub struct Plan {
    /// The file; without one, what the state holds is run.
    pub file: Option<PathBuf>,
    /// Its lines that aren't blank.
    pub entries: Vec<Entry>,
    /// The state directory.
    pub dir: PathBuf,
    /// The nodes.
    pub cluster: Cluster,
    /// How many times as fast as real time Osprey's timers run.
    pub speed: f64,
    /// The policy.
    pub policy: Policy,
    /// Its text.
    pub policy_text: String,
    /// Definitions to register.
    pub definitions: Definitions,
    /// Mean number of reclaims of one Spot node in one hour.
    pub reclaim_rate: f64,
    /// How unkind the event bus is.
    pub events: EventOptions,
}

/// How a run ended.
pub enum Ended {
    /// Every line is accounted for.
    Complete(Summary, Vec<Fate>),
    /// A person stopped it; so many jobs go on.
    Interrupted {
        /// Jobs that have not ended.
        open: usize,
    },
}

/// Takes a state directory for a run; it is ours as long as the answer lives.
///
/// # Errors
/// One sentence when it can't be created or written, or another run has it.
pub fn take(dir: &Path) -> Result<(StateDir, StateLock), CliError> {
    let unusable = |sentence: String| CliError::new(ErrorCode::StateUnusable, sentence);
    let state = StateDir::open(dir).map_err(|error| unusable(error.to_string()))?;
    let lock = state.lock().map_err(|error| unusable(error.to_string()))?;
    Ok((state, lock))
}

/// Runs the plan in a state directory that was taken.
///
/// # Errors
/// When the state can't be used, or a line ended nowhere.
pub fn run(plan: &Plan, state: &StateDir, ui: &mut Ui) -> Result<Ended, CliError> {
    let world = open(plan, state)?;
    plan.cluster.set_up(world.batch(), &plan.policy)?;
    register(&world, &plan.definitions)?;
    Kept { cluster: plan.cluster, policy: plan.policy_text.clone() }.save(state.path())?;
    let interrupted = signal::listen(None)?;
    let engine = EngineThread::start(world.batch())?;
    let began_at = world.now().as_millisecond();
    // What an earlier run brought about is no news.
    let mut board = Board::default();
    board.refresh(&world, true)?;
    if board.jobs().next().is_some() {
        ui.progress(&render::resuming(board.jobs().count(), board.open()));
    }
    let settled = board.jobs().filter(|job| job.state.is_final()).map(|job| job.id).collect();
    let lines = take_in(plan, &world, board.jobs().next().is_some())?;
    let pools = plan.cluster.pools(&plan.policy);
    let settings = settings(state.path(), plan.speed);
    let context = Context { policy: &plan.policy, pools: &pools, settings: &settings };
    let mut drive = Drive {
        plan,
        world: &world,
        pipeline: Pipeline::new(&world, context),
        engine,
        board,
        progress: Progress::default(),
        lines,
        settled,
        began_at,
        held_told: 0,
        interrupted,
        refreshed: None,
        refresh_took: Duration::ZERO,
        asked: true,
        unaccounted_rounds: 0,
    };
    drive.until_end(ui)
}

/// Takes in the file, if there is one.
fn take_in(plan: &Plan, world: &LocalWorld, is_resumed: bool) -> Result<Lines, CliError> {
    let taken = match &plan.file {
        Some(file) => ingest::ingest(world, file, &plan.entries)?,
        None => Vec::new(),
    };
    let mut lines = Lines::new(taken);
    if is_resumed {
        lines.pass_over_known(world)?;
    }
    Ok(lines)
}

/// Opens the world of a state directory that was taken.
///
/// # Errors
/// One sentence when it can't be used.
pub fn open(plan: &Plan, state: &StateDir) -> Result<LocalWorld, CliError> {
    let world = opened(plan, state)?;
    // One that can't be used leaves `--local` where it leads.
    place::follow(&plan.dir);
    Ok(world)
}

fn opened(plan: &Plan, state: &StateDir) -> Result<LocalWorld, CliError> {
    let program = std::env::current_exe()
        .map_err(|error| CliError::failed(format!("this program's own path isn't known: {error}")))?;
    let batch = Options {
        supervisor: vec![program.into(), SUPERVISE.into()],
        events: plan.events.clone(),
        reclaims_per_node_hour: plan.reclaim_rate,
        ..Options::default()
    };
    LocalWorld::open(state, Time::Set { speed: plan.speed }, batch)
        .map_err(|error| CliError::new(ErrorCode::StateUnusable, error.to_string()))
}

/// Registers job definitions.
///
/// # Errors
/// Names the first that the local Batch refuses.
pub fn register(world: &LocalWorld, definitions: &Definitions) -> Result<(), CliError> {
    for definition in definitions.to_register() {
        world.batch().ensure_job_definition(&definition).map_err(|error| {
            let name = osprey_model::message::words::quote(&definition.job_definition_name);
            CliError::new(ErrorCode::InvalidInput, format!("job definition {name} can't be registered: {error}"))
        })?;
    }
    Ok(())
}

/// Checkpoints go beside the store, so that a job finds its own again whatever directory it is started from.
#[must_use]
pub fn settings(dir: &Path, speed: f64) -> Settings {
    let base = dir.canonicalize().unwrap_or_else(|_| dir.to_owned()).join("checkpoints");
    let local = Settings::local();
    Settings {
        checkpoint_base: Some(base.display().to_string()),
        send_limit_ms: local.send_limit_ms.max(at_speed(SEND_REAL_MS_MIN, speed)),
        ..local
    }
}

/// A claim holds for at least so long in real time, however fast the state's clock runs.
const SEND_REAL_MS_MIN: f64 = 10_000.0;

#[expect(clippy::cast_possible_truncation, reason = "a cast of a float saturates")]
fn at_speed(real_ms: f64, speed: f64) -> i64 {
    (real_ms * speed) as i64
}

/// Whether the state directory is where it was: SQLite goes on writing to a file that was deleted or moved away.
///
/// # Errors
/// One sentence when it isn't.
pub fn still_there(dir: &Path) -> Result<(), CliError> {
    match ["osprey.db", "batch.db", "batch"].iter().find(|name| !dir.join(name).exists()) {
        None => Ok(()),
        Some(name) => {
            let sentence = format!("`{}` was deleted or moved away during the run", dir.join(name).display());
            let error = CliError::new(ErrorCode::StateUnusable, sentence);
            Err(error.help("jobs that run go on; put the directory back and run again with it, or start anew"))
        }
    }
}

/// A run under way.
struct Drive<'a> {
    plan: &'a Plan,
    world: &'a LocalWorld,
    pipeline: Pipeline<'a>,
    engine: EngineThread,
    board: Board,
    progress: Progress,
    lines: Lines,
    /// Jobs that had ended before and were left alone.
    settled: BTreeSet<JobId>,
    /// When the run began, by the state's clock.
    began_at: i64,
    /// Held jobs that were told of.
    held_told: usize,
    interrupted: Arc<AtomicBool>,
    refreshed: Option<Instant>,
    refresh_took: Duration,
    /// Whether jobs that had ended may have been put back since the last refresh.
    asked: bool,
    unaccounted_rounds: u32,
}

impl Drive<'_> {
    fn until_end(&mut self, ui: &mut Ui) -> Result<Ended, CliError> {
        let mut patience = Patience::default();
        loop {
            if self.interrupted.load(Ordering::Acquire) {
                return self.interrupt(ui);
            }
            still_there(&self.plan.dir)?;
            self.engine.check(ui)?;
            match self.round(ui) {
                Ok(Some(ended)) => return Ok(ended),
                Ok(None) => patience.restored(ui),
                Err(error) => patience.tried(error, ui)?,
            }
        }
    }

    /// One round; the account when it was the last.
    fn round(&mut self, ui: &mut Ui) -> Result<Option<Ended>, CliError> {
        let stepped = self.pipeline.step()?;
        self.asked |= stepped.asked;
        for (message, acted) in &stepped.acted {
            let line = self.lines.number(message);
            self.progress.tell(ui, &news::acted(acted, line));
        }
        if stepped.did_something() || self.board.open() > 0 || self.asked {
            self.refresh(ui)?;
        }
        if stepped.did_something() {
            return Ok(None);
        }
        if self.board.open() == 0 && self.pipeline.is_drained()? {
            return self.complete(ui);
        }
        self.say_held(ui)?;
        std::thread::sleep(IDLE);
        Ok(None)
    }

    fn refresh(&mut self, ui: &mut Ui) -> Result<(), CliError> {
        let pause = REFRESH_EVERY.max(self.refresh_took * 10);
        if self.refreshed.is_some_and(|refreshed| refreshed.elapsed() < pause) {
            return Ok(());
        }
        self.refresh_now(ui)
    }

    fn refresh_now(&mut self, ui: &mut Ui) -> Result<(), CliError> {
        let began = Instant::now();
        let moved = self.board.refresh(self.world, std::mem::take(&mut self.asked))?;
        for moved in &moved {
            self.settled.remove(&moved.after.id);
        }
        for fate in self.lines.news(self.world)? {
            news::line(&fate).iter().for_each(|text| self.progress.tell(ui, text));
        }
        self.refreshed = Some(Instant::now());
        self.refresh_took = began.elapsed();
        let dir = self.plan.dir.display().to_string();
        let scene = Scene {
            board: &self.board,
            policy: &self.plan.policy,
            cluster: self.plan.cluster,
            lines: &self.lines,
            dir: &dir,
        };
        self.progress.show(ui, &scene, &moved)
    }

    /// Gives the account once nothing is on its way and no job is open, after a look at everything.
    fn complete(&mut self, ui: &mut Ui) -> Result<Option<Ended>, CliError> {
        self.asked = true;
        self.refresh_now(ui)?;
        if self.board.open() > 0 {
            return Ok(None);
        }
        let fates = self.fates()?;
        if let Some(lost) = fates.iter().find(|fate| fate.place().is_none()) {
            self.unaccounted_rounds += 1;
            if self.unaccounted_rounds > UNACCOUNTED_ROUNDS_MAX {
                let line = lost.line.unwrap_or_default();
                return Err(CliError::failed(format!("line {line} ended nowhere: a fault of Osprey")));
            }
            std::thread::sleep(IDLE);
            return Ok(None);
        }
        self.progress.clear(ui)?;
        let elapsed_seconds = self.progress.elapsed_seconds();
        let time = RunTime { elapsed_seconds, began_at: self.began_at, speed: self.plan.speed };
        let summary = account::summary(self.world, &fates, time)?;
        Ok(Some(Ended::Complete(summary, fates)))
    }

    /// What became of every line, or of every job that this run had to do with.
    fn fates(&self) -> Result<Vec<Fate>, CliError> {
        if self.plan.file.is_some() {
            return self.lines.fates(self.world);
        }
        let jobs = self.board.jobs().filter(|job| !self.settled.contains(&job.id));
        Ok(jobs.cloned().map(Fate::of_job).collect())
    }

    /// Says once that nothing but held jobs keeps the run from ending.
    fn say_held(&mut self, ui: &mut Ui) -> Result<(), CliError> {
        let held = self.board.jobs().filter(|job| job.state == JobState::Held).count();
        if held != self.held_told && held == self.board.open() && self.pipeline.is_drained()? {
            self.held_told = held;
            self.progress.tell(ui, &news::held(held));
            self.refresh_now(ui)?;
        }
        Ok(())
    }

    fn interrupt(&mut self, ui: &mut Ui) -> Result<Ended, CliError> {
        self.progress.clear(ui)?;
        self.board.refresh(self.world, true)?;
        Ok(Ended::Interrupted { open: self.board.open() })
    }
}

/// A delay of events between 0 and so many seconds, as the local Batch takes it.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "`as` saturates, and the seconds were checked")]
pub fn delay_range(seconds: f64) -> RangeInclusive<i64> {
    0..=(seconds.max(0.0) * 1000.0) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_holds_long_enough_at_any_speed() {
        let dir = std::env::temp_dir();
        assert_eq!(settings(&dir, 1.0).send_limit_ms, 30_000);
        assert_eq!(settings(&dir, 1e6).send_limit_ms, 10_000_000_000);
    }

    #[test]
    fn a_state_directory_that_went_away_is_told() {
        let error = still_there(Path::new("/nowhere/at-all")).unwrap_err();
        assert_eq!(error.message, "`/nowhere/at-all/osprey.db` was deleted or moved away during the run");
    }
}
