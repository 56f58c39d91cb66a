//! Shapes: which members an object has and what each holds, as data; and the walk that compares a value with one.
//!
//! The typed structs could say that a body is wrong, but only the first fault, without its path, and in the words of
//! a type system. The walk finds all faults and names each by path, what is wanted, and what was given.

use serde_json::{Map, Value};

use super::path::Path;
use super::words::{all_of, nearest, quote};
use crate::id::JobId;
use crate::reason::{ReasonCode, Refusal};

/// Most faults that one refusal lists; the rest are counted.
///
/// A body of the wrong kind may have thousands. Eight sentences fit a terminal and an item; whoever mends those sees
/// the next ones.
pub(super) const FAULTS_MAX: usize = 8;

/// What a value must look like.
pub(super) enum Shape {
    /// Text; with an example.
    Text(&'static str),
    /// A job id, a UUID as text.
    JobId,
    /// A whole number; with an example.
    Whole(i64),
    /// True or false.
    Flag,
    /// An object of texts under names that the user chooses.
    TextMap,
    /// A list of one shape.
    List(&'static Shape),
    /// An object with these members.
    Object(&'static [Member]),
}

/// One member of an object.
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) required: bool,
}

/// A member that may be left out.
pub(super) const fn may(name: &'static str, shape: Shape) -> Member {
    Member { name, shape, required: false }
}

/// A member that must be there.
pub(super) const fn must(name: &'static str, shape: Shape) -> Member {
    Member { name, shape, required: true }
}

/// The faults found so far: the first [`FAULTS_MAX`] and a count of the others.
#[derive(Default)]
pub(super) struct Faults {
    listed: Vec<Refusal>,
    others: usize,
}

impl Faults {
    /// Adds one; the sentence is only made when it will be listed.
    pub(super) fn add(&mut self, code: ReasonCode, sentence: impl FnOnce() -> String) {
        if self.listed.len() < FAULTS_MAX {
            self.listed.push(Refusal::new(code, sentence()));
        } else {
            self.others += 1;
        }
    }

    /// All as one refusal with the code of the first; `None` without faults.
    pub(super) fn into_refusal(self) -> Option<Refusal> {
        let code = self.listed.first()?.code;
        let mut message = self.listed.into_iter().map(|fault| fault.message).collect::<Vec<_>>().join("; ");
        if self.others > 0 {
            message.push_str(&format!("; and {} more", self.others));
        }
        Some(Refusal::new(code, message))
    }
}

/// Compares values with shapes and collects what is wrong.
pub(super) struct Walk<'f> {
    path: Path,
    /// What the whole is called in a sentence, such as "a `SubmitJob` request".
    whole: &'static str,
    root: &'static [Member],
    faults: &'f mut Faults,
}

impl<'f> Walk<'f> {
    /// A walk over a whole that has these members.
    pub(super) fn new(whole: &'static str, root: &'static [Member], faults: &'f mut Faults) -> Self {
        Self { path: Path::default(), whole, root, faults }
    }

    /// Walks the whole.
    pub(super) fn run(&mut self, object: &Map<String, Value>) {
        self.object(object, self.root);
    }

    fn value(&mut self, value: &Value, shape: &'static Shape) {
        match (shape, value) {
            (Shape::Text(_), Value::String(text)) => self.text(text),
            (Shape::JobId, Value::String(text)) => self.job_id(text),
            (Shape::Whole(_), Value::Number(number)) if number.is_i64() => {}
            (Shape::Flag, Value::Bool(_)) => {}
            (Shape::TextMap, Value::Object(map)) => self.text_map(map),
            (Shape::List(element), Value::Array(list)) => self.list(list, element),
            (Shape::Object(members), Value::Object(object)) => self.object(object, members),
            _ => self.wrong_type(value, shape),
        }
    }

    fn object(&mut self, object: &Map<String, Value>, members: &'static [Member]) {
        for (name, value) in object {
            match members.iter().find(|member| member.name == name) {
                None => self.unknown(name, members),
                // The API reads null as absent.
                Some(_) if value.is_null() => {}
                Some(member) => {
                    let mark = self.path.enter_member(name);
                    self.value(value, &member.shape);
                    self.path.leave(mark);
                }
            }
        }
        for member in members.iter().filter(|member| member.required) {
            if object.get(member.name).is_none_or(Value::is_null) {
                let path = self.path.member(member.name);
                self.faults.add(ReasonCode::MissingMember, || format!("{} is missing", quote(&path)));
            }
        }
    }

    fn list(&mut self, list: &[Value], element: &'static Shape) {
        for (index, value) in list.iter().enumerate() {
            let mark = self.path.enter_index(index);
            self.value(value, element);
            self.path.leave(mark);
        }
    }

    fn text_map(&mut self, map: &Map<String, Value>) {
        for (name, value) in map {
            let mark = self.path.enter_member(name);
            self.text(name);
            match value {
                Value::String(text) => self.text(text),
                other => self.wrong_type(other, &Shape::Text("text")),
            }
            self.path.leave(mark);
        }
    }

    /// Line breaks and tabs belong into commands; the null character ends a text for every operating system.
    fn text(&mut self, text: &str) {
        if text.contains('\0') {
            let path = &self.path;
            self.faults.add(ReasonCode::InvalidText, || {
                format!("{} holds the null character, which neither a command nor a variable nor a tag can carry; take it out", quote(&path.to_string()))
            });
        }
    }

    fn job_id(&mut self, text: &str) {
        if JobId::parse(text).is_none() {
            let path = &self.path;
            self.faults.add(ReasonCode::InvalidJobId, || {
                format!(
                    "{} must be a UUID such as `{}`; {} was given",
                    quote(&path.to_string()),
                    super::JOB_ID_EXAMPLE,
                    quote(text)
                )
            });
        }
    }

    fn unknown(&mut self, name: &str, members: &'static [Member]) {
        let path = self.path.member(name);
        let (whole, root) = (self.whole, self.root);
        let here = &self.path;
        self.faults.add(ReasonCode::UnknownMember, || {
            let names = members.iter().map(|member| member.name);
            let help = if let Some(near) = nearest(name, names.clone()) {
                format!("did you mean {}?", quote(&here.member(near)))
            } else if let Some(elsewhere) = place_of(name, root) {
                format!("did you mean {}?", quote(&elsewhere))
            } else {
                format!("known here: {}", all_of(names))
            };
            format!("{} is not a member of {whole}; {help}", quote(&path))
        });
    }

    fn wrong_type(&mut self, value: &Value, shape: &'static Shape) {
        let path = &self.path;
        self.faults.add(ReasonCode::WrongType, || {
            format!("{} must be {}; {} was given", quote(&path.to_string()), wanted(shape), given(value))
        });
    }
}

/// Where a member of this name stands, for one put at the wrong level: the place with the shortest way.
fn place_of(name: &str, members: &'static [Member]) -> Option<String> {
    let mut level: Vec<(String, &'static [Member])> = vec![(String::new(), members)];
    while !level.is_empty() {
        if let Some((way, _)) = level.iter().find(|(_, members)| members.iter().any(|member| member.name == name)) {
            return Some(format!("{way}{name}"));
        }
        level = level.iter().flat_map(|(way, members)| children(way, members)).collect();
    }
    None
}

fn children(way: &str, members: &'static [Member]) -> Vec<(String, &'static [Member])> {
    members
        .iter()
        .filter_map(|member| match &member.shape {
            Shape::Object(inner) => Some((format!("{way}{}.", member.name), *inner)),
            Shape::List(Shape::Object(inner)) => Some((format!("{way}{}[0].", member.name), *inner)),
            _ => None,
        })
        .collect()
}

fn wanted(shape: &Shape) -> String {
    match shape {
        Shape::Text("text") => "text".to_owned(),
        Shape::Text(example) => format!("text such as \"{example}\""),
        Shape::JobId => format!("a UUID as text such as \"{}\"", super::JOB_ID_EXAMPLE),
        Shape::Whole(example) => format!("a whole number such as {example}"),
        Shape::Flag => "true or false".to_owned(),
        Shape::TextMap => "an object whose values are texts".to_owned(),
        Shape::List(element) => format!("a list, each element {}", wanted(element)),
        Shape::Object(_) => "an object".to_owned(),
    }
}

fn given(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the text {}", quote(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Every path that a shape allows, lists as `[0]`, maps as `.*`.
    pub(in crate::message) fn paths(members: &'static [Member], way: &str, into: &mut Vec<String>) {
        for member in members {
            leaf(&member.shape, format!("{way}{}", member.name), into);
        }
    }

    fn leaf(shape: &'static Shape, path: String, into: &mut Vec<String>) {
        match shape {
            Shape::Object(members) => paths(members, &format!("{path}."), into),
            Shape::List(element) => leaf(element, format!("{path}[0]"), into),
            Shape::TextMap => into.push(format!("{path}.*")),
            _ => into.push(path),
        }
    }
}
