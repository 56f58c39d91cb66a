//! Requests of several entries: checks that all share, and the answer with what went well and what didn't.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Input, Members as _};
use crate::failure::Failure;

/// Most entries of one request.
const ENTRIES_MAX: usize = 10;

/// The entries of a request, each with its id.
///
/// # Errors
/// SQS's errors for none, too many, and ids that are malformed or not distinct.
pub fn entries(input: &Input, kind: &str) -> Result<Vec<Input>, Failure> {
    let list = input.get("Entries").and_then(Value::as_array);
    let entries: Vec<Input> = list.into_iter().flatten().filter_map(Value::as_object).cloned().collect();
    if entries.is_empty() {
        let message = format!("There should be at least one {kind} in the request.");
        return Err(Failure::new(400, "EmptyBatchRequest", message));
    }
    if entries.len() > ENTRIES_MAX {
        let message =
            format!("Maximum number of entries per request are {ENTRIES_MAX}. You have sent {}.", entries.len());
        return Err(Failure::new(400, "TooManyEntriesInBatchRequest", message));
    }
    check_ids(&entries)?;
    Ok(entries)
}

fn check_ids(entries: &[Input]) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    for id in entries.iter().map(id_of) {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !(1..=80).contains(&id.len()) || !id.chars().all(is_word) {
            let message = "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be \
                           at most 80 letters long.";
            return Err(Failure::new(400, "InvalidBatchEntryId", message));
        }
        if !seen.insert(id) {
            return Err(Failure::new(400, "BatchEntryIdsNotDistinct", format!("Id {id} repeated.")));
        }
    }
    Ok(())
}

fn id_of(entry: &Input) -> &str {
    entry.text("Id").unwrap_or_default()
}

/// Does each entry, and says what became of it.
#[must_use]
pub fn each(entries: &[Input], mut act: impl FnMut(&Input) -> Result<Value, Failure>) -> Value {
    let (mut successful, mut failed) = (Vec::new(), Vec::new());
    for entry in entries {
        match act(entry) {
            Ok(value) => successful.push(with_id(entry, value)),
            Err(failure) => failed.push(json!({
                "Id": id_of(entry), "SenderFault": failure.status < 500,
                "Code": failure.query_code(), "Message": failure.message,
            })),
        }
    }
    let lists = [("Successful", successful), ("Failed", failed)];
    lists.into_iter().filter(|(_, list)| !list.is_empty()).map(|(name, list)| (name.to_owned(), json!(list))).collect()
}

fn with_id(entry: &Input, value: Value) -> Value {
    let mut members = Map::from_iter([("Id".to_owned(), json!(id_of(entry)))]);
    if let Value::Object(object) = value {
        members.extend(object);
    }
    Value::Object(members)
}
