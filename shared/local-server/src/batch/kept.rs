//! What a request said beyond what the local Batch acts on: kept as a document, so that Describe calls show all of it.

use serde_json::{Map, Value, json};

use crate::failure::{Failure, of_documents};
use crate::service::Service;

/// The document of a kind and name; empty when there is none.
pub fn read(service: &Service, kind: &str, name: &str) -> Result<Map<String, Value>, Failure> {
    let text = service.documents().get(kind, name).map_err(of_documents)?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

/// Writes the document of a kind and name.
pub fn write(service: &Service, kind: &str, name: &str, body: &Map<String, Value>) -> Result<(), Failure> {
    let text = serde_json::to_string(body)?;
    service.documents().put(kind, name, &text).map_err(of_documents)
}

/// A list and the token of its next page.
pub fn listed(name: &str, entries: &[Value], next: Option<String>) -> Value {
    let mut answer = Map::new();
    answer.insert(name.to_owned(), json!(entries));
    if let Some(next) = next {
        answer.insert("nextToken".to_owned(), json!(next));
    }
    Value::Object(answer)
}

/// Takes over members, each in place of one of the same name; inside objects too.
pub fn merge(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(inner)), Value::Object(outer)) => merge(inner, outer),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}
