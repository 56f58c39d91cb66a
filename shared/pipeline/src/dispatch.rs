//! A queued job becomes a Batch job: claim, submit, record.
//!
//! 1. Decide again when the policy or the job's history changed.
//! 2. Claim: a conditional write that only one caller wins. Only after it is Batch called.
//! 3. Submit once, and not later than the claim allows.
//! 4. Record what came of it. An outcome that isn't known is left to [`crate::settle`], never repeated.

use osprey_model::decision::Decision;
use osprey_model::id::{BatchJobId, JobId, QueueName, TierName};
use osprey_model::job::{End, Job, JobState, Run};
use osprey_model::message;
use osprey_model::pool::{Pool, PoolMode};
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_model::request::SubmitJobRequest;
use osprey_ports::{
    Clock, DescribeJobDefinition, Expect, GetItem, Item, PutEvents, QueryIndex, QueryItems, SendMessage, StoreError,
    SubmitCall, SubmitError, SubmitJob, SubmitRate, TerminateJob, Write, WriteItems,
};

use crate::context::Context;
use crate::derive::{self, Again, Evaluation};
use crate::failure::Failure;
use crate::outgoing::{self, Outgoing, Owner};
use crate::quota::{self, Hours};
use crate::record::Record;
use crate::repository::{self, Change, Changed, Loaded};
use crate::{account, checkpoint, dead, internal, key, start, stop};

/// What dispatching calls.
pub trait Ports:
    GetItem
    + QueryItems
    + QueryIndex
    + WriteItems
    + SubmitJob
    + SubmitRate
    + TerminateJob
    + DescribeJobDefinition
    + SendMessage
    + PutEvents
    + Clock
    + Sync
{
}

impl<P> Ports for P where
    P: GetItem
        + QueryItems
        + QueryIndex
        + WriteItems
        + SubmitJob
        + SubmitRate
        + TerminateJob
        + DescribeJobDefinition
        + SendMessage
        + PutEvents
        + Clock
        + Sync
{
}

/// Dispatches a job if its time has come. A job that is not queued, or not yet due, or was claimed by another caller,
/// is left alone.
///
/// # Errors
/// When the store or Batch's descriptions fail. A submission that fails is no error: it is recorded.
pub async fn dispatch<P: Ports>(ctx: &Context<'_>, ports: &P, id: JobId) -> Result<(), Failure> {
    let Some(loaded) = repository::load(ports, id).await? else { return Ok(()) };
    let now = ports.now().as_millisecond();
    if loaded.job.state == JobState::Queued && start::is_for_a_cycle(ctx, &loaded.job) {
        return start::look(ctx, ports, &loaded, now).await;
    }
    if loaded.job.state != JobState::Queued || loaded.job.not_before > now {
        return Ok(());
    }
    if let Some(until) = no_token(ctx, ports, &loaded.job).await {
        return postpone(ctx, ports, &loaded, until).await;
    }
    let Again { loaded, record, request, evaluation } = derive::again(ctx, ports, loaded).await?;
    attempt(ctx, ports, &loaded, &record, &request, &evaluation).await
}

/// Dispatches a job that was recorded a moment ago, by a caller that has everything in hand: nothing is read again. When
/// somebody else was faster, the claim finds out.
///
/// # Errors
/// As [`dispatch`].
pub async fn fresh<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    job: &Job,
    record: &Record,
    request: &SubmitJobRequest,
    evaluation: &Evaluation,
) -> Result<(), Failure> {
    let loaded = Loaded { job: job.clone(), version: 1 };
    if job.state == JobState::Queued && start::is_for_a_cycle(ctx, job) {
        start::announce(ctx, ports, job).await;
        return Ok(());
    }
    if job.state != JobState::Queued || job.not_before > ports.now().as_millisecond() {
        return Ok(());
    }
    if let Some(until) = no_token(ctx, ports, job).await {
        return postpone(ctx, ports, &loaded, until).await;
    }
    attempt(ctx, ports, &loaded, record, request, evaluation).await
}

/// Claims, submits, records.
async fn attempt<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    loaded: &Loaded,
    record: &Record,
    request: &SubmitJobRequest,
    evaluation: &Evaluation,
) -> Result<(), Failure> {
    let decision = &evaluation.decision;
    if ctx.pool(&decision.pool).is_some_and(|pool| pool.mode == PoolMode::Held) {
        return start::stand(ctx, ports, loaded, evaluation).await;
    }
    let mut evaluation = evaluation.clone();
    if let Some(until) = over_hours(ctx, ports, &mut evaluation).await? {
        return later(ctx, ports, loaded, until).await;
    }
    let evaluation = &evaluation;
    let claimed = match claim(ctx, ports, loaded, record, request, evaluation, None).await? {
        Claim::Won(claimed) => claimed,
        Claim::OverQuota => {
            let until = quota::wait(None, ports.now().as_millisecond());
            return later(ctx, ports, loaded, until).await;
        }
        Claim::Lost | Claim::Superseded => return Ok(()),
    };
    let call = call(ctx, ports, &claimed.job, request, evaluation).await?;
    let outcome = ports.submit_job(&call).await;
    settle_outcome(ctx, ports, &claimed, outcome).await
}

/// Until when a job waits whose team has used up its GPU-hours, milliseconds since 1970; `None` for one that may go on,
/// which is then said to borrow if it does.
async fn over_hours<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    evaluation: &mut Evaluation,
) -> Result<Option<i64>, Failure> {
    let as_asked = ctx.pool(&evaluation.decision.pool).is_some_and(|pool| pool.mode.submits_as_asked());
    if as_asked || !evaluation.charge.counted {
        return Ok(None);
    }
    match quota::hours(ctx, ports, evaluation, ports.now().as_millisecond()).await? {
        Hours::Within => Ok(None),
        Hours::Borrows => {
            evaluation.charge.borrowed = true;
            Ok(None)
        }
        Hours::Waits(until) => Ok(Some(until)),
    }
}

/// The time before which no submission should be tried, when that isn't now. A held job isn't submitted here.
async fn no_token<P: SubmitRate + Sync>(ctx: &Context<'_>, ports: &P, job: &Job) -> Option<i64> {
    if ctx.pool(&job.pool).is_some_and(|pool| pool.mode == PoolMode::Held) {
        return None;
    }
    ports.may_submit().await.err().map(|until| until.as_millisecond())
}

/// Leaves a job in the queue for a while: all tokens are given away. Nobody claims it meanwhile, so this costs one
/// plain write, and a wake-up that may be lost.
async fn postpone<P>(ctx: &Context<'_>, ports: &P, loaded: &Loaded, until: i64) -> Result<(), Failure>
where
    P: WriteItems + SendMessage + PutEvents + Clock + Sync,
{
    let now = ports.now().as_millisecond();
    later(ctx, ports, loaded, until.max(now.saturating_add(wait_for_a_token(ctx, &loaded.job, now)))).await
}

/// Leaves a job in the queue until a time.
async fn later<P>(ctx: &Context<'_>, ports: &P, loaded: &Loaded, not_before: i64) -> Result<(), Failure>
where
    P: WriteItems + SendMessage + PutEvents + Clock + Sync,
{
    let now = ports.now().as_millisecond();
    let job = Job { not_before, updated_at: now, ..loaded.job.clone() };
    match repository::write(ports, ctx.settings, loaded, Change::of(job)).await {
        Ok(()) => {
            internal::wake(ports, loaded.job.id, not_before, now).await;
            Ok(())
        }
        // Somebody else has it.
        Err(Failure::Store(StoreError::Conflict { .. })) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// Longest wait for a token, milliseconds: of a job that dives, and of any other.
const TOKEN_WAITS_MAX_MS: (i64, i64) = (5_000, 60_000);

/// How long a job waits before it asks for a token again, milliseconds: half as long as it has waited already, so that
/// a burst of thousands asks seldom, and a job that dives asks first. Jobs of one burst come apart by their ids.
fn wait_for_a_token(ctx: &Context<'_>, job: &Job, now: i64) -> i64 {
    let (diving, other) = TOKEN_WAITS_MAX_MS;
    let most = if job.priority > ctx.policy.order().dive_above { diving } else { other };
    let least = ctx.settings.throttle_delay_ms;
    let wait = (now.saturating_sub(job.created_at) / 2).clamp(least, most.max(least));
    let spread = i64::try_from(job.id.draw(job.attempt) % 512).unwrap_or(0);
    wait.saturating_add(wait.saturating_mul(spread) / 512)
}

/// The request in a record.
///
/// # Errors
/// When the record holds none, which only a fault of ours can bring about.
pub fn request_of(record: &Record, id: JobId) -> Result<SubmitJobRequest, Failure> {
    message::reread(&record.body).ok_or_else(|| Failure::Corrupt {
        item: format!("{} / {}000", key::job_partition(id), key::RECORD),
        fault: "the record of an admitted job holds no request".to_owned(),
    })
}

/// What came of a claim.
pub(crate) enum Claim {
    /// The job is claimed; nobody else submits this attempt.
    Won(Box<Loaded>),
    /// It can't be claimed now, or somebody else was faster.
    Lost,
    /// Its team would hold more GPUs in its tier than it may.
    OverQuota,
    /// The plan that it was claimed for isn't its pool's any more.
    Superseded,
}

/// What a cycle writes with a claim, or not at all: its plan's step, and what it makes of the claimed job besides.
pub(crate) struct Along<'a> {
    /// The plan's step.
    pub step: Write,
    /// The writes that follow from the claimed job. They have no conditions.
    pub more: &'a (dyn Fn(&Job) -> Vec<Write> + Sync),
}

/// Claims the next attempt.
pub(crate) async fn claim<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    loaded: &Loaded,
    record: &Record,
    request: &SubmitJobRequest,
    evaluation: &Evaluation,
    along: Option<Along<'_>>,
) -> Result<Claim, Failure> {
    let now = ports.now().as_millisecond();
    let (decision, asked) = (&evaluation.decision, request.job_queue.as_deref());
    let pool = ctx.pool(&decision.pool);
    let Some((pool, queue)) = pool.and_then(|pool| Some((pool, queue(pool, &decision.derivation.tier, asked)?))) else {
        unroutable(ctx, ports, loaded, evaluation).await?;
        return Ok(Claim::Lost);
    };
    let mut job = decided(&loaded.job, decision);
    job.needs = evaluation.needs();
    job.charge = evaluation.charge.clone();
    job.state = JobState::Claimed;
    job.attempt = loaded.job.attempt.saturating_add(1);
    job.claim = Some(osprey_model::job::Claim { at: now, queue: queue.clone(), empty_lists: 0 });
    job.scheduled = along.is_some() || pool.mode == PoolMode::Held;
    job.updated_at = now;
    let mut with = decision_write(record, &job, decision);
    if let Some(Along { step, more }) = along {
        with.push(step);
        with.extend(more(&job));
    }
    let most = most(ctx, pool, &job);
    let change = Change { job: job.clone(), with };
    match repository::write_within(ports, ctx.settings, loaded, change, most).await {
        Ok(()) => Ok(Claim::Won(Box::new(Loaded { job, version: loaded.version.saturating_add(1) }))),
        // The job's state item is the first write, and of the others only the cap and the plan's step have a condition.
        Err(Failure::Store(StoreError::Conflict { index: 0 })) => Ok(Claim::Lost),
        Err(Failure::Store(StoreError::Conflict { index: repository::CAP }))
            if most.is_some() && account::takes(&loaded.job, &job) =>
        {
            Ok(Claim::OverQuota)
        }
        Err(Failure::Store(StoreError::Conflict { .. })) => Ok(Claim::Superseded),
        Err(failure) => Err(failure),
    }
}

/// Most GPUs that a job's team may hold in its tier; `None` for no limit. Where Osprey only looks on it has none.
fn most(ctx: &Context<'_>, pool: &Pool, job: &Job) -> Option<u32> {
    let team = job.team.as_deref().filter(|_| job.charge.counted && !pool.mode.submits_as_asked())?;
    ctx.policy.team_gpus_max(team, &job.tier)
}

/// The queue that a job goes to: its tier's, or the one it asked for where nothing is decided for it.
fn queue<'p>(pool: &'p Pool, tier: &TierName, asked: Option<&str>) -> Option<&'p QueueName> {
    let by_name = |asked: &str| pool.queues.values().find(|queue| queue.as_str() == asked);
    let asked = if pool.mode.submits_as_asked() { asked.and_then(by_name) } else { None };
    asked.or_else(|| pool.queues.get(tier))
}

/// The job with a decision put in.
#[must_use]
pub fn decided(job: &Job, decision: &Decision) -> Job {
    let mut job = job.clone();
    job.priority = decision.derivation.priority;
    job.tier = decision.derivation.tier.clone();
    job.pool = decision.pool.clone();
    job.policy = decision.policy_revision.clone();
    job.fallback = decision.derivation.fallback.is_some();
    job
}

/// Keeps the decision of this attempt when it isn't the one that the record holds.
fn decision_write(record: &Record, job: &Job, decision: &Decision) -> Vec<Write> {
    let same = record.decision.as_ref().is_some_and(|first| {
        first.derivation == decision.derivation
            && first.pool == decision.pool
            && first.policy_revision == decision.policy_revision
    });
    if same {
        return Vec::new();
    }
    let item = Item::new(key::decision(job.id, job.attempt), repository::json(decision));
    vec![Write::Put { item, expect: Expect::Any }]
}

/// A job that no pool takes any more, since policy or pools changed: dead until a person looks at it.
async fn unroutable<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    loaded: &Loaded,
    evaluation: &Evaluation,
) -> Result<(), Failure> {
    let refusal = evaluation.refusals.first().cloned().unwrap_or_else(|| {
        let tier = &evaluation.decision.derivation.tier;
        Refusal::new(ReasonCode::NoEligiblePool, format!("no pool has a queue for tier `{tier}` any more"))
    });
    let mut job = loaded.job.clone();
    let now = ports.now().as_millisecond();
    job.state = JobState::Dead;
    job.end = Some(End::new(refusal.code, &refusal.message));
    job.updated_at = now;
    let with = vec![dead::job_write(&job, &refusal.message, now)];
    let id = job.id;
    repository::write(ports, ctx.settings, loaded, Change { job, with }).await?;
    dead::tell_of_job(id, refusal.code);
    Ok(())
}

pub(crate) async fn call<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    job: &Job,
    request: &SubmitJobRequest,
    evaluation: &Evaluation,
) -> Result<SubmitCall, Failure> {
    let previous = previous_batch_job(ports, job).await?;
    let resume_uri = checkpoint::newest(ports, job).await?.map(|checkpoint| checkpoint.uri);
    let base = ctx.settings.checkpoint_base.as_ref();
    let checkpoint_uri = base.map(|base| format!("{base}/{}", job.id)).or_else(|| resume_uri.clone());
    let claimed_at = job.claim.as_ref().map_or(0, |claim| claim.at);
    // The pool was looked up to claim; a pool that isn't there gives a request without share and priority.
    let pool = ctx.pool(&job.pool);
    let request = pool.map_or_else(
        || request.clone(),
        |pool| {
            outgoing::build(&Outgoing {
                request,
                definition: evaluation.definition.as_ref(),
                job,
                pool,
                previous: previous.as_deref(),
                checkpoint_uri: checkpoint_uri.as_deref(),
                resume_uri: resume_uri.as_deref(),
            })
        },
    );
    let not_after = claimed_at.saturating_add(ctx.settings.send_limit_ms);
    let not_after = jiff::Timestamp::from_millisecond(not_after).unwrap_or_default();
    Ok(SubmitCall { request, not_after })
}

async fn previous_batch_job<P: GetItem + Sync>(ports: &P, job: &Job) -> Result<Option<String>, Failure> {
    let Some(number) = job.attempt.checked_sub(1).filter(|n| *n > 0) else { return Ok(None) };
    let Some(item) = ports.get_item(&key::attempt(job.id, number)).await? else { return Ok(None) };
    let attempt: osprey_model::job::Attempt = repository::read(&item)?;
    Ok(Some(attempt.batch_job_id.to_string()))
}

/// Records what came of a submission.
pub(crate) async fn settle_outcome<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    claimed: &Loaded,
    outcome: Result<BatchJobId, SubmitError>,
) -> Result<(), Failure> {
    match outcome {
        Ok(id) => adopt(ctx, ports, claimed, &id).await,
        Err(SubmitError::Throttled) => {
            let delay = ctx.settings.throttle_delay_ms;
            give_back(ctx, ports, &claimed.job, delay).await
        }
        Err(SubmitError::NotSent(why)) => {
            tracing::warn!(job_id = %claimed.job.id, why, "a submission was not sent.");
            give_back(ctx, ports, &claimed.job, ctx.settings.throttle_delay_ms).await
        }
        Err(SubmitError::Refused(why)) => refused(ctx, ports, &claimed.job, &why).await,
        Err(SubmitError::Unknown(why)) => {
            tracing::warn!(job_id = %claimed.job.id, attempt = claimed.job.attempt, why, "a submission's outcome isn't known.");
            Ok(())
        }
    }
}

/// Whether a job is still at the claim that a caller took.
fn is_at(job: &Job, claimed: &Job) -> bool {
    job.state == JobState::Claimed && job.attempt == claimed.attempt && job.claim_at() == claimed.claim_at()
}

/// Puts a claim back that made no job: the attempt never was. A stop that came meanwhile is carried out.
async fn give_back<P>(ctx: &Context<'_>, ports: &P, claimed: &Job, delay_ms: i64) -> Result<(), Failure>
where
    P: GetItem + WriteItems + SendMessage + PutEvents + Clock + Sync,
{
    let now = ports.now().as_millisecond();
    let changed = repository::change(ports, ctx.settings, claimed.id, |job| {
        is_at(job, claimed).then(|| Change::of(unclaimed(job, now, now.saturating_add(delay_ms))))
    })
    .await?;
    if let Changed::Written { after, .. } = changed
        && after.state == JobState::Queued
    {
        internal::wake(ports, after.id, after.not_before, now).await;
    }
    Ok(())
}

/// A claimed job whose attempt made no Batch job: queued again under the same attempt number, or stopped as wished.
#[must_use]
pub fn unclaimed(job: &Job, now: i64, not_before: i64) -> Job {
    let mut job = job.clone();
    job.claim = None;
    job.attempt = job.attempt.saturating_sub(1);
    job.updated_at = now;
    match job.stop.take() {
        Some(wish) => stop::carry_out(&mut job, &wish, now),
        None => {
            job.state = JobState::Queued;
            job.not_before = not_before;
        }
    }
    job
}

/// Batch refused the request for good: no other try can mend that, so the job is dead until a person looks at it.
async fn refused<P: Ports>(ctx: &Context<'_>, ports: &P, claimed: &Job, why: &str) -> Result<(), Failure> {
    let now = ports.now().as_millisecond();
    let message = format!("batch refused the request: {why}");
    let changed = repository::change(ports, ctx.settings, claimed.id, |job| {
        is_at(job, claimed).then(|| {
            let mut job = job.clone();
            job.state = JobState::Dead;
            job.claim = None;
            job.stop = None;
            job.attempt = job.attempt.saturating_sub(1);
            job.updated_at = now;
            job.end = Some(End::new(ReasonCode::BatchRefused, &message));
            let with = vec![dead::job_write(&job, &message, now)];
            Change { job, with }
        })
    })
    .await?;
    if matches!(changed, Changed::Written { .. }) {
        dead::tell_of_job(claimed.id, ReasonCode::BatchRefused);
    }
    Ok(())
}

/// Records that Batch job `id` is the attempt that was claimed. When another Batch job is recorded for that attempt
/// already, `id` is a second one: it is stopped, recorded and counted.
///
/// # Errors
/// When the store fails; the claim then stays, and is settled later.
async fn adopt<P>(ctx: &Context<'_>, ports: &P, claimed: &Loaded, id: &BatchJobId) -> Result<(), Failure>
where
    P: GetItem + WriteItems + PutEvents + TerminateJob + Clock + Sync,
{
    let owner = Owner { job: claimed.job.id, attempt: claimed.job.attempt };
    let Some(after) = take(ctx, ports, owner, id, Some(claimed)).await? else { return Ok(()) };
    if after.run.as_ref().is_some_and(|run| run.id == *id) {
        return stop::push(ports, &after).await;
    }
    stop::extra(ctx, ports, owner, id, true).await
}

/// Takes a Batch job as the run of an attempt, if it can be: the job as it is then; `None` when there is no such job.
///
/// A second Batch job stays one, though its attempt may be claimed once more under the same number. While the claim
/// stands under which the Batch job was made, nobody can have found it to be a second one. Whoever made it brings that
/// claim as it was written, and saves a read when nobody changed the job since.
///
/// # Errors
/// When the store fails, or others were faster at every try.
pub async fn take<P>(
    ctx: &Context<'_>,
    ports: &P,
    owner: Owner,
    id: &BatchJobId,
    claimed: Option<&Loaded>,
) -> Result<Option<Job>, Failure>
where
    P: GetItem + WriteItems + PutEvents + Clock + Sync,
{
    let claimed_at = claimed.and_then(|claimed| claimed.job.claim_at());
    let mut in_hand = claimed.cloned();
    for _ in 0..repository::TRIES_MAX {
        let read = match in_hand.take() {
            Some(loaded) => Some(loaded),
            None => repository::load(ports, owner.job).await?,
        };
        let Some(loaded) = read else { return Ok(None) };
        let now = ports.now().as_millisecond();
        let Some(change) = adopted(&loaded.job, owner.attempt, id, now) else { return Ok(Some(loaded.job)) };
        let is_own_claim = claimed_at.is_some() && loaded.job.claim_at() == claimed_at;
        if !is_own_claim && stop::is_extra(ports, owner.job, id).await? {
            return Ok(Some(loaded.job));
        }
        let after = change.job.clone();
        match repository::write(ports, ctx.settings, &loaded, change).await {
            Ok(()) => {
                tracing::info!(metric = "JobsStarted", job_id = %after.id, attempt = after.attempt, batch_job_id = %id, "an attempt was submitted.");
                return Ok(Some(after));
            }
            Err(Failure::Store(StoreError::Conflict { .. })) => {}
            Err(failure) => return Err(failure),
        }
    }
    Err(Failure::Contended(owner.job))
}

/// The job with `id` as the run of `attempt`; `None` when it can't be.
///
/// An attempt that was given up as never made is adopted as well when its job turns up after all: the job is queued
/// then, and `attempt` is the next number.
#[must_use]
pub fn adopted(job: &Job, attempt: u32, id: &BatchJobId, now: i64) -> Option<Change> {
    let claimed = job.state == JobState::Claimed && job.attempt == attempt;
    let given_up = job.state == JobState::Queued && job.attempt.checked_add(1) == Some(attempt);
    if !claimed && !given_up {
        return None;
    }
    let mut job = job.clone();
    let claim = job.claim.take();
    let claimed_at = claim.as_ref().map(|claim| claim.at);
    let queue = claim.map(|claim| claim.queue).unwrap_or_default();
    job.state = JobState::Submitted;
    job.attempt = attempt;
    job.updated_at = now;
    job.run = Some(Run { id: id.clone(), queue, submitted_at: now, claimed_at, started_at: None, node: None });
    let owner = Owner { job: job.id, attempt };
    let with = vec![repository::create(key::batch(id), repository::json(&owner))];
    Some(Change { job, with })
}
