//! A policy's text as settings, each with a path, so that two policies can be compared field by field.
//!
//! Rules, tiers and identities go by their names and not by their places, and what only looks different (comments, blanks,
//! the order of keys) isn't one. The policy's own tests decide nothing and are left out.

use std::collections::BTreeMap;

use toml::{Table, Value};

/// Sections in the order in which they are told; others come behind them.
const SECTIONS: [&str; 11] = [
    "name",
    "derive",
    "rule",
    "tier",
    "requeue",
    "admission",
    "order",
    "preemption",
    "feedback",
    "estimates",
    "identity",
];

/// The section that decides nothing.
const TESTS: &str = "test";

/// Keys that name an entry of a list, the first that is there.
const NAMES: [&str; 2] = ["id", "name"];

/// A setting that two policies say differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where it is, such as `tier.critical.aging`; `rule.order` for the order in which rules are tried.
    pub path: String,
    /// What the old policy says; `None` where it leaves the default.
    pub before: Option<String>,
    /// What the new policy says; `None` where it leaves the default.
    pub after: Option<String>,
}

/// What two policies say differently, section by section. A text that isn't TOML says nothing.
#[must_use]
pub fn differences(old: &str, new: &str) -> Vec<Difference> {
    let (old, new) = (settings(old), settings(new));
    let (before, after) = (by_path(&old), by_path(&new));
    let gone = old.iter().filter(|(path, _)| !after.contains_key(path.as_str()));
    let mut paths: Vec<&str> = new.iter().chain(gone).map(|(path, _)| path.as_str()).collect();
    // What is gone stands with its section; the sort keeps the order in each.
    paths.sort_by_key(|path| rank(path.split('.').next().unwrap_or_default()));
    let difference = |path: &str| {
        let value = |of: &BTreeMap<&str, &str>| of.get(path).map(|value| (*value).to_owned());
        Difference { path: path.to_owned(), before: value(&before), after: value(&after) }
    };
    paths.into_iter().map(difference).filter(|change| change.before != change.after).collect()
}

type Settings = Vec<(String, String)>;

/// Every setting that a policy's text says, by its path. A text that isn't TOML says nothing.
#[must_use]
pub fn said(text: &str) -> BTreeMap<String, String> {
    settings(text).into_iter().collect()
}

fn by_path(settings: &Settings) -> BTreeMap<&str, &str> {
    settings.iter().map(|(path, value)| (path.as_str(), value.as_str())).collect()
}

fn rank(section: &str) -> usize {
    SECTIONS.iter().position(|known| *known == section).unwrap_or(SECTIONS.len())
}

/// Every setting of a text, section by section.
fn settings(text: &str) -> Settings {
    let table = text.parse::<Table>().unwrap_or_default();
    let mut settings = Settings::new();
    for (key, value) in table.iter().filter(|(key, _)| *key != TESTS) {
        add(&mut settings, key, value);
    }
    settings.sort_by_key(|(path, _)| rank(path.split('.').next().unwrap_or_default()));
    settings
}

fn add(settings: &mut Settings, path: &str, value: &Value) {
    match value {
        Value::Table(table) => table.iter().for_each(|(key, value)| add(settings, &format!("{path}.{key}"), value)),
        Value::Array(list) if list.iter().any(Value::is_table) => add_list(settings, path, list),
        _ => settings.push((path.to_owned(), shown(value))),
    }
}

/// Entries by their names, and the order of the names.
fn add_list(settings: &mut Settings, path: &str, list: &[Value]) {
    let mut names = Vec::new();
    for (index, entry) in list.iter().enumerate() {
        let name_of = |key: &'static str| entry.get(key).and_then(Value::as_str);
        let key = NAMES.into_iter().find(|key| name_of(key).is_some());
        let name = key.and_then(name_of).map_or_else(|| index.to_string(), str::to_owned);
        let members = entry.as_table().into_iter().flatten().filter(|(member, _)| Some(member.as_str()) != key);
        members.for_each(|(member, value)| add(settings, &format!("{path}.{name}.{member}"), value));
        names.push(name);
    }
    settings.push((format!("{path}.order"), names.join(", ")));
}

/// A value as one would write it, on one line.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let quote = if line.contains('"') { '\'' } else { '"' };
            format!("{quote}{line}{quote}")
        }
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(flag) => flag.to_string(),
        Value::Datetime(time) => time.to_string(),
        Value::Array(list) => format!("[{}]", list.iter().map(shown).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => {
            let members = table.iter().map(|(key, value)| format!("{key} = {}", shown(value)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = r#"
name = "a"
[[rule]]
id = "production"
when = 'job.environment == "production"'
set = 1000
[[rule]]
id = "large"
when = "job.gpus > 4"
add = -50
[[tier]]
name = "critical"
at_least = 1100
may_preempt = ["low", "middle"]
[order]
dive_above = 800
[[test]]
name = "it is so"
"#;

    fn told(new: &str) -> Vec<(String, String, String)> {
        let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        differences(OLD, new)
            .into_iter()
            .map(|Difference { path, before, after }| (path, text(before), text(after)))
            .collect()
    }

    fn one(path: &str, before: &str, after: &str) -> Vec<(String, String, String)> {
        vec![(path.to_owned(), before.to_owned(), after.to_owned())]
    }

    #[test]
    fn a_setting_goes_by_its_name_and_not_by_its_place() {
        assert_eq!(told(OLD), []);
        assert_eq!(told(&OLD.replace("set = 1000", "set = 900")), one("rule.production.set", "1000", "900"));
        assert_eq!(told(&OLD.replace("dive_above = 800", "")), one("order.dive_above", "800", "-"));
        assert_eq!(told(&OLD.replace("800", "800\nheadroom = \"9%\"")), one("order.headroom", "-", "\"9%\""));
        let lists = told(&OLD.replace("\"low\", ", ""));
        assert_eq!(lists, one("tier.critical.may_preempt", "[\"low\", \"middle\"]", "[\"middle\"]"));
    }

    #[test]
    fn the_order_of_rules_is_a_setting() {
        let (head, rest) = OLD.split_once("[[rule]]").unwrap();
        let (first, rest) = rest.split_once("[[rule]]").unwrap();
        let (second, rest) = rest.split_once("[[tier]]").unwrap();
        let turned = format!("{head}[[rule]]{second}[[rule]]{first}[[tier]]{rest}");
        assert_eq!(told(&turned), one("rule.order", "production, large", "large, production"));
    }

    #[test]
    fn comments_blanks_and_tests_are_no_settings() {
        let new = OLD.replace("job.gpus > 4", "job.gpus  >  4").replace("it is so", "it isn't");
        assert_eq!(told(&format!("# new\n{new}")), []);
    }

    #[test]
    fn what_is_gone_stands_with_its_section() {
        let new = OLD.replace("name = \"a\"", "name = \"b\"").replace("add = -50", "").replace("800", "900");
        let paths: Vec<String> = told(&new).into_iter().map(|(path, ..)| path).collect();
        assert_eq!(paths, ["name", "rule.large.add", "order.dive_above"]);
    }
}
