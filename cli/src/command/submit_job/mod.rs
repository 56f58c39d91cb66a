//! `osprey submit-job`: the flags of `aws batch submit-job`, into the submission queue.

mod request;
mod shorthand;

use std::path::PathBuf;

use clap::Args;
use osprey_model::id::JobId;
use osprey_model::job::{Job, JobState};
use serde_json::json;

use super::{Exit, Place};
use crate::error::{CliError, ErrorCode};
use crate::input;
use crate::joined::Joined;
use crate::render::decision::{self, Answer};
use crate::ui::Ui;
use request::Prepared;

/// Submit a job; the flags are those of `aws batch submit-job`.
///
/// The job id is chosen here and printed at once; it stays the same across all attempts of the job. A structure is
/// written as JSON, in the shorthand of the AWS command line, or as `file://PATH` of either. `--query` is not supported.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey submit-job --local --job-name train-7 --job-definition trainer:3 \\
      --container-overrides 'command=python,train.py,resourceRequirements=[{type=GPU,value=8}]' \\
      --tags team=search,environment=production,workload=training
  osprey submit-job --local --cli-input-json file://job.json --wait
  osprey submit-job --local --from jobs.jsonl --output json
  osprey submit-job --local --cli-input-json file://job.json --dry-run
  osprey submit-job --stack osprey --region eu-west-1 --cli-input-json file://job.json

Exit code 0 when it was sent; what becomes of it is told by --wait: 0 when it succeeded, 1 when it didn't or no pipeline runs, 3 when it
was refused. With --dry-run 3 when it would be.")]
pub struct SubmitJobArgs {
    /// Name of the job
    #[arg(long, value_name = "NAME")]
    job_name: Option<String>,
    /// Job definition: name, name:revision or ARN
    #[arg(long, value_name = "DEFINITION")]
    job_definition: Option<String>,
    /// A pool, or one of its tier queues; the tier is derived all the same
    #[arg(long, value_name = "QUEUE")]
    job_queue: Option<String>,
    /// What differs from the definition's container
    #[arg(long, value_name = "STRUCTURE")]
    container_overrides: Option<String>,
    /// What differs for a multi-node job
    #[arg(long, value_name = "STRUCTURE")]
    node_overrides: Option<String>,
    /// Size of an array job, such as `size=10`
    #[arg(long, value_name = "STRUCTURE")]
    array_properties: Option<String>,
    /// Jobs that must succeed first, such as `jobId=ID`
    #[arg(long, value_name = "STRUCTURE", num_args = 1..)]
    depends_on: Vec<String>,
    /// Retries, such as `attempts=3`
    #[arg(long, value_name = "STRUCTURE")]
    retry_strategy: Option<String>,
    /// Time limit of one attempt, such as `attemptDurationSeconds=3600`
    #[arg(long, value_name = "STRUCTURE")]
    timeout: Option<String>,
    /// Tags, such as `team=search,environment=production`
    #[arg(long, value_name = "MAP", num_args = 1..)]
    tags: Vec<String>,
    /// Values for the definition's placeholders, such as `input=a,output=b`
    #[arg(long, value_name = "MAP", num_args = 1..)]
    parameters: Vec<String>,
    /// Share; Osprey chooses its own
    #[arg(long, value_name = "SHARE")]
    share_identifier: Option<String>,
    /// Priority inside the share; Osprey derives its own
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    scheduling_priority_override: Option<i64>,
    /// Let tags travel to the task
    #[arg(long, overrides_with = "no_propagate_tags")]
    propagate_tags: bool,
    /// Don't let tags travel to the task
    #[arg(long)]
    no_propagate_tags: bool,
    /// What differs for an EKS job, as JSON
    #[arg(long, value_name = "JSON")]
    eks_properties_override: Option<String>,
    /// What differs for an ECS job of several containers, as JSON
    #[arg(long, value_name = "JSON")]
    ecs_properties_override: Option<String>,
    /// What differs in consumable resources, as JSON
    #[arg(long, value_name = "JSON")]
    consumable_resource_properties_override: Option<String>,
    /// The whole request as JSON, or `file://PATH`; flags win over it
    #[arg(long, value_name = "JSON")]
    cli_input_json: Option<String>,
    /// Submit every line of a file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["job_name", "job_definition", "cli_input_json"])]
    from: Option<PathBuf>,
    /// Of the AWS command line; not supported
    #[arg(long, value_name = "JMESPATH", hide = true)]
    query: Option<String>,
    /// Wait until the job has ended
    #[arg(long)]
    wait: bool,
    /// Send nothing: show what the job would get, and what would become of it now, as `osprey priority` does
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    #[command(flatten)]
    place: Place,
}

/// Submits.
pub fn submit_job(args: &SubmitJobArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    check_foreign(args, ui)?;
    let joined = Joined::of(&args.place)?;
    let (prepared, refused) = match &args.from {
        Some(file) => from_file(file, ui)?,
        None => (vec![request::of(args)?], 0),
    };
    if args.dry_run {
        return dry_run(&joined, &prepared, refused, ui);
    }
    let mut sent = Vec::new();
    for job in &prepared {
        let message = joined.send(&job.body)?;
        print(ui, job)?;
        sent.push((job, message));
    }
    // Whoever waits is told by the wait itself.
    if !sent.is_empty() && !args.wait {
        joined.say_who_runs(ui)?;
    }
    let mut worst = if refused == 0 { Exit::Ok } else { Exit::Negative };
    for (job, message) in sent.iter().filter(|_| args.wait) {
        let ended = joined.wait_for_end(job.id, message)?;
        print_end(ui, &ended)?;
        worst = worse(worst, exit_of(ended.state));
    }
    Ok(worst)
}

/// Shows what jobs would get and what would become of them, and sends nothing.
fn dry_run(joined: &Joined, prepared: &[Prepared], refused: usize, ui: &mut Ui) -> Result<Exit, CliError> {
    let sender = joined.sender()?;
    let answers: Vec<Answer> =
        prepared.iter().map(|job| joined.evaluate(&job.request, None, &sender)).collect::<Result<_, _>>()?;
    decision::show(&answers, ui)?;
    let all = refused == 0 && answers.iter().all(|answer| answer.admitted);
    Ok(if all { Exit::Ok } else { Exit::Negative })
}

/// Options of the AWS command line that mean something else, or nothing, here.
fn check_foreign(args: &SubmitJobArgs, ui: &mut Ui) -> Result<(), CliError> {
    if args.query.is_some() {
        return Err(CliError::new(ErrorCode::Usage, "`--query` is not supported")
            .help("take `--output json`, which prints `jobId` and `jobName`, and pick with a tool such as jq"));
    }
    for (option, value) in [("--region", &args.place.aws.region), ("--profile", &args.place.aws.profile)] {
        if value.is_some() && args.place.local.is_some() {
            ui.note(&format!("`{option}` says nothing here: a local pipeline has none"));
        }
    }
    Ok(())
}

/// The jobs of a file. What can't be submitted is said and counted, and the rest goes on.
fn from_file(file: &std::path::Path, ui: &mut Ui) -> Result<(Vec<Prepared>, usize), CliError> {
    let entries = input::requests(&input::read(file)?);
    if entries.is_empty() {
        return Err(CliError::new(ErrorCode::FileEmpty, format!("`{}` is empty", file.display())));
    }
    let mut prepared = Vec::new();
    let mut refused = 0;
    for entry in entries {
        match request::of_body(&entry.bytes) {
            Ok(job) => prepared.push(job),
            Err(error) => {
                refused += 1;
                let message = format!("line {}: {}", entry.line, error.message);
                ui.error(&CliError { message, ..error });
            }
        }
    }
    Ok((prepared, refused))
}

fn print(ui: &mut Ui, job: &Prepared) -> Result<(), CliError> {
    let Prepared { id, name, .. } = job;
    if ui.is_json() {
        ui.json(&json!({ "jobId": id, "jobName": name }))?;
    } else {
        ui.text(&format!("{id}  {name}"))?;
    }
    ui.flush()
}

fn print_end(ui: &mut Ui, job: &Job) -> Result<(), CliError> {
    if ui.is_json() {
        let mut document = crate::render::job::summary(job);
        if let Some(members) = document.as_object_mut() {
            members.extend([("jobId".to_owned(), json!(job.id)), ("jobName".to_owned(), json!(job.name))]);
        }
        return ui.json(&document);
    }
    let why = job.end.as_ref().map(|end| format!(": {} ({})", end.message, end.code)).unwrap_or_default();
    ui.text(&format!("{}  {}  {}{why}", job.id, job.name, job.state.as_str()))
}

fn exit_of(state: JobState) -> Exit {
    match state {
        JobState::Succeeded => Exit::Ok,
        JobState::Refused => Exit::Negative,
        _ => Exit::Failed,
    }
}

/// Of several jobs the worst counts: failed before refused before succeeded.
fn worse(a: Exit, b: Exit) -> Exit {
    let rank = |exit: Exit| match exit {
        Exit::Ok => 0,
        Exit::Negative => 1,
        _ => 2,
    };
    if rank(b) > rank(a) { b } else { a }
}

/// A new id for a job whose sender chose none.
fn new_id() -> JobId {
    JobId::from_uuid(uuid::Uuid::new_v4())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_jobs_the_worst_counts() {
        assert_eq!(worse(Exit::Ok, Exit::Negative), Exit::Negative);
        assert_eq!(worse(Exit::Failed, Exit::Negative), Exit::Failed);
    }
}
