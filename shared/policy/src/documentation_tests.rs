//! What `docs/policy.md` shows is what comes out.

use crate::policy::Policy;
use crate::schema;

const DOCUMENT: &str = include_str!("../../../docs/policy.md");

/// The first fenced block of a language.
fn block(language: &str) -> &'static str {
    DOCUMENT.split(&format!("```{language}\n")).nth(1).and_then(|rest| rest.split("```").next()).expect("a block")
}

#[test]
fn the_document_has_every_fact() {
    let table = schema::markdown().join("\n");
    assert!(DOCUMENT.contains(&table), "{table}");
}

#[test]
fn the_policy_of_the_walk_through_loads_and_passes() {
    let loaded = Policy::load(block("toml")).unwrap_or_else(|errors| panic!("{errors:#?}"));
    // It has no identities, and the section about them says what that means.
    assert_eq!(loaded.warnings.iter().map(|odd| odd.path.as_str()).collect::<Vec<_>>(), ["identity"]);
    assert!(loaded.policy.run_tests().iter().all(crate::TestOutcome::passed));
}

#[test]
fn the_derivation_of_the_walk_through_is_real() {
    let policy = Policy::load(block("toml")).unwrap_or_else(|errors| panic!("{errors:#?}")).policy;
    let outcome = policy.run_tests().remove(0);
    let steps =
        outcome.derivation.steps.iter().map(|step| format!("    {}", serde_json::to_string(step).expect("JSON")));
    let (priority, tier) = (outcome.derivation.priority, &outcome.derivation.tier);
    let steps = steps.collect::<Vec<_>>().join(",\n");
    let text = format!("{{\n  \"priority\": {priority}, \"tier\": \"{tier}\",\n  \"steps\": [\n{steps}\n  ]\n}}\n");
    assert!(block("json") == text, "{text}");
}

/// Every key that a policy may have is documented.
#[test]
fn the_document_has_every_key() {
    for code in crate::door::CODES {
        assert!(DOCUMENT.contains(&format!("`{code}`")), "{code}");
    }
    for key in crate::file::keys() {
        let spellings = [format!("`{key}`"), format!("want.{key}`"), format!("`{key} = ")];
        assert!(spellings.iter().any(|spelling| DOCUMENT.contains(spelling)), "{key}");
    }
}
