//! Reaching the state of a local pipeline from another command: reading records, sending messages.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use osprey_local::{LocalWorld, StateDir, Time};
use osprey_local_batch::Options;
use osprey_model::id::{JobId, MessageId};
use osprey_model::job::{Job, JobState};
use osprey_model::request::SubmitJobRequest;
use osprey_model::sender::Sender;
use osprey_pipeline::acted::Acted;
use osprey_pipeline::context::{Context, Settings};
use osprey_pipeline::dead::DeadLetter;
use osprey_pipeline::record::{self, Record};
use osprey_pipeline::view::{self, JobView};
use osprey_pipeline::{dead, derive, key, repository};
use osprey_policy::Policy;
use osprey_ports::{Clock as _, QueueKind};

use super::cluster::{Cluster, Kept};
use super::{account, block_on, place};
use crate::command::{LATEST, Place};
use crate::error::{CliError, ErrorCode};
use crate::policy_file;
use crate::render::decision::Answer;
use crate::ui::Ui;

/// Most jobs or dead letters in one list.
pub const LIST_MAX: usize = 100_000;
/// How often a record that should appear is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long somebody who waits for a job goes on without a pipeline that runs.
const RUNNER_PATIENCE: Duration = Duration::from_secs(2);
/// How long an action's outcome is waited for.
const OUTCOME_PATIENCE: Duration = Duration::from_secs(5);

/// The state of a local pipeline.
pub struct Joined {
    world: LocalWorld,
    state: StateDir,
    dir: PathBuf,
}

impl Joined {
    /// Opens what `--local` says.
    ///
    /// # Errors
    /// Without `--local`, since this version reaches nothing else; and those of [`Self::open`].
    pub fn of(place: &Place) -> Result<Self, CliError> {
        match &place.local {
            Some(dir) => Self::open(dir),
            None => Err(CliError::new(ErrorCode::NotAvailable, "this version does not reach AWS yet")
                .help("add `--local` for the newest local run, or `--local DIR` for another one")),
        }
    }

    /// Opens a state directory in which a pipeline runs or has run.
    ///
    /// # Errors
    /// One sentence when there is none, or it can't be used.
    pub fn open(dir: &Path) -> Result<Self, CliError> {
        let dir = place::resolved(dir);
        if dir == Path::new(LATEST) && !dir.exists() {
            return Err(CliError::new(ErrorCode::StateUnusable, "there is no local run here yet")
                .help("start one with `osprey local run FILE.jsonl`, or name its folder with `--local DIR`"));
        }
        let unusable = |sentence: String| CliError::new(ErrorCode::StateUnusable, sentence);
        let state = StateDir::existing(&dir)
            .map_err(|error| unusable(error.to_string()).help("`--local DIR` names the folder of a local run"))?;
        let world = LocalWorld::open(&state, Time::Join, Options::default());
        let world = world.map_err(|error| unusable(error.to_string()))?;
        Ok(Self { world, state, dir })
    }

    /// The world in it.
    pub(super) fn world(&self) -> &LocalWorld {
        &self.world
    }

    /// The command that goes on with what it holds.
    pub fn run_command(&self) -> String {
        format!("osprey local run --state {}", self.dir.display())
    }

    /// The time of the pipeline, milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.world.now().as_millisecond()
    }

    /// The local Batch.
    pub fn batch(&self) -> &osprey_local_batch::LocalBatch {
        self.world.batch()
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The process that runs the pipeline; `None` when none does.
    ///
    /// # Errors
    /// When the lock can't be looked at.
    pub fn runner(&self) -> Result<Option<u32>, CliError> {
        self.state.holder().map_err(|error| CliError::new(ErrorCode::StateUnusable, error.to_string()))
    }

    /// Says it when nothing will happen to a message for now.
    ///
    /// # Errors
    /// Those of [`Self::runner`].
    pub fn say_who_runs(&self, ui: &mut Ui) -> Result<(), CliError> {
        if self.runner()?.is_none() {
            let dir = self.dir.display();
            ui.note(&format!("no pipeline runs in `{dir}` now; `{}` takes it up", self.run_command()));
        }
        Ok(())
    }

    /// All jobs, newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub fn jobs(&self) -> Result<Vec<Job>, CliError> {
        Ok(block_on(view::jobs(&self.world, LIST_MAX))?)
    }

    /// All dead letters, newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub fn dead_letters(&self) -> Result<Vec<DeadLetter>, CliError> {
        Ok(block_on(view::dead_letters(&self.world, LIST_MAX))?)
    }

    /// A job; `None` for one that isn't on record.
    ///
    /// # Errors
    /// When the store fails.
    pub fn job(&self, id: JobId) -> Result<Option<Job>, CliError> {
        Ok(block_on(repository::load(&self.world, id))?.map(|loaded| loaded.job))
    }

    /// A job with its history.
    ///
    /// # Errors
    /// When the store fails or the job has gone.
    pub fn view(&self, id: JobId) -> Result<JobView, CliError> {
        let view = block_on(view::describe(&self.world, id))?;
        view.ok_or_else(|| CliError::new(ErrorCode::UnknownJob, format!("there is no job `{id}`")))
    }

    /// The log of an attempt, once there is one.
    pub fn log(&self, batch_job_id: &str) -> Option<PathBuf> {
        Some(self.world.batch().log_path(batch_job_id, 1)).filter(|path| path.is_file())
    }

    /// A dead letter with its message; a job that died has its message with the job.
    ///
    /// # Errors
    /// When the store fails or the dead letter has gone.
    pub fn dead_letter(&self, id: JobId) -> Result<(DeadLetter, Option<Record>), CliError> {
        let Some((letter, _)) = block_on(dead::load(&self.world, id))? else {
            return Err(CliError::new(ErrorCode::UnknownDeadLetter, format!("there is no dead letter `{id}`")));
        };
        let own = block_on(record::read(&self.world, key::dead_partition(id)))?;
        let record = match own {
            Some(record) => Some(record),
            None => block_on(record::read(&self.world, key::job_partition(id)))?,
        };
        Ok((letter, record))
    }

    /// Sends a body to the submission queue.
    ///
    /// # Errors
    /// When the queue doesn't take it.
    pub fn send(&self, body: &str) -> Result<MessageId, CliError> {
        Ok(self.world.queues().send(QueueKind::Submissions, body, 0)?)
    }

    /// Waits a moment for the outcome of an action; `None` when no pipeline runs or none came.
    ///
    /// # Errors
    /// When the store fails.
    pub fn outcome(&self, message: &MessageId) -> Result<Option<Acted>, CliError> {
        let until = Instant::now() + OUTCOME_PATIENCE;
        while self.runner()?.is_some() && Instant::now() < until {
            if let Some(acted) = account::acted(&self.world, message)? {
                return Ok(Some(acted));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(None)
    }

    /// Waits until the job of a message has ended, for as long as that takes while a pipeline runs. A message that was
    /// refused as a whole has a record of its own.
    ///
    /// # Errors
    /// When the store fails, or no pipeline runs.
    pub fn wait_for_end(&self, id: JobId, message: &MessageId) -> Result<Job, CliError> {
        let mut alone_since: Option<Instant> = None;
        loop {
            for id in [JobId::of_message(message), id] {
                let ended = block_on(repository::load(&self.world, id))?.filter(|l| l.job.state.is_final());
                if let Some(loaded) = ended {
                    return Ok(loaded.job);
                }
            }
            alone_since = if self.runner()?.is_some() { None } else { alone_since.or_else(|| Some(Instant::now())) };
            if alone_since.is_some_and(|since| since.elapsed() > RUNNER_PATIENCE) {
                let message = format!("job `{id}` is sent, and no pipeline runs in `{}`", self.dir.display());
                return Err(CliError::failed(message).help(format!("`{}` runs it", self.run_command())));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Decides about a request as the pipeline would now.
    ///
    /// # Errors
    /// When the store or what the run was started with can't be read.
    pub fn evaluate(&self, request: &SubmitJobRequest, policy: Option<&Policy>) -> Result<Answer, CliError> {
        let kept = Kept::load(&self.dir)?;
        let cluster = kept.as_ref().map_or(Cluster { nodes: 1, gpus_per_node: 8, spot_nodes: 0 }, |kept| kept.cluster);
        let own = match (policy, &kept) {
            (Some(policy), _) => policy.clone(),
            (None, Some(kept)) => kept.policy(&self.dir)?,
            (None, None) => policy_file::load(None)?,
        };
        let pools = cluster.pools(&own);
        let settings = Settings::local();
        let sender = Sender::new(QueueKind::Submissions.name(), self.world.queues().sender());
        let context = Context { policy: &own, pools: &pools, settings: &settings };
        let evaluation = block_on(derive::evaluate(&context, &self.world, request, &sender, None))?;
        let admitted = evaluation.refusals.is_empty();
        let decision = evaluation.decision;
        Ok(Answer {
            job_name: Some(request.job_name.clone()),
            admitted,
            priority: Some(decision.derivation.priority),
            tier: Some(decision.derivation.tier),
            pool: Some(decision.pool).filter(|_| admitted),
            steps: decision.derivation.steps,
            refusals: evaluation.refusals,
            warnings: decision.warnings,
            ..Answer::default()
        })
    }

    /// The jobs that wait, the most urgent first, each with its newest decision.
    ///
    /// # Errors
    /// When the store fails.
    pub fn queue(&self) -> Result<Vec<Answer>, CliError> {
        let waits = |job: &Job| !job.state.is_final() && job.state != JobState::Running;
        let mut jobs: Vec<Job> = self.jobs()?.into_iter().filter(waits).collect();
        // The most urgent first, then the one that came first, then by id.
        jobs.sort_by_key(|job| (std::cmp::Reverse(job.priority), job.created_at, job.id));
        jobs.iter().map(|job| Ok(on_record(&self.view(job.id)?))).collect()
    }
}

fn on_record(view: &JobView) -> Answer {
    let JobView { job, decision, .. } = view;
    Answer {
        job_id: Some(job.id.to_string()),
        job_name: Some(job.name.clone()),
        state: Some(job.state.as_str().to_owned()),
        admitted: true,
        priority: Some(job.priority),
        tier: Some(job.tier.clone()),
        pool: Some(job.pool.clone()),
        steps: decision.as_ref().map(|decision| decision.derivation.steps.clone()).unwrap_or_default(),
        warnings: decision.as_ref().map(|decision| decision.warnings.clone()).unwrap_or_default(),
        ..Answer::default()
    }
}
