//! A decision as it is kept with a message: the steps as lists, since the names of their members would be half of it.
//! Every message is kept with its decision, and a table is paid for by the kilobyte.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use osprey_model::decision::{Decision, Derivation, FactValue, Step};
use osprey_model::id::{PolicyRevision, PoolName, TierName};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Rule, whether it matched, contribution, number after it, facts, error.
#[derive(Deserialize)]
struct Row(String, bool, i64, i64, BTreeMap<String, FactValue>, Option<String>);

/// The same as it is written.
#[derive(Serialize)]
struct WrittenRow<'a>(&'a str, bool, i64, i64, &'a BTreeMap<String, FactValue>, &'a Option<String>);

/// A step as it is kept now, or as it was kept once.
enum Either {
    Row(Row),
    Step(Step),
}

impl<'de> Deserialize<'de> for Either {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EitherVisitor)
    }
}

/// A list is a row, and an object a step: nothing need be read twice to find out.
struct EitherVisitor;

impl<'de> Visitor<'de> for EitherVisitor {
    type Value = Either;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a step of a decision")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Either, A::Error> {
        Row::deserialize(SeqAccessDeserializer::new(list)).map(Either::Row)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Either, A::Error> {
        Step::deserialize(MapAccessDeserializer::new(object)).map(Either::Step)
    }
}

#[derive(Serialize)]
struct Written<'a> {
    priority: u32,
    tier: &'a TierName,
    steps: Vec<WrittenRow<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback: &'a Option<String>,
    pool: &'a PoolName,
    policy_revision: &'a PolicyRevision,
    decided_at: Timestamp,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
}

#[derive(Deserialize)]
struct Read {
    priority: u32,
    tier: TierName,
    steps: Vec<Either>,
    #[serde(default)]
    fallback: Option<String>,
    pool: PoolName,
    policy_revision: PolicyRevision,
    decided_at: Timestamp,
    #[serde(default)]
    warnings: Vec<String>,
}

impl<'a> From<&'a Step> for WrittenRow<'a> {
    fn from(step: &'a Step) -> Self {
        let Step { rule, matched, contribution, priority_after, because, error } = step;
        Self(rule, *matched, *contribution, *priority_after, because, error)
    }
}

impl From<Either> for Step {
    fn from(kept: Either) -> Self {
        match kept {
            Either::Step(step) => step,
            Either::Row(Row(rule, matched, contribution, priority_after, because, error)) => {
                Self { rule, matched, contribution, priority_after, because, error }
            }
        }
    }
}

/// Writes a decision.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(decision: &Option<Decision>, serializer: S) -> Result<S::Ok, S::Error> {
    let Some(Decision { derivation, pool, policy_revision, decided_at, warnings }) = decision else {
        return serializer.serialize_none();
    };
    let Derivation { priority, tier, steps, fallback } = derivation;
    let steps = steps.iter().map(WrittenRow::from).collect();
    Written { priority: *priority, tier, steps, fallback, pool, policy_revision, decided_at: *decided_at, warnings }
        .serialize(serializer)
}

/// Reads a decision.
///
/// # Errors
/// Those of the deserializer.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Decision>, D::Error> {
    let Some(read) = Option::<Read>::deserialize(deserializer)? else { return Ok(None) };
    let Read { priority, tier, steps, fallback, pool, policy_revision, decided_at, warnings } = read;
    let steps = steps.into_iter().map(Step::from).collect();
    let derivation = Derivation { priority, tier, steps, fallback };
    Ok(Some(Decision { derivation, pool, policy_revision, decided_at, warnings }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holder(#[serde(with = "super")] Option<Decision>);

    fn decision() -> Decision {
        let step = |rule: &str, error: Option<&str>| Step {
            rule: rule.to_owned(),
            matched: true,
            contribution: -5,
            priority_after: 495,
            because: BTreeMap::from([("job.gpus".to_owned(), FactValue::Int(8))]),
            error: error.map(str::to_owned),
        };
        let steps = vec![step("large", None), step("odd", Some("it broke"))];
        Decision {
            derivation: Derivation { priority: 495, tier: "experimental".into(), steps, fallback: None },
            pool: "main".into(),
            policy_revision: "abc".into(),
            decided_at: Timestamp::UNIX_EPOCH,
            warnings: vec!["w".to_owned()],
        }
    }

    #[test]
    fn a_decision_is_read_as_it_was_written() {
        for holder in [Holder(Some(decision())), Holder(None)] {
            let text = serde_json::to_string(&holder).unwrap();
            assert_eq!(serde_json::from_str::<Holder>(&text).unwrap(), holder, "{text}");
        }
    }

    #[test]
    fn a_decision_that_was_kept_with_names_is_read_too() {
        let text = serde_json::to_string(&decision()).unwrap();
        assert_eq!(serde_json::from_str::<Holder>(&text).unwrap(), Holder(Some(decision())));
    }
}
