//! `osprey priority`: derive and admit without submitting.

use std::path::PathBuf;

use clap::Args;
use osprey_model::facts::LineageFacts;
use osprey_model::message::{self, Message, Rejection};
use osprey_model::request::SubmitJobRequest;
use osprey_model::sender::Sender;
use osprey_ports::QueueKind;
use serde_json::Value;

use super::{Exit, Place};
use crate::definitions::Definitions;
use crate::error::{CliError, ErrorCode};
use crate::input::{self, Entry};
use crate::joined::Joined;
use crate::offline::Offline;
use crate::render::decision::{self, Answer};
use crate::render::queue;
use crate::ui::Ui;
use crate::{plain, policy_file};

/// Facts of `--lineage`.
const LINEAGE: [&str; 8] = [
    "attempts",
    "failures",
    "preemptions",
    "host_losses",
    "depth",
    "parent_runtime_seconds",
    "retry_of_preempted",
    "wasted_gpu_hours",
];

/// Show what priority and tier jobs get, rule by rule, without submitting them.
///
/// FILE holds one `SubmitJob` request or one a line. Without `--local` and `--stack` nothing but the file and the policy is looked
/// at: nodes have 8 GPUs, job definitions are taken as given, and lineage is what `--lineage` says.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey priority job.json
  osprey priority events/backlog.jsonl --output json
  osprey priority - --policy policy.toml < job.json
  osprey priority job.json --lineage '{\"failures\": 3}'
  osprey priority job.json --policy policy.toml --sender AROAEXAMPLE
  osprey priority --local                  the jobs that wait in the local pipeline, and the terms of their numbers
  osprey priority --local --estimates      how good what was expected of run times is
  osprey priority job.json --stack osprey  with the policy, the pools and the history of a stack

Exit code 3 when any of the jobs is refused.")]
pub struct PriorityArgs {
    /// Job files; `-` is standard input. Without one, the waiting jobs of the pipeline
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The policy; the built-in default without it
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Job definitions as `RegisterJobDefinition` takes them: one, a list, or one a line. One without a revision is the
    /// next of its name, from 1, as when it is registered. Without the file, definitions are taken as given
    #[arg(long, value_name = "FILE", conflicts_with_all = ["local", "stack", "table"])]
    definitions: Option<PathBuf>,
    /// What happened to the job before, such as `{"failures": 3}`
    #[arg(long, value_name = "JSON", conflicts_with_all = ["local", "stack", "table"])]
    lineage: Option<String>,
    /// Who sends the jobs, by the id that the queue would authenticate, such as `AROAEXAMPLE`: the policy's identities
    /// then bound what they may claim. On a stack without it, you
    #[arg(long, value_name = "ID", conflicts_with = "local")]
    sender: Option<String>,
    /// Show how estimates of run times came out in the pipeline, by how they were known, and no jobs
    #[arg(long, conflicts_with_all = ["files", "policy", "lineage", "sender"])]
    estimates: bool,
    #[command(flatten)]
    place: Place,
}

/// Shows the priorities.
pub fn priority(args: &PriorityArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    if args.estimates {
        return estimates(args, ui);
    }
    let is_live = args.place.local.is_some() || args.place.aws.is_given();
    let answers = match (is_live, args.files.is_empty()) {
        (false, true) => return Err(no_input()),
        (false, false) => offline(args)?,
        (true, true) => return live(args, ui),
        (true, false) => {
            let joined = Joined::of(&args.place)?;
            let policy = args.policy.as_deref().map(|path| policy_file::load(Some(path))).transpose()?;
            let sender = given(args).map_or_else(|| joined.sender(), Ok)?;
            evaluate(args, |request| joined.evaluate(request, policy.as_ref(), &sender))?
        }
    };
    decision::show(&answers, ui)?;
    Ok(if answers.iter().all(|answer| answer.admitted) { Exit::Ok } else { Exit::Negative })
}

/// The queue of a pipeline: who waits, and what their numbers are made of.
fn live(args: &PriorityArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let answers = Joined::of(&args.place)?.queue()?;
    if ui.is_json() {
        answers.iter().try_for_each(|answer| ui.json(answer))?;
    } else if answers.is_empty() {
        ui.note("no job waits");
    } else {
        ui.text(&queue::table(&answers))?;
    }
    Ok(Exit::Ok)
}

/// How estimates came out.
fn estimates(args: &PriorityArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let judged = Joined::of(&args.place)?.judged()?;
    if ui.is_json() {
        judged.iter().try_for_each(|judged| ui.json(&queue::judged_json(judged)))?;
    } else if judged.is_empty() {
        ui.note("no run has ended yet of which anything was expected");
    } else {
        ui.text(&queue::judged(&judged))?;
    }
    Ok(Exit::Ok)
}

fn no_input() -> CliError {
    CliError::new(ErrorCode::Usage, "no job is given").help(
        "name a file, `-` for standard input, or `--local` or `--stack NAME` for the jobs that wait in a pipeline",
    )
}

fn offline(args: &PriorityArgs) -> Result<Vec<Answer>, CliError> {
    let offline = Offline {
        policy: policy_file::load(args.policy.as_deref())?,
        definitions: Definitions::load(args.definitions.as_deref())?,
        lineage: lineage(args.lineage.as_deref())?,
        now: jiff::Timestamp::now(),
        sender: given(args),
    };
    evaluate(args, |request| Ok(offline.evaluate(request)))
}

/// The sender that was given.
fn given(args: &PriorityArgs) -> Option<Sender> {
    args.sender.as_ref().map(|id| Sender::new(QueueKind::Submissions.name(), id))
}

fn lineage(text: Option<&str>) -> Result<LineageFacts, CliError> {
    let Some(text) = text else { return Ok(LineageFacts::default()) };
    let wrong = |fault: String| {
        CliError::new(ErrorCode::Usage, format!("`--lineage` can't be read: {fault}"))
            .help("write it as `{\"failures\": 3}`; known are the facts of `lineage.*`")
    };
    match serde_json::from_str(text).map_err(|fault| wrong(plain::fault(&fault)))? {
        Value::Object(object) => plain::typed(object, &LINEAGE, &[]).map_err(wrong),
        _ => Err(wrong("an object is wanted".to_owned())),
    }
}

/// Answers every request of every file, in order.
fn evaluate(
    args: &PriorityArgs,
    mut one: impl FnMut(&SubmitJobRequest) -> Result<Answer, CliError>,
) -> Result<Vec<Answer>, CliError> {
    let mut answers = Vec::new();
    for file in &args.files {
        let entries = input::requests(&input::read(file)?);
        if entries.is_empty() {
            return Err(CliError::new(ErrorCode::FileEmpty, format!("`{}` is empty", file.display())));
        }
        for entry in entries {
            answers.push(match read(&entry) {
                Ok(request) => one(&request)?,
                Err(rejection) => rejected(&entry, rejection),
            });
        }
    }
    Ok(answers)
}

fn read(entry: &Entry) -> Result<SubmitJobRequest, Rejection> {
    match message::parse_bytes(&entry.bytes)? {
        Message::Submit(request) => Ok(*request),
        Message::Action(_) => Err(Rejection {
            code: osprey_model::reason::ReasonCode::WrongType,
            message: "the body is an action and no job; an action has no priority".to_owned(),
            malformed: false,
        }),
    }
}

/// The answer for a body that is no request; its name is told as far as it can be read.
fn rejected(entry: &Entry, rejection: Rejection) -> Answer {
    let value: Option<Value> = serde_json::from_slice(&entry.bytes).ok();
    let name = value.and_then(|value| Some(value.get("jobName")?.as_str()?.to_owned()));
    Answer { job_name: name, refusals: vec![rejection.into()], ..Answer::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facts_of_lineage_are_those_that_there_are() {
        let Ok(Value::Object(facts)) = serde_json::to_value(LineageFacts::default()) else { panic!("no object") };
        assert_eq!(facts.keys().map(String::as_str).collect::<std::collections::BTreeSet<_>>(), LINEAGE.into());
    }

    #[test]
    fn a_misspelt_fact_of_lineage_is_told_with_the_nearest() {
        let error = lineage(Some(r#"{"failure":3}"#)).unwrap_err();
        assert_eq!(error.message, "`--lineage` can't be read: there is no member `failure`; did you mean `failures`?");
        let error = lineage(Some(r#"{"failures":"3"}"#)).unwrap_err();
        let want = "`--lineage` can't be read: `failures`: a whole number from 0 is wanted; the text `3` was given";
        assert_eq!(error.message, want);
    }
}
