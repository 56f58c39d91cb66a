//! `osprey schema`: what comes out with `--output json`, as JSON Schema.

use clap::Args;
use osprey_model::message::words::{nearest, quote};

use super::Exit;
use crate::error::{CliError, ErrorCode};
use crate::schema;
use crate::ui::Ui;

/// Print the JSON Schema of a command's JSON, or the names of those that have one.
///
/// A schema says what docs/json.md says, and a test holds both and what comes out together. Where a command writes a line
/// for each thing, it is the schema of a line.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey schema
  osprey schema queue
  osprey schema dead-letters list > dead-letters.schema.json")]
pub struct SchemaArgs {
    /// The command, such as `queue` or `policy check`; `errors` for what goes to standard error
    #[arg(value_name = "NAME")]
    name: Vec<String>,
}

/// Prints.
pub fn schema(args: &SchemaArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let names = schema::names();
    if args.name.is_empty() {
        if ui.is_json() {
            ui.json(&names)?;
        } else {
            ui.text(&names.join("\n"))?;
        }
        return Ok(Exit::Ok);
    }
    let name = args.name.join(" ");
    let Some(schema) = schema::of(name.trim_start_matches("osprey ")) else {
        let near = nearest(&name, names.iter().map(String::as_str));
        let near = near.map(|near| format!("did you mean {}? ", quote(near))).unwrap_or_default();
        let message = format!("no JSON of {} is described", quote(&name));
        return Err(CliError::new(ErrorCode::Usage, message).help(format!("{near}`osprey schema` lists the names")));
    };
    if ui.is_json() {
        ui.json(&schema)?;
    } else {
        let text = serde_json::to_string_pretty(&schema).map_err(|error| CliError::failed(error.to_string()))?;
        ui.text(&text)?;
    }
    Ok(Exit::Ok)
}
