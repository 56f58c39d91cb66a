//! What is allowed and yet probably not meant: rules that can't match, rules that no test makes match.

use std::collections::{BTreeMap, BTreeSet};

use crate::identity::DEFAULT_NAME;
use crate::key::MetadataKey;
use crate::place::Place;
use crate::policy::Policy;
use crate::problem::Warning;
use crate::rule::Rule;

/// Every oddity of a policy.
pub(crate) fn warnings(policy: &Policy) -> Vec<Warning> {
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
        warnings.extend(odd.map(|message| at_rule(rule, index, message)));
        shadow = shadow.or_else(|| (rule.is_final && rule.always_matches()).then_some(rule));
    }
    warnings.extend(open_door(policy));
    warnings.extend(no_team(policy));
    warnings
}

/// Tags are claims. Where the identity of strangers may claim everything, whoever may send decides for himself how urgent
/// he is.
fn open_door(policy: &Policy) -> Option<Warning> {
    let all = policy.identities();
    let at = all.iter().position(|identity| identity.name == DEFAULT_NAME);
    let (path, place) = match at.and_then(|index| Some((index, all.get(index)?))) {
        None => ("identity".to_owned(), Place::default()),
        Some((index, identity)) if identity.may_claim_everything() => (format!("identity[{index}]"), identity.place),
        Some(_) => return None,
    };
    let message = "whoever may send a job may claim every environment and every tier; bound the identity `default`";
    Some(Warning { path, line: place.line, column: place.column, message: message.to_owned() })
}

/// A job that names no team is charged to nobody.
fn no_team(policy: &Policy) -> Option<Warning> {
    let is_named = policy.admission().require.contains(&MetadataKey::Team)
        || !policy.identities().is_empty() && policy.identities().iter().all(|identity| identity.teams.is_some());
    if !policy.quota().asks_of_teams() || is_named {
        return None;
    }
    let message =
        "a job that names no team has no quota; demand `team` in `[admission]`, or give every identity its teams";
    let Place { line, column } = Place::default();
    Some(Warning { path: "quota".to_owned(), line, column, message: message.to_owned() })
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

fn at_rule(rule: &Rule, index: usize, message: String) -> Warning {
    Warning { path: format!("rule[{index}]"), line: rule.place.line, column: rule.place.column, message }
}
