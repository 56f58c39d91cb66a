//! The command line `osprey`: reads arguments, calls the same decision functions as the Lambdas, shows what they say.
//!
//! It decides nothing itself. Start with [`command`], one module a verb; `local` runs the whole pipeline on this
//! machine; `render` makes tables and JSON; `watch` is the live view, which draws on the terminal itself. Everything else
//! that is printed goes through [`ui::Ui`], every failure is a [`error::CliError`].

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

pub mod command;
pub mod error;
pub mod ui;

mod definitions;
mod filter;
mod input;
mod joined;
mod local;
mod log;
mod offline;
mod plain;
mod policy_file;
mod render;
mod schema;
mod snapshot_file;
mod threads;
mod watch;

use command::Cli;
use error::{CliError, ErrorCode};
use ui::{Format, Ui};

/// First argument of a supervisor process.
pub const SUPERVISE: &str = "__supervise";

/// Runs the command line and answers its exit code: 0 ok, 1 failed, 2 usage, 3 negative verdict, 4 invalid policy or
/// configuration.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments.get(1).is_some_and(|first| first == SUPERVISE) {
        return supervise(arguments.into_iter().skip(2));
    }
    match Cli::try_parse_from(&arguments) {
        Ok(cli) => {
            let mut ui = Ui::stdio(cli.output);
            let outcome = command::run(cli, &mut ui);
            finish(&mut ui, outcome)
        }
        Err(fault) => usage(&mut Ui::stdio(asked_format(&arguments)), &fault),
    }
}

/// Whether the command line understands arguments, the program's name first, without doing what they say.
///
/// # Errors
/// What is wrong with them, in one line.
pub fn understands(arguments: &[String]) -> Result<(), String> {
    match Cli::try_parse_from(arguments) {
        Err(fault) if fault.use_stderr() => Err(one_line(&fault.render().to_string())),
        _ => Ok(()),
    }
}

fn finish(ui: &mut Ui, outcome: Result<command::Exit, CliError>) -> ExitCode {
    match outcome.and_then(|exit| ui.flush().map(|()| exit)) {
        Ok(exit) => exit.into(),
        Err(error) => {
            ui.error(&error);
            error.exit().into()
        }
    }
}

/// What clap says: help and version are answers, everything else is a usage error.
fn usage(ui: &mut Ui, fault: &clap::Error) -> ExitCode {
    let text = fault.render().to_string();
    if !fault.use_stderr() {
        let outcome = ui.text(text.trim_end()).map(|()| command::Exit::Ok);
        return finish(ui, outcome);
    }
    if !ui.is_json() {
        ui.note(text.trim_end());
        return command::Exit::Usage.into();
    }
    let text = text.trim_start_matches("error: ");
    let (message, help) = text.split_once("\n\n").unwrap_or((text, ""));
    let error = CliError::new(ErrorCode::Usage, one_line(message)).help(one_line(help));
    finish(ui, Err(error))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The format asked for, as far as arguments that can't be read say it.
fn asked_format(arguments: &[OsString]) -> Format {
    let is_json = arguments.windows(2).any(|pair| pair.iter().eq(["--output", "json"]))
        || arguments.iter().any(|argument| argument == "--output=json");
    if is_json { Format::Json } else { Format::Table }
}

/// The process that stands between the local Batch and a job's command.
fn supervise(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    ExitCode::from(u8::try_from(osprey_local_batch::supervise::supervise(arguments)).unwrap_or(1))
}
