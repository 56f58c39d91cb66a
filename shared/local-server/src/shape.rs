//! Requests read against the shapes of AWS's API models: types and required members are checked, members that no model
//! knows are dropped, `null` counts as absent.
//!
//! A file of shapes has one line a shape, written by `tests/aws-clients/shapes.py`.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::failure::{Failure, Protocol};

/// The shapes of one service.
pub struct Shapes {
    protocol: Protocol,
    by_name: HashMap<&'static str, Shape>,
}

enum Shape {
    Struct(Vec<Member>),
    List(&'static str),
    Map(&'static str),
}

struct Member {
    name: &'static str,
    required: bool,
    shape: &'static str,
}

impl Shapes {
    /// Reads a file of shapes; lines that are none are left out.
    #[must_use]
    pub fn parse(protocol: Protocol, text: &'static str) -> Self {
        Self { protocol, by_name: text.lines().filter_map(shape).collect() }
    }

    /// A body as JSON of a shape; an empty body is an empty object.
    ///
    /// # Errors
    /// A SerializationException for what is no JSON object or has a wrong type; an error of the service for a member
    /// that is missing.
    pub fn read(&self, shape: &str, body: &[u8]) -> Result<Map<String, Value>, Failure> {
        self.read_with(shape, body, [])
    }

    /// As [`Self::read`], with members that travel outside the body.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_with<const N: usize>(
        &self,
        shape: &str,
        body: &[u8],
        outside: [(&str, &str); N],
    ) -> Result<Map<String, Value>, Failure> {
        let mut value = match body.trim_ascii() {
            [] => Value::Object(Map::new()),
            text => {
                serde_json::from_slice(text).map_err(|_| Failure::serialization("The request is not valid JSON"))?
            }
        };
        if let Some(object) = value.as_object_mut() {
            object.extend(outside.map(|(name, text)| (name.to_owned(), Value::String(text.to_owned()))));
        }
        self.object(shape, value)
    }

    /// A value as an object of a shape.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn object(&self, shape: &str, value: Value) -> Result<Map<String, Value>, Failure> {
        match self.value(shape, value)? {
            Value::Object(object) => Ok(object),
            other => Err(mismatch(&other, "a structure")),
        }
    }

    fn value(&self, shape: &str, value: Value) -> Result<Value, Failure> {
        match (self.by_name.get(shape), value) {
            (Some(Shape::Struct(members)), Value::Object(object)) => self.members(members, object),
            (Some(Shape::Map(of)), Value::Object(object)) => {
                let entries = object.into_iter().filter(|(_, value)| !value.is_null());
                entries.map(|(key, value)| Ok((key, self.value(of, value)?))).collect()
            }
            (Some(Shape::List(of)), Value::Array(list)) => {
                list.into_iter().filter(|value| !value.is_null()).map(|value| self.value(of, value)).collect()
            }
            (Some(Shape::List(_)), other) => Err(mismatch(&other, "a list")),
            (Some(_), other) => Err(mismatch(&other, "a structure")),
            (None, value) => scalar(shape, value),
        }
    }

    fn members(&self, members: &[Member], mut given: Map<String, Value>) -> Result<Value, Failure> {
        let mut kept = Map::new();
        for member in members {
            match given.remove(member.name) {
                Some(Value::Null) | None if member.required => return Err(self.missing(member.name)),
                Some(Value::Null) | None => {}
                Some(value) => {
                    kept.insert(member.name.to_owned(), self.value(member.shape, value)?);
                }
            }
        }
        Ok(Value::Object(kept))
    }

    fn missing(&self, member: &str) -> Failure {
        match self.protocol {
            Protocol::Batch => Failure::client(format!("{member} must be specified.")),
            Protocol::Sqs => Failure::new(
                400,
                "MissingRequiredParameterException",
                format!("The request must contain the parameter {member}."),
            ),
        }
    }
}

#[cfg(test)]
impl Shapes {
    /// A value with every member of a shape, for tests of whoever reads it.
    pub(crate) fn sample(&self, shape: &str) -> Value {
        match self.by_name.get(shape) {
            Some(Shape::Struct(members)) => {
                members.iter().map(|member| (member.name.to_owned(), self.sample(member.shape))).collect()
            }
            Some(Shape::List(of)) => Value::Array(vec![self.sample(of)]),
            Some(Shape::Map(of)) => Value::Object(Map::from_iter([("key".to_owned(), self.sample(of))])),
            None => match shape {
                "i" | "l" => 1.into(),
                "d" => 0.5.into(),
                "b" => true.into(),
                _ => "text".into(),
            },
        }
    }
}

fn shape(line: &'static str) -> Option<(&'static str, Shape)> {
    let mut words = line.split_ascii_whitespace();
    let name = words.next()?;
    let shape = match words.next()? {
        "list" => Shape::List(words.next()?),
        "map" => Shape::Map(words.next()?),
        _ => Shape::Struct(words.filter_map(member).collect()),
    };
    Some((name, shape))
}

fn member(word: &'static str) -> Option<Member> {
    let (name, shape) = word.split_once(':')?;
    let required = name.ends_with('!');
    Some(Member { name: name.trim_end_matches('!'), required, shape })
}

fn scalar(kind: &str, value: Value) -> Result<Value, Failure> {
    let (fits, wanted) = match kind {
        "s" => (value.is_string(), "a String"),
        "i" => (value.as_i64().is_some_and(|n| i32::try_from(n).is_ok()), "an Integer"),
        "l" => (value.as_i64().is_some(), "a Long"),
        "d" => (value.is_number(), "a Double"),
        "b" => (value.is_boolean(), "a Boolean"),
        "x" => (value.as_str().is_some_and(|text| crate::encoding::base64_decoded(text).is_some()), "a Blob"),
        _ => (true, ""),
    };
    if fits { Ok(value) } else { Err(mismatch(&value, wanted)) }
}

/// The words of AWS's own reader.
fn mismatch(found: &Value, wanted: &str) -> Failure {
    let found = match found {
        Value::Array(_) => return Failure::serialization("Start of list found where not expected"),
        Value::Object(_) => return Failure::serialization("Start of structure or map found where not expected."),
        Value::String(_) => "STRING_VALUE",
        Value::Number(_) => "NUMBER_VALUE",
        Value::Bool(true) => "TRUE_VALUE",
        Value::Bool(false) => "FALSE_VALUE",
        Value::Null => "NULL_VALUE",
    };
    Failure::serialization(format!("{found} can not be converted to {wanted}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: &str = "A struct name!:s size:i far:l list:L map:M flag:b part:d raw:x
L list B
B struct x!:i
M map s";

    fn read(value: &Value) -> Result<Value, String> {
        let shapes = Shapes::parse(Protocol::Batch, TEXT);
        shapes.read("A", value.to_string().as_bytes()).map(Value::Object).map_err(|error| error.to_string())
    }

    #[test]
    fn what_fits_comes_back_without_what_no_model_knows() {
        let given = json!({"name": "n", "size": 1, "far": 1_i64 << 40, "list": [{"x": 1, "y": 2}, null], "odd": 1,
            "map": {"a": "b", "c": null}, "flag": true, "part": 0.5, "raw": "Zg=="});
        let want = json!({"name": "n", "size": 1, "far": 1_i64 << 40, "list": [{"x": 1}], "map": {"a": "b"},
            "flag": true, "part": 0.5, "raw": "Zg=="});
        assert_eq!(read(&given), Ok(want));
    }

    #[test]
    fn what_does_not_fit_is_told_in_the_words_of_the_service() {
        let cases = [
            (json!({}), "ClientException: name must be specified."),
            (json!({"name": null}), "ClientException: name must be specified."),
            (json!({"name": 1}), "SerializationException: NUMBER_VALUE can not be converted to a String"),
            (json!({"name": true}), "SerializationException: TRUE_VALUE can not be converted to a String"),
            (json!({"name": []}), "SerializationException: Start of list found where not expected"),
            (
                json!({"name": "n", "size": "1"}),
                "SerializationException: STRING_VALUE can not be converted to an Integer",
            ),
            (
                json!({"name": "n", "size": 1.5}),
                "SerializationException: NUMBER_VALUE can not be converted to an Integer",
            ),
            (
                json!({"name": "n", "size": 1_i64 << 40}),
                "SerializationException: NUMBER_VALUE can not be converted to an Integer",
            ),
            (
                json!({"name": "n", "list": {}}),
                "SerializationException: Start of structure or map found where not expected.",
            ),
            (
                json!({"name": "n", "map": "x"}),
                "SerializationException: STRING_VALUE can not be converted to a structure",
            ),
            (json!({"name": "n", "raw": "x"}), "SerializationException: STRING_VALUE can not be converted to a Blob"),
            (json!([]), "SerializationException: Start of list found where not expected"),
        ];
        for (given, want) in cases {
            assert_eq!(read(&given), Err(want.to_owned()), "{given}");
        }
    }

    #[test]
    fn an_empty_body_is_an_empty_object_and_half_a_one_is_none() {
        let shapes = Shapes::parse(Protocol::Sqs, TEXT);
        let refusal = |body: &[u8]| shapes.read("A", body).unwrap_err().to_string();
        assert_eq!(refusal(b" "), "MissingRequiredParameterException: The request must contain the parameter name.");
        assert_eq!(refusal(b"{\"name\":"), "SerializationException: The request is not valid JSON");
        assert_eq!(refusal(b"\xff"), "SerializationException: The request is not valid JSON");
    }
}
