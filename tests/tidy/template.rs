//! What no linter sees in `template.yaml`.

use std::collections::BTreeMap;

use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde_json::{Map, Value, json};

use crate::{list, read, text};

mod alarms;
// Marked as tests, so that helpers may unwrap as tests may.
#[cfg(test)]
mod firing;
#[cfg(test)]
mod formula;
mod functions;
mod pools;
mod queues;
mod roles;
mod schedules;

/// The template, with CloudFormation's short tags written out as JSON has them.
fn template() -> Result<Value, Box<dyn std::error::Error>> {
    parse(&read("template.yaml")?)
}

fn parse(text: &str) -> Result<Value, Box<dyn std::error::Error>> {
    let documents = Yaml::load_from_str(text)?;
    Ok(documents.first().map(plain).unwrap_or_default())
}

fn plain(yaml: &Yaml<'_>) -> Value {
    match yaml {
        Yaml::Value(Scalar::Boolean(is)) => json!(is),
        Yaml::Value(Scalar::Integer(number)) => json!(number),
        Yaml::Value(Scalar::FloatingPoint(number)) => json!(number.into_inner()),
        Yaml::Value(Scalar::String(text)) => json!(text),
        Yaml::Representation(text, ..) => json!(text),
        Yaml::Sequence(elements) => elements.iter().map(plain).collect(),
        Yaml::Mapping(members) => {
            let members =
                members.iter().map(|(key, value)| (key.as_str().unwrap_or_default().to_owned(), plain(value)));
            Value::Object(members.collect())
        }
        Yaml::Tagged(tag, inner) => {
            let short = tag.suffix.as_str();
            let long = if short == "Ref" { short.to_owned() } else { format!("Fn::{short}") };
            Value::Object(Map::from_iter([(long, plain(inner))]))
        }
        Yaml::Value(Scalar::Null) | Yaml::Alias(_) | Yaml::BadValue => Value::Null,
    }
}

/// The properties of each resource of a type, by logical name.
fn resources<'a>(template: &'a Value, kind: &str) -> BTreeMap<&'a str, &'a Value> {
    let all = template.get("Resources").and_then(Value::as_object).into_iter().flatten();
    let of_kind = all.filter(|(_, resource)| text(resource, "Type") == kind);
    of_kind.filter_map(|(name, resource)| Some((name.as_str(), resource.get("Properties")?))).collect()
}

/// The logical name that a value refers to, by `Ref` or `GetAtt`.
fn target(value: &Value) -> &str {
    let attribute = text(value, "Fn::GetAtt");
    if attribute.is_empty() {
        text(value, "Ref")
    } else {
        attribute.split_once('.').map_or(attribute, |(name, _)| name)
    }
}

/// A text with its `Sub` worked out: parameters have their defaults, everything else its own name.
fn resolved(template: &Value, value: &Value) -> String {
    let mut left = value.as_str().unwrap_or(text(value, "Fn::Sub"));
    let mut out = String::new();
    while let Some((before, rest)) = left.split_once("${") {
        let (name, after) = rest.split_once('}').unwrap_or((rest, ""));
        let default = template.get("Parameters").and_then(|all| all.get(name)?.get("Default"));
        out.push_str(before);
        match default {
            Some(Value::String(text)) => out.push_str(text),
            Some(other) => out.push_str(&other.to_string()),
            None => out.push_str(name),
        }
        left = after;
    }
    out + left
}

#[test]
fn tags_are_written_out() -> crate::Checked {
    let text = "a: !Ref B\nc: !GetAtt D.Arn\ne: !If [F, !Sub \"${G}\", 1]\n";
    let want = json!({"a": {"Ref": "B"}, "c": {"Fn::GetAtt": "D.Arn"}, "e": {"Fn::If": ["F", {"Fn::Sub": "${G}"}, 1]}});
    let parsed = parse(text)?;
    assert_eq!(parsed, want);
    assert_eq!((target(&parsed["a"]), target(&parsed["c"])), ("B", "D"));
    let template = json!({"Parameters": {"G": {"Default": "g-"}, "N": {"Default": 2}}});
    assert_eq!(resolved(&template, &json!({"Fn::Sub": "x ${G}${N} ${AWS::StackName}"})), "x g-2 AWS::StackName");
    Ok(())
}

#[test]
fn what_the_emulator_has_not_is_made_by_parameter_only() -> crate::Checked {
    let template = template()?;
    let found: Vec<String> = unconditional(&template);
    crate::assert_none("template.yaml", &found);
    assert_eq!(unconditional(&json!({"Resources": {"A": {"Type": "AWS::Batch::JobQueue"}}})).len(), 1);
    Ok(())
}

/// Resources that cost money by the hour, and are made although nobody asked for them.
fn unconditional(template: &Value) -> Vec<String> {
    let all = template.get("Resources").and_then(Value::as_object).into_iter().flatten();
    let costly = all.filter(|(_, resource)| {
        let kind = text(resource, "Type");
        kind.starts_with("AWS::Batch::") || kind.starts_with("AWS::EC2::")
    });
    let made = costly.filter(|(_, resource)| text(resource, "Condition") != "MakesPool");
    made.map(|(name, _)| format!("{name} is not behind the condition MakesPool")).collect()
}

/// What stands at a place, or nothing.
fn at<'a>(value: &'a Value, place: &str) -> &'a Value {
    value.pointer(place).unwrap_or(&Value::Null)
}

/// The elements of a list somewhere inside.
fn deep<'a>(value: &'a Value, members: &[&str]) -> &'a [Value] {
    let [path @ .., last] = members else { return &[] };
    let inner = path.iter().try_fold(value, |value, member| value.get(member));
    inner.map_or(&[], |inner| list(inner, last))
}
