//! `osprey cancel`, `requeue`, `hold`, `release`, `preempt` and `report-checkpoint`: each sends a message, so that it is recorded
//! like a job is.

use clap::Args;
use osprey_model::id::{JobId, MessageId};
use osprey_model::message::Action;
use osprey_model::reason::Refusal;
use serde_json::{Value, json};

use super::{Exit, Place};
use crate::error::{CliError, ErrorCode};
use crate::joined::Found;
use crate::joined::Joined;
use crate::render::action::{self as render, Asked};
use crate::ui::Ui;

/// End a job for good.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey cancel training-671-never --reason 'superseded' --local

Exit code 3 when the job's state doesn't allow it. While no pipeline runs, the action is queued for the next run.")]
pub struct CancelArgs {
    /// The job: its id, its name, or a beginning that only one job has
    #[arg(value_name = "JOB")]
    job: String,
    /// Why, for the record and for Batch
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Say what would happen, and send nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    place: Place,
}

/// What the other actions take.
#[derive(Debug, Args)]
pub(super) struct Target {
    /// The job: its id, its name, or a beginning that only one job has
    #[arg(value_name = "JOB")]
    job: String,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Say what would happen, and send nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    place: Place,
}

/// Start a job again: one that ended badly, one that runs, or one that waits for its back-off.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey requeue training-671-never --local

Exit code 3 when the job's state doesn't allow it. While no pipeline runs, the action is queued for the next run.")]
pub struct RequeueArgs {
    #[command(flatten)]
    target: Target,
}

/// Keep a waiting job from starting.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey hold training-671-never --reason 'wait for the new data' --local

Exit code 3 when the job's state doesn't allow it. While no pipeline runs, the action is queued for the next run.")]
pub struct HoldArgs {
    #[command(flatten)]
    target: Target,
}

/// Let a held job start.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey release training-671-never --local

Exit code 3 when the job's state doesn't allow it. While no pipeline runs, the action is queued for the next run.")]
pub struct ReleaseArgs {
    #[command(flatten)]
    target: Target,
}

/// Take a running job off its GPUs: it saves, comes back without a penalty, and goes on from its checkpoint.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey preempt training-231 --reason 'the demo is at ten' --local
  osprey preempt training-231 --dry-run --local

It goes the way of a job that is evicted for a more urgent one: it counts as evicted, and its record says what that cost.
Whatever waits for its GPUs is started by its pool's own rules, which may be the same job.
Exit code 3 when the job's state doesn't allow it. While no pipeline runs, the action is queued for the next run.")]
pub struct PreemptArgs {
    #[command(flatten)]
    target: Target,
}

/// Say where a job's newest checkpoint is: what it did since then is what an eviction would cost.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey report-checkpoint \"$OSPREY_JOB_ID\" --uri s3://data/run/step-500 --progress 40 --stack osprey

A job finds its own id in OSPREY_JOB_ID, and later attempts find the address in OSPREY_RESUME_URI. One that is nearly
done, by the policy's `near_done`, is spared.")]
pub struct ReportCheckpointArgs {
    /// The job: its id, its name, or a beginning that only one job has
    #[arg(value_name = "JOB")]
    job: String,
    /// Where the checkpoint is
    #[arg(long, value_name = "URI")]
    uri: String,
    /// How much of its work the job has done
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(..=100))]
    progress: Option<u32>,
    /// Say what would happen, and send nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    place: Place,
}

/// Reports.
pub fn report_checkpoint(args: &ReportCheckpointArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let ReportCheckpointArgs { job, uri, progress, dry_run, place } = args;
    let report = |job_id| Action::ReportCheckpoint { job_id, uri: uri.clone(), progress: *progress };
    on_named(job, *dry_run, place, ui, report)
}

/// Preempts.
pub fn preempt(args: &PreemptArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    on_job(&args.target, ui, |job_id, reason| Action::PreemptJob { job_id, reason })
}

/// What an action would do now, told and not sent.
fn dry_run(joined: &Joined, ui: &mut Ui, id: JobId, action: &Action) -> Result<Exit, CliError> {
    let gone = || CliError::new(ErrorCode::UnknownJob, format!("there is no job `{id}`"));
    let job = joined.job(id)?.ok_or_else(gone)?;
    let would = osprey_submit::preview(&joined.policy()?, &job, action, joined.now_ms());
    told(ui, action, would)
}

/// Tells what an action would do, or why it would be refused.
pub fn told(ui: &mut Ui, action: &Action, would: Result<String, Refusal>) -> Result<Exit, CliError> {
    match would {
        Ok(done) if ui.is_json() => ui.json(&document(action, None, Some(&done), None))?,
        Ok(done) => {
            let Asked { what, id, .. } = render::asked(action);
            let about = if what == "job" { format!("job {id} ") } else { String::new() };
            ui.text(&format!("not sent; {about}{done}"))?;
        }
        Err(refusal) => return refused(ui, action, &refusal),
    }
    Ok(Exit::Ok)
}

/// Cancels.
pub fn cancel(args: &CancelArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let CancelArgs { job, reason, dry_run, place } = args;
    on_named(job, *dry_run, place, ui, |job_id| Action::CancelJob { job_id, reason: reason.clone() })
}

/// Requeues.
pub fn requeue(args: &RequeueArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    on_job(&args.target, ui, |job_id, reason| Action::RequeueJob { job_id, reason })
}

/// Holds.
pub fn hold(args: &HoldArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    on_job(&args.target, ui, |job_id, reason| Action::HoldJob { job_id, reason })
}

/// Releases.
pub fn release(args: &ReleaseArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    on_job(&args.target, ui, |job_id, reason| Action::ReleaseJob { job_id, reason })
}

/// Sends an action on a job, or only says what it would do.
pub(super) fn on_job(
    target: &Target,
    ui: &mut Ui,
    action: impl FnOnce(JobId, Option<String>) -> Action,
) -> Result<Exit, CliError> {
    let Target { job, reason, dry_run, place } = target;
    on_named(job, *dry_run, place, ui, |id| action(id, reason.clone()))
}

/// Acts on a job by its name, or says what that would do.
pub(super) fn on_named(
    name: &str,
    is_dry: bool,
    place: &Place,
    ui: &mut Ui,
    action: impl FnOnce(JobId) -> Action,
) -> Result<Exit, CliError> {
    let joined = Joined::of(place)?;
    if is_dry {
        let id = joined.find(name)?;
        return dry_run(&joined, ui, id, &action(id));
    }
    let found = joined.look_up(name)?;
    on_found(&joined, ui, found, &action(found.id()))
}

/// Sends an action on a job. While no pipeline runs, one that the job's present state doesn't allow is not sent, unless
/// something else is on its way that may change that state.
fn on_found(joined: &Joined, ui: &mut Ui, found: Found, action: &Action) -> Result<Exit, CliError> {
    if let Found::OnRecord(id) = found
        && joined.resting()?.is_some()
        && let Some(job) = joined.job(id)?
        && let Err(refusal) = osprey_submit::preview(&joined.policy()?, &job, action, joined.now_ms())
        && !is_awaiting_another(joined, &id.to_string())?
    {
        return refused(ui, action, &refusal);
    }
    ask(joined, ui, action)
}

/// Whether an action on this job or dead letter was sent and not carried out yet.
fn is_awaiting_another(joined: &Joined, id: &str) -> Result<bool, CliError> {
    Ok(joined.sent_actions()?.iter().any(|(_, action)| render::asked(action).id == id))
}

/// Says that an action can't be done and was not sent.
pub fn refused(ui: &mut Ui, action: &Action, refusal: &Refusal) -> Result<Exit, CliError> {
    if ui.is_json() {
        ui.json(&document(action, None, None, Some(refusal)))?;
    } else {
        ui.text(&format!("refused, and not sent: {refusal}"))?;
    }
    Ok(Exit::Negative)
}

/// The answer as JSON.
fn document(action: &Action, message: Option<&MessageId>, done: Option<&str>, refusal: Option<&Refusal>) -> Value {
    let Asked { name, id, .. } = render::asked(action);
    json!({ "action": name, "id": id, "messageId": message, "done": done, "refusal": refusal })
}

/// Sends an action and shows what became of it.
pub fn ask(joined: &Joined, ui: &mut Ui, action: &Action) -> Result<Exit, CliError> {
    let body = serde_json::to_string(action).map_err(|fault| CliError::failed(fault.to_string()))?;
    let message = joined.send(&body)?;
    let acted = joined.outcome(&message)?;
    if ui.is_json() {
        let done = acted.as_ref().and_then(|acted| acted.done.as_deref());
        let refusal = acted.as_ref().and_then(|acted| acted.refusal.as_ref());
        ui.json(&document(action, Some(&message), done, refusal))?;
    } else {
        let Asked { name, what, id, .. } = render::asked(action);
        ui.text(&format!("{name} asked for {what} {id}"))?;
        if let Some(acted) = &acted {
            ui.text(&render::outcome(acted))?;
        }
    }
    match acted {
        Some(acted) => Ok(if acted.refusal.is_some() { Exit::Negative } else { Exit::Ok }),
        None => {
            ui.note(&unanswered(joined)?);
            Ok(Exit::Ok)
        }
    }
}

fn unanswered(joined: &Joined) -> Result<String, CliError> {
    Ok(match joined.resting()? {
        None => {
            format!("the pipeline has not answered yet; `osprey describe … {}` shows what became of it", joined.flags())
        }
        Some(command) => {
            let name = joined.name();
            format!("it is queued, since no pipeline runs in {name} now; `{command}` carries it out and says so")
        }
    })
}
