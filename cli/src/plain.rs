//! Faults of JSON that people wrote, in plain words: which member, what is wanted there, what stands there.

use osprey_model::message::json_fault;
use osprey_model::message::words::{either, nearest, quote};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// What a parser wants, and how people say it.
const WANTED: [(&str, &str); 10] = [
    ("a string", "a text"),
    ("a boolean", "true or false"),
    ("a sequence", "a list"),
    ("a map", "an object"),
    ("f64", "a number"),
    ("i64", "a whole number"),
    ("u64", "a whole number from 0"),
    ("u32", "a whole number from 0"),
    ("usize", "a whole number from 0"),
    ("unit", "null"),
];

/// Reads an object of these members, each on its own first, so that a fault names its member.
///
/// # Errors
/// One sentence for a member that isn't known, or whose value is of another kind.
pub fn typed<T: DeserializeOwned>(object: Map<String, Value>, known: &[&str], must: &[&str]) -> Result<T, String> {
    if let Some(missing) = must.iter().find(|name| !object.contains_key(**name)) {
        return Err(format!("{} is missing", quote(missing)));
    }
    for (name, value) in &object {
        check_member(name, known)?;
        let musts = must.iter().filter_map(|must| object.get_key_value(*must)).map(|(k, v)| (k.clone(), v.clone()));
        let alone = musts.chain([(name.clone(), value.clone())]).collect();
        if let Err(fault) = serde_json::from_value::<T>(Value::Object(alone)) {
            return Err(format!("{}: {}", quote(name), data_fault(&fault)));
        }
    }
    serde_json::from_value(Value::Object(object)).map_err(|fault| data_fault(&fault))
}

/// Refuses a member that isn't known.
///
/// # Errors
/// One sentence with the nearest known one.
pub fn check_member(name: &str, known: &[&str]) -> Result<(), String> {
    if known.contains(&name) {
        return Ok(());
    }
    let way_out = match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean {}?", quote(near)),
        None => format!("known are {}", either(known.iter().copied())),
    };
    Err(format!("there is no member {}; {way_out}", quote(name)))
}

/// What is wrong with a text that should be JSON, or JSON of a certain kind.
#[must_use]
pub fn fault(error: &serde_json::Error) -> String {
    if error.is_data() { data_fault(error) } else { json_fault(error) }
}

fn data_fault(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    if let Some(name) = text.strip_prefix("missing field ") {
        return format!("{name} is missing");
    }
    let found = text.strip_prefix("invalid type: ").or_else(|| text.strip_prefix("invalid value: "));
    match found.and_then(|found| found.split_once(", expected ")) {
        Some((given, wanted)) => format!("{} is wanted; {} was given", wanted_words(wanted), given_words(given)),
        None => text.to_owned(),
    }
}

fn wanted_words(wanted: &str) -> &str {
    if wanted.starts_with("struct ") || wanted.starts_with("internally tagged enum") {
        return "an object";
    }
    WANTED.iter().find(|(parser, _)| *parser == wanted).map_or(wanted, |(_, words)| words)
}

fn given_words(given: &str) -> String {
    let Some((kind, value)) = given.split_once(' ') else {
        return match given {
            "map" => "an object".to_owned(),
            "sequence" => "a list".to_owned(),
            other => other.to_owned(),
        };
    };
    match kind {
        "string" => format!("the text {}", quote(value.trim_matches('"'))),
        "floating" => value.trim_start_matches("point ").trim_matches('`').to_owned(),
        _ => value.trim_matches('`').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[expect(dead_code, reason = "only whether it can be read is asked")]
    struct Sample {
        name: String,
        #[serde(default)]
        count: u32,
        #[serde(default)]
        parts: Vec<String>,
    }

    fn said(text: &str) -> String {
        let Value::Object(object) = serde_json::from_str(text).unwrap() else { panic!("{text}") };
        typed::<Sample>(object, &["name", "count", "parts"], &["name"]).unwrap_err()
    }

    #[test]
    fn a_fault_names_its_member_and_what_is_wanted() {
        for (text, want) in [
            ("{}", "`name` is missing"),
            (r#"{"name":"a","cuont":1}"#, "there is no member `cuont`; did you mean `count`?"),
            (r#"{"name":"a","colour":1}"#, "there is no member `colour`; known are `name`, `count` or `parts`"),
            (r#"{"name":"a","count":"3"}"#, "`count`: a whole number from 0 is wanted; the text `3` was given"),
            (r#"{"name":"a","count":1.5}"#, "`count`: a whole number from 0 is wanted; 1.5 was given"),
            (r#"{"name":"a","count":-1}"#, "`count`: a whole number from 0 is wanted; -1 was given"),
            (r#"{"name":"a","parts":{}}"#, "`parts`: a list is wanted; an object was given"),
            (r#"{"name":7}"#, "`name`: a text is wanted; 7 was given"),
        ] {
            assert_eq!(said(text), want, "{text}");
        }
    }

    #[test]
    fn syntax_is_told_in_plain_words_too() {
        let error = serde_json::from_str::<Value>("{").unwrap_err();
        assert_eq!(fault(&error), "it ends inside an object, at character 1");
    }
}
