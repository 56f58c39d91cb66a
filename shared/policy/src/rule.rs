//! A rule of derivation: a condition and what it does to the number.

use crate::expr::Expr;
use crate::place::Place;

/// Ids that stand for steps of derivation itself.
pub const RESERVED_IDS: [&str; 6] = ["base", "priority-class", "identity", "clamp", "fallback", "quota"];

/// One `[[rule]]`.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its id, unique in the policy.
    pub id: String,
    /// Why it exists, for people.
    pub why: Option<String>,
    /// Whether no later rule is tried once it has matched.
    pub is_final: bool,
    /// Where it begins in the file.
    pub(crate) place: Place,
    pub(crate) when: Expr,
    pub(crate) effect: Effect,
}

/// What a rule does to the number when its condition holds.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// Adds a number.
    Add(i64),
    /// Makes it this number.
    Set(i64),
    /// Adds what an expression says.
    Amount(Expr),
}

impl Rule {
    /// What it does, in a few words: `+200`, `= 1000`, or `computed`.
    #[must_use]
    pub fn effect(&self) -> String {
        match &self.effect {
            Effect::Add(number) => format!("{number:+}"),
            Effect::Set(number) => format!("= {number}"),
            Effect::Amount(_) => "computed".to_owned(),
        }
    }

    /// Whether it matches every job: its condition reads no fact and is true.
    pub(crate) fn always_matches(&self) -> bool {
        self.when.is_constant() && self.when.holds(&std::collections::BTreeMap::new()) == Ok(true)
    }
}
