//! The shorthand of the AWS command line: `command=sleep,3,environment=[{name=A,value=b}]`, and JSON beside it.
//!
//! What a member is comes from its name: the few that are numbers or lists in a request are listed here. Values of
//! free maps (tags, parameters) are always text.

use serde_json::{Map, Value};

use crate::error::{CliError, ErrorCode};
use crate::plain;

/// Members that are numbers.
const NUMBERS: [&str; 6] = ["attempts", "attemptDurationSeconds", "memory", "numNodes", "size", "vcpus"];
/// Members that are lists; a single value is a list of one.
const LISTS: [&str; 6] =
    ["command", "environment", "evaluateOnExit", "instanceTypes", "nodePropertyOverrides", "resourceRequirements"];
/// Deepest nesting that is read.
const DEPTH_MAX: u32 = 16;

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Members of a request, typed by their names.
    Members,
    /// Names and texts.
    Texts,
}

/// Reads an option's value: JSON when it begins with a brace or a bracket, shorthand otherwise.
///
/// # Errors
/// Names the option and the place of the fault.
pub fn parse(option: &str, text: &str, shape: Shape) -> Result<Value, CliError> {
    let trimmed = text.trim();
    if trimmed.starts_with(['{', '[']) {
        return serde_json::from_str(trimmed).map_err(|fault| unreadable(option, &plain::fault(&fault)));
    }
    let mut reader = Reader { rest: trimmed, length: trimmed.len(), shape, depth: 0 };
    let members = reader.members().and_then(|members| match reader.rest {
        "" => Ok(members),
        rest => Err(format!("nothing can stand before `{rest}`")),
    });
    members.map(Value::Object).map_err(|fault| unreadable(option, &fault))
}

fn unreadable(option: &str, fault: &str) -> CliError {
    CliError::new(ErrorCode::Usage, format!("`{option}` can't be read: {fault}"))
        .help("write JSON, or the shorthand of the AWS command line such as `attempts=3` or `command=sleep,3`")
}

struct Reader<'a> {
    rest: &'a str,
    length: usize,
    shape: Shape,
    depth: u32,
}

type Read<T> = Result<T, String>;

impl<'a> Reader<'a> {
    /// `key=value,key=value`.
    fn members(&mut self) -> Read<Map<String, Value>> {
        let mut members = Map::new();
        loop {
            let key = self.key()?;
            let value = self.value(&key)?;
            if members.insert(key.clone(), value).is_some() {
                return Err(format!("`{key}` is given twice"));
            }
            if !self.take(',') {
                return Ok(members);
            }
        }
    }

    fn key(&mut self) -> Read<String> {
        let at = self.length - self.rest.len() + 1;
        let (key, rest) =
            self.rest.split_once('=').ok_or_else(|| format!("a name and `=` are missing at character {at}"))?;
        if key.is_empty() || key.contains([',', '[', ']', '{', '}']) {
            return Err(format!("a name and `=` are missing at character {at}"));
        }
        self.rest = rest;
        Ok(key.trim().to_owned())
    }

    /// One value, or several with commas between them as long as no name follows.
    fn value(&mut self, key: &str) -> Read<Value> {
        let first = self.single(key)?;
        if first.is_array() || self.shape == Shape::Texts {
            return Ok(first);
        }
        let mut values = vec![first];
        while self.rest.starts_with(',') && !self.names_next() {
            self.take(',');
            values.push(self.single(key)?);
        }
        let is_list = values.len() > 1 || LISTS.contains(&key);
        if is_list { Ok(Value::Array(values)) } else { values.pop().ok_or_else(|| "a value is missing".to_owned()) }
    }

    /// Whether what follows the comma is the next member and no further value.
    fn names_next(&self) -> bool {
        let after = self.rest.get(1..).unwrap_or_default();
        let word = after.split([',', '[', ']', '{', '}', '"', '\'']).next().unwrap_or_default();
        word.contains('=')
    }

    fn single(&mut self, key: &str) -> Read<Value> {
        match self.rest.chars().next() {
            Some('[') => self.nested(|reader| reader.list(key)),
            Some('{') => self.nested(Self::object),
            Some(quote @ ('"' | '\'')) => self.quoted(quote).map(Value::String),
            _ => Ok(self.bare(key)),
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Read<Value>) -> Read<Value> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("it is nested deeper than {DEPTH_MAX}"));
        }
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn list(&mut self, key: &str) -> Read<Value> {
        self.take('[');
        let mut values = Vec::new();
        while !self.take(']') {
            values.push(self.single(key)?);
            if !self.take(',') && !self.rest.starts_with(']') {
                return Err("a `]` is missing".to_owned());
            }
        }
        Ok(Value::Array(values))
    }

    fn object(&mut self) -> Read<Value> {
        self.take('{');
        let members = self.members()?;
        if self.take('}') { Ok(Value::Object(members)) } else { Err("a `}` is missing".to_owned()) }
    }

    fn quoted(&mut self, quote: char) -> Read<String> {
        let mut text = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => text.extend(characters.next().map(|(_, escaped)| escaped)),
                c if c == quote => {
                    self.rest = self.rest.get(at + c.len_utf8()..).unwrap_or_default();
                    return Ok(text);
                }
                c => text.push(c),
            }
        }
        Err(format!("a closing {quote} is missing"))
    }

    fn bare(&mut self, key: &str) -> Value {
        let end = self.rest.find([',', ']', '}']).unwrap_or(self.rest.len());
        let (word, rest): (&'a str, &'a str) = self.rest.split_at(end);
        self.rest = rest;
        let word = word.trim();
        let is_number = self.shape == Shape::Members && NUMBERS.contains(&key);
        match word.parse::<i64>() {
            Ok(number) if is_number => Value::from(number),
            _ => Value::from(word),
        }
    }

    fn take(&mut self, character: char) -> bool {
        let rest = self.rest.trim_start().strip_prefix(character);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn members(text: &str) -> Value {
        parse("--x", text, Shape::Members).unwrap()
    }

    #[test]
    fn members_are_typed_by_their_names() {
        assert_eq!(members("attempts=3"), json!({ "attempts": 3 }));
        assert_eq!(members("size=10"), json!({ "size": 10 }));
        assert_eq!(members("command=sleep"), json!({ "command": ["sleep"] }));
        assert_eq!(members("jobId=a,type=N_TO_N"), json!({ "jobId": "a", "type": "N_TO_N" }));
    }

    #[test]
    fn commas_separate_values_until_a_name_follows() {
        assert_eq!(
            members("command=sh,-c,true,environment=[{name=A,value=b},{name=C,value='d,e'}],memory=16"),
            json!({
                "command": ["sh", "-c", "true"],
                "environment": [{ "name": "A", "value": "b" }, { "name": "C", "value": "d,e" }],
                "memory": 16,
            })
        );
    }

    #[test]
    fn a_single_object_is_a_list_of_one_where_a_list_is_meant() {
        assert_eq!(
            members("resourceRequirements={type=GPU,value=4},{type=MEMORY,value=8}"),
            json!({ "resourceRequirements": [{ "type": "GPU", "value": "4" }, { "type": "MEMORY", "value": "8" }] })
        );
        assert_eq!(
            members("attempts=2,evaluateOnExit={onReason='Host EC2*',action=RETRY}"),
            json!({ "attempts": 2, "evaluateOnExit": [{ "onReason": "Host EC2*", "action": "RETRY" }] })
        );
    }

    #[test]
    fn values_of_maps_stay_text() {
        let tags = parse("--tags", "team=search,size=4,note=a=b", Shape::Texts).unwrap();
        assert_eq!(tags, json!({ "team": "search", "size": "4", "note": "a=b" }));
    }

    #[test]
    fn json_is_taken_as_it_is() {
        assert_eq!(members(r#" {"command":["a,b=c"]}"#), json!({ "command": ["a,b=c"] }));
    }

    #[test]
    fn faults_name_the_option_and_the_place() {
        for (text, want) in [
            ("sleep", "`--x` can't be read: a name and `=` are missing at character 1"),
            ("a=1,=b", "`--x` can't be read: a name and `=` are missing at character 5"),
            ("a=[1", "`--x` can't be read: a `]` is missing"),
            ("a={b=1", "`--x` can't be read: a `}` is missing"),
            ("a='b", "`--x` can't be read: a closing ' is missing"),
            ("a=1,a=2", "`--x` can't be read: `a` is given twice"),
            ("a=b}", "`--x` can't be read: nothing can stand before `}`"),
        ] {
            assert_eq!(parse("--x", text, Shape::Members).unwrap_err().message, want, "{text}");
        }
    }
}
