//! A change that would start a job, for people and as JSON.

use osprey_model::id::JobId;
use osprey_scheduler::Rules;
use osprey_scheduler::change::{Change as Kind, Unit, Verified};
use osprey_scheduler::snapshot::{Shape, UNCOUNTED};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A change. The members are an interface.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Its kind.
    pub change: &'static str,
    /// What is; null where nobody knows.
    pub from: Value,
    /// What would start the job.
    pub to: Value,
    /// What else belongs to it, by kind.
    #[serde(flatten)]
    pub more: Map<String, Value>,
    /// The change as a sentence.
    pub sentence: String,
}

impl Change {
    /// A change as it is told; `name` says how a job is called.
    #[must_use]
    pub fn of(verified: &Verified, rules: &Rules, name: impl Fn(JobId) -> String) -> Self {
        let (from, to) = values(&verified.change);
        let mut more = more(&verified.change, rules);
        if verified.victims > 0 {
            more.insert("evicts".to_owned(), json!(verified.victims));
        }
        Self { change: verified.change.kind(), from, to, more, sentence: verified.sentence(rules, name) }
    }
}

/// What is, and what would be. GPUs are those of all nodes, durations are seconds.
fn values(change: &Kind) -> (Value, Value) {
    match change {
        Kind::Gpus { from, to } => (json!(from.all_gpus()), json!(to.all_gpus())),
        Kind::Children { from, to }
        | Kind::Vcpus { from, to }
        | Kind::Priority { from, to }
        | Kind::Headroom { from, to }
        | Kind::Reserve { from, to, .. }
        | Kind::MoreNodes { from, to, .. } => (json!(from), json!(to)),
        Kind::ExpectedMs { from, to } => (json!(from.map(|from| from.div_ceil(1_000))), json!(to / 1_000)),
        Kind::Pool { from, to } => (json!(from), json!(to)),
        Kind::Quota { from, to, .. } => (json!(from), json!(to)),
        Kind::Ends { .. } => (json!("running"), json!("ended")),
        Kind::Without { .. } => (json!("waiting"), json!("cancelled")),
        Kind::Resume | Kind::ResumeTier => (json!("paused"), json!("resumed")),
        Kind::Release { .. } => (json!("backing off"), json!("released")),
        Kind::Capacity => (json!("no capacity"), json!("capacity")),
        Kind::ForeignEnds { gpus, .. } => (json!(gpus), json!(0)),
    }
}

/// What else belongs to a change.
fn more(change: &Kind, rules: &Rules) -> Map<String, Value> {
    let members = match change {
        Kind::Gpus { to: Shape { nodes, gpus, .. }, .. } => json!({ "nodes": nodes, "gpus_per_node": gpus }),
        Kind::Quota { unit, .. } => json!({ "limit": limit(*unit) }),
        Kind::Reserve { reserve, .. } => {
            let reserve = rules.quota.reserves.get(usize::from(*reserve));
            let until_ms = reserve.and_then(|reserve| reserve.until_ms);
            json!({ "reserve": reserve.map(|reserve| &reserve.name), "until_ms": until_ms })
        }
        Kind::Ends { jobs, at_ms } => json!({ "jobs": jobs, "expected_at_ms": at_ms }),
        Kind::Without { jobs } => json!({ "jobs": jobs }),
        Kind::Release { until_ms } => json!({ "until_ms": until_ms }),
        Kind::ForeignEnds { node, .. } => json!({ "node": node }),
        Kind::MoreNodes { each, .. } => {
            json!({ "gpus_per_node": each.gpus, "vcpus_per_node": (each.vcpus != UNCOUNTED).then_some(each.vcpus) })
        }
        _ => json!({}),
    };
    if let Value::Object(members) = members { members } else { Map::new() }
}

/// A limit by its stable name, with its unit.
fn limit(unit: Unit) -> &'static str {
    match unit {
        Unit::TeamGpus => "team_gpus",
        Unit::UserPercent => "user_percent",
        Unit::GpuHoursDay => "gpu_hours_day",
        Unit::GpuHoursWeek => "gpu_hours_week",
    }
}
