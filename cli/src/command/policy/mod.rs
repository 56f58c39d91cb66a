//! `osprey policy`: look after the policy file, and see what another one would change.

mod apply;
mod check;
mod diff;
mod explain;
mod plan;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::Exit;
use crate::error::CliError;
use crate::policy_file;
use crate::ui::Ui;

/// Look after the policy file.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    Check(check::CheckArgs),
    Test(check::TestArgs),
    Explain(explain::ExplainArgs),
    Diff(diff::DiffArgs),
    Plan(Box<plan::PlanArgs>),
    Apply(apply::ApplyArgs),
}

/// Does one of them.
pub fn policy(command: &PolicyCommand, ui: &mut Ui) -> Result<Exit, CliError> {
    match command {
        PolicyCommand::Check(args) => check::check(args, ui),
        PolicyCommand::Test(args) => check::test(args, ui),
        PolicyCommand::Explain(args) => explain::explain(args, ui),
        PolicyCommand::Diff(args) => diff::diff(args, ui),
        PolicyCommand::Plan(args) => plan::plan(args, ui),
        PolicyCommand::Apply(args) => apply::apply(args, ui),
    }
}

/// The word for the policy that ships, in the place of a file.
const BUILT_IN: &str = "default";

/// Two policies.
#[derive(Debug, Args)]
struct Policies {
    /// The policy as it is; `default` for the built-in one
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The policy as it would be
    #[arg(value_name = "NEW")]
    new: PathBuf,
}

/// A policy with its text.
struct Named {
    /// What to call it.
    name: String,
    text: String,
    policy: osprey_policy::Policy,
}

impl Policies {
    /// Reads both.
    ///
    /// # Errors
    /// For one that can't be read or has mistakes.
    fn load(&self) -> Result<[Named; 2], CliError> {
        Ok([named(&self.old)?, named(&self.new)?])
    }
}

fn named(path: &Path) -> Result<Named, CliError> {
    let (text, name) = policy_file::text(Some(path).filter(|path| path.as_os_str() != BUILT_IN))?;
    let policy = policy_file::parse(&text, &name)?;
    Ok(Named { name, text, policy })
}
