//! The verbs: one module each, with its arguments and the function that does it.

mod action;
mod bench;
mod completions;
mod dead_letters;
mod describe;
mod export;
mod history;
mod jobs;
mod lineage;
mod local_run;
mod local_serve;
mod logs;
mod order;
mod place;
mod policy;
mod priority;
mod queue;
mod schema;
mod simulate;
mod submit_job;
mod usage;
mod wait;
mod watch;
mod why;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::error::CliError;
use crate::ui::{Format, Ui};

/// Where the newest local run is.
pub const LATEST: &str = ".osprey/latest";

/// Osprey: GPU jobs on AWS Batch get the priority they deserve.
#[derive(Debug, Parser)]
#[command(
    name = "osprey",
    version,
    arg_required_else_help = true,
    after_help = "\
Examples:
  osprey local run events/backlog.jsonl    run jobs through the whole pipeline here
  osprey priority job.json                 what priority a job would get, and why
  osprey describe training-231 --local     everything on record about a job
  osprey policy check policy.toml          find every mistake in a policy

Exit codes: 0 ok, 1 failed, 2 usage, 3 negative verdict (refused, a test failed), 4 invalid policy"
)]
pub struct Cli {
    /// How answers are written; with `json`, standard output carries nothing else
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "table|json",
        default_value_t = Format::Table,
        hide_possible_values = true
    )]
    pub output: Format,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    SubmitJob(Box<submit_job::SubmitJobArgs>),
    Priority(priority::PriorityArgs),
    #[command(subcommand)]
    Local(LocalCommand),
    Queue(queue::QueueArgs),
    Watch(watch::WatchArgs),
    Jobs(jobs::JobsArgs),
    Describe(describe::DescribeArgs),
    History(history::HistoryArgs),
    Lineage(lineage::LineageArgs),
    Why(why::WhyArgs),
    Usage(usage::UsageArgs),
    Export(export::ExportArgs),
    Wait(wait::WaitArgs),
    Logs(logs::LogsArgs),
    Cancel(action::CancelArgs),
    Requeue(action::RequeueArgs),
    Hold(action::HoldArgs),
    Release(action::ReleaseArgs),
    Preempt(action::PreemptArgs),
    ReportCheckpoint(action::ReportCheckpointArgs),
    Top(order::TopArgs),
    ReportPriority(order::ReportPriorityArgs),
    Drain(order::DrainArgs),
    Resume(order::ResumeArgs),
    Reserve(order::ReserveArgs),
    SetMode(order::SetModeArgs),
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    #[command(subcommand)]
    DeadLetters(dead_letters::DeadLettersCommand),
    Simulate(Box<simulate::SimulateArgs>),
    Place(place::PlaceArgs),
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    Schema(schema::SchemaArgs),
    Completions(completions::CompletionsArgs),
}

/// The pipeline on this machine.
#[derive(Debug, Subcommand)]
enum LocalCommand {
    Run(local_run::LocalRunArgs),
    Serve(local_serve::LocalServeArgs),
}

/// Where the jobs are.
#[derive(Clone, Debug, Default, Args)]
pub struct Place {
    /// The local pipeline's state directory; without DIR that of the newest run from here, `.osprey/latest`
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = LATEST)]
    pub local: Option<PathBuf>,
    /// A stack on AWS
    #[command(flatten)]
    pub aws: AwsPlace,
}

/// Where the jobs are on AWS.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "On AWS")]
pub struct AwsPlace {
    /// The stack, as `sam deploy` named it
    #[arg(long, value_name = "NAME", conflicts_with = "local")]
    pub stack: Option<String>,
    /// The table, in place of the stack's
    #[arg(long, value_name = "NAME", conflicts_with = "local")]
    pub table: Option<String>,
    /// The submission queue, in place of the stack's
    #[arg(long, value_name = "URL", conflicts_with = "local")]
    pub queue_url: Option<String>,
    /// Profile of the AWS configuration
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Region, such as eu-west-1
    #[arg(long, value_name = "REGION")]
    pub region: Option<String>,
    /// Address of every service, for emulators
    #[arg(long, value_name = "URL")]
    pub endpoint_url: Option<String>,
}

impl AwsPlace {
    /// Whether a stack or a table is named.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.stack.is_some() || self.table.is_some()
    }

    /// The options as one would type them.
    #[must_use]
    pub fn flags(&self) -> String {
        let all = [
            ("--stack", &self.stack),
            ("--table", &self.table),
            ("--queue-url", &self.queue_url),
            ("--profile", &self.profile),
            ("--region", &self.region),
            ("--endpoint-url", &self.endpoint_url),
        ];
        let given = all.iter().filter_map(|(flag, value)| Some(format!("{flag} {}", value.as_ref()?)));
        given.collect::<Vec<_>>().join(" ")
    }
}

/// Exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Ok,
    /// Failed.
    Failed,
    /// The arguments can't be read.
    Usage,
    /// Done, and the verdict is negative: refused, a test failed.
    Negative,
    /// A policy or configuration that can't be used.
    Invalid,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Ok => Self::SUCCESS,
            Exit::Failed => Self::from(1),
            Exit::Usage => Self::from(2),
            Exit::Negative => Self::from(3),
            Exit::Invalid => Self::from(4),
        }
    }
}

/// Does what was asked.
///
/// # Errors
/// Whatever the verb fails with.
pub fn run(cli: Cli, ui: &mut Ui) -> Result<Exit, CliError> {
    match cli.command {
        Command::SubmitJob(args) => submit_job::submit_job(&args, ui),
        Command::Priority(args) => priority::priority(&args, ui),
        Command::Local(LocalCommand::Run(args)) => local_run::local_run(&args, ui),
        Command::Local(LocalCommand::Serve(args)) => local_serve::local_serve(&args, ui),
        Command::Wait(args) => wait::wait(&args, ui),
        Command::Logs(args) => logs::logs(&args, ui),
        Command::Queue(args) => queue::queue(&args, ui),
        Command::Watch(args) => watch::watch(&args, ui),
        Command::Jobs(args) => jobs::jobs(&args, ui),
        Command::Describe(args) => describe::describe(&args, ui),
        Command::History(args) => history::history(&args, ui),
        Command::Lineage(args) => lineage::lineage(&args, ui),
        Command::Why(args) => why::why(&args, ui),
        Command::Usage(args) => usage::usage(&args, ui),
        Command::Export(args) => export::export(&args, ui),
        Command::Cancel(args) => action::cancel(&args, ui),
        Command::Requeue(args) => action::requeue(&args, ui),
        Command::Hold(args) => action::hold(&args, ui),
        Command::Release(args) => action::release(&args, ui),
        Command::Preempt(args) => action::preempt(&args, ui),
        Command::ReportCheckpoint(args) => action::report_checkpoint(&args, ui),
        Command::Top(args) => order::top(&args, ui),
        Command::ReportPriority(args) => order::report_priority(&args, ui),
        Command::Drain(args) => order::drain(&args, ui),
        Command::Resume(args) => order::resume(&args, ui),
        Command::Reserve(args) => order::reserve(&args, ui),
        Command::SetMode(args) => order::set_mode(&args, ui),
        Command::Policy(command) => policy::policy(&command, ui),
        Command::DeadLetters(command) => dead_letters::dead_letters(&command, ui),
        Command::Simulate(args) => simulate::simulate(&args, ui),
        Command::Place(args) => place::place(&args, ui),
        Command::Bench(command) => bench::bench(&command, ui),
        Command::Schema(args) => schema::schema(&args, ui),
        Command::Completions(args) => completions::completions(&args, ui),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_examples() {
        fn check(command: &clap::Command) {
            let is_group = command.get_subcommands().next().is_some();
            let examples = command.get_after_help().is_some_and(|help| help.to_string().contains("Examples:"));
            assert!(is_group && command.get_name() != "osprey" || examples, "{}", command.get_name());
            command.get_subcommands().filter(|c| c.get_name() != "help").for_each(check);
        }
        check(&Cli::command());
    }
}
