//! `osprey policy diff`: what two policies say differently, and which of the known cases come out otherwise.

use clap::Args;
use osprey_policy::case::{Case, TestOutcome};
use osprey_policy::outline::{self, Difference};
use osprey_policy::{DEFAULT, Policy};
use serde_json::{Value, json};

use super::{Named, Policies};
use crate::command::Exit;
use crate::error::CliError;
use crate::policy_file;
use crate::render::policy::counted;
use crate::render::table::Columns;
use crate::ui::Ui;

/// Longest value in a table, in characters: the JSON has it whole.
const VALUE_CHARACTERS_MAX: usize = 48;

/// Show what a new policy says differently, field by field, and which test cases come out otherwise.
///
/// Rules, tiers and identities are compared by their names. The cases are the tests of both policies and those of the
/// built-in one, which are the table that everybody knows. Nothing is scheduled: `osprey policy plan` does.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  osprey policy diff default policy.toml
  osprey policy diff old.toml new.toml --output json

Exit code 0 however much differs, 4 when one of the policies can't be used.")]
pub struct DiffArgs {
    #[command(flatten)]
    policies: Policies,
}

/// Compares what two policies say.
pub fn diff(args: &DiffArgs, ui: &mut Ui) -> Result<Exit, CliError> {
    let [old, new] = args.policies.load()?;
    let differences = outline::differences(&old.text, &new.text);
    let cases = cases(&old.policy, &new.policy)?;
    if ui.is_json() {
        ui.json(&as_json(&old, &new, &differences, &cases))?;
    } else {
        ui.text(&as_text(&old, &new, &differences, &cases))?;
    }
    Ok(Exit::Ok)
}

/// A case under both policies.
struct Compared {
    name: String,
    /// Whose test it is.
    of: &'static str,
    before: Came,
    after: Came,
}

/// What came of a case.
#[derive(PartialEq, Eq)]
struct Came {
    priority: u32,
    tier: String,
    /// Codes of the refusals.
    refusals: Vec<String>,
}

impl Came {
    fn of(outcome: &TestOutcome) -> Self {
        let refusals = outcome.refusals.iter().map(|refusal| refusal.code.to_string()).collect();
        Self { priority: outcome.derivation.priority, tier: outcome.derivation.tier.to_string(), refusals }
    }

    fn json(&self) -> Value {
        let Self { priority, tier, refusals } = self;
        json!({ "priority": priority, "tier": tier, "refusals": refusals })
    }

    fn text(&self) -> String {
        let Self { priority, tier, refusals } = self;
        let refused = if refusals.is_empty() { String::new() } else { format!(", {}", refusals.join(", ")) };
        format!("{priority} {tier}{refused}")
    }
}

/// Every case once: of the old policy, of the new one, and of the one that ships.
fn cases(old: &Policy, new: &Policy) -> Result<Vec<Compared>, CliError> {
    let built_in = policy_file::parse(DEFAULT, super::BUILT_IN)?;
    let mut seen: Vec<&Case> = Vec::new();
    let mut compared = Vec::new();
    for (of, policy) in [("old", old), ("new", new), (super::BUILT_IN, &built_in)] {
        for case in policy.tests() {
            if seen.iter().any(|other| other.given == case.given) {
                continue;
            }
            seen.push(case);
            let [before, after] = [old, new].map(|policy| Came::of(&policy.run_test(case)));
            compared.push(Compared { name: case.name.clone(), of, before, after });
        }
    }
    Ok(compared)
}

fn changed(cases: &[Compared]) -> impl Iterator<Item = &Compared> {
    cases.iter().filter(|case| case.before != case.after)
}

fn as_json(old: &Named, new: &Named, differences: &[Difference], cases: &[Compared]) -> Value {
    let side = |named: &Named| json!({ "policy": named.name, "revision": named.policy.revision() });
    let settings = differences
        .iter()
        .map(|Difference { path, before, after }| json!({ "path": path, "before": before, "after": after }));
    let changed = changed(cases).map(|Compared { name, of, before, after }| {
        json!({ "name": name, "of": of, "before": before.json(), "after": after.json() })
    });
    json!({
        "before": side(old),
        "after": side(new),
        "settings": settings.collect::<Vec<_>>(),
        "cases": cases.len(),
        "changed_cases": changed.collect::<Vec<_>>(),
    })
}

fn as_text(old: &Named, new: &Named, differences: &[Difference], cases: &[Compared]) -> String {
    let side = |named: &Named| format!("`{}` (revision {})", named.name, named.policy.revision());
    let mut parts = vec![format!("from {} to {}", side(old), side(new))];
    if differences.is_empty() {
        parts.push("they say the same".to_owned());
    } else {
        let mut columns = Columns::new(&["SETTING", "OLD", "NEW"]);
        for Difference { path, before, after } in differences {
            let value = |value: &Option<String>| value.as_deref().map_or_else(|| "-".to_owned(), short);
            columns.row([path.clone(), value(before), value(after)]);
        }
        parts.push(columns.render());
    }
    let count = changed(cases).count();
    parts.push(format!("{}, {count} of them with another outcome", counted(cases.len(), "test case")));
    if count > 0 {
        let mut columns = Columns::new(&["CASE", "OF", "OLD", "NEW"]);
        for Compared { name, of, before, after } in changed(cases) {
            columns.row([name.clone(), (*of).to_owned(), before.text(), after.text()]);
        }
        parts.push(columns.render());
    }
    parts.join("\n\n")
}

fn short(value: &str) -> String {
    let mut characters = value.chars();
    let start: String = characters.by_ref().take(VALUE_CHARACTERS_MAX).collect();
    if characters.next().is_some() { start + "…" } else { start }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_cut_at_a_character() {
        assert_eq!(short("ü"), "ü");
        assert_eq!(short(&"ü".repeat(48)), "ü".repeat(48));
        assert_eq!(short(&"ü".repeat(49)), format!("{}…", "ü".repeat(48)));
    }
}
