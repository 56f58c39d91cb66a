//! What Batch says of a job moves the job on: an event, or an answer that was asked for.
//!
//! Events come twice, late, out of order or never. A job only moves forward: news of an attempt that is over changes
//! nothing, and the write that closes an attempt happens once, whoever brings the news.

use osprey_model::end::{EndClass, StoppedBy, classify, succeeded_out_of_memory};
use osprey_model::event::{BatchStatus, JobDetail};
use osprey_model::id::{BatchJobId, JobId};
use osprey_model::job::{Attempt, Job, JobState, Run, cut};
use osprey_model::metadata::Metadata;
use osprey_model::pool::PoolMode;
use osprey_model::request::{RetryStrategy, SubmitJobRequest};
use osprey_model::resources::Demand;
use osprey_policy::requeue::{Ended, Next, Verdict, after_end};
use osprey_ports::{
    Clock, DescribeJobDefinition, DescribeJobs, GetItem, ListChildren, PutEvents, QueryItems, SendMessage,
    TerminateJob, Write, WriteItems,
};

use crate::context::Context;
use crate::evict::receipt::{self, Receipt};
use crate::experience::{self, Ran};
use crate::failure::Failure;
use crate::outgoing::{self, Owner};
use crate::repository::{self, Change, Changed};
use crate::{dead, dependents, derive, dispatch, internal, key, record, stop, usage, wake};

/// Most failed children that are looked at to classify an array.
const CHILDREN_MAX: usize = 100;
/// Most characters of a node's id kept with a run; ECS's have 32.
const NODE_CHARS_MAX: usize = 64;
/// Most characters of Batch's words kept with an attempt.
const REASON_CHARS_MAX: usize = 1024;

/// What applying news calls.
pub trait Ports:
    GetItem
    + QueryItems
    + WriteItems
    + DescribeJobDefinition
    + DescribeJobs
    + ListChildren
    + TerminateJob
    + SendMessage
    + PutEvents
    + Clock
    + Sync
{
}

impl<P> Ports for P where
    P: GetItem
        + QueryItems
        + WriteItems
        + DescribeJobDefinition
        + DescribeJobs
        + ListChildren
        + TerminateJob
        + SendMessage
        + PutEvents
        + Clock
        + Sync
{
}

/// Where the news came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An event.
    Event,
    /// An answer to DescribeJobs: the job was asked after since it had been silent.
    Asked,
}

/// What news did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The job moved on, or its attempt was closed.
    Moved,
    /// It was known already, or came too late.
    Nothing,
    /// It was of a second Batch job for one attempt, which was stopped.
    Extra,
    /// It was not of a job of ours.
    Foreign,
}

/// The job and attempt that a Batch job's tags claim. Tags are claims: they count only for an attempt that is being
/// submitted, or was.
#[must_use]
pub fn tagged(detail: &JobDetail) -> Option<Owner> {
    let job = JobId::parse(detail.tags.get(outgoing::TAG_JOB_ID)?)?;
    let attempt = detail.tags.get(outgoing::TAG_ATTEMPT)?.parse().ok()?;
    Some(Owner { job, attempt })
}

/// Applies news of a Batch job.
///
/// # Errors
/// When the store or Batch fails; the news comes again.
pub async fn apply<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    detail: &JobDetail,
    source: Source,
) -> Result<Applied, Failure> {
    if detail.is_part() {
        return part(ctx, ports, detail).await;
    }
    let id = BatchJobId::new(detail.job_id.as_str());
    let recorded = derive::owner(ports, &id).await?;
    let owner = recorded.map(|(job, attempt)| Owner { job, attempt }).or_else(|| tagged(detail));
    let Some(owner) = owner else { return Ok(Applied::Foreign) };
    if recorded.is_none() {
        let alive = !detail.status.is_final();
        if !adopt(ctx, ports, owner, &id, alive).await? {
            return Ok(Applied::Extra);
        }
    }
    forward(ctx, ports, owner, &id, detail, source).await
}

/// Takes a Batch job that nobody recorded for the attempt that its tags name; `false` when that attempt has another
/// one, or none of ours could have made it: then it is stopped.
async fn adopt<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    owner: Owner,
    id: &BatchJobId,
    alive: bool,
) -> Result<bool, Failure> {
    let Some(after) = dispatch::take(ctx, ports, owner, id, None).await? else { return Ok(false) };
    if after.run.as_ref().is_some_and(|run| run.id == *id) {
        if alive {
            // A person may have wished to stop it while nobody knew whether there was anything to stop.
            stop::push(ports, &after).await?;
        }
        return Ok(true);
    }
    if derive::owner(ports, id).await?.is_some() {
        return Ok(true);
    }
    stop::extra(ctx, ports, owner, id, alive).await?;
    Ok(false)
}

/// A child of an array, or a node: its job runs when it runs; its end is told by the job itself.
async fn part<P: Ports>(ctx: &Context<'_>, ports: &P, detail: &JobDetail) -> Result<Applied, Failure> {
    let whole = detail.job_id.split([':', '#']).next().unwrap_or_default();
    let id = BatchJobId::new(whole);
    let Some((job, _)) = derive::owner(ports, &id).await? else { return Ok(Applied::Foreign) };
    if detail.status != BatchStatus::Running {
        return Ok(Applied::Nothing);
    }
    // Which node one child of several runs on says nothing of the others.
    let started = Started { at: detail.started_at, node: None };
    run(ctx, ports, job, &id, started).await
}

async fn forward<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    owner: Owner,
    id: &BatchJobId,
    detail: &JobDetail,
    source: Source,
) -> Result<Applied, Failure> {
    match detail.status {
        BatchStatus::Succeeded | BatchStatus::Failed => close(ctx, ports, owner.job, id, detail).await,
        BatchStatus::Running => {
            let started = Started { at: detail.started_at, node: node_of(detail) };
            let applied = run(ctx, ports, owner.job, id, started).await?;
            heard(ctx, ports, owner.job, id, source).await?;
            Ok(applied)
        }
        _ => {
            heard(ctx, ports, owner.job, id, source).await?;
            Ok(Applied::Nothing)
        }
    }
}

/// How a run began.
struct Started {
    at: Option<i64>,
    node: Option<String>,
}

/// The node that a container job runs on.
fn node_of(detail: &JobDetail) -> Option<String> {
    let arn = detail.container.as_ref()?.container_instance_arn.as_deref()?;
    Some(cut(osprey_ports::capacity::node_id(arn), NODE_CHARS_MAX)).filter(|node| !node.is_empty())
}

/// The job runs.
async fn run<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    job: JobId,
    id: &BatchJobId,
    started: Started,
) -> Result<Applied, Failure> {
    let now = ports.now().as_millisecond();
    let changed = repository::change(ports, ctx.settings, job, |job| {
        let run = job.run.as_ref().filter(|run| run.id == *id && job.state == JobState::Submitted)?;
        let mut next = job.clone();
        next.state = JobState::Running;
        next.updated_at = now;
        let node = started.node.clone().filter(|_| job.scheduled);
        next.run = Some(Run { started_at: Some(started.at.unwrap_or(now)), node, ..run.clone() });
        Some(Change::of(next))
    })
    .await?;
    Ok(if matches!(changed, Changed::Written { .. }) { Applied::Moved } else { Applied::Nothing })
}

/// Notes that Batch still has a job that was asked after, so that it is left in peace for a while; and asks again for
/// a stop that is due.
async fn heard<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    job: JobId,
    id: &BatchJobId,
    source: Source,
) -> Result<(), Failure> {
    if source == Source::Event {
        return Ok(());
    }
    let now = ports.now().as_millisecond();
    let changed = repository::change(ports, ctx.settings, job, |job| {
        job.run.as_ref().filter(|run| run.id == *id)?;
        Some(Change::of(Job { updated_at: now, ..job.clone() }))
    })
    .await?;
    match changed {
        Changed::Written { after, .. } => stop::push(ports, &after).await,
        Changed::Unchanged(_) | Changed::Missing => Ok(()),
    }
}

/// What is read of the request to judge an end; nothing for a success, which needs no judgement.
#[derive(Default)]
struct Wanted {
    retry: Option<RetryStrategy>,
    checkpoint_seconds: Option<u64>,
    memory_mib: u64,
}

/// Closes the attempt that Batch job `id` was.
async fn close<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    job: JobId,
    id: &BatchJobId,
    detail: &JobDetail,
) -> Result<Applied, Failure> {
    let Some(loaded) = repository::load(ports, job).await? else { return Ok(Applied::Foreign) };
    if loaded.job.run.as_ref().is_none_or(|run| run.id != *id) {
        return Ok(Applied::Nothing);
    }
    let class = class(ctx, ports, id, detail, &loaded.job).await?;
    let receipt = receipt::open(ports, &loaded.job).await?;
    let wanted = if class == EndClass::Succeeded { Wanted::default() } else { wanted(ports, job).await? };
    let now = ports.now().as_millisecond();
    let changed = repository::change_loaded(ports, ctx.settings, job, Some(loaded), |job| {
        let run = job.run.as_ref().filter(|run| run.id == *id)?;
        if job.evict.is_some() != receipt.is_some() {
            return None;
        }
        let closing = Closing { job, run, detail, class, wanted: &wanted, receipt: receipt.as_ref(), now };
        Some(closing.change(ctx))
    })
    .await?;
    let (before, after) = match changed {
        Changed::Written { before, after } => (before, after),
        // It was told to go while its end was judged, which says how the end is to be read.
        Changed::Unchanged(job) if job.run.as_ref().is_some_and(|run| run.id == *id) => {
            return Err(Failure::Contended(job.id));
        }
        Changed::Unchanged(_) | Changed::Missing => return Ok(Applied::Nothing),
    };
    if succeeded_out_of_memory(detail) {
        tracing::warn!(job_id = %job, batch_job_id = %id, "a job that succeeded was killed for its memory.");
    }
    tell(&after, class, detail);
    learn(ports, &before, class, detail).await;
    if before.scheduled && ctx.pool(&before.pool).is_some_and(|pool| pool.mode == PoolMode::Held) {
        // What it held is free.
        wake::pool(ports, &before.pool, 0).await;
    }
    follow(ctx, ports, &after, now).await?;
    Ok(Applied::Moved)
}

/// Takes in how long a run took that ended well. Nobody waits for an estimate, so nothing depends on this.
async fn learn<P: Ports>(ports: &P, job: &Job, class: EndClass, detail: &JobDetail) {
    let times = detail.started_at.zip(detail.stopped_at);
    let run_ms = times.and_then(|(from, to)| u64::try_from(to.saturating_sub(from)).ok());
    let Some(run_ms) = run_ms.filter(|_| class == EndClass::Succeeded && job.scheduled) else { return };
    if let Err(failure) = experience::learn(ports, Ran { job, run_ms }).await {
        tracing::warn!(job_id = %job.id, error = failure.story(), "how long a run took could not be noted.");
    }
}

/// Says how an attempt ended, once: the numbers of CloudWatch are made of this.
fn tell(job: &Job, class: EndClass, detail: &JobDetail) {
    let (id, state, class_name) = (job.id, job.state.as_str(), class.as_str());
    tracing::info!(job_id = %id, state, class = class_name, batch_job_id = detail.job_id, "an attempt ended.");
    if job.state == JobState::Queued {
        tracing::info!(metric = "JobsRequeued", job_id = %id, class = class_name, "an attempt comes back.");
    }
    if class == EndClass::Preempted {
        tracing::info!(metric = "JobsPreempted", job_id = %id, "an attempt was preempted.");
    }
    if job.state == JobState::Dead {
        dead::tell_of_job(id, job.end.as_ref().map_or(osprey_model::reason::ReasonCode::NotRetryable, |end| end.code));
    }
    if let (true, Some(team), Some(from)) = (class.is_failure(), &job.team, detail.started_at) {
        let wasted = usage::gpu_ms(job.gpus, from, detail.stopped_at.unwrap_or(job.updated_at));
        tracing::info!(metric = "WastedGpuHours", job_id = %id, team, amount = usage::hours(wasted), "GPU time was lost.");
    }
}

/// What comes after the write: wake-ups and dependents. When it is lost, `watch` makes up for it.
async fn follow<P: Ports>(ctx: &Context<'_>, ports: &P, job: &Job, now: i64) -> Result<(), Failure> {
    if job.state == JobState::Queued {
        internal::wake(ports, job.id, job.not_before, now).await;
    }
    if job.state.is_final() {
        dependents::look(ctx, ports, job.id).await?;
    }
    Ok(())
}

async fn wanted<P: Ports>(ports: &P, job: JobId) -> Result<Wanted, Failure> {
    let record = record::of_job(ports, job).await?;
    let request: SubmitJobRequest = dispatch::request_of(&record, job)?;
    let definition = ports
        .describe_job_definition(&request.job_definition)
        .await
        .map_err(Failure::call("DescribeJobDefinitions"))?;
    let metadata = Metadata::read(&request, definition.as_ref()).map(|(metadata, _)| metadata).unwrap_or_default();
    let demand = Demand::of(&request, definition.as_ref()).unwrap_or_default();
    let retry = request.retry_strategy.or_else(|| definition.and_then(|d| d.retry_strategy));
    Ok(Wanted { retry, checkpoint_seconds: metadata.checkpoint_interval, memory_mib: demand.memory_mib })
}

/// The class of an end. An array is what its failed children are: a failure if one of them is, else an interruption.
///
/// Answers lag: while a child that must have failed is described as it was before, the news has to come again. An array
/// that ended long ago is judged by what there is.
async fn class<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    id: &BatchJobId,
    detail: &JobDetail,
    job: &Job,
) -> Result<EndClass, Failure> {
    let stopped_by = match (job.evict, &job.stop) {
        (Some(_), _) => StoppedBy::Eviction,
        (None, Some(_)) => StoppedBy::Person,
        (None, None) => StoppedBy::Nobody,
    };
    let class = classify(detail, stopped_by);
    if class != EndClass::ArrayChildFailed {
        return Ok(class);
    }
    let Failed { children, certain } = failed_children(ports, id, detail).await?;
    let details = ports.describe_jobs(&children).await.map_err(Failure::call("DescribeJobs"))?;
    let failed = details.iter().filter(|child| child.status == BatchStatus::Failed);
    let classes: Vec<EndClass> = failed.map(|child| classify(child, stopped_by)).collect();
    let patience_ends = detail.stopped_at.unwrap_or(0).saturating_add(ctx.settings.silence_ms);
    if classes.len() < certain && ports.now().as_millisecond() < patience_ends {
        return Err(Failure::Behind("a child of an array has failed and isn't described so yet"));
    }
    let failure = classes.iter().copied().find(|class| class.is_failure());
    let cancelled = classes.iter().copied().find(|class| *class == EndClass::Cancelled);
    Ok(cancelled.or(failure).or(classes.first().copied()).unwrap_or(EndClass::ExitCode))
}

/// Children to look at to classify an array.
struct Failed {
    children: Vec<BatchJobId>,
    /// So many of them have failed, whatever their descriptions say yet.
    certain: usize,
}

/// The children to look at to classify an array: its failed ones as far as a list shows them. Lists lag; where one shows
/// fewer than the array itself counts, the first children by index are looked at too.
async fn failed_children<P: Ports>(ports: &P, id: &BatchJobId, detail: &JobDetail) -> Result<Failed, Failure> {
    let listed = ports.list_failed_children(id, CHILDREN_MAX).await.map_err(Failure::call("ListJobs of an array"))?;
    let array = detail.array_properties.as_ref();
    let number = |count: Option<i64>| count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    let counted = number(array.and_then(|array| array.status_summary.get(BatchStatus::Failed.as_str()).copied()));
    let certain = listed.len();
    if certain >= counted.clamp(1, CHILDREN_MAX) {
        return Ok(Failed { children: listed, certain });
    }
    let size = number(array.and_then(|array| array.size));
    let by_index = (0..size).map(|index| BatchJobId::new(format!("{id}:{index}")));
    let unlisted: Vec<BatchJobId> = by_index.filter(|child| !listed.contains(child)).take(CHILDREN_MAX).collect();
    // Of a small array every child is looked at, and the failed ones are among them.
    let certain = if (1..=CHILDREN_MAX).contains(&size) { counted.max(1) } else { certain };
    Ok(Failed { children: listed.into_iter().chain(unlisted).take(CHILDREN_MAX).collect(), certain })
}

/// An attempt about to be closed.
struct Closing<'a> {
    job: &'a Job,
    run: &'a Run,
    detail: &'a JobDetail,
    class: EndClass,
    wanted: &'a Wanted,
    receipt: Option<&'a Receipt>,
    now: i64,
}

impl Closing<'_> {
    fn change(&self, ctx: &Context<'_>) -> Change {
        let verdict = self.verdict(ctx);
        let job = self.after(&verdict);
        let mut with = vec![self.attempt_write(&verdict)];
        if let Some(team) = &self.job.team {
            with.extend(usage::writes(&self.spent(team)));
        }
        if let Next::Die(end) = &verdict.next {
            with.push(dead::job_write(&job, &end.message, self.now));
        }
        if let Some(receipt) = self.receipt {
            with.extend(receipt.close(self.job, self.run, self.class, self.stopped_at()));
        }
        Change { job, with }
    }

    /// What the attempt's team is charged with.
    fn spent<'t>(&self, team: &'t str) -> usage::Spent<'t> {
        let job = self.job;
        usage::Spent {
            team,
            gpus: job.gpus,
            from: self.started_at(),
            to: self.stopped_at(),
            class: self.class,
            queued_at: if job.attempt <= 1 { job.created_at } else { job.not_before },
            saves_every_ms: self.wanted.checkpoint_seconds.map(|seconds| seconds.saturating_mul(1_000)),
            is_restart: job.attempt > 1 && job.last_end.is_some_and(EndClass::is_failure),
        }
    }

    fn verdict(&self, ctx: &Context<'_>) -> Verdict {
        let ended = Ended {
            job: self.job,
            class: self.class,
            reasons: self.detail.reasons(),
            exit_code: self.detail.exit_code(),
            checkpoints: self.wanted.checkpoint_seconds.is_some(),
            retry: self.wanted.retry.as_ref(),
            memory_mib: self.job.memory_mib.unwrap_or(self.wanted.memory_mib),
            gpu_ms: self.gpu_ms(),
            now: self.now,
        };
        after_end(&ended, ctx.policy.requeue())
    }

    fn after(&self, verdict: &Verdict) -> Job {
        let mut job = self.job.clone();
        job.run = None;
        job.stop = None;
        job.evict = None;
        job.kept_ms = self.job.kept_ms_at(self.started_at(), self.stopped_at());
        job.scheduled = false;
        job.avoid_pools = Vec::new();
        job.last_end = Some(self.class);
        job.counts = verdict.counts;
        job.budget = verdict.budget;
        job.updated_at = self.now;
        match &verdict.next {
            Next::Succeed => job.state = JobState::Succeeded,
            Next::Hold => job.state = JobState::Held,
            Next::Requeue(requeue) => {
                job.state = JobState::Queued;
                job.not_before = requeue.not_before;
                job.memory_mib = requeue.memory_mib;
                job.avoid_spot = requeue.avoid_spot;
                job.counts.requeues = job.counts.requeues.saturating_add(1);
            }
            Next::Fail(end) => {
                job.state = JobState::Failed;
                job.end = Some(end.clone());
            }
            Next::Die(end) => {
                job.state = JobState::Dead;
                job.end = Some(end.clone());
            }
        }
        job
    }

    fn attempt_write(&self, verdict: &Verdict) -> Write {
        let attempt = Attempt {
            number: self.job.attempt,
            batch_job_id: self.run.id.clone(),
            queue: self.run.queue.clone(),
            submitted_at: self.detail.created_at.unwrap_or(self.run.submitted_at),
            started_at: self.detail.started_at.or(self.run.started_at),
            stopped_at: self.stopped_at(),
            end_class: self.class,
            reason: cut(&self.detail.reasons().join("; "), REASON_CHARS_MAX),
            exit_code: self.detail.exit_code(),
            inner_retries: u32::try_from(self.detail.attempts.len().saturating_sub(1)).unwrap_or(u32::MAX),
            gpu_ms: self.gpu_ms(),
            then: then(&verdict.next).to_owned(),
        };
        repository::create(key::attempt(self.job.id, attempt.number), repository::json(&attempt))
    }

    fn gpu_ms(&self) -> u64 {
        usage::gpu_ms(self.job.gpus, self.started_at(), self.stopped_at())
    }

    /// When it started; an attempt that never did has no length.
    fn started_at(&self) -> i64 {
        self.detail.started_at.or(self.run.started_at).unwrap_or_else(|| self.stopped_at())
    }

    fn stopped_at(&self) -> i64 {
        self.detail.stopped_at.unwrap_or(self.now)
    }
}

fn then(next: &Next) -> &'static str {
    match next {
        Next::Succeed => "succeeded",
        Next::Requeue(_) => "requeued",
        Next::Hold => "held",
        Next::Fail(_) => "failed",
        Next::Die(_) => "dead",
    }
}
