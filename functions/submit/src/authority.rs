//! Whether the sender of an action may do it. What it is done to is looked up only where the sender's identity doesn't
//! reach everybody's.

use osprey_model::id::JobId;
use osprey_model::message::{Action, Subject};
use osprey_model::reason::Refusal;
use osprey_model::sender::Sender;
use osprey_pipeline::context::Context;
use osprey_pipeline::dead::{self, DeadKind};
use osprey_pipeline::failure::Failure;
use osprey_pipeline::{record, redrive, repository};
use osprey_policy::identity::{Relation, Verb};
use osprey_ports::ReceivedMessage;

use crate::action::missing;
use crate::handle::Ports;

/// Why an action isn't allowed, and the job that the refusal is kept with.
pub struct Denied {
    /// The job that it was about, where it is there.
    pub job: Option<JobId>,
    /// Why.
    pub refusal: Refusal,
}

/// What an action is done to.
struct Target {
    job: Option<JobId>,
    owner: Sender,
    team: Option<String>,
}

/// Why the sender may not do this; `None` when it may. What isn't there is nobody's, and refused with the sentence that
/// says so: it may come while the action is carried out.
pub async fn denied<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    message: &ReceivedMessage,
    action: &Action,
) -> Result<Option<Denied>, Failure> {
    let verb = Verb::of(action);
    let sender = &message.sender;
    let Err(refusal) = ctx.policy.permit(sender, verb, None) else { return Ok(None) };
    if !verb.has_owner() {
        return Ok(Some(Denied { job: None, refusal }));
    }
    let Some(Target { job, owner, team }) = target(ports, action).await? else {
        // It may be there a moment later, and whose it is wouldn't be asked again.
        return Ok(Some(Denied { job: None, refusal: missing(action) }));
    };
    let relation = Relation { owner: &owner, team: team.as_deref() };
    let permitted = ctx.policy.permit(sender, verb, Some(relation));
    Ok(permitted.err().map(|refusal| Denied { job, refusal }))
}

async fn target<P: Ports>(ports: &P, action: &Action) -> Result<Option<Target>, Failure> {
    match action.subject() {
        Subject::Job(id) => job(ports, id).await,
        Subject::DeadLetter(given) => letter(ports, given).await,
        Subject::Pool(_) | Subject::Policy(_) => Ok(None),
    }
}

async fn job<P: Ports>(ports: &P, id: JobId) -> Result<Option<Target>, Failure> {
    let Some(loaded) = repository::load(ports, id).await? else { return Ok(None) };
    let record = record::of_job(ports, id).await?;
    Ok(Some(Target { job: Some(id), owner: record.from(), team: loaded.job.team }))
}

/// A dead letter of a job belongs to whoever owns the job, one of a message to whoever sent that.
async fn letter<P: Ports>(ports: &P, given: &str) -> Result<Option<Target>, Failure> {
    let Some(id) = JobId::parse(given) else { return Ok(None) };
    let Some((letter, _)) = dead::load(ports, id).await? else { return Ok(None) };
    match letter.kind {
        DeadKind::Job { .. } => job(ports, id).await,
        DeadKind::Message { .. } => {
            let kept = redrive::kept(ports, &letter).await?;
            Ok(kept.map(|message| Target { job: None, owner: message.sender, team: None }))
        }
    }
}
