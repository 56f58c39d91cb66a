//! Ways out of mistakes in expressions: the nearest name, an example, the words people bring from elsewhere.

use cel::common::ast::operators;

use osprey_model::message::words::nearest;

use crate::problem::did_you_mean;
use crate::schema::{FACTS, ROOTS, TAGS};

/// The functions of a policy.
pub(super) const FUNCTIONS: [&str; 9] =
    ["has", "duration", "size", "len", "min", "max", "startsWith", "endsWith", "contains"];

/// How a function is called.
pub(super) fn usage(name: &str) -> Option<String> {
    let example = match name {
        "has" => "has(job.sla)",
        "duration" => "duration(\"4h\")",
        "size" => "size(\"1TB\")",
        "len" => "len(job.name)",
        "min" | "max" => "max(1, job.gpus)",
        "startsWith" | "endsWith" | "contains" => "job.name.contains(\"urgent\")",
        _ => return None,
    };
    Some(format!("write `{example}`"))
}

/// The way out of an unknown function.
pub(super) fn function_help(name: &str) -> String {
    match name {
        "matches" => "use `startsWith`, `endsWith` or `contains`".to_owned(),
        "exists" | "all" | "exists_one" | "map" | "filter" => "there are no loops; write `in` with a list".to_owned(),
        _ => did_you_mean(name, FUNCTIONS).unwrap_or_else(|| format!("functions are {}", FUNCTIONS.join(", "))),
    }
}

/// The way out of an unknown fact.
pub(super) fn fact_help(name: &str) -> String {
    if name == TAGS {
        return format!("name a tag: `{TAGS}.x` or `{TAGS}[\"x\"]`");
    }
    let Some((root, member)) = name.split_once('.') else { return word_help(name) };
    // The limit is a third of the member: a third of the whole would forgive too much.
    let near = nearest(member, members(root)).map(|member| format!("did you mean `{root}.{member}`?"));
    near.or_else(|| did_you_mean(name, FACTS.iter().map(|fact| fact.name)))
        .unwrap_or_else(|| "docs/policy.md lists every fact".to_owned())
}

fn word_help(word: &str) -> String {
    if !ROOTS.contains(&word) {
        return format!("write text in quotes: `\"{word}\"`");
    }
    let examples: Vec<_> = members(word).take(3).map(|member| format!("`{word}.{member}`")).collect();
    format!("name a member, such as {}", examples.join(", "))
}

fn members(root: &str) -> impl Iterator<Item = &'static str> {
    FACTS
        .iter()
        .filter_map(|fact| fact.name.split_once('.'))
        .filter(move |(of, _)| *of == root)
        .map(|(_, member)| member)
}

/// An operator as people write it.
pub(super) fn sign(operator: &str) -> &'static str {
    match operator {
        operators::EQUALS => "==",
        operators::NOT_EQUALS => "!=",
        operators::LESS => "<",
        operators::LESS_EQUALS => "<=",
        operators::GREATER => ">",
        operators::GREATER_EQUALS => ">=",
        operators::ADD => "+",
        operators::SUBSTRACT => "-",
        operators::MULTIPLY => "*",
        operators::DIVIDE => "/",
        operators::MODULO => "%",
        _ => "?",
    }
}
