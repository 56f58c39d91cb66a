//! `osprey schema NAME` is a JSON Schema that everything that comes out with `--output json` keeps to.

use serde_json::{Value, json};

use crate::Checked;
use crate::documented::{Samples, out};

/// What is wrong with a value, by the few words of JSON Schema that ours are made of.
fn faults(path: &str, schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(types) = schema.get("type") {
        let types = types.as_array().cloned().unwrap_or_else(|| vec![types.clone()]);
        if !types.iter().any(|kind| is_of(kind.as_str().unwrap_or_default(), value)) {
            found.push(format!("`{path}` is {value}, and no {types:?}"));
        }
    }
    if schema.get("format") == Some(&json!("date-time"))
        && value.as_str().is_some_and(|time| time.parse::<jiff::Timestamp>().is_err())
    {
        found.push(format!("`{path}` is {value}, and no time"));
    }
    match value {
        Value::Object(members) => {
            let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            let missing = required.filter_map(Value::as_str).filter(|name| !members.contains_key(*name));
            found.extend(missing.map(|name| format!("`{path}` has no `{name}`")));
            for (name, value) in members {
                let own = schema.get("properties").and_then(|properties| properties.get(name));
                let other = schema.get("additionalProperties").filter(|other| other.is_object());
                if let Some(schema) = own.or(other) {
                    found.extend(faults(&format!("{path}.{name}"), schema, value));
                }
            }
        }
        Value::Array(list) => {
            let Some(items) = schema.get("items") else { return found };
            found.extend(list.iter().flat_map(|value| faults(&format!("{path}[]"), items, value)));
        }
        _ => {}
    }
    found
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

/// What is wrong with what every command wrote, by its schema; and names that one has and the other doesn't.
pub(crate) fn faults_of_samples(samples: &Samples) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let names: Vec<String> = serde_json::from_value(out(&["schema"])?.pop().unwrap_or_default())?;
    let name = |section: &str| section.replace("--", "").trim_start_matches("osprey ").to_lowercase();
    let mut found: Vec<String> = names
        .iter()
        .filter(|known| !samples.keys().any(|section| name(section) == **known))
        .map(|known| format!("schema {known} has no sample"))
        .collect();
    for (section, values) in samples {
        let words: Vec<String> =
            ["schema".to_owned()].into_iter().chain(name(section).split(' ').map(str::to_owned)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let Some(schema) = out(&words)?.pop() else {
            found.push(format!("{section} has no schema"));
            continue;
        };
        let faulty = values.iter().flat_map(|value| faults("", &schema, value));
        found.extend(faulty.map(|fault| format!("schema of {section}: {fault}")));
    }
    Ok(found)
}

#[test]
fn what_breaks_a_schema_is_found() -> Checked {
    let schema: Value = serde_json::from_str(
        r#"{"type":"object","required":["a"],"properties":{"a":{"type":["integer","null"]},
            "t":{"type":"object","additionalProperties":{"type":"string","format":"date-time"}},
            "l":{"type":"array","items":{"type":"string"}}}}"#,
    )?;
    for (value, want) in [
        (r#"{"a":1,"t":{"x":"2026-11-30T10:00:00Z"},"l":["b"]}"#, ""),
        (r#"{"a":null,"more":7}"#, ""),
        ("{}", "`` has no `a`"),
        (r#"{"a":1.5}"#, r#"`.a` is 1.5, and no [String("integer"), String("null")]"#),
        (r#"{"a":1,"t":{"x":"soon"}}"#, r#"`.t.x` is "soon", and no time"#),
        (r#"{"a":1,"l":[7]}"#, r#"`.l[]` is 7, and no [String("string")]"#),
    ] {
        assert_eq!(faults("", &schema, &serde_json::from_str(value)?).join("; "), want, "{value}");
    }
    Ok(())
}
