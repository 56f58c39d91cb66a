//! `osprey completions`: what a shell needs to complete commands and options.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::{Cli, Exit};
use crate::error::CliError;
use crate::ui::Ui;

/// Print the completions of a shell: commands, options, and the values that they take.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  source <(osprey completions bash)                              this shell alone
  osprey completions bash > ~/.local/share/bash-completion/completions/osprey
  osprey completions zsh > ~/.zfunc/_osprey                      with ~/.zfunc in fpath
  osprey completions fish > ~/.config/fish/completions/osprey.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints.
pub fn completions(args: &CompletionsArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "osprey", &mut script);
    ui.draw(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}
