//! Why a job is where it is, for people and as JSON.

use osprey_model::id::{PoolName, TierName};
use osprey_model::message::words::shown;
use osprey_pipeline::evict::Receipt;
use serde::Serialize;
use serde_json::{Map, Value};

/// What is answered about one job. The members are an interface.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The job.
    pub job: String,
    /// Its name.
    pub name: String,
    /// Where it is.
    pub state: String,
    /// Its priority.
    pub priority: u32,
    /// Its tier.
    pub tier: TierName,
    /// Its pool.
    pub pool: PoolName,
    /// The one reason that counts.
    pub reason: Reason,
    /// The numbers that the reason is about. Times are milliseconds since 1970.
    pub evidence: Map<String, Value>,
    /// The least changes that would start it now; not worked out by this version.
    pub changes: Vec<Value>,
    /// When it is expected to start; not worked out by this version.
    pub eta_seconds: Option<Value>,
    /// Jobs of its pool's line that come before it; absent for a job that doesn't stand there.
    pub ahead: Option<usize>,
    /// Its newest eviction, for a job that makes room or came back.
    #[serde(serialize_with = "receipt")]
    pub evicted: Option<Receipt>,
}

fn receipt<S: serde::Serializer>(evicted: &Option<Receipt>, serializer: S) -> Result<S::Ok, S::Error> {
    evicted.as_ref().map(super::job::receipt).serialize(serializer)
}

/// A reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// Stable code; docs/REASONS.md has a section for it.
    pub code: String,
    /// The sentence.
    pub sentence: String,
}

/// The answer for people.
#[must_use]
pub fn answer(answer: &Answer) -> String {
    let Answer { job, name, state, priority, tier, pool, reason, ahead, evicted, .. } = answer;
    let mut lines = vec![
        shown(name),
        format!("  id        {job}"),
        format!("  state     {state}"),
        format!("  priority  {priority}, tier {tier}, pool {pool}"),
        format!("  reason    {} ({})", reason.sentence, reason.code),
    ];
    match ahead {
        Some(0) => lines.push("  ahead     nobody".to_owned()),
        Some(1) => lines.push("  ahead     1 job".to_owned()),
        Some(count) => lines.push(format!("  ahead     {count} jobs")),
        None => {}
    }
    lines.extend(evicted.iter().map(|receipt| format!("  evicted   {}", shown(&receipt.to_string()))));
    lines.join("\n")
}
