//! JSON into a value, with every member that is given twice.
//!
//! The usual reader keeps the last of two equal names. A request in which a tag stands twice would then be judged by
//! one and read by its author as the other, so names that come twice are collected here and refused by the caller.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::path::Path;

/// Most repeated members that are named. More would make the sentence unreadable and help nobody.
const REPEATED_MAX: usize = 8;

/// A body as a value.
pub(super) struct Document {
    /// The value; of two equal members it has the last.
    pub(super) value: Value,
    /// Paths of the members given more than once, at most [`REPEATED_MAX`].
    pub(super) repeated: Vec<String>,
}

/// Reads one JSON text.
///
/// # Errors
/// Whatever isn't JSON, nests deeper than the reader's 128 levels, holds a number out of range, or goes on after its end.
pub(super) fn read(body: &str) -> Result<Document, serde_json::Error> {
    let mut reader = Reader { path: Path::default(), repeated: Vec::new() };
    let mut deserializer = serde_json::Deserializer::from_str(body);
    let value = Node(&mut reader).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(Document { value, repeated: reader.repeated })
}

struct Reader {
    path: Path,
    repeated: Vec<String>,
}

struct Node<'r>(&'r mut Reader);

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Number::from_f64(number).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let mark = self.0.path.enter_index(list.len());
            let element = access.next_element_seed(Node(self.0))?;
            self.0.path.leave(mark);
            match element {
                Some(element) => list.push(element),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            let mark = self.0.path.enter_member(&name);
            let value = access.next_value_seed(Node(self.0))?;
            let is_repeated = object.insert(name, value).is_some();
            if is_repeated && self.0.repeated.len() < REPEATED_MAX {
                self.0.repeated.push(self.0.path.to_string());
            }
            self.0.path.leave(mark);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_usual_reader_reads() {
        let body = include_str!("../../testdata/submit-job-skeleton.json");
        let document = read(body).unwrap();
        assert_eq!(document.value, serde_json::from_str::<Value>(body).unwrap());
        assert!(document.repeated.is_empty());
    }

    #[test]
    fn names_members_given_twice_with_their_path() {
        let document = read(r#"{"tags":{"team":"a","team":"b"},"a":[1,{"b":1,"b":2}],"a":null}"#).unwrap();
        assert_eq!(document.repeated, ["tags.team", "a[1].b", "a"]);
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(read(&deep).is_err());
    }

    #[test]
    fn text_after_the_end_is_refused() {
        assert!(read("{} {}").is_err());
    }
}
