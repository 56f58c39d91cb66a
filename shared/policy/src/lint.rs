//! What is allowed and yet probably not meant: rules that can't match, rules that no test makes match.

use std::collections::{BTreeMap, BTreeSet};

use crate::place::place;
use crate::policy::Policy;
use crate::problem::Warning;
use crate::rule::Rule;

/// Every oddity of a policy.
pub(crate) fn warnings(policy: &Policy, text: &str) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let matched = matched(policy);
    let mut shadow: Option<&Rule> = None;
    for (index, rule) in policy.rules().iter().enumerate() {
        let odd = match shadow {
            Some(shadow) => Some(format!("rule `{}` is never tried: `{}` above it always ends", rule.id, shadow.id)),
            None if never_matches(rule) => Some(format!("rule `{}` never matches", rule.id)),
            None if !matched.contains(rule.id.as_str()) => Some(format!("no test makes rule `{}` match", rule.id)),
            None => None,
        };
        warnings.extend(odd.map(|message| at_rule(text, index, message)));
        shadow = shadow.or_else(|| (rule.is_final && rule.always_matches()).then_some(rule));
    }
    warnings
}

/// The rules that some test makes match.
fn matched(policy: &Policy) -> BTreeSet<String> {
    let outcomes = policy.run_tests();
    let steps = outcomes.into_iter().flat_map(|outcome| outcome.derivation.steps);
    steps.filter(|step| step.matched).map(|step| step.rule).collect()
}

fn never_matches(rule: &Rule) -> bool {
    rule.when.is_constant() && rule.when.holds(&BTreeMap::new()) == Ok(false)
}

fn at_rule(text: &str, index: usize, message: String) -> Warning {
    let place = place(text, header(text, index));
    Warning { path: format!("rule[{index}]"), line: place.line, column: place.column, message }
}

/// The offset of the nth `[[rule]]`.
fn header(text: &str, index: usize) -> usize {
    text.match_indices("[[rule]]").nth(index).map_or(0, |(offset, _)| offset)
}
