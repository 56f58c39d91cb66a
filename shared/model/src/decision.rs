//! A derivation and its account: every rule tried, what it read, what it gave, the running number.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{PolicyRevision, PoolName, TierName};

/// One rule of a derivation, matched or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Id of the rule.
    pub rule: String,
    /// Whether its condition held.
    pub matched: bool,
    /// What it added to the number; for a rule that sets the number, the difference it made.
    pub contribution: i64,
    /// The number after this rule.
    pub priority_after: i64,
    /// The facts it read, by name.
    pub because: BTreeMap<String, FactValue>,
    /// Why it was skipped, when it could not be evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The value of a fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FactValue {
    /// The fact is not there.
    Absent,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Number(f64),
    /// Text.
    Text(String),
    /// A list of texts, or keys of a map.
    List(Vec<String>),
}

/// Number and tier of a job, with the account of how they came about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Derivation {
    /// 0 to 9999, higher is more urgent.
    pub priority: u32,
    /// The tier that the number falls in.
    pub tier: TierName,
    /// Every rule in the order tried.
    pub steps: Vec<Step>,
    /// Set when derivation itself failed and the fallback number stands: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
}

/// What was decided of a job, as recorded with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Number, tier and steps.
    #[serde(flatten)]
    pub derivation: Derivation,
    /// The pool it goes to.
    pub pool: PoolName,
    /// Revision of the policy that decided.
    pub policy_revision: PolicyRevision,
    /// When.
    pub decided_at: Timestamp,
    /// What the sender should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
