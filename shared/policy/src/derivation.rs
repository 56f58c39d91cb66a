//! Derivation: from facts to a number and a tier, with an account of every step.
//!
//! It is total. Whatever the facts, a number comes out; a rule that can't be evaluated makes the whole derivation fall
//! back to the policy's `fallback`, because a number made of some of the rules would look right and be wrong.
//!
//! The account begins with `base` and ends with `clamp` (or `fallback`), and its contributions add up to the number.

use std::collections::BTreeMap;

use osprey_model::decision::{Derivation, FactValue, Step};
use osprey_model::facts::Facts;
use osprey_model::id::TierName;

use crate::identity::Identity;
use crate::policy::Policy;
use crate::rule::{Effect, Rule};

/// The account while it grows.
struct Account {
    steps: Vec<Step>,
    number: i64,
}

/// The step of a job that was moved to the tier of preemptible jobs since its team has used up its quota.
const DEMOTION: &str = "quota";

/// An identity, and the highest tier that it reaches.
type Bound<'a> = (&'a Identity, &'a TierName);

/// How a rule ended.
enum Tried {
    /// The next one is tried.
    On,
    /// It matched and is final.
    Final,
    /// It couldn't be evaluated: why.
    Failed(String),
}

impl Policy {
    /// Derives number and tier of a job. Never fails: see [`Derivation::fallback`].
    ///
    /// Rules behind a final one that matched, or behind one that failed, are listed as not tried.
    #[must_use]
    pub fn derive(&self, facts: &Facts) -> Derivation {
        self.derive_for(facts, None)
    }

    /// Derives number and tier of a job whose sender is known: its identity bounds both, in a step `identity`.
    #[must_use]
    pub fn derive_for(&self, facts: &Facts, identity: Option<&Identity>) -> Derivation {
        let bound = identity.and_then(|identity| Some((identity, identity.tier_at_most.as_ref()?)));
        let mut account = Account { steps: Vec::new(), number: 0 };
        account.set("base", self.derive_rules().base.into(), BTreeMap::new());
        match self.apply(facts, &mut account) {
            Some(failure) => self.fall_back(facts, bound, account, failure),
            None => self.finish(facts, bound, account),
        }
    }

    /// The same derivation with its job moved to the tier of preemptible jobs, since its team has used up its quota: a last
    /// step `quota` says so. One that is there already, or a policy without such a tier, changes nothing.
    #[must_use]
    pub fn demoted(&self, mut derivation: Derivation, because: BTreeMap<String, FactValue>) -> Derivation {
        let Some(tier) = self.preemptible_tier().filter(|tier| tier.name != derivation.tier) else { return derivation };
        let (before, after) = (derivation.priority, derivation.priority.min(self.derive_rules().floor));
        derivation.steps.push(Step {
            rule: DEMOTION.to_owned(),
            matched: true,
            contribution: i64::from(after) - i64::from(before),
            priority_after: after.into(),
            because,
            error: None,
        });
        derivation.priority = after;
        derivation.tier = tier.name.clone();
        derivation
    }

    /// Whether a job is in its tier since its team has used up its quota.
    #[must_use]
    pub(crate) fn is_demoted(derivation: &Derivation) -> bool {
        // What the rules say ends with the limits of the number, so a rule of this name is no demotion.
        derivation.steps.last().is_some_and(|step| step.rule == DEMOTION)
    }

    /// Tries the rules in order; says why when one fails.
    fn apply(&self, facts: &Facts, account: &mut Account) -> Option<String> {
        let mut rules = self.rules().iter();
        while let Some(rule) = rules.next() {
            let ended = match account.try_rule(rule, facts) {
                Tried::On => continue,
                Tried::Final => (None, format!("not tried: rule `{}` is final", rule.id)),
                Tried::Failed(why) => {
                    (Some(format!("rule `{}`: {why}", rule.id)), format!("not tried: rule `{}` failed", rule.id))
                }
            };
            for rest in rules {
                account.skip(&rest.id, BTreeMap::new(), Some(ended.1.clone()));
            }
            return ended.0;
        }
        None
    }

    fn finish(&self, facts: &Facts, bound: Option<Bound<'_>>, mut account: Account) -> Derivation {
        let mut class = facts.job.metadata.priority_class.as_deref().and_then(|class| self.without_number(class));
        if let Some(class) = &facts.job.metadata.priority_class {
            let because = BTreeMap::from([("job.priority_class".to_owned(), FactValue::Text(class.clone()))]);
            self.cap("priority-class", class, because, &mut account);
        }
        class = self.cap_identity(bound, &mut account).or(class);
        let limits = self.derive_rules();
        let clamped = account.number.clamp(limits.floor.into(), limits.ceiling.into());
        account.set("clamp", clamped, BTreeMap::new());
        self.derivation(facts, account, class, None)
    }

    fn fall_back(&self, facts: &Facts, bound: Option<Bound<'_>>, mut account: Account, failure: String) -> Derivation {
        account.set("fallback", self.derive_rules().fallback.into(), BTreeMap::new());
        // A rule that fails must not be a way past the identity.
        let class = self.cap_identity(bound, &mut account);
        self.derivation(facts, account, class, Some(failure))
    }

    /// Keeps the number within the tier that the sender's identity reaches; the tier itself, when it has no number.
    fn cap_identity(&self, bound: Option<Bound<'_>>, account: &mut Account) -> Option<TierName> {
        let (identity, tier) = bound?;
        let because = BTreeMap::from([("identity".to_owned(), FactValue::Text(identity.name.clone()))]);
        self.cap("identity", tier.as_str(), because, account);
        self.without_number(tier.as_str())
    }

    fn derivation(
        &self,
        facts: &Facts,
        account: Account,
        class: Option<TierName>,
        fallback: Option<String>,
    ) -> Derivation {
        // INVARIANT: both `clamp` and `fallback` leave a number within 0 to 9999.
        let priority = u32::try_from(account.number).unwrap_or(0);
        let preemptible = facts.job.metadata.preemptible == Some(true);
        let tier = class.unwrap_or_else(|| self.tier_of(priority, preemptible).name.clone());
        Derivation { priority, tier, steps: account.steps, fallback }
    }

    /// The preemptible tier, when it has this name: it has no threshold that a number could stay below, so the tier
    /// itself is what a class or an identity means.
    fn without_number(&self, name: &str) -> Option<TierName> {
        self.preemptible_tier().filter(|tier| tier.name.as_str() == name).map(|tier| tier.name.clone())
    }

    /// Keeps the number just below the next tier's threshold. It lowers and never raises; a class that no tier has is
    /// admission's business, and changes nothing.
    fn cap(&self, step: &str, tier: &str, because: BTreeMap<String, FactValue>, account: &mut Account) {
        match self.highest_of(tier) {
            Some(highest) if highest < account.number => account.set(step, highest, because),
            _ => account.skip(step, because, None),
        }
    }

    /// The greatest number of a tier that jobs have numbers in; `None` for that of preemptible jobs.
    #[must_use]
    pub fn top_of(&self, tier: &TierName) -> Option<u32> {
        if self.without_number(tier.as_str()).is_some() {
            return None;
        }
        let highest = self.highest_of(tier.as_str()).unwrap_or(self.derive_rules().ceiling.into());
        u32::try_from(highest).ok()
    }

    /// The greatest number of a tier; `None` when it has no tier above, or doesn't exist.
    pub(crate) fn highest_of(&self, class: &str) -> Option<i64> {
        let tier = self.tiers().iter().find(|tier| tier.name.as_str() == class)?;
        let Some(own) = tier.at_least() else { return Some(self.derive_rules().floor.into()) };
        let above = self.tiers().iter().filter_map(|tier| tier.at_least()).filter(|number| *number > own).min()?;
        Some(i64::from(above) - 1)
    }
}

impl Account {
    fn try_rule(&mut self, rule: &Rule, facts: &Facts) -> Tried {
        let mut because = rule.when.because(facts);
        match rule.when.holds(&because) {
            Ok(false) => {
                self.skip(&rule.id, because, None);
                Tried::On
            }
            Ok(true) => {
                let after = self.after(rule, facts, &mut because);
                self.take(rule, because, after)
            }
            Err(why) => self.fail(rule, because, why),
        }
    }

    /// The number after a rule whose condition holds.
    fn after(&self, rule: &Rule, facts: &Facts, because: &mut BTreeMap<String, FactValue>) -> Result<i64, String> {
        match &rule.effect {
            Effect::Add(number) => Ok(self.number.saturating_add(*number)),
            Effect::Set(number) => Ok(*number),
            Effect::Amount(amount) => {
                because.extend(amount.because(facts));
                amount.amount(because).map(|amount| self.number.saturating_add(amount))
            }
        }
    }

    fn take(&mut self, rule: &Rule, because: BTreeMap<String, FactValue>, after: Result<i64, String>) -> Tried {
        match after {
            Ok(number) => {
                self.set(&rule.id, number, because);
                if rule.is_final { Tried::Final } else { Tried::On }
            }
            Err(why) => self.fail(rule, because, why),
        }
    }

    fn fail(&mut self, rule: &Rule, because: BTreeMap<String, FactValue>, why: String) -> Tried {
        self.skip(&rule.id, because, Some(why.clone()));
        Tried::Failed(why)
    }

    /// A step that makes the number this. `base` and a rule that matched count as matched even when nothing changes;
    /// `clamp` only when it does something.
    fn set(&mut self, rule: &str, number: i64, because: BTreeMap<String, FactValue>) {
        let contribution = number.saturating_sub(self.number);
        let matched = rule != "clamp" || contribution != 0;
        self.number = number;
        self.steps.push(Step {
            rule: rule.to_owned(),
            matched,
            contribution,
            priority_after: number,
            because,
            error: None,
        });
    }

    /// A step that changes nothing.
    fn skip(&mut self, rule: &str, because: BTreeMap<String, FactValue>, error: Option<String>) {
        let priority_after = self.number;
        self.steps.push(Step {
            rule: rule.to_owned(),
            matched: false,
            contribution: 0,
            priority_after,
            because,
            error,
        });
    }
}

#[cfg(test)]
#[path = "derivation_tests.rs"]
mod tests;
