//! Job queues and the fair-share policies that some of them have.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use crate::arn::name_of;
use crate::batch::LocalBatch;
use crate::change::Change;
use crate::environment::State;
use crate::error::BatchError;
use crate::head::JobStateTimeLimit;
use crate::share::{self, SHARES_MAX};
use crate::validate;

/// Most compute environments of one queue.
pub const ENVIRONMENTS_MAX: usize = 3;

/// How a queue shares its environments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FairShare {
    /// Seconds over which past use is forgotten; 0 counts only what runs.
    pub share_decay_seconds: i64,
    /// Percent of the vCPUs kept for shares that aren't active yet, to the power of the shares that are.
    pub compute_reservation: i64,
    /// Weights; a share that isn't listed has weight 1.
    pub share_distribution: Vec<ShareWeight>,
}

/// Weight of one share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShareWeight {
    /// The share, or its beginning followed by `*`.
    pub share_identifier: String,
    /// Lower gets more; 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_factor: Option<f64>,
}

/// A scheduling policy as it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SchedulingPolicy {
    /// Name.
    pub name: String,
    /// ARN.
    pub arn: String,
    /// The policy.
    pub fairshare_policy: FairShare,
}

/// One environment of a queue; the lowest order is tried first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComputeEnvironmentOrder {
    /// Position.
    pub order: i64,
    /// Name or ARN; always the ARN in answers.
    pub compute_environment: String,
}

/// A job queue to create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobQueueRequest {
    /// Name, at most 128 characters.
    pub job_queue_name: String,
    /// Whether it takes jobs.
    pub state: State,
    /// Queues of one environment are served from the highest number down.
    pub priority: i64,
    /// Name or ARN of a fair-share policy; FIFO when absent.
    pub scheduling_policy: Option<String>,
    /// One to three environments.
    pub compute_environment_order: Vec<ComputeEnvironmentOrder>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

/// What to change of a job queue; `None` leaves a member as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobQueueUpdate {
    /// Whether it takes jobs.
    pub state: Option<State>,
    /// Priority.
    pub priority: Option<i64>,
    /// Another fair-share policy; a FIFO queue can't get one.
    pub scheduling_policy: Option<String>,
    /// Environments.
    pub compute_environment_order: Option<Vec<ComputeEnvironmentOrder>>,
}

/// A job queue as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobQueue {
    /// Name.
    pub job_queue_name: String,
    /// ARN.
    pub job_queue_arn: String,
    /// Whether it takes jobs.
    pub state: State,
    /// Always `VALID`.
    pub status: &'static str,
    /// Priority.
    pub priority: i64,
    /// ARN of its fair-share policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_policy_arn: Option<String>,
    /// Environments, lowest order first.
    pub compute_environment_order: Vec<ComputeEnvironmentOrder>,
    /// How long its head may be blocked.
    pub job_state_time_limit_actions: Vec<JobStateTimeLimit>,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

impl LocalBatch {
    /// Creates a fair-share policy; answers its ARN.
    ///
    /// # Errors
    /// A ClientException when the name is taken or a number is out of range.
    pub fn create_scheduling_policy(&self, name: &str, policy: &FairShare) -> Result<String, BatchError> {
        check_policy(name, policy)?;
        self.change(|change| {
            if change.policy(name)?.is_some() {
                return Err(BatchError::client("Object already exists"));
            }
            change.put_policy(name, policy)
        })
    }

    /// Creates the policy or replaces the one of that name; answers its ARN.
    ///
    /// # Errors
    /// A ClientException when a number is out of range.
    pub fn ensure_scheduling_policy(&self, name: &str, policy: &FairShare) -> Result<String, BatchError> {
        check_policy(name, policy)?;
        self.change(|change| change.put_policy(name, policy))
    }

    /// Policies by name or ARN; unknown ones are left out.
    ///
    /// # Errors
    /// Failures of the store.
    pub fn describe_scheduling_policies(&self, names: &[String]) -> Result<Vec<SchedulingPolicy>, BatchError> {
        self.view(|change| {
            let mut found = Vec::new();
            for name in names.iter().map(|name| name_of(name)) {
                if let Some(fairshare_policy) = change.policy(name)? {
                    found.push(SchedulingPolicy {
                        name: name.to_owned(),
                        arn: change.arns().policy(name),
                        fairshare_policy,
                    });
                }
            }
            Ok(found)
        })
    }

    /// Creates a job queue; answers its ARN.
    ///
    /// # Errors
    /// A ClientException when the name is wrong or taken, or an environment or policy is unknown.
    pub fn create_job_queue(&self, request: &JobQueueRequest) -> Result<String, BatchError> {
        validate::name("Job queue name", &request.job_queue_name)?;
        self.change(|change| {
            if change.queue(&request.job_queue_name)?.is_some() {
                return Err(BatchError::client("Object already exists"));
            }
            change.create_queue(request)
        })
    }

    /// Creates the job queue or brings the one of that name to what is asked; answers its ARN.
    ///
    /// # Errors
    /// Those of create and update.
    pub fn ensure_job_queue(&self, request: &JobQueueRequest) -> Result<String, BatchError> {
        validate::name("Job queue name", &request.job_queue_name)?;
        self.change(|change| match change.queue(&request.job_queue_name)? {
            None => change.create_queue(request),
            Some(known) => {
                let update = JobQueueUpdate {
                    state: Some(request.state),
                    priority: Some(request.priority),
                    scheduling_policy: request.scheduling_policy.clone(),
                    compute_environment_order: Some(request.compute_environment_order.clone()),
                };
                change.update_queue(known, &update)
            }
        })
    }

    /// Changes a job queue; answers its ARN.
    ///
    /// # Errors
    /// A ClientException when it, an environment or a policy is unknown, or a FIFO queue is to get a policy.
    pub fn update_job_queue(&self, name_or_arn: &str, update: &JobQueueUpdate) -> Result<String, BatchError> {
        self.change(|change| {
            let known = change.queue(name_of(name_or_arn))?;
            let known = known.ok_or_else(|| BatchError::client(format!("{name_or_arn} does not exist")))?;
            change.update_queue(known, update)
        })
    }

    /// Job queues by name or ARN; all when `names` is empty.
    ///
    /// # Errors
    /// Failures of the store.
    pub fn describe_job_queues(&self, names: &[String]) -> Result<Vec<JobQueue>, BatchError> {
        self.view(|change| {
            let wanted = |q: &JobQueue| names.is_empty() || names.iter().any(|name| name_of(name) == q.job_queue_name);
            Ok(change.queues()?.into_iter().filter(wanted).collect())
        })
    }
}

fn check_policy(name: &str, policy: &FairShare) -> Result<(), BatchError> {
    validate::name("Scheduling policy name", name)?;
    let refuse = |message: &str| Err(BatchError::client(message));
    if !(0..=604_800).contains(&policy.share_decay_seconds) {
        return refuse("shareDecaySeconds must be between 0 and 604800");
    }
    if !(0..=99).contains(&policy.compute_reservation) {
        return refuse("computeReservation must be between 0 and 99");
    }
    let in_range = |s: &ShareWeight| s.weight_factor.is_none_or(|w| (0.0001..=999.9999).contains(&w));
    if !policy.share_distribution.iter().all(in_range) {
        return refuse("weightFactor must be between 0.0001 and 999.9999");
    }
    if policy.share_distribution.len() > SHARES_MAX {
        return refuse("shareDistribution must have at most 500 entries");
    }
    if let Some((a, b)) = share::overlapping(&policy.share_distribution) {
        return Err(BatchError::client(format!("share identifiers must not overlap: {a} and {b}")));
    }
    Ok(())
}

impl Change<'_> {
    pub fn policy(&self, name: &str) -> Result<Option<FairShare>, BatchError> {
        let body: Option<String> = self
            .db
            .prepare_cached("SELECT body FROM scheduling_policy WHERE name = ?1")?
            .query_row(params![name], |row| row.get(0))
            .optional()?;
        Ok(body.map(|body| serde_json::from_str(&body)).transpose()?)
    }

    fn put_policy(&self, name: &str, policy: &FairShare) -> Result<String, BatchError> {
        self.db.execute(
            "INSERT INTO scheduling_policy (name, body) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET body = excluded.body",
            params![name, serde_json::to_string(policy)?],
        )?;
        Ok(self.arns().policy(name))
    }

    pub fn queue(&self, name: &str) -> rusqlite::Result<Option<JobQueue>> {
        let mut statement = self
            .db
            .prepare_cached("SELECT name, state, priority, policy, tags, time_limits FROM job_queue WHERE name = ?1")?;
        statement.query_row(params![name], |row| self.queue_from(row)).optional()
    }

    /// All queues, highest priority first, then by name.
    pub fn queues(&self) -> rusqlite::Result<Vec<JobQueue>> {
        let mut statement = self.db.prepare_cached(
            "SELECT name, state, priority, policy, tags, time_limits FROM job_queue ORDER BY priority DESC, name",
        )?;
        statement.query_map([], |row| self.queue_from(row))?.collect()
    }

    fn queue_from(&self, row: &Row<'_>) -> rusqlite::Result<JobQueue> {
        let name: String = row.get(0)?;
        let policy: Option<String> = row.get(3)?;
        Ok(JobQueue {
            job_queue_arn: self.arns().queue(&name),
            state: State::parse(row.get_ref(1)?.as_str()?),
            status: "VALID",
            priority: row.get(2)?,
            scheduling_policy_arn: policy.map(|policy| self.arns().policy(&policy)),
            compute_environment_order: self.environments_of(&name)?,
            job_state_time_limit_actions: serde_json::from_str(row.get_ref(5)?.as_str()?).unwrap_or_default(),
            tags: serde_json::from_str(row.get_ref(4)?.as_str()?).unwrap_or_default(),
            job_queue_name: name,
        })
    }

    fn environments_of(&self, queue: &str) -> rusqlite::Result<Vec<ComputeEnvironmentOrder>> {
        let mut statement =
            self.db.prepare_cached("SELECT ord, environment FROM queue_environment WHERE queue = ?1 ORDER BY ord")?;
        let rows = statement.query_map(params![queue], |row| {
            let name: String = row.get(1)?;
            Ok(ComputeEnvironmentOrder { order: row.get(0)?, compute_environment: self.arns().environment(&name) })
        })?;
        rows.collect()
    }

    fn create_queue(&self, request: &JobQueueRequest) -> Result<String, BatchError> {
        validate::tags(request.tags.iter())?;
        let policy = request.scheduling_policy.as_deref().map(|policy| self.known_policy(policy)).transpose()?;
        self.db.execute(
            "INSERT INTO job_queue (name, state, priority, policy, tags) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                request.job_queue_name,
                request.state.as_str(),
                check_priority(request.priority)?,
                policy,
                serde_json::to_string(&request.tags)?
            ],
        )?;
        self.put_environments(&request.job_queue_name, &request.compute_environment_order)?;
        Ok(self.arns().queue(&request.job_queue_name))
    }

    fn update_queue(&self, known: JobQueue, update: &JobQueueUpdate) -> Result<String, BatchError> {
        let policy = update.scheduling_policy.as_deref().map(|policy| self.known_policy(policy)).transpose()?;
        if policy.is_some() && known.scheduling_policy_arn.is_none() {
            return Err(BatchError::client("A scheduling policy can't be added to an existing FIFO job queue"));
        }
        let name = &known.job_queue_name;
        self.db.execute(
            "UPDATE job_queue SET state = ?2, priority = ?3, policy = coalesce(?4, policy) WHERE name = ?1",
            params![
                name,
                update.state.unwrap_or(known.state).as_str(),
                check_priority(update.priority.unwrap_or(known.priority))?,
                policy
            ],
        )?;
        if let Some(order) = &update.compute_environment_order {
            self.put_environments(name, order)?;
        }
        Ok(known.job_queue_arn)
    }

    fn known_policy(&self, name_or_arn: &str) -> Result<String, BatchError> {
        let name = name_of(name_or_arn);
        match self.policy(name)? {
            Some(_) => Ok(name.to_owned()),
            None => Err(BatchError::client(format!("Scheduling policy {name_or_arn} does not exist"))),
        }
    }

    fn put_environments(&self, queue: &str, order: &[ComputeEnvironmentOrder]) -> Result<(), BatchError> {
        if !(1..=ENVIRONMENTS_MAX).contains(&order.len()) {
            let message = format!("A job queue must have 1 to {ENVIRONMENTS_MAX} compute environments");
            return Err(BatchError::client(message));
        }
        self.db.execute("DELETE FROM queue_environment WHERE queue = ?1", params![queue])?;
        for entry in order {
            let name = name_of(&entry.compute_environment);
            if self.environment(name)?.is_none() {
                let message = format!("Compute environment {} does not exist", entry.compute_environment);
                return Err(BatchError::client(message));
            }
            self.db.execute(
                "INSERT INTO queue_environment (queue, ord, environment) VALUES (?1, ?2, ?3)",
                params![queue, entry.order, name],
            )?;
        }
        Ok(())
    }
}

fn check_priority(priority: i64) -> Result<i64, BatchError> {
    if priority < 0 {
        return Err(BatchError::client("Job queue priority must not be negative"));
    }
    Ok(priority)
}
