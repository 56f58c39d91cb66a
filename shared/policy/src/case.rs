//! The tests that a policy carries: what is given, what is wanted, and whether it came out.

use osprey_model::decision::Derivation;
use osprey_model::facts::Facts;
use osprey_model::id::TierName;
use osprey_model::message::words::all_of;
use osprey_model::reason::{ReasonCode, Refusal};

use crate::policy::Policy;

/// One `[[test]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Its name, a sentence.
    pub name: String,
    /// The line where it begins, counted from 1.
    pub line: usize,
    /// The facts.
    pub given: Facts,
    /// What must come out.
    pub want: Want,
}

/// What a test wants; what it doesn't say, it doesn't judge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Want {
    /// The number.
    pub priority: Option<u32>,
    /// The tier.
    pub tier: Option<TierName>,
    /// Rules that must match, among others.
    pub rules: Vec<String>,
    /// The code of a refusal.
    pub refused: Option<ReasonCode>,
    /// Whether it is let in.
    pub admitted: Option<bool>,
}

/// How a test went.
#[derive(Clone, Debug, PartialEq)]
pub struct TestOutcome {
    /// Name of the test.
    pub name: String,
    /// The line where it begins, counted from 1.
    pub line: usize,
    /// Everything that came out otherwise than wanted; empty when it passed.
    pub failures: Vec<String>,
    /// What was derived.
    pub derivation: Derivation,
    /// What admission refused it for.
    pub refusals: Vec<Refusal>,
}

impl TestOutcome {
    /// Whether everything came out as wanted.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }
}

impl Policy {
    /// Runs every test of the policy, in the order of the file.
    ///
    /// Of admission it judges what the policy itself says: metadata, array width, durations and checkpoints.
    #[must_use]
    pub fn run_tests(&self) -> Vec<TestOutcome> {
        self.tests().iter().map(|case| self.run_test(case)).collect()
    }

    /// Runs a test, which may be another policy's: what comes out then says how the two differ.
    #[must_use]
    pub fn run_test(&self, case: &Case) -> TestOutcome {
        let derivation = self.derive(&case.given);
        let refusals = crate::door::refusals(self, &case.given, &derivation);
        let failures = case.want.failures(&derivation, &refusals);
        TestOutcome { name: case.name.clone(), line: case.line, failures, derivation, refusals }
    }
}

impl Want {
    fn failures(&self, derivation: &Derivation, refusals: &[Refusal]) -> Vec<String> {
        let Self { priority, tier, rules, refused, admitted } = self;
        let matched = |id: &str| derivation.steps.iter().any(|step| step.rule == id && step.matched);
        let codes = all_of(
            refusals.iter().map(|refusal| refusal.code.to_string()).collect::<Vec<_>>().iter().map(String::as_str),
        );
        let got =
            if refusals.is_empty() { "it was admitted".to_owned() } else { format!("it was refused with {codes}") };
        let mut failures = Vec::new();
        if let Some(want) = priority.filter(|want| *want != derivation.priority) {
            failures.push(format!("wanted priority {want}, got {}", derivation.priority));
        }
        if let Some(want) = tier.as_ref().filter(|want| **want != derivation.tier) {
            failures.push(format!("wanted tier `{want}`, got `{}`", derivation.tier));
        }
        failures
            .extend(rules.iter().filter(|id| !matched(id)).map(|id| format!("wanted rule `{id}` to match, it didn't")));
        if let Some(want) = refused.filter(|want| !refusals.iter().any(|refusal| refusal.code == *want)) {
            failures.push(format!("wanted a refusal with `{want}`, {got}"));
        }
        match admitted {
            Some(true) if !refusals.is_empty() => failures.push(format!("wanted it admitted, {got}")),
            Some(false) if refusals.is_empty() => failures.push(format!("wanted it refused, {got}")),
            _ => {}
        }
        failures
    }
}

#[cfg(test)]
#[path = "case_tests.rs"]
mod tests;
