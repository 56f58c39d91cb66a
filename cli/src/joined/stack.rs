//! A stack on AWS, found by its name or by the names of its table and queue.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use osprey_aws::terminal::{Access, Obstacle, Session};
use osprey_aws::{Wiring, World};
use osprey_model::id::JobId;
use osprey_model::job::Job;
use osprey_model::pool::Pool;
use osprey_pipeline::dead::{self, DeadLetter};
use osprey_pipeline::failure::Failure;
use osprey_pipeline::in_force::{self, Found};
use osprey_pipeline::{key, repository, view};
use osprey_policy::Policy;
use osprey_ports::QueueKind;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::command::AwsPlace;
use crate::error::{CliError, ErrorCode};

/// Records that are read at the same time.
const AT_ONCE: usize = 64;
/// Ids of a listing that are read between two looks at whether there are enough.
const STRETCH: usize = 1_000;

/// A stack.
pub struct Stack {
    runtime: Runtime,
    session: Session,
    world: Arc<World>,
    /// The options that lead here, for advice.
    flags: String,
    /// What it is called in sentences.
    name: String,
    pools: Option<Vec<Pool>>,
    has_queue: bool,
}

impl Stack {
    /// Finds what the options say, and makes sure that its table can be read by this version.
    ///
    /// # Errors
    /// One sentence, and what to do.
    pub fn open(place: &AwsPlace) -> Result<Self, CliError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| CliError::failed(format!("no runtime for calls to AWS can be made: {error}")))?;
        let access = Access {
            profile: place.profile.clone(),
            region: place.region.clone(),
            endpoint_url: place.endpoint_url.clone(),
        };
        let (session, world, outputs) = runtime.block_on(reach(&access, place))?;
        let pools = outputs.get(POOLS).and_then(|text| serde_json::from_str(text).ok());
        let has_queue = outputs.contains_key(QUEUE_URL);
        let table = outputs.get(TABLE).map_or("", String::as_str);
        let name = place.stack.as_ref().map_or_else(|| format!("table `{table}`"), |name| format!("stack `{name}`"));
        Ok(Self { runtime, session, world: Arc::new(world), flags: place.flags(), name, pools, has_queue })
    }

    /// Runs a future to its end.
    pub fn run<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// What can be asked.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Whom the submission queue would name as the sender of a message from here.
    ///
    /// # Errors
    /// When AWS doesn't say.
    pub fn caller(&self) -> Result<String, CliError> {
        Ok(self.run(self.session.caller())?)
    }

    /// The options that lead here.
    pub fn flags(&self) -> &str {
        &self.flags
    }

    /// What it is called in a sentence.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is known what the pools are.
    pub fn knows_pools(&self) -> bool {
        self.pools.is_some()
    }

    /// That messages can be sent.
    ///
    /// # Errors
    /// When nobody said where to.
    pub fn check_queue(&self) -> Result<(), CliError> {
        if self.has_queue {
            return Ok(());
        }
        Err(CliError::new(ErrorCode::Usage, "which queue to send to isn't said")
            .help("add `--queue-url URL`, or take `--stack NAME` in place of `--table`"))
    }

    /// Jobs of the listing that were recorded at `since` or later, newest first, up to `limit` that are wanted; and whether
    /// there may be more.
    ///
    /// # Errors
    /// When the table can't be read.
    pub fn jobs(
        &self,
        since: Option<i64>,
        limit: usize,
        max: usize,
        wanted: impl Fn(&Job) -> bool,
    ) -> Result<(Vec<Job>, bool), CliError> {
        let ids = self.run(view::listed(self.world(), key::JOBS, since, max))?;
        let mut jobs = Vec::new();
        for (number, stretch) in ids.chunks(STRETCH).enumerate() {
            jobs.extend(self.records(stretch)?.into_iter().filter(|job| wanted(job)));
            if jobs.len() > limit {
                jobs.truncate(limit);
                return Ok((jobs, true));
            }
            if jobs.len() == limit {
                return Ok((jobs, (number + 1) * STRETCH < ids.len()));
            }
        }
        let more = ids.len() == max;
        Ok((jobs, more))
    }

    /// Jobs by their ids, in that order, without those that aren't there.
    ///
    /// # Errors
    /// When the table can't be read.
    pub fn records(&self, ids: &[JobId]) -> Result<Vec<Job>, CliError> {
        self.each(ids, |world, id| async move { Ok(repository::load(&*world, id).await?.map(|loaded| loaded.job)) })
    }

    /// Dead letters that died at `since` or later, newest first.
    ///
    /// # Errors
    /// When the table can't be read.
    pub fn dead_letters(&self, since: Option<i64>, max: usize) -> Result<Vec<DeadLetter>, CliError> {
        let ids = self.run(view::listed(self.world(), key::DEAD_LETTERS, since, max))?;
        self.each(&ids, |world, id| async move { Ok(dead::load(&*world, id).await?.map(|(letter, _)| letter)) })
    }

    /// Reads a record for each id, several at a time, in the order of the ids.
    fn each<T, F>(&self, ids: &[JobId], read: impl Fn(Arc<World>, JobId) -> F) -> Result<Vec<T>, CliError>
    where
        T: Send + 'static,
        F: Future<Output = Result<Option<T>, Failure>> + Send + 'static,
    {
        let mut found = BTreeMap::new();
        self.run(async {
            let mut tasks = JoinSet::new();
            for (place, id) in ids.iter().enumerate() {
                if tasks.len() >= AT_ONCE {
                    take(&mut found, tasks.join_next().await)?;
                }
                let one = read(self.world.clone(), *id);
                tasks.spawn(async move { (place, one.await) });
            }
            while let Some(ended) = tasks.join_next().await {
                take(&mut found, Some(ended))?;
            }
            Ok::<_, CliError>(())
        })?;
        Ok(found.into_values().collect())
    }

    /// The policy and the pools in force.
    ///
    /// # Errors
    /// When the table can't be read, or nobody said what the pools are.
    pub fn in_force(&self) -> Result<(Policy, Vec<Pool>), CliError> {
        let Some(deployed) = &self.pools else {
            return Err(CliError::new(ErrorCode::Usage, "the pools aren't known")
                .help("take `--stack NAME` in place of `--table`: a stack says what its pools are"));
        };
        let found: Found = self.run(in_force::read(self.world()))?;
        let live = found.policy.as_ref().and_then(|stored| Policy::load(&stored.text).ok());
        let policy = match live {
            Some(loaded) => loaded.policy,
            None => match self.run(in_force::last_good(self.world()))? {
                Some(policy) => policy,
                None => crate::policy_file::load(None)?,
            },
        };
        Ok((policy, found.pools(deployed)))
    }
}

type Ended<T> = Result<(usize, Result<Option<T>, Failure>), tokio::task::JoinError>;

fn take<T>(found: &mut BTreeMap<usize, T>, ended: Option<Ended<T>>) -> Result<(), CliError> {
    let Some(ended) = ended else { return Ok(()) };
    let (place, read) = ended.map_err(|error| CliError::failed(error.to_string()))?;
    if let Some(value) = read? {
        found.insert(place, value);
    }
    Ok(())
}

/// Outputs of the template.
const TABLE: &str = "Table";
const QUEUE_URL: &str = "SubmissionsQueueUrl";
const POOLS: &str = "Pools";

async fn reach(access: &Access, place: &AwsPlace) -> Result<(Session, World, BTreeMap<String, String>), CliError> {
    let session = Session::open(access).await?;
    let mut outputs = match &place.stack {
        Some(stack) => session.outputs(stack).await?,
        None => BTreeMap::new(),
    };
    outputs.extend(place.table.iter().map(|table| (TABLE.to_owned(), table.clone())));
    outputs.extend(place.queue_url.iter().map(|url| (QUEUE_URL.to_owned(), url.clone())));
    let Some(table) = outputs.get(TABLE) else {
        let stack = place.stack.as_deref().unwrap_or_default();
        return Err(CliError::new(
            ErrorCode::AwsUnreachable,
            format!("stack `{stack}` is none of Osprey's: it has no output `{TABLE}`"),
        )
        .help("the stack's name was chosen at `sam deploy`; `aws cloudformation list-stacks` shows all"));
    };
    session.check_table(table).await?;
    let url = outputs.get(QUEUE_URL).cloned();
    let queue_urls = url.into_iter().map(|url| (QueueKind::Submissions, url)).collect();
    let wiring = Wiring { table: table.clone(), queue_urls, topic_arn: None, event_bus: None, submit_rate: 1 };
    let world = session.world(&wiring);
    let found = in_force::read(&world).await?;
    found.check_layout().map_err(|sentence| CliError::new(ErrorCode::AwsUnreachable, sentence))?;
    Ok((session, world, outputs))
}

impl From<Obstacle> for CliError {
    fn from(obstacle: Obstacle) -> Self {
        Self::new(ErrorCode::AwsUnreachable, obstacle.to_string()).help(obstacle.help())
    }
}
