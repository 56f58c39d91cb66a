//! Tags: how many with ours, how long, which characters, and which names belong to others.

use std::collections::BTreeMap;

use osprey_model::definition::JobDefinition;
use osprey_model::limits::{TAG_KEY_CHARACTERS_MAX, TAG_VALUE_CHARACTERS_MAX, TAGS_MAX};
use osprey_model::message::tags::{ARRAY_INDEX_TAG, JOB_ID_TAG, LOCAL_RECLAIM_AFTER_TAG};
use osprey_model::message::words::quote;
use osprey_model::message::{chosen_job_id, reserved_tags};
use osprey_model::metadata::parse_duration;
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_model::request::SubmitJobRequest;

use crate::admission::Findings;

/// The signs that a tag may hold beside letters, digits and spaces (tagging rules of AWS).
const SIGNS: &str = "_.:/=+-@";

pub(super) fn check(
    request: &SubmitJobRequest,
    definition: Option<&JobDefinition>,
    our_tags: usize,
    findings: &mut Findings,
) {
    let none = BTreeMap::new();
    let tags = request.tags.as_ref().unwrap_or(&none);
    findings.refuse(too_many(request, tags, definition, our_tags));
    for (name, value) in tags {
        findings.refuse(name_fault(name));
        findings.refuse(value_fault(name, value));
    }
    findings.refuse(chosen_job_id(request).err());
    findings.refuse(tags.get(LOCAL_RECLAIM_AFTER_TAG).and_then(|value| reclaim_fault(value)));
    findings.refuse(tags.get(ARRAY_INDEX_TAG).and_then(|value| variable_fault(value)));
    for refusal in reserved_tags(request) {
        findings.refuse(Some(refusal));
    }
}

/// With `propagateTags` the tags of the definition count as well, and a job above the limit is accepted and then fails.
fn too_many(
    request: &SubmitJobRequest,
    tags: &BTreeMap<String, String>,
    definition: Option<&JobDefinition>,
    our_tags: usize,
) -> Option<Refusal> {
    let propagates =
        request.propagate_tags.or(definition.and_then(|definition| definition.propagate_tags)) == Some(true);
    let of_definition = definition
        .filter(|_| propagates)
        .map_or(0, |definition| definition.tags.keys().filter(|name| !tags.contains_key(*name)).count());
    // A job id that the user chose is the same tag as ours.
    let ours = our_tags.saturating_sub(usize::from(tags.contains_key(JOB_ID_TAG)));
    let given = tags.len();
    (given + of_definition + ours > TAGS_MAX).then(|| {
        let besides = if of_definition > 0 { format!(" and {of_definition} of the job definition") } else { String::new() };
        let most = TAGS_MAX.saturating_sub(ours + of_definition);
        let message = format!(
            "a job takes at most {TAGS_MAX} tags with {ours} of Osprey{besides}; {given} were given; keep at most {most}"
        );
        Refusal::new(ReasonCode::TooManyTags, message)
    })
}

fn name_fault(name: &str) -> Option<Refusal> {
    let length = name.chars().count();
    if !(1..=TAG_KEY_CHARACTERS_MAX).contains(&length) {
        let limits = format!("1 to {TAG_KEY_CHARACTERS_MAX} characters");
        return Some(invalid(format!("the name of a tag has {limits}; {} has {length}", quote(name))));
    }
    bad_character(name).map(|sign| invalid(format!("the name of tag {} {}", quote(name), characters(sign))))
}

fn value_fault(name: &str, value: &str) -> Option<Refusal> {
    let length = value.chars().count();
    if length > TAG_VALUE_CHARACTERS_MAX {
        let message = format!(
            "the value of a tag has at most {TAG_VALUE_CHARACTERS_MAX} characters; that of {} has {length}; put long text into a variable",
            quote(name)
        );
        return Some(invalid(message));
    }
    bad_character(value).map(|sign| invalid(format!("the value of tag {} {}", quote(name), characters(sign))))
}

fn bad_character(text: &str) -> Option<char> {
    let fits = |c: char| c.is_alphanumeric() || (c.is_whitespace() && !c.is_control()) || SIGNS.contains(c);
    text.chars().find(|c| !fits(*c))
}

fn characters(given: char) -> String {
    format!("may hold letters, digits, spaces and `{SIGNS}`; {} was given", quote(&given.to_string()))
}

fn reclaim_fault(value: &str) -> Option<Refusal> {
    parse_duration(value).err().map(|error| {
        invalid(format!(
            "tag `{LOCAL_RECLAIM_AFTER_TAG}` must be a duration such as `3s`; {} was given: {error}",
            quote(value)
        ))
    })
}

fn variable_fault(value: &str) -> Option<Refusal> {
    let fits = !value.is_empty()
        && !value.starts_with(|c: char| c.is_ascii_digit())
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (!fits).then(|| {
        let wanted = "the name of the variable that tells a child its index, such as `INDEX`";
        invalid(format!("tag `{ARRAY_INDEX_TAG}` must be {wanted}; {} was given", quote(value)))
    })
}

fn invalid(message: String) -> Refusal {
    Refusal::new(ReasonCode::InvalidTag, message)
}
