//! JSON Schemas of what comes out with `--output json`, made of `docs/json.md`: the tables there are the one description of
//! these interfaces, and a test compares them with what every command writes.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The description.
const DOCUMENT: &str = include_str!("../../docs/json.md");
/// Sections whose objects begin with the members of an element of `osprey jobs`, and where in them these are.
const WITH_JOBS: [(&str, &str); 3] = [("describe", ""), ("export", ""), ("lineage", "jobs[].")];
/// The section of jobs.
const JOBS: &str = "jobs";

/// A member of a table: its path, its type, what it means.
type Member<'d> = (&'d str, &'d str, &'d str);

/// A section of the document.
struct Section<'d> {
    name: String,
    /// What stands before the table.
    text: Vec<&'d str>,
    members: Vec<Member<'d>>,
}

/// The sections that describe something, in the order of the document.
fn sections(document: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for line in document.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            let name = heading.replace('`', "").replace("--", "").trim_start_matches("osprey ").to_lowercase();
            sections.push(Section { name, text: Vec::new(), members: Vec::new() });
            continue;
        }
        let Some(section) = sections.last_mut() else { continue };
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        match cells.as_slice() {
            [path, kind, means @ ..] if line.starts_with("| `") && !means.is_empty() => {
                section.members.push((path.trim_matches('`'), kind, means.first().copied().unwrap_or_default()));
            }
            _ if !line.starts_with('|') && section.members.is_empty() => section.text.push(line),
            _ => {}
        }
    }
    sections.retain(|section| !section.members.is_empty());
    sections
}

/// The names of what is described.
#[must_use]
pub fn names() -> Vec<String> {
    sections(DOCUMENT).into_iter().map(|section| section.name).collect()
}

/// The schema of one of them; `None` for a name that isn't described.
#[must_use]
pub fn of(name: &str) -> Option<Value> {
    of_document(DOCUMENT, name)
}

fn of_document(document: &str, name: &str) -> Option<Value> {
    let sections = sections(document);
    let section = sections.iter().find(|section| section.name == name.to_lowercase())?;
    let mut root = Node::default();
    let lead = WITH_JOBS.iter().find(|(with, _)| *with == section.name).map(|(_, lead)| *lead);
    if let (Some(lead), Some(jobs)) = (lead, sections.iter().find(|section| section.name == JOBS)) {
        for (path, kind, means) in &jobs.members {
            if let Some(path) = path.strip_prefix("[].") {
                root.put(&format!("{lead}{path}"), kind, means);
            }
        }
    }
    for (path, kind, means) in &section.members {
        root.put(path, kind, means);
    }
    let mut schema = Map::new();
    schema.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
    schema.insert("title".to_owned(), section.name.as_str().into());
    let text = section.text.join(" ");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if !text.is_empty() {
        schema.insert("description".to_owned(), text.into());
    }
    schema.extend(root.schema());
    Some(Value::Object(schema))
}

/// A value as the table describes it.
#[derive(Debug, Default)]
struct Node {
    /// Its type, in the document's words.
    kind: String,
    means: String,
    /// Of an object: its members.
    members: BTreeMap<String, Self>,
    /// Of an object whose members have any name: what they are.
    any: Option<Box<Self>>,
    /// Of a list: what is in it.
    items: Option<Box<Self>>,
}

/// A step of a path.
enum Step<'p> {
    Member(&'p str),
    AnyMember,
    Item,
}

/// `tiers.NAME.jobs`, `steps[].rule`, `[].id`.
fn steps(path: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    for part in path.split('.') {
        let name = part.trim_end_matches("[]");
        match name {
            "" => {}
            "NAME" => steps.push(Step::AnyMember),
            name => steps.push(Step::Member(name)),
        }
        steps.extend((0..(part.len() - name.len()) / 2).map(|_| Step::Item));
    }
    steps
}

impl Node {
    fn put(&mut self, path: &str, kind: &str, means: &str) {
        let node = steps(path).into_iter().fold(self, |node, step| node.down(&step));
        kind.clone_into(&mut node.kind);
        means.clone_into(&mut node.means);
    }

    fn down(&mut self, step: &Step<'_>) -> &mut Self {
        match step {
            Step::Item => self.items.get_or_insert_default(),
            Step::AnyMember => self.any.get_or_insert_default(),
            Step::Member(name) => self.members.entry((*name).to_owned()).or_default(),
        }
    }

    /// Whether it is always there.
    fn is_required(&self) -> bool {
        !self.means.starts_with("only ")
    }

    fn schema(&self) -> Map<String, Value> {
        let (kind, may_be_null) =
            self.kind.strip_suffix(" or null").map_or((self.kind.as_str(), false), |kind| (kind, true));
        let mut schema = Map::new();
        let (name, format) = match kind {
            "text" => (Some("string"), None),
            "time" => (Some("string"), Some("date-time")),
            "whole" => (Some("integer"), None),
            "number" => (Some("number"), None),
            "flag" => (Some("boolean"), None),
            "any" => (None, None),
            _ if self.items.is_some() || kind == "list" => (Some("array"), None),
            _ => (Some("object"), None),
        };
        if let Some(name) = name {
            schema.insert("type".to_owned(), if may_be_null { json!([name, "null"]) } else { json!(name) });
        }
        schema.extend(format.map(|format| ("format".to_owned(), json!(format))));
        if !self.means.is_empty() {
            schema.insert("description".to_owned(), json!(self.means));
        }
        if let Some(items) = &self.items {
            schema.insert("items".to_owned(), Value::Object(items.schema()));
        }
        if let Some(any) = &self.any {
            schema.insert("additionalProperties".to_owned(), Value::Object(any.schema()));
        }
        if !self.members.is_empty() {
            let properties = self.members.iter().map(|(name, node)| (name.clone(), Value::Object(node.schema())));
            schema.insert("properties".to_owned(), Value::Object(properties.collect()));
            let required = self.members.iter().filter(|(_, node)| node.is_required()).map(|(name, _)| json!(name));
            schema.insert("required".to_owned(), required.collect());
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_becomes_a_schema() {
        let document = "\
## `osprey x y`

One object.

| member | type | means |
|---|---|---|
| `a` | whole | one |
| `b` | list or null | two |
| `b[].c` | time | only sometimes |
| `t.NAME` | object | a tier |
| `t.NAME.jobs` | whole | jobs |
| `any` | any | whatever |
";
        let want = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "x y",
            "description": "One object.",
            "type": "object",
            "properties": {
                "a": { "type": "integer", "description": "one" },
                "b": { "type": ["array", "null"], "description": "two", "items": {
                    "type": "object",
                    "properties": { "c": { "type": "string", "format": "date-time", "description": "only sometimes" } },
                    "required": [],
                } },
                "t": { "type": "object", "additionalProperties": {
                    "type": "object",
                    "description": "a tier",
                    "properties": { "jobs": { "type": "integer", "description": "jobs" } },
                    "required": ["jobs"],
                } },
                "any": { "description": "whatever" },
            },
            "required": ["a", "any", "b", "t"],
        });
        assert_eq!(of_document(document, "X y"), Some(want));
        assert_eq!(of_document(document, "z"), None);
    }

    #[test]
    fn what_is_described_has_a_schema_and_a_list_is_one() {
        for name in names() {
            assert!(of(&name).is_some_and(|schema| schema.get("type").is_some()), "{name}");
        }
        let list = of("jobs").unwrap();
        assert_eq!(list["type"], "array");
        assert_eq!(list["items"]["properties"]["id"]["type"], "string");
        let record = of("describe").unwrap();
        assert!(record["properties"]["id"].is_object() && record["properties"]["attempts"].is_object());
        assert_eq!(of("lineage").unwrap()["properties"]["jobs"]["items"]["properties"]["id"]["type"], "string");
    }
}
