//! `[[rule]]`.

use osprey_model::message::words::quote;

use crate::document::{Item, Reader, Table};
use crate::expr::{Expr, ExprError, Guards, Wanted};
use crate::problem::PolicyErrorCode;
use crate::rule::{Effect, RESERVED_IDS, Rule};
use crate::rules::PRIORITY_MAX;

pub(super) const KEYS: [&str; 7] = ["id", "why", "when", "add", "set", "amount", "final"];

/// A rule as far as it could be read: tests may name it even when its condition is wrong.
pub(super) struct Entry {
    pub id: String,
    pub rule: Option<Rule>,
}

pub(super) fn rules<'t>(reader: &mut Reader<'t>, root: &Table<'t>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for table in reader.tables(root, "rule") {
        reader.known_keys(&table, &KEYS);
        let id = id(reader, &table, &entries);
        let rule = rule(reader, &table, id.clone());
        entries.push(Entry { id, rule });
    }
    entries
}

fn id<'t>(reader: &mut Reader<'t>, table: &Table<'t>, before: &[Entry]) -> String {
    let Some(item) = reader.required(table, "id", "every rule needs an id, which explanations show") else {
        return String::new();
    };
    let Some(id) = reader.name(&item) else { return String::new() };
    if before.iter().any(|entry| entry.id == id) {
        let message = format!("a rule {} stands above already", quote(id));
        reader.error(&item, PolicyErrorCode::Duplicate, message, Some("give it another id".to_owned()));
    }
    if RESERVED_IDS.contains(&id) {
        let message = format!("{} stands for a step of derivation itself", quote(id));
        reader.error(&item, PolicyErrorCode::Duplicate, message, Some("give it another id".to_owned()));
    }
    id.to_owned()
}

fn rule<'t>(reader: &mut Reader<'t>, table: &Table<'t>, id: String) -> Option<Rule> {
    let why = table.item("why").and_then(|item| reader.name(&item)).map(ToOwned::to_owned);
    let is_final = table.item("final").and_then(|item| reader.boolean(&item));
    let when = reader.required(table, "when", "write `when = \"true\"` for a rule that always matches");
    let when = when.and_then(|item| expression(reader, &item, Wanted::Bool, &Guards::new(), false));
    let effect = effect(reader, table, when.as_ref());
    let place = reader.place(table.span.start);
    Some(Rule { id, why, is_final: is_final.unwrap_or(false), place, when: when?, effect: effect? })
}

fn effect<'t>(reader: &mut Reader<'t>, table: &Table<'t>, when: Option<&Expr>) -> Option<Effect> {
    let given: Vec<_> = ["add", "set", "amount"].into_iter().filter_map(|key| Some((key, table.item(key)?))).collect();
    if given.is_empty() {
        let message = "the rule does nothing".to_owned();
        let help = Some("give it one of `add`, `set` and `amount`".to_owned());
        reader.error_at(table.span.start, &table.path, PolicyErrorCode::MissingKey, message, help);
    }
    if let [(first, _), (second, item), ..] = given.as_slice() {
        let message = format!("`{first}` and `{second}` exclude each other");
        reader.error(item, PolicyErrorCode::ConflictingKeys, message, Some("keep one of them".to_owned()));
    }
    let limit = i64::from(PRIORITY_MAX);
    let mut effects = Vec::new();
    for (key, item) in &given {
        effects.push(match *key {
            "add" => reader.integer(item, -limit..=limit).map(Effect::Add),
            "set" => reader.integer(item, 0..=limit).map(Effect::Set),
            _ => amount(reader, item, when),
        });
    }
    effects.into_iter().next().flatten()
}

/// The amount is only computed when the condition holds, so it may rely on what that proves.
fn amount<'t>(reader: &mut Reader<'t>, item: &Item<'t>, when: Option<&Expr>) -> Option<Effect> {
    let guards = when.map(|when| when.proves.clone()).unwrap_or_default();
    // Behind a broken condition nobody can say what is guarded.
    expression(reader, item, Wanted::Int, &guards, when.is_none()).map(Effect::Amount)
}

fn expression<'t>(
    reader: &mut Reader<'t>,
    item: &Item<'t>,
    wanted: Wanted,
    guards: &Guards,
    forgive_unguarded: bool,
) -> Option<Expr> {
    let text = reader.text(item)?;
    match Expr::compile(text, wanted, guards) {
        Ok(expr) => Some(expr),
        Err(errors) => {
            let forgiven = |error: &ExprError| forgive_unguarded && error.code == PolicyErrorCode::UnguardedFact;
            for error in errors.into_iter().filter(|error| !forgiven(error)) {
                reader.error_inside(item, error.offset, error.code, error.message, error.help);
            }
            None
        }
    }
}
