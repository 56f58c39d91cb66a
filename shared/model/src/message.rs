//! The message: a body of the submission queue into a request or an action, or the reason why it is neither.
//!
//! A body is *malformed* when it is no JSON object at all: nobody can say which job it meant, so it becomes a dead
//! letter. An object that is no valid request is *refused*: its sender is told every fault, each with its path.

mod action;
mod fault;
mod json;
mod path;
mod schema;
mod shape;
pub mod tags;
pub mod words;

use std::fmt;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::limits::{CHECKPOINT_URI_CHARACTERS_MAX, MESSAGE_BYTES_MAX, REASON_CHARS_MAX};
use crate::pool::PoolMode;
use crate::reason::{ReasonCode, Refusal};
use crate::request::SubmitJobRequest;
use schema::{ACTIONS, SUBMIT_JOB};
use shape::{Faults, Member, Walk};
use words::{either, nearest, quote};

pub use action::{Action, Subject};
pub use fault::json_fault;
pub use tags::{chosen_job_id, reserved_tags};

/// A job id as an example in sentences.
const JOB_ID_EXAMPLE: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";

/// Most points that a report may be about.
const POINTS_MAX: i64 = 9_999;
/// Most GPUs that anybody can keep: more than any pool has.
const GPUS_MAX: i64 = 1_000_000;
/// Longest name of a team, as a tag holds it.
const TEAM_BYTES_MAX: usize = 256;

/// What a body of the submission queue says.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// A job.
    Submit(Box<SubmitJobRequest>),
    /// Something to be done to a job or a dead letter.
    Action(Action),
}

/// Why a body is no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Stable code; of several faults, the code of the first.
    pub code: ReasonCode,
    /// Every fault in one sentence each, joined by `; `.
    pub message: String,
    /// True when the body is no JSON object: a dead letter. False when it is one and says something wrong: refused.
    pub malformed: bool,
}

impl Rejection {
    fn malformed(code: ReasonCode, message: String) -> Self {
        Self { code, message, malformed: true }
    }
}

impl From<Refusal> for Rejection {
    fn from(Refusal { code, message }: Refusal) -> Self {
        Self { code, message, malformed: false }
    }
}

impl From<Rejection> for Refusal {
    fn from(rejection: Rejection) -> Self {
        Self::new(rejection.code, rejection.message)
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for Rejection {}

/// Reads a body that may not even be text, such as a line of a file.
///
/// # Errors
/// [`ReasonCode::NotText`] for bytes that aren't UTF-8; else what [`parse`] says.
pub fn parse_bytes(body: &[u8]) -> Result<Message, Rejection> {
    match std::str::from_utf8(body) {
        Ok(text) => parse(text),
        Err(error) => {
            let at = error.valid_up_to();
            Err(Rejection::malformed(
                ReasonCode::NotText,
                format!("the body is not UTF-8: byte {at} begins no character; send JSON as UTF-8"),
            ))
        }
    }
}

/// Reads a body of the submission queue.
///
/// # Errors
/// Malformed: not text that a queue carries, not JSON, no object. Refused: larger than a queue takes, a member given
/// twice, an unknown action, and every difference from the shape of a request or of the action.
pub fn parse(body: &str) -> Result<Message, Rejection> {
    check_text(body)?;
    let document = json::read(body).map_err(|error| not_json(body, &error))?;
    let Value::Object(object) = document.value else {
        return Err(not_an_object(&document.value));
    };
    let mut faults = Faults::default();
    for path in &document.repeated {
        faults.add(ReasonCode::DuplicateMember, || format!("{} is given twice; keep one", quote(path)));
    }
    match object.get("action") {
        Some(name) => action(name, &object, faults),
        None => submit(object, faults),
    }
}

/// Reads a request that [`parse`] has let through before, such as one that is kept with its job. Nothing is said of what
/// is wrong in it.
#[must_use]
pub fn reread(body: &str) -> Option<SubmitJobRequest> {
    serde_json::from_str(body).ok()
}

fn check_text(body: &str) -> Result<(), Rejection> {
    if body.len() > MESSAGE_BYTES_MAX {
        let given = body.len();
        let message = format!("a message takes at most {MESSAGE_BYTES_MAX} bytes; {given} were given");
        return Err(Refusal::new(ReasonCode::RequestTooLarge, message).into());
    }
    match body.char_indices().find(|(_, character)| !queue_carries(*character)) {
        None => Ok(()),
        Some((at, character)) => Err(Rejection::malformed(
            ReasonCode::NotText,
            format!(
                "the body holds the character U+{:04X} at byte {at}, which a queue cannot carry; write it as \\u{:04x} inside a JSON text",
                u32::from(character),
                u32::from(character)
            ),
        )),
    }
}

/// What SQS takes in a body (API reference, `SendMessage`): tab, line feed, carriage return, and from U+0020 all but
/// U+FFFE and U+FFFF.
fn queue_carries(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | '\u{20}'..='\u{fffd}' | '\u{10000}'..)
}

fn not_json(body: &str, error: &serde_json::Error) -> Rejection {
    let cause = if body.trim().is_empty() { "it is empty".to_owned() } else { json_fault(error) };
    Rejection::malformed(ReasonCode::NotJson, format!("the body is not JSON: {cause}"))
}

fn not_an_object(value: &Value) -> Rejection {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    Rejection::malformed(ReasonCode::NotAnObject, format!("the body must be a JSON object; {kind} was given"))
}

fn submit(object: Map<String, Value>, mut faults: Faults) -> Result<Message, Rejection> {
    Walk::new("a `SubmitJob` request", SUBMIT_JOB, &mut faults).run(&object);
    if let Some(refusal) = faults.into_refusal() {
        return Err(refusal.into());
    }
    let request = typed::<SubmitJobRequest>(object)?;
    Ok(Message::Submit(Box::new(request)))
}

fn action(name: &Value, object: &Map<String, Value>, mut faults: Faults) -> Result<Message, Rejection> {
    let members = members_of(name)?;
    Walk::new("this action", members, &mut faults).run(object);
    if let Some(refusal) = faults.into_refusal() {
        return Err(refusal.into());
    }
    let checks = [
        long_reason,
        unknown_mode,
        nothing_to_set,
        unusable_uri,
        unusable_progress,
        unusable_points,
        unusable_gpus,
        unusable_until,
        unusable_team,
    ];
    if let Some(refusal) = checks.iter().find_map(|check| check(object)) {
        return Err(refusal.into());
    }
    Ok(Message::Action(typed(object.clone())?))
}

/// `SetMode` sets at least one thing.
fn nothing_to_set(object: &Map<String, Value>) -> Option<Refusal> {
    let is_there = |member: &str| object.get(member).is_some_and(|value| !value.is_null());
    let sets = object.get("action")?.as_str()? != "SetMode" || is_there("mode") || is_there("preemption");
    (!sets).then(|| {
        let sentence = "`SetMode` sets nothing; give it `mode`, `preemption` or both";
        Refusal::new(ReasonCode::MissingMember, sentence)
    })
}

/// An address goes into a variable of a container, where there is room for so much.
fn unusable_uri(object: &Map<String, Value>) -> Option<Refusal> {
    let uri = object.get("uri")?.as_str()?;
    let given = uri.chars().count();
    if uri.trim().is_empty() || uri.chars().any(char::is_control) {
        let sentence = "`uri` must be the address of a checkpoint, such as \"s3://bucket/run/step-500\"";
        return Some(Refusal::new(ReasonCode::InvalidText, sentence));
    }
    (given > CHECKPOINT_URI_CHARACTERS_MAX).then(|| {
        let most = CHECKPOINT_URI_CHARACTERS_MAX;
        let sentence = format!("`uri` has {given} characters where {most} are allowed; report the folder above it");
        Refusal::new(ReasonCode::InvalidText, sentence)
    })
}

fn unusable_progress(object: &Map<String, Value>) -> Option<Refusal> {
    let given = object.get("progress")?.as_i64()?;
    (!(0..=100).contains(&given)).then(|| {
        let sentence = format!("`progress` is {given} where 0 to 100 percent are allowed");
        Refusal::new(ReasonCode::WrongType, sentence)
    })
}

/// A number has four digits, so nothing can be further from another.
fn unusable_points(object: &Map<String, Value>) -> Option<Refusal> {
    let given = object.get("points")?.as_i64()?;
    (!(-POINTS_MAX..=POINTS_MAX).contains(&given)).then(|| {
        let sentence = format!("`points` is {given} where -{POINTS_MAX} to {POINTS_MAX} are allowed");
        Refusal::new(ReasonCode::WrongType, sentence)
    })
}

fn unusable_gpus(object: &Map<String, Value>) -> Option<Refusal> {
    let given = object.get("gpus")?.as_i64()?;
    (!(0..=GPUS_MAX).contains(&given)).then(|| {
        let sentence = format!("`gpus` is {given} where 0 to {GPUS_MAX} are allowed; 0 ends what was kept");
        Refusal::new(ReasonCode::WrongType, sentence)
    })
}

/// What is kept is kept until some time.
fn unusable_until(object: &Map<String, Value>) -> Option<Refusal> {
    let keeps = object.get("gpus").and_then(Value::as_i64).is_some_and(|gpus| gpus > 0);
    let Some(given) = object.get("until").filter(|value| !value.is_null()) else {
        return keeps.then(|| {
            let sentence = "`Reserve` needs `until`, the time at which it ends, such as \"2030-01-31T18:00:00Z\"";
            Refusal::new(ReasonCode::MissingMember, sentence)
        });
    };
    let text = given.as_str()?;
    text.parse::<Timestamp>().is_err().then(|| {
        let sentence = format!("`until` is {} where a time such as \"2030-01-31T18:00:00Z\" is wanted", quote(text));
        Refusal::new(ReasonCode::InvalidText, sentence)
    })
}

fn unusable_team(object: &Map<String, Value>) -> Option<Refusal> {
    let given = object.get("team")?.as_str()?;
    let is_name = !given.trim().is_empty() && given.len() <= TEAM_BYTES_MAX && !given.chars().any(char::is_control);
    (!is_name).then(|| {
        let sentence = format!("`team` must be the name of a team, of at most {TEAM_BYTES_MAX} bytes");
        Refusal::new(ReasonCode::InvalidText, sentence)
    })
}

/// Batch keeps a reason of at most so many characters, and so do the records.
fn long_reason(object: &Map<String, Value>) -> Option<Refusal> {
    let given = object.get("reason")?.as_str()?.chars().count();
    (given > REASON_CHARS_MAX).then(|| {
        let sentence = format!("`reason` has {given} characters where {REASON_CHARS_MAX} are allowed; shorten it");
        Refusal::new(ReasonCode::InvalidText, sentence)
    })
}

fn unknown_mode(object: &Map<String, Value>) -> Option<Refusal> {
    let given = object.get("mode")?.as_str()?;
    let known = PoolMode::ALL.map(PoolMode::as_str);
    (!known.contains(&given)).then(|| {
        let sentence = format!("there is no mode {}; known are {}", quote(given), either(known));
        Refusal::new(ReasonCode::WrongType, sentence)
    })
}

fn members_of(name: &Value) -> Result<&'static [Member], Rejection> {
    let known = || ACTIONS.iter().map(|(name, _)| *name);
    let given = name.as_str().map_or_else(|| name.to_string(), str::to_owned);
    let found = ACTIONS.iter().find(|(known, _)| name.as_str() == Some(known));
    found.map(|(_, members)| *members).ok_or_else(|| {
        let help = match nearest(&given, known()) {
            Some(near) => format!("did you mean {}?", quote(near)),
            None => format!("known are {}", either(known())),
        };
        Refusal::new(ReasonCode::UnknownAction, format!("there is no action {}; {help}", quote(&given))).into()
    })
}

/// INVARIANT: the walk found nothing, so the types take it; a fault here means that shape and type disagree.
fn typed<T: serde::de::DeserializeOwned>(object: Map<String, Value>) -> Result<T, Rejection> {
    serde_json::from_value(Value::Object(object))
        .map_err(|error| Refusal::new(ReasonCode::WrongType, format!("the request can't be read: {error}")).into())
}

#[cfg(test)]
mod tests;
