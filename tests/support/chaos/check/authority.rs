//! Nobody gets what the policy keeps from them: no job, no team, no tier, no say over the jobs of others. And whoever
//! may do something isn't kept from it.

use serde_json::Value;

use super::super::scenario::Truth;
use super::super::senders::{OPERATOR, VISION};
use super::super::world::World;
use super::messages::sent_of;
use super::table::{Table, text};

/// Checks a run whose policies tell senders apart.
///
/// # Errors
/// The first rule that doesn't hold.
pub fn check(world: &World, table: &Table) -> Result<(), String> {
    if !world.is_guarded {
        return Ok(());
    }
    for (id, (job, _)) in &table.jobs {
        claims(world, id, job)?;
    }
    for job in &world.batch.jobs {
        runs(world, &job.id, &job.queue, job.tags.get("script").map_or("", String::as_str))?;
    }
    table.actions.iter().try_for_each(|(message, acted)| acts(world, table, message, acted))
}

/// A job that its sender may not send is refused; another has the team that its sender may claim.
fn claims(world: &World, id: &str, job: &Value) -> Result<(), String> {
    let Some(sent) = sent_of(world, job) else { return Ok(()) };
    let Truth::Job { forbidden, team, .. } = &sent.draft.truth else { return Ok(()) };
    let (state, sender) = (text(job, "state"), sent.draft.sender);
    if state == "refused" {
        return Ok(());
    }
    if *forbidden {
        return Err(format!("job {id} of {sender} is {state}, and its sender may not send it"));
    }
    if text(job, "team") != *team {
        return Err(format!(
            "job {id} of {sender} is of team `{}` where it may only be of `{team}`",
            text(job, "team")
        ));
    }
    Ok(())
}

/// What Batch was given, by its own log: nothing that nobody may send, and nothing urgent of who may send nothing urgent.
fn runs(world: &World, id: &str, queue: &str, script: &str) -> Result<(), String> {
    let Ok(number) = script.parse::<usize>() else { return Ok(()) };
    let of = |truth: &Truth| matches!(truth, Truth::Job { script, .. } if *script == number);
    let drafts = || world.sent.iter().map(|sent| &sent.draft).filter(|draft| of(&draft.truth));
    if drafts().all(|draft| matches!(draft.truth, Truth::Job { forbidden: true, .. })) {
        return Err(format!("Batch got {id}, which nobody who sent it may send"));
    }
    let is_urgent = queue.ends_with("-critical") || queue.ends_with("-above");
    if is_urgent && drafts().all(|draft| draft.sender == VISION) {
        return Err(format!("Batch got {id} of {VISION} in {queue}, which is above what it may reach"));
    }
    Ok(())
}

/// Something that a person asked for was done if it is theirs to ask, and only then.
fn acts(world: &World, table: &Table, message: &str, acted: &Value) -> Result<(), String> {
    let Some(sent) = world.sent.iter().find(|sent| sent.id.as_str() == message) else { return Ok(()) };
    let sender = sent.draft.sender;
    let refused = acted.get("refusal").filter(|refusal| !refusal.is_null()).map(|refusal| text(refusal, "code"));
    let action = acted.get("action").unwrap_or(&Value::Null);
    // Which job goes first is for nobody to say of his own.
    let is_of_owner = text(action, "action") != "TopJob" && owner(world, table, action) == Some(sender);
    let may = sender == OPERATOR || is_of_owner;
    match refused.as_deref() {
        None if !may => Err(format!("{sender} may not ask for what it asked for with {message}, and it was done")),
        Some("NotAllowed") if may => Err(format!("{sender} may ask for what it asked for with {message}, and may not")),
        _ if text(acted, "sender") != sender => {
            Err(format!("{message} of {sender} is kept as one of `{}`", text(acted, "sender")))
        }
        _ => Ok(()),
    }
}

/// Who sent what an action is about.
fn owner(world: &World, table: &Table, action: &Value) -> Option<&'static str> {
    let of_job = |id: &str| table.jobs.get(id).and_then(|(job, _)| sent_of(world, job)).map(|sent| sent.draft.sender);
    if let Some(job) = action.get("jobId").and_then(Value::as_str) {
        return of_job(job);
    }
    let id = action.get("deadLetterId").and_then(Value::as_str)?;
    let (letter, _) = table.letters.get(id)?;
    match letter.get("kind")?.get("message") {
        Some(kept) => {
            let message = text(kept, "message");
            world.sent.iter().find(|sent| sent.id.as_str() == message).map(|sent| sent.draft.sender)
        }
        None => of_job(id),
    }
}
