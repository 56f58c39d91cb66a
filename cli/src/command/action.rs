//! `osprey cancel`, `requeue`, `hold` and `release`: each sends a message, so that it is recorded like a job is.

use clap::Args;
use osprey_model::id::JobId;
use osprey_model::message::Action;
use serde_json::json;

use super::{Exit, Place};
use crate::error::CliError;
use crate::local::join::{Joined, Outcome};
use crate::ui::Ui;

/// End a job for good.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey cancel 1e5a11f0-c06c-4a7e-8b0a-000000000231 --reason 'superseded' --local

Exit code 3 when the job's state doesn't allow it.")]
pub struct CancelArgs {
    /// Id of the job, or a beginning that only one id has
    #[arg(value_name = "JOB")]
    job: String,
    /// Why, for the record and for Batch
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    place: Place,
}

/// What the other actions take.
#[derive(Debug, Args)]
struct Target {
    /// Id of the job, or a beginning that only one id has
    #[arg(value_name = "JOB")]
    job: String,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    place: Place,
}

/// Start a job again: one that ended badly, one that runs, or one that waits for its back-off.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey requeue 1e5a11f0-c06c-4a7e-8b0a-000000000231 --local

Exit code 3 when the job's state doesn't allow it.")]
pub struct RequeueArgs {
    #[command(flatten)]
    target: Target,
}

/// Keep a waiting job from starting.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey hold 1e5a11f0-c06c-4a7e-8b0a-000000000231 --reason 'wait for the new data' --local

Exit code 3 when the job's state doesn't allow it.")]
pub struct HoldArgs {
    #[command(flatten)]
    target: Target,
}

/// Let a held job start.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey release 1e5a11f0-c06c-4a7e-8b0a-000000000231 --local

Exit code 3 when the job's state doesn't allow it.")]
pub struct ReleaseArgs {
    #[command(flatten)]
    target: Target,
}

/// Cancels.
pub fn cancel(args: &CancelArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let joined = Joined::of(&args.place)?;
    let job_id = joined.find(&args.job)?;
    ask(&joined, ui, &Action::CancelJob { job_id, reason: args.reason.clone() }, "job", job_id)
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

fn on_job(
    target: &Target,
    ui: &mut Ui,
    action: impl FnOnce(JobId, Option<String>) -> Action,
) -> Result<Exit, CliError> {
    let joined = Joined::of(&target.place)?;
    let job_id = joined.find(&target.job)?;
    ask(&joined, ui, &action(job_id, target.reason.clone()), "job", job_id)
}

/// Sends an action about `what` and shows what became of it.
pub fn ask(joined: &Joined, ui: &mut Ui, action: &Action, what: &str, id: JobId) -> Result<Exit, CliError> {
    let body = serde_json::to_value(action).map_err(|fault| CliError::failed(fault.to_string()))?;
    let verb = body.get("action").and_then(|name| name.as_str()).unwrap_or_default().to_owned();
    let message = joined.send(&body.to_string())?;
    let outcome = joined.outcome(&message)?;
    if ui.is_json() {
        let Outcome { done, refusal } = outcome.clone().unwrap_or(Outcome { done: None, refusal: None });
        ui.json(&json!({ "action": verb, "id": id, "messageId": message, "done": done, "refusal": refusal }))?;
    } else {
        ui.text(&format!("{verb} asked for {what} {id}"))?;
    }
    match outcome {
        Some(Outcome { refusal: Some(refusal), .. }) => {
            if !ui.is_json() {
                ui.text(&format!("refused: {refusal}"))?;
            }
            Ok(Exit::Negative)
        }
        Some(Outcome { done, .. }) => {
            if let Some(done) = done.filter(|_| !ui.is_json()) {
                ui.text(&format!("done: {done}"))?;
            }
            Ok(Exit::Ok)
        }
        None => {
            if joined.runner()?.is_some() {
                ui.note("the pipeline has not answered yet; `osprey describe` shows what became of it");
            }
            joined.say_who_runs(ui)?;
            Ok(Exit::Ok)
        }
    }
}
