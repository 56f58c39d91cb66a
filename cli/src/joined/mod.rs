//! Reaching a pipeline from a command, on this machine or on AWS: reading records, sending messages.

mod aftermath;
mod find;
mod home;
pub mod lineage;
pub mod overview;
mod pending;
mod queue;
mod stack;
mod story;
mod usage;
mod why;

pub use find::Found;
pub use why::{Depth, Simulated, ahead, decided, simulated};

use std::future::Future;
use std::path::Path;
use std::time::{Duration, Instant};

use osprey_local::{LocalWorld, StateDir, Time};
use osprey_local_batch::Options;
use osprey_model::id::{JobId, MessageId};
use osprey_model::job::Job;
use osprey_model::message::Action;
use osprey_model::pool::Pool;
use osprey_model::reason::Refusal;
use osprey_model::request::SubmitJobRequest;
use osprey_model::sender::Sender;
use osprey_pipeline::acted::Acted;
use osprey_pipeline::context::{Context, Settings};
use osprey_pipeline::dead::DeadLetter;
use osprey_pipeline::record::{self, Record};
use osprey_pipeline::view::{self, JobView};
use osprey_pipeline::{dead, derive, key, repository};
use osprey_policy::Policy;
use osprey_ports::{Clock as _, GetItem as _, QueueKind, SendMessage as _};

use crate::command::{LATEST, Place};
use crate::error::{CliError, ErrorCode};
use crate::local::cluster::{Cluster, Kept};
use crate::local::place;
use crate::policy_file;
use crate::render::decision::Answer;
use crate::render::pending::Pending;
use crate::ui::Ui;
use home::{Home, Local};
use stack::Stack;

/// Most jobs or dead letters in one list.
pub const LIST_MAX: usize = 100_000;
/// Most jobs of a stack among which one is looked for by its name.
const SEARCHED_MAX: usize = 10_000;
/// How often a record that should appear is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The same on AWS, where each look is a request.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// How long somebody who waits for a job goes on without a pipeline that runs.
pub const RUNNER_PATIENCE: Duration = Duration::from_secs(2);
/// How long an action's outcome is waited for.
const OUTCOME_PATIENCE: Duration = Duration::from_secs(5);
/// The same on AWS, where a function may have to start first.
const ANSWER_PATIENCE: Duration = Duration::from_secs(20);

/// A pipeline.
pub struct Joined {
    home: Home,
}

/// Jobs of a list, and what was left out.
pub struct Listed {
    /// The jobs, newest first.
    pub jobs: Vec<Job>,
    /// More that were wanted: how many, or `None` when nobody counted them.
    pub more: Option<Option<usize>>,
}

impl Joined {
    /// Opens what the options say.
    ///
    /// # Errors
    /// When they say nothing; and those of [`Self::open`] and of a stack.
    pub fn of(place: &Place) -> Result<Self, CliError> {
        if let Some(dir) = &place.local {
            return Self::open(dir);
        }
        if place.aws.is_given() {
            return Ok(Self { home: Home::Aws(Box::new(Stack::open(&place.aws)?)) });
        }
        Err(CliError::new(ErrorCode::Usage, "which pipeline is meant isn't said")
            .help("add `--local` for the newest local run, or `--stack NAME` for a stack on AWS"))
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
        Ok(Self { home: Home::Local(Box::new(Local { world, state, dir })) })
    }

    /// The local pipeline, when it is one.
    pub fn local(&self) -> Option<&Local> {
        match &self.home {
            Home::Local(local) => Some(local),
            Home::Aws(_) => None,
        }
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        self.home.run(future)
    }

    /// What it is called in a sentence.
    pub fn name(&self) -> String {
        match &self.home {
            Home::Local(local) => format!("`{}`", local.dir.display()),
            Home::Aws(stack) => stack.name().to_owned(),
        }
    }

    /// The options that lead to it.
    pub fn flags(&self) -> String {
        match &self.home {
            Home::Local(local) => format!("--local {}", local.dir.display()),
            Home::Aws(stack) => stack.flags().to_owned(),
        }
    }

    /// The time of the pipeline, milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.home.now().as_millisecond()
    }

    /// Whether it is known what the pools are: by a stack they are, by its table alone they aren't.
    pub fn knows_pools(&self) -> bool {
        match &self.home {
            Home::Local(_) => true,
            Home::Aws(stack) => stack.knows_pools(),
        }
    }

    /// How often it may be looked at.
    pub fn look_every(&self) -> Duration {
        if self.local().is_some() { LOOK_EVERY } else { ASK_EVERY }
    }

    /// The command that lets a local pipeline go on, when nothing will happen without it; `None` while a pipeline runs.
    ///
    /// # Errors
    /// When the lock can't be looked at.
    pub fn resting(&self) -> Result<Option<String>, CliError> {
        let Some(local) = self.local() else { return Ok(None) };
        let holder = local.state.holder();
        let holder = holder.map_err(|error| CliError::new(ErrorCode::StateUnusable, error.to_string()))?;
        Ok(if holder.is_some() { None } else { Some(format!("osprey local run --state {}", local.dir.display())) })
    }

    /// Says it when nothing will happen to a message for now.
    ///
    /// # Errors
    /// Those of [`Self::resting`].
    pub fn say_who_runs(&self, ui: &mut Ui) -> Result<(), CliError> {
        if let Some(command) = self.resting()? {
            ui.note(&format!("no pipeline runs in {} now; `{command}` takes it up", self.name()));
        }
        Ok(())
    }

    /// All jobs, newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub fn jobs(&self) -> Result<Vec<Job>, CliError> {
        Ok(self.listed(None, LIST_MAX, |_| true)?.jobs)
    }

    /// Most jobs that are read to put them into an order; on AWS each is a request.
    pub fn sorted_max(&self) -> usize {
        if self.local().is_some() { LIST_MAX } else { SEARCHED_MAX }
    }

    /// The newest jobs among which a name is looked for.
    fn searched(&self) -> Result<Vec<Job>, CliError> {
        match &self.home {
            Home::Local(_) => self.jobs(),
            Home::Aws(stack) => Ok(stack.jobs(None, SEARCHED_MAX, SEARCHED_MAX, |_| true)?.0),
        }
    }

    /// The newest jobs that are wanted, up to `limit`; only those recorded at `since` or later, milliseconds since 1970.
    ///
    /// # Errors
    /// When the store fails.
    pub fn listed(&self, since: Option<i64>, limit: usize, wanted: impl Fn(&Job) -> bool) -> Result<Listed, CliError> {
        match &self.home {
            Home::Local(local) => {
                let all = self.run(view::jobs(&local.world, since, LIST_MAX))?;
                let mut jobs: Vec<Job> = all.into_iter().filter(wanted).collect();
                let more = jobs.len().saturating_sub(limit);
                jobs.truncate(limit);
                Ok(Listed { jobs, more: Some(Some(more)).filter(|_| more > 0) })
            }
            Home::Aws(stack) => {
                let (jobs, more) = stack.jobs(since, limit, LIST_MAX, wanted)?;
                Ok(Listed { jobs, more: Some(None).filter(|_| more) })
            }
        }
    }

    /// All dead letters, newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub fn dead_letters(&self) -> Result<Vec<DeadLetter>, CliError> {
        self.dead_letters_since(None)
    }

    /// The dead letters that died at `since` or later, milliseconds since 1970; newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub fn dead_letters_since(&self, since: Option<i64>) -> Result<Vec<DeadLetter>, CliError> {
        match &self.home {
            Home::Local(local) => Ok(self.run(view::dead_letters(&local.world, since, LIST_MAX))?),
            Home::Aws(stack) => stack.dead_letters(since, LIST_MAX),
        }
    }

    /// A job; `None` for one that isn't on record.
    ///
    /// # Errors
    /// When the store fails.
    pub fn job(&self, id: JobId) -> Result<Option<Job>, CliError> {
        Ok(self.run(repository::load(&self.home, id))?.map(|loaded| loaded.job))
    }

    /// Jobs by their ids, in that order, without those that aren't on record; on AWS several at a time.
    ///
    /// # Errors
    /// When the store fails.
    pub fn records(&self, ids: &[JobId]) -> Result<Vec<Job>, CliError> {
        match &self.home {
            Home::Local(_) => {
                let found = ids.iter().map(|id| self.job(*id)).collect::<Result<Vec<_>, _>>()?;
                Ok(found.into_iter().flatten().collect())
            }
            Home::Aws(stack) => stack.records(ids),
        }
    }

    /// A job with its history.
    ///
    /// # Errors
    /// When the store fails or the job has gone.
    pub fn view(&self, id: JobId) -> Result<JobView, CliError> {
        let view = self.run(view::describe(&self.home, id))?;
        view.ok_or_else(|| CliError::new(ErrorCode::UnknownJob, format!("there is no job `{id}`")))
    }

    /// A dead letter with its message; a job that died has its message with the job.
    ///
    /// # Errors
    /// When the store fails or the dead letter has gone.
    pub fn dead_letter(&self, id: JobId) -> Result<(DeadLetter, Option<Record>), CliError> {
        let Some((letter, _)) = self.run(dead::load(&self.home, id))? else {
            return Err(CliError::new(ErrorCode::UnknownDeadLetter, format!("there is no dead letter `{id}`")));
        };
        let own = self.run(record::read(&self.home, key::dead_partition(id)))?;
        let record = match own {
            Some(record) => Some(record),
            None => self.run(record::read(&self.home, key::job_partition(id)))?,
        };
        Ok((letter, record))
    }

    /// Sends a body to the submission queue.
    ///
    /// # Errors
    /// When the queue doesn't take it.
    pub fn send(&self, body: &str) -> Result<MessageId, CliError> {
        if let Home::Aws(stack) = &self.home {
            stack.check_queue()?;
        }
        Ok(self.run(self.home.send_message(QueueKind::Submissions, body, 0))?)
    }

    /// What became of the action of a message; `None` while nothing has.
    fn acted(&self, message: &MessageId) -> Result<Option<Acted>, CliError> {
        let item = self.run(self.home.get_item(&key::action(message)))?;
        Ok(item.map(|item| repository::read(&item)).transpose()?)
    }

    /// Waits a moment for the outcome of an action; `None` when no pipeline runs or none came.
    ///
    /// # Errors
    /// When the store fails.
    pub fn outcome(&self, message: &MessageId) -> Result<Option<Acted>, CliError> {
        let patience = if self.local().is_some() { OUTCOME_PATIENCE } else { ANSWER_PATIENCE };
        let until = Instant::now() + patience;
        while self.resting()?.is_none() && Instant::now() < until {
            if let Some(acted) = self.acted(message)? {
                return Ok(Some(acted));
            }
            std::thread::sleep(self.look_every());
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
                let ended = self.run(repository::load(&self.home, id))?.filter(|l| l.job.state.is_final());
                if let Some(loaded) = ended {
                    return Ok(loaded.job);
                }
            }
            let resting = self.resting()?;
            alone_since = resting.is_some().then(|| alone_since.unwrap_or_else(Instant::now));
            if let (Some(since), Some(command)) = (alone_since, resting)
                && since.elapsed() > RUNNER_PATIENCE
            {
                let message = format!("job `{id}` is sent, and no pipeline runs in {}", self.name());
                return Err(CliError::failed(message).help(format!("`{command}` runs it")));
            }
            std::thread::sleep(self.look_every());
        }
    }

    /// Decides about a request as the pipeline would now.
    ///
    /// # Errors
    /// When the store or what the run was started with can't be read.
    pub fn evaluate(
        &self,
        request: &SubmitJobRequest,
        policy: Option<&Policy>,
        sender: &Sender,
    ) -> Result<Answer, CliError> {
        let (own, pools, settings) = self.deciding(policy)?;
        let context = Context { policy: &own, pools: &pools, settings: &settings };
        let evaluation = self.run(derive::evaluate(&context, &self.home, request, sender, None, None))?;
        let admitted = evaluation.refusals.is_empty();
        let pending = if admitted { self.pending(&context, request, &evaluation)? } else { None };
        let decision = evaluation.decision;
        Ok(Answer {
            pending: pending.map(Pending::told),
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

    /// The policy in force.
    ///
    /// # Errors
    /// As [`Self::evaluate`].
    pub fn policy(&self) -> Result<Policy, CliError> {
        self.deciding(None).map(|(policy, ..)| policy)
    }

    /// What an order about a pool would do.
    ///
    /// # Errors
    /// As [`Self::evaluate`].
    pub fn preview_order(&self, action: &Action) -> Result<Result<String, Refusal>, CliError> {
        let (policy, pools, settings) = self.deciding(None)?;
        let context = Context { policy: &policy, pools: &pools, settings: &settings };
        Ok(osprey_submit::preview_order(&context, action, self.now_ms()))
    }

    /// Whom the submission queue would name as the sender of a message from here.
    ///
    /// # Errors
    /// When AWS doesn't say.
    pub fn sender(&self) -> Result<Sender, CliError> {
        let principal = match &self.home {
            Home::Local(local) => local.world.queues().sender().to_owned(),
            Home::Aws(stack) => stack.caller()?,
        };
        Ok(Sender::new(QueueKind::Submissions.name(), principal))
    }

    /// What a decision is made with: the policy given or in force, the pools, the settings.
    fn deciding(&self, policy: Option<&Policy>) -> Result<(Policy, Vec<Pool>, Settings), CliError> {
        let local = match &self.home {
            Home::Local(local) => local,
            Home::Aws(stack) => {
                let (in_force, pools) = stack.in_force()?;
                return Ok((policy.cloned().unwrap_or(in_force), pools, Settings::default()));
            }
        };
        let kept = Kept::load(&local.dir)?;
        let cluster = kept.as_ref().map_or_else(Cluster::alone, |kept| kept.cluster);
        let own = match (policy, &kept) {
            (Some(policy), _) => policy.clone(),
            (None, Some(kept)) => kept.policy(&local.dir)?,
            (None, None) => policy_file::load(None)?,
        };
        let pools = cluster.pools(&own);
        Ok((own, pools, Settings::local()))
    }
}
