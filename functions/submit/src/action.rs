//! Actions: what people ask to be done to a job or a dead letter. Each is recorded with what came of it, in the write
//! that does it, so that the same message again does nothing.

use osprey_model::id::JobId;
use osprey_model::job::{AfterStop, Budget, End, Job, JobState};
use osprey_model::message::words::quote;
use osprey_model::message::{Action, Subject};
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_pipeline::acted::Acted;
use osprey_pipeline::context::Context;
use osprey_pipeline::dead::{self, DeadKind, DeadLetter, DeadStatus};
use osprey_pipeline::evict::{self, By};
use osprey_pipeline::failure::Failure;
use osprey_pipeline::repository::{self, Change, Changed, Loaded};
use osprey_pipeline::{checkpoint, dependents, dispatch, feedback, key, outbox, redrive, stop, waits, wake};
use osprey_policy::Policy;
use osprey_ports::{Expect, ReceivedMessage, StoreError, Write};

use crate::authority::{self, Denied};
use crate::handle::Ports;
use crate::{configure, order};

/// A change that an action makes, and the sentence that says so.
pub(crate) type Planned = Result<(Change, String), Refusal>;

/// Carries out an action.
pub async fn act<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    message: &ReceivedMessage,
    action: &Action,
) -> Result<(), Failure> {
    if ports.get_item(&key::action(&message.id)).await?.is_some() {
        return resume(ctx, ports, action).await;
    }
    if let Some(Denied { job, refusal }) = authority::denied(ctx, ports, message, action).await? {
        let now = ports.now().as_millisecond();
        return refuse(ports, kept(message, action, job, now, Err(refusal))).await;
    }
    match action.subject() {
        Subject::Job(id) => on_job(ctx, ports, message, action, id).await,
        Subject::DeadLetter(id) => letter(ctx, ports, message, action, id).await,
        Subject::Pool(pool) => match action {
            Action::SetMode { mode, preemption, .. } => {
                configure::mode(ctx, ports, message, action, pool, (*mode, *preemption)).await
            }
            _ => order::on_pool(ctx, ports, message, action).await,
        },
        Subject::Policy(text) => configure::policy(ctx, ports, message, action, text).await,
    }
}

/// The message came again: what was recorded stands, and what should have followed is made sure of.
async fn resume<P: Ports>(ctx: &Context<'_>, ports: &P, action: &Action) -> Result<(), Failure> {
    match action.subject() {
        Subject::Job(id) => match repository::load(ports, id).await? {
            Some(loaded) => follow(ctx, ports, action, &loaded.job).await,
            None => Ok(()),
        },
        Subject::Pool(pool) => {
            wake::pool(ports, pool, 0).await;
            Ok(())
        }
        Subject::DeadLetter(given) => match JobId::parse(given) {
            Some(id) => resend(ports, id).await,
            None => Ok(()),
        },
        Subject::Policy(_) => Ok(()),
    }
}

async fn on_job<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    message: &ReceivedMessage,
    action: &Action,
    id: JobId,
) -> Result<(), Failure> {
    let now = ports.now().as_millisecond();
    let dependencies = if may_wait(action) { dependents::dependencies(ports, id).await? } else { Vec::new() };
    let asked = Asked { by: &message.sender.principal, sent_at: message.sent_at.as_millisecond(), now };
    // Reports come every few minutes: they aren't listed with what people did to the job.
    let is_report = matches!(action, Action::ReportCheckpoint { .. } | Action::ReportPriority { .. });
    let listed_with = (!is_report).then_some(id);
    let changed = repository::change(ports, ctx.settings, id, |job| {
        let (mut change, done) = plan(ctx.policy, job, action, asked).ok()?;
        change.with.extend(waits::begin(&change.job, &dependencies));
        change.with.extend(kept(message, action, listed_with, now, Ok(done)));
        Some(change)
    })
    .await?;
    match changed {
        Changed::Written { after, .. } => follow(ctx, ports, action, &after).await,
        Changed::Unchanged(job) => match plan(ctx.policy, &job, action, asked) {
            Ok(_) => Err(Failure::Contended(id)),
            Err(refusal) => refuse(ports, kept(message, action, Some(id), now, Err(refusal))).await,
        },
        Changed::Missing => refuse(ports, kept(message, action, None, now, Err(unknown(id)))).await,
    }
}

/// Whether a job may wait for others after an action that changes how, or that it waits.
fn may_wait(action: &Action) -> bool {
    matches!(action, Action::RequeueJob { .. } | Action::ReleaseJob { .. } | Action::TopJob { .. })
}

/// That what an action is about isn't there.
pub(crate) fn missing(action: &Action) -> Refusal {
    match action.subject() {
        Subject::DeadLetter(given) => no_letter(given),
        Subject::Job(id) => unknown(id),
        Subject::Pool(_) | Subject::Policy(_) => Refusal::new(ReasonCode::UnknownPool, "there is nothing of that name"),
    }
}

fn no_letter(given: &str) -> Refusal {
    let sentence =
        format!("there is no dead letter {}; `osprey dead-letters list` shows those that there are", quote(given));
    Refusal::new(ReasonCode::UnknownJob, sentence)
}

fn unknown(id: JobId) -> Refusal {
    Refusal::new(ReasonCode::UnknownJob, format!("there is no job `{id}`; `osprey jobs` lists those that there are"))
}

/// The writes that keep what became of an action, also with its job where there is one.
pub(crate) fn kept(
    message: &ReceivedMessage,
    action: &Action,
    job: Option<JobId>,
    at: i64,
    result: Result<String, Refusal>,
) -> Vec<Write> {
    let (done, refusal) = match result {
        Ok(done) => (Some(done), None),
        Err(refusal) => (None, Some(refusal)),
    };
    let sender = message.sender.principal.clone();
    Acted { action: action.clone(), sender, at, done, refusal }.writes(&message.id, job)
}

pub(crate) async fn refuse<P: Ports>(ports: &P, kept: Vec<Write>) -> Result<(), Failure> {
    match ports.write_items(&kept).await {
        Ok(()) | Err(StoreError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What follows the write. When it is lost, the message's next delivery or `watch` makes up for it.
async fn follow<P: Ports>(ctx: &Context<'_>, ports: &P, action: &Action, job: &Job) -> Result<(), Failure> {
    match action {
        Action::ReportCheckpoint { .. } => return Ok(()),
        Action::ReportPriority { .. } => return feedback::spread(ctx, ports, job).await,
        _ => {}
    }
    go_on(ctx, ports, job).await
}

/// What follows where a job is now.
async fn go_on<P: Ports>(ctx: &Context<'_>, ports: &P, job: &Job) -> Result<(), Failure> {
    match job.state {
        JobState::Queued => dispatch::dispatch(ctx, ports, job.id).await,
        JobState::Waiting => dependents::check(ctx, ports, job.id).await,
        JobState::Submitted | JobState::Running => stop::push(ports, job).await,
        state if state.is_final() => dependents::look(ctx, ports, job.id).await,
        _ => Ok(()),
    }
}

/// What an action would do to a job in the state it is in now: the sentence that says so.
///
/// # Errors
/// Why it would be refused.
pub fn preview(policy: &Policy, job: &Job, action: &Action, now: i64) -> Result<String, Refusal> {
    plan(policy, job, action, Asked { by: "", sent_at: now, now }).map(|(_, done)| done)
}

/// By whom and when an action was asked for, and when it is looked at.
#[derive(Clone, Copy)]
struct Asked<'a> {
    by: &'a str,
    sent_at: i64,
    now: i64,
}

/// What an action does to a job in the state it is in.
fn plan(policy: &Policy, job: &Job, action: &Action, asked: Asked<'_>) -> Planned {
    let now = asked.now;
    match action {
        Action::CancelJob { reason, .. } => cancel(job, reason, now),
        Action::RequeueJob { reason, .. } => requeue(job, reason.as_deref().unwrap_or("requeued"), now),
        Action::HoldJob { reason, .. } => hold(job, reason.as_deref().unwrap_or("held"), now),
        Action::ReleaseJob { .. } => release(job, now),
        Action::PreemptJob { reason, .. } => preempt(job, reason.as_deref().unwrap_or("preempted"), asked),
        Action::ReportCheckpoint { uri, progress, .. } => report(job, uri, *progress, asked),
        Action::TopJob { .. } => order::top(policy, job, now),
        Action::ReportPriority { points, .. } => order::report(policy, job, *points, asked.sent_at.min(now)),
        Action::RedriveDeadLetter { .. }
        | Action::DiscardDeadLetter { .. }
        | Action::ApplyPolicy { .. }
        | Action::SetMode { .. }
        | Action::DrainPool { .. }
        | Action::ResumePool { .. }
        | Action::Reserve { .. } => Err(wrong(job, "redrive", "")),
    }
}

pub(crate) fn wrong(job: &Job, verb: &str, way_out: &str) -> Refusal {
    let (id, state) = (job.id, job.state.as_str());
    Refusal::new(ReasonCode::WrongState, format!("can't {verb} job `{id}`, which is {state}{way_out}"))
}

pub(crate) fn moved(job: &Job, state: JobState, now: i64) -> Job {
    Job { state, scheduled: false, updated_at: now, ..job.clone() }
}

fn cancel(job: &Job, reason: &str, now: i64) -> Planned {
    match job.state {
        JobState::Held | JobState::Waiting | JobState::Queued => {
            let mut next = moved(job, JobState::Failed, now);
            next.end = Some(End::new(ReasonCode::Cancelled, reason));
            Ok((Change::of(next), "cancelled before it was submitted".to_owned()))
        }
        JobState::Claimed | JobState::Submitted | JobState::Running => {
            let change = stop::wished(job, AfterStop::Fail, reason, now);
            Ok((change, "is being stopped".to_owned()))
        }
        _ => Err(wrong(job, "cancel", "")),
    }
}

fn requeue(job: &Job, reason: &str, now: i64) -> Planned {
    match job.state {
        JobState::Failed => Ok((Change::of(restarted(job, now)), "back in the queue".to_owned())),
        JobState::Dead => {
            let change = Change { job: restarted(job, now), with: vec![dead::requeued_write(job)] };
            Ok((change, "back in the queue".to_owned()))
        }
        JobState::Queued if job.not_before > now => {
            let mut next = moved(job, JobState::Queued, now);
            next.not_before = now;
            Ok((Change::of(next), "its back-off was cut short".to_owned()))
        }
        JobState::Submitted | JobState::Running => {
            let change = stop::wished(job, AfterStop::Requeue, reason, now);
            Ok((change, "is being stopped, and comes back".to_owned()))
        }
        JobState::Succeeded => Err(wrong(job, "requeue", "; submit it again under a new id")),
        JobState::Refused => Err(wrong(job, "requeue", "; mend what was refused and submit it again")),
        JobState::Held => Err(wrong(job, "requeue", "; release it")),
        JobState::Queued | JobState::Waiting | JobState::Claimed => Err(wrong(job, "requeue", " already")),
    }
}

/// A job that ended badly, with fresh budgets. Its lineage counters stay: they say what happened.
fn restarted(job: &Job, now: i64) -> Job {
    let state = if job.depends { JobState::Waiting } else { JobState::Queued };
    let mut next = moved(job, state, now);
    next.not_before = now;
    next.budget = Budget::default();
    next.end = None;
    next.counts.requeues = next.counts.requeues.saturating_add(1);
    next
}

fn hold(job: &Job, reason: &str, now: i64) -> Planned {
    match job.state {
        JobState::Waiting | JobState::Queued => Ok((Change::of(moved(job, JobState::Held, now)), "held".to_owned())),
        JobState::Claimed | JobState::Submitted => {
            let change = stop::wished(job, AfterStop::Hold, reason, now);
            Ok((change, "is being taken back from Batch, then held".to_owned()))
        }
        JobState::Running => Err(wrong(job, "hold", "; cancel or requeue it")),
        JobState::Held => Err(wrong(job, "hold", " already")),
        _ => Err(wrong(job, "hold", "")),
    }
}

fn release(job: &Job, now: i64) -> Planned {
    if job.state != JobState::Held {
        return Err(wrong(job, "release", "; only held jobs can be released"));
    }
    let state = if job.depends { JobState::Waiting } else { JobState::Queued };
    let mut next = moved(job, state, now);
    next.not_before = now;
    Ok((Change::of(next), "released".to_owned()))
}

/// An eviction as a cycle makes one, for nobody's sake.
fn preempt(job: &Job, reason: &str, asked: Asked<'_>) -> Planned {
    if !matches!(job.state, JobState::Submitted | JobState::Running) {
        return Err(wrong(job, "preempt", "; only a job that runs, or is about to, can be"));
    }
    if job.stop.is_some() || job.evict.is_some() {
        let (id, how) = (job.id, if job.evict.is_some() { "preempted" } else { "stopped" });
        let sentence = format!("can't preempt job `{id}`, which is being {how} already");
        return Err(Refusal::new(ReasonCode::WrongState, sentence));
    }
    let by = By::Person { sender: asked.by.to_owned(), reason: reason.to_owned() };
    let Some((next, receipt)) = evict::receipt::begun(job, by, asked.now) else {
        return Err(wrong(job, "preempt", ""));
    };
    let done = format!("is being preempted: {}", receipt.cost());
    Ok((Change { job: next, with: receipt.writes(job.id) }, done))
}

/// A checkpoint, of whichever attempt: its last word may come after its end.
fn report(job: &Job, uri: &str, progress: Option<u32>, asked: Asked<'_>) -> Planned {
    // The record of a job that has ended stays as it is, also of one that may be requeued: what was known by then counts.
    if job.state.is_final() {
        return Err(wrong(job, "take a checkpoint of", ""));
    }
    match checkpoint::reported(job, uri, progress, asked.sent_at, asked.now) {
        Some(change) => Ok((change, "noted".to_owned())),
        None => Ok((Change::of(job.clone()), "a newer one is known".to_owned())),
    }
}

async fn letter<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    message: &ReceivedMessage,
    action: &Action,
    given: &str,
) -> Result<(), Failure> {
    let now = ports.now().as_millisecond();
    let found = match JobId::parse(given) {
        Some(id) => dead::load(ports, id).await?,
        None => None,
    };
    let Some((letter, version)) = found else {
        return refuse(ports, kept(message, action, None, now, Err(no_letter(given)))).await;
    };
    let job = matches!(letter.kind, DeadKind::Job { .. }).then_some(letter.id);
    let refused = |refusal| refuse(ports, kept(message, action, job, now, Err(refusal)));
    if letter.status == DeadStatus::Discarded {
        let sentence = format!("dead letter {} was discarded", quote(given));
        return refused(Refusal::new(ReasonCode::WrongState, sentence)).await;
    }
    if redrive::is_elsewhere(ports, &letter).await? {
        redrive::arrived(ports, letter.id).await?;
        return Err(Failure::Contended(letter.id));
    }
    if letter.arrived {
        let sentence = format!("dead letter {} was sent through again, and what came of it is recorded", quote(given));
        return refused(Refusal::new(ReasonCode::WrongState, sentence)).await;
    }
    let redrive = matches!(action, Action::RedriveDeadLetter { .. });
    let next = if redrive { letter.redriven(now) } else { DeadLetter { status: DeadStatus::Discarded, ..letter } };
    let done = if redrive { "sent through again" } else { "discarded" };
    let mut writes = vec![Write::Put { item: next.item(), expect: Expect::Version(version) }];
    let mut dead = None;
    if redrive && job.is_some() {
        match restart(ctx, ports, next.id, now).await? {
            Ok((loaded, restarted)) => {
                writes.extend(restarted);
                dead = Some(loaded);
            }
            Err(refusal) => return refused(refusal).await,
        }
    }
    writes.extend(kept(message, action, job, now, Ok(done.to_owned())));
    ports.write_items(&writes).await?;
    if let Some(Loaded { job, version }) = dead {
        outbox::put(ports, Some(&job), &restarted(&job, now), Expect::Version(version)).await;
    }
    if redrive { after_redrive(ctx, ports, &next).await } else { Ok(()) }
}

/// A dead job, and the writes that put it back into the queue.
async fn restart<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    id: JobId,
    now: i64,
) -> Result<Result<(Loaded, Vec<Write>), Refusal>, Failure> {
    let Some(loaded) = repository::load(ports, id).await? else { return Ok(Err(unknown(id))) };
    if loaded.job.state != JobState::Dead {
        return Ok(Err(wrong(&loaded.job, "redrive", "; only dead jobs can be")));
    }
    let next = restarted(&loaded.job, now);
    let mut writes = repository::writes(Some(&loaded.job), &next, ctx.settings, Expect::Version(loaded.version))?;
    writes.extend(waits::begin(&next, &dependents::dependencies(ports, id).await?));
    Ok(Ok((loaded, writes)))
}

async fn after_redrive<P: Ports>(ctx: &Context<'_>, ports: &P, letter: &DeadLetter) -> Result<(), Failure> {
    match letter.kind {
        DeadKind::Job { .. } => match repository::load(ports, letter.id).await? {
            Some(loaded) => go_on(ctx, ports, &loaded.job).await,
            None => Ok(()),
        },
        DeadKind::Message { .. } => redrive::send(ports, letter.id, 0).await,
    }
}

/// Sends a dead letter again that is still under way.
async fn resend<P: Ports>(ports: &P, id: JobId) -> Result<(), Failure> {
    match dead::load(ports, id).await? {
        Some((letter, _)) if letter.is_under_way() => redrive::send(ports, id, 0).await,
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use osprey_model::id::MessageId;

    use super::*;

    #[test]
    fn a_checkpoint_of_a_job_that_has_ended_is_refused_and_of_any_other_noted() {
        let message = MessageId::new("m");
        let action = Action::ReportCheckpoint {
            job_id: JobId::of_message(&message),
            uri: "s3://b/1".to_owned(),
            progress: None,
        };
        let policy = Policy::load(osprey_policy::DEFAULT).unwrap().policy;
        for state in JobState::ALL {
            let job = Job { state, ..Job::new(JobId::of_message(&message), message.clone(), 0) };
            assert_eq!(preview(&policy, &job, &action, 9).is_err(), state.is_final(), "{state:?}");
        }
    }
}
