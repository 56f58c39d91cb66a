//! A request is recorded: admitted, refused, or known already. One message ends in exactly one of these places.

use osprey_model::id::JobId;
use osprey_model::job::{End, Job, JobState, STATE_REASON_CHARS_MAX, cut};
use osprey_model::message;
use osprey_model::pool::PoolMode;
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_model::request::SubmitJobRequest;
use osprey_pipeline::context::Context;
use osprey_pipeline::derive::{self, Evaluation};
use osprey_pipeline::failure::Failure;
use osprey_pipeline::record::{self, Record};
use osprey_pipeline::{dependents, dispatch, feedback, key, outbox, rate, repository, waits};
use osprey_ports::{Expect, ReceivedMessage, StoreError, Write};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::door::{self, Door};
use crate::handle::Ports;

/// Most characters of a job name kept in the state item; Batch takes no longer ones.
const NAME_CHARS_MAX: usize = 128;

/// Places of its minute that a job tries to take, before its message has to come again.
const PLACES_TRIED_MAX: u32 = 5;

/// Another message for a job that was recorded before.
#[derive(Serialize)]
struct Duplicate<'a> {
    sender: &'a str,
    sent_at: i64,
}

/// Takes a request in.
pub async fn job<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    message: &ReceivedMessage,
    request: &SubmitJobRequest,
) -> Result<(), Failure> {
    let id = match message::chosen_job_id(request) {
        Ok(chosen) => chosen.unwrap_or_else(|| JobId::of_message(&message.id)),
        Err(refusal) => return refuse(ctx, ports, message, refusal).await,
    };
    // Whether the job is there already is asked by the write itself.
    let door = door::dependencies(ctx, ports, request, id).await?;
    let evaluation = derive::evaluate(ctx, ports, request, &message.sender, None, door.reported).await?;
    for _ in 0..PLACES_TRIED_MAX {
        let mut evaluation = evaluation.clone();
        let mut new = new_job(ports.now().as_millisecond(), message, request, id, &evaluation, &door);
        let place = place(ctx, ports, message, &mut new, &mut evaluation).await?;
        // It stands in the line of a pool that holds jobs from the write on that records it.
        new.scheduled = new.state == JobState::Queued && ctx.pool(&new.pool).is_some_and(|p| p.mode == PoolMode::Held);
        let record = record_of(message, &evaluation, &door);
        let mut writes = writes(ctx, &new, &record, &door)?;
        let last = writes.len();
        writes.extend(place);
        return match ports.write_items(&writes).await {
            Ok(()) => recorded(ctx, ports, (&new, &record, request, &evaluation), &door).await,
            // Somebody took its place in that minute.
            Err(StoreError::Conflict { index }) if index == last => continue,
            // Somebody recorded the job since it was looked for.
            Err(StoreError::Conflict { .. }) => again(ctx, ports, message, request, id).await,
            Err(error) => Err(error.into()),
        };
    }
    Err(Failure::Contended(id))
}

/// What was written down of a new job.
type New<'a> = (&'a Job, &'a Record, &'a SubmitJobRequest, &'a Evaluation);

/// What follows once a new job is recorded.
async fn recorded<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    (new, record, request, evaluation): New<'_>,
    door: &Door,
) -> Result<(), Failure> {
    tell(new);
    outbox::put(ports, None, new, Expect::Absent).await;
    if new.state == JobState::Queued {
        return dispatch::fresh(ctx, ports, new, record, request, evaluation).await;
    }
    onward(ctx, ports, new).await?;
    catch_up(ctx, ports, new, &door.parents).await
}

/// Puts a job off when its team has sent too many; the write that takes its place.
async fn place<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    message: &ReceivedMessage,
    new: &mut Job,
    evaluation: &mut Evaluation,
) -> Result<Option<Write>, Failure> {
    if !matches!(new.state, JobState::Queued | JobState::Waiting) {
        return Ok(None);
    }
    let identity = ctx.policy.identity_of(&message.sender);
    let whose = rate::counted_as(identity, &message.sender, new.team.as_deref());
    let now = new.created_at;
    match rate::place(ports, identity, &whose, now).await? {
        Ok(None) => Ok(None),
        Ok(Some(place)) => {
            if new.state == JobState::Queued && place.not_before > now {
                new.not_before = place.not_before;
                let from = jiff::Timestamp::from_millisecond(place.not_before).unwrap_or_default();
                let most = place.per_minute;
                evaluation.decision.warnings.push(format!(
                    "{most} jobs a minute are let in for its sender, and more were sent; it may start from {from:.3}"
                ));
            }
            Ok(Some(place.write))
        }
        Err(refusal) => {
            new.state = JobState::Refused;
            new.not_before = 0;
            new.end = Some(End::new(refusal.code, &refusal.message));
            evaluation.refusals.push(refusal);
            Ok(None)
        }
    }
}

/// Says what became of a new job, once: the numbers of CloudWatch are made of this.
fn tell(job: &Job) {
    let id = job.id;
    if let Some(end) = &job.end {
        tracing::info!(metric = "JobsRefused", job_id = %id, code = %end.code, "a job was refused.");
        return;
    }
    tracing::info!(metric = "JobsDerived", job_id = %id, priority = job.priority, tier = %job.tier, pool = %job.pool, "a job was recorded.");
    if job.fallback {
        tracing::warn!(metric = "DerivationFallbacks", job_id = %id, "the policy could not be evaluated; the fallback priority stands.");
    }
}

/// The digest that tells whether two messages hold the same request, whatever the order of its members, and whether
/// what says nothing is left out or written as an empty list or object.
fn payload(request: &SubmitJobRequest) -> String {
    let text = repository::json(request);
    // Most requests hold nothing empty, and need not be taken apart.
    if !text.contains("[]") && !text.contains("{}") {
        return digest(&text);
    }
    let mut value = serde_json::to_value(request).unwrap_or_default();
    leave_out_empty(&mut value);
    digest(&value.to_string())
}

/// Takes members out that are empty, from the inside out. Elements of lists stay, since their places count.
fn leave_out_empty(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(leave_out_empty);
            members.retain(|_, member| !is_empty(member));
        }
        Value::Array(list) => list.iter_mut().for_each(leave_out_empty),
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(serde_json::Map::is_empty)
}

fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let first = digest.first_chunk().copied().map_or(0, u64::from_be_bytes);
    format!("{first:016x}")
}

/// What happens right after a job was recorded. When it breaks off here, `watch` goes on.
async fn onward<P: Ports>(ctx: &Context<'_>, ports: &P, job: &Job) -> Result<(), Failure> {
    match job.state {
        JobState::Queued => dispatch::dispatch(ctx, ports, job.id).await,
        // A parent that ended while this job was being recorded didn't see it.
        JobState::Waiting => {
            dependents::check(ctx, ports, job.id).await?;
            dispatch::dispatch(ctx, ports, job.id).await
        }
        // Others may have been waiting for this id.
        state if state.is_final() => dependents::look(ctx, ports, job.id).await,
        _ => Ok(()),
    }
}

/// A job before a waiting one may have reported while that one was being recorded.
async fn catch_up<P: Ports>(ctx: &Context<'_>, ports: &P, job: &Job, parents: &[JobId]) -> Result<(), Failure> {
    match job.state {
        JobState::Waiting => feedback::catch_up(ctx, ports, job, parents).await,
        _ => Ok(()),
    }
}

fn new_job(
    now: i64,
    message: &ReceivedMessage,
    request: &SubmitJobRequest,
    id: JobId,
    evaluation: &Evaluation,
    door: &Door,
) -> Job {
    let refusal = evaluation.refusals.first().or(door.refusals.first());
    let state = match refusal {
        Some(_) => JobState::Refused,
        None if door.waits => JobState::Waiting,
        None => JobState::Queued,
    };
    let demand = &evaluation.demand;
    let blank = blank(now, message, id, &request.job_name, &payload(request));
    Job {
        state,
        team: evaluation.metadata.team.as_deref().map(|team| cut(team, NAME_CHARS_MAX)),
        gpus: demand.gpus.saturating_mul(demand.array_size.max(1)),
        needs: evaluation.needs(),
        charge: evaluation.charge.clone(),
        reported: evaluation.reported,
        not_before: if state == JobState::Queued { now } else { 0 },
        depth: evaluation.depth,
        depends: !door.dependencies.is_empty(),
        end: refusal.map(|refusal| End::new(refusal.code, &refusal.message)),
        ..dispatch::decided(&blank, &evaluation.decision)
    }
}

/// A job of which nothing is known but its message.
fn blank(now: i64, message: &ReceivedMessage, id: JobId, name: &str, payload: &str) -> Job {
    Job {
        payload: payload.to_owned(),
        name: cut(name, NAME_CHARS_MAX),
        state: JobState::Refused,
        ..Job::new(id, message.id.clone(), now)
    }
}

/// What is kept of a message that is a job.
fn record_of(message: &ReceivedMessage, evaluation: &Evaluation, door: &Door) -> Record {
    Record {
        decision: Some(evaluation.decision.clone()),
        refusals: evaluation.refusals.iter().chain(&door.refusals).cloned().collect(),
        ..Record::of(message)
    }
}

/// Record, state, dependencies and edges, all or nothing.
fn writes(ctx: &Context<'_>, job: &Job, record: &Record, door: &Door) -> Result<Vec<Write>, Failure> {
    let mut writes = repository::writes(None, job, ctx.settings, Expect::Absent)?;
    writes.extend(record::writes(&key::job_partition(job.id), record));
    if job.state == JobState::Waiting {
        writes.push(repository::create(key::depends(job.id), repository::json(&door.dependencies)));
        writes.extend(waits::begin(job, &door.dependencies));
        writes.extend(door.parents.iter().map(|parent| Write::Put {
            item: osprey_ports::Item::new(key::child(*parent, job.id), "{}"),
            expect: Expect::Any,
        }));
    }
    Ok(writes)
}

/// A message for a job that is recorded already: the same message again, a duplicate, or an id that was reused.
async fn again<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    message: &ReceivedMessage,
    request: &SubmitJobRequest,
    id: JobId,
) -> Result<(), Failure> {
    let Some(loaded) = repository::load(ports, id).await? else {
        // It was there a moment ago, and jobs are never removed.
        return Err(Failure::Contended(id));
    };
    if loaded.job.message == message.id {
        return onward(ctx, ports, &loaded.job).await;
    }
    let first = record::of_job(ports, id).await?;
    if loaded.job.payload != payload(request) {
        return refuse(ctx, ports, message, reused(id, "with another request")).await;
    }
    if !ctx.policy.is_same_sender(&first.from(), &message.sender) {
        return refuse(ctx, ports, message, reused(id, "by another sender")).await;
    }
    let row = Duplicate { sender: &message.sender.principal, sent_at: message.sent_at.as_millisecond() };
    let write = repository::create(key::duplicate(id, &message.id), repository::json(&row));
    match ports.write_items(&[write]).await {
        Ok(()) | Err(StoreError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn reused(id: JobId, how: &str) -> Refusal {
    Refusal::new(
        ReasonCode::IdReused,
        format!("job id `{id}` was used before {how}; choose a new id, or leave the tag `osprey:job-id` out"),
    )
}

/// Records a message that is refused as a whole, under an id of its own.
pub async fn refuse<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    message: &ReceivedMessage,
    refusal: Refusal,
) -> Result<(), Failure> {
    let id = JobId::of_message(&message.id);
    let name = name_in(&message.body);
    let mut job = blank(ports.now().as_millisecond(), message, id, &name, &digest(&message.body));
    job.end = Some(End::new(refusal.code, &cut(&refusal.message, STATE_REASON_CHARS_MAX)));
    let record = Record { refusals: vec![refusal], ..Record::of(message) };
    let mut writes = repository::writes(None, &job, ctx.settings, Expect::Absent)?;
    writes.extend(record::writes(&key::job_partition(id), &record));
    match ports.write_items(&writes).await {
        Ok(()) => {
            tell(&job);
            outbox::put(ports, None, &job, Expect::Absent).await;
            Ok(())
        }
        Err(StoreError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The job's name in a body that is no valid request, to show it by.
fn name_in(body: &str) -> String {
    let value: Option<Value> = serde_json::from_str(body).ok();
    value.as_ref().and_then(|value| value.get("jobName")).and_then(|name| name.as_str()).unwrap_or("-").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str) -> String {
        payload(&serde_json::from_str(body).unwrap())
    }

    #[test]
    fn what_is_empty_counts_as_left_out() {
        let plain = of(r#"{"jobName":"a","jobDefinition":"b"}"#);
        for members in [
            r#""dependsOn":[]"#,
            r#""dependsOn":null"#,
            r#""tags":{}"#,
            r#""parameters":{}"#,
            r#""containerOverrides":{"command":[],"environment":[],"resourceRequirements":[]}"#,
            r#""nodeOverrides":{"nodePropertyOverrides":[]}"#,
        ] {
            assert_eq!(of(&format!(r#"{{"jobDefinition":"b",{members},"jobName":"a"}}"#)), plain, "{members}");
        }
    }

    #[test]
    fn the_short_way_to_a_digest_leads_where_the_long_one_does() {
        let body = r#"{"jobName":"ä","jobDefinition":"b","tags":{"z":"1","a":"\"2\""},"retryStrategy":{"attempts":1}}"#;
        let mut value = serde_json::to_value(serde_json::from_str::<SubmitJobRequest>(body).unwrap()).unwrap();
        leave_out_empty(&mut value);
        assert_eq!(of(body), digest(&value.to_string()));
        // As it was when the first jobs were recorded.
        assert_eq!(digest("{}"), "44136fa355b3678a");
    }

    #[test]
    fn what_says_something_counts() {
        let plain = of(r#"{"jobName":"a","jobDefinition":"b"}"#);
        for members in [
            r#""dependsOn":[{"jobId":"6ba7b810-9dad-41d1-80b4-00c04fd430c8"}]"#,
            r#""tags":{"team":""}"#,
            r#""containerOverrides":{"environment":[{}]}"#,
            r#""retryStrategy":{"attempts":1}"#,
        ] {
            assert_ne!(of(&format!(r#"{{"jobName":"a","jobDefinition":"b",{members}}}"#)), plain, "{members}");
        }
    }
}
