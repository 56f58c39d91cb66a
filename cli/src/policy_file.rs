//! The policy of a command: a file, or the default that ships with the program.

use std::path::Path;

use osprey_policy::{DEFAULT, Policy};

use crate::error::{CliError, ErrorCode};
use crate::input;

/// Loads the policy of `--policy`, or the default without it.
///
/// # Errors
/// For a file that can't be read or has mistakes.
pub fn load(path: Option<&Path>) -> Result<Policy, CliError> {
    let (text, name) = text(path)?;
    parse(&text, &name)
}

/// The text of the policy of `--policy`, or of the default, and what to call it.
///
/// # Errors
/// For a file that can't be read.
pub fn text(path: Option<&Path>) -> Result<(String, String), CliError> {
    match path {
        None => Ok((DEFAULT.to_owned(), "default".to_owned())),
        Some(path) => Ok((read(path)?, path.display().to_string())),
    }
}

/// The text of a policy file; one that isn't UTF-8 is no policy.
///
/// # Errors
/// For a file that can't be read.
pub fn read(path: &Path) -> Result<String, CliError> {
    input::read_text(path).map_err(|error| match error.code {
        ErrorCode::InvalidInput => CliError { code: ErrorCode::InvalidPolicy, ..error },
        _ => error,
    })
}

/// Reads a policy from its text; `name` is said in the error.
///
/// # Errors
/// For a text with mistakes: how many, and the first.
pub fn parse(text: &str, name: &str) -> Result<Policy, CliError> {
    Policy::load(text).map(|loaded| loaded.policy).map_err(|errors| {
        let count = errors.len();
        let first = errors.first().map(ToString::to_string).unwrap_or_default();
        let noun = if count == 1 { "mistake" } else { "mistakes" };
        CliError::new(ErrorCode::InvalidPolicy, format!("policy `{name}` has {count} {noun}; the first: {first}"))
            .help(format!("`osprey policy check {name}` shows them all"))
    })
}
