//! stub
use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value;

/// A member that the definition's types keep as it came; `None` when it is absent or says something else.
pub(crate) fn part<T: DeserializeOwned>(other: &BTreeMap<String, Value>, name: &str) -> Option<T> {
    other.get(name).and_then(|value| serde_json::from_value(value.clone()).ok())
}
