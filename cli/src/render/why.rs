//! Why a job is where it is, for people and as JSON.

use osprey_model::id::{PoolName, TierName};
use osprey_model::message::words::shown;
use osprey_pipeline::evict::Receipt;
use serde::Serialize;
use serde_json::{Map, Value};

use super::change::Change;
use super::time;
use crate::error::CliError;
use crate::ui::Ui;

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
    /// What else is known of a job that doesn't stand in line; empty where only the reason was asked for.
    pub facts: Vec<Fact>,
    /// What to do about the reason, where no change is named.
    pub to_do: Option<String>,
    /// The least changes that would start it in the next cycle, each verified by deciding again.
    pub changes: Vec<Change>,
    /// When it is expected to start by itself; absent where it doesn't stand in line, or wasn't asked.
    pub eta_seconds: Option<Eta>,
    /// Jobs of its pool's line that come before it; absent for a job that doesn't stand there.
    pub ahead: Option<usize>,
    /// When what was decided on was so, for a snapshot of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
    /// Its newest eviction, for a job that makes room or came back.
    #[serde(serialize_with = "receipt")]
    pub evicted: Option<Receipt>,
}

fn receipt<S: serde::Serializer>(evicted: &Option<Receipt>, serializer: S) -> Result<S::Ok, S::Error> {
    evicted.as_ref().map(super::job::receipt).serialize(serializer)
}

/// Something that is known of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// What it is about, in one word: `attempt`, `attempts`, `by`, `ended`, `ends`, `log` or `saves`.
    pub about: &'static str,
    /// The sentence.
    pub sentence: String,
}

impl Fact {
    /// A fact.
    pub fn new(about: &'static str, sentence: impl Into<String>) -> Self {
        Self { about, sentence: sentence.into() }
    }
}

/// Seconds from now until a job is expected to start; null where that can't be foreseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Eta {
    /// If runs take as long as expected.
    pub p50: Option<u64>,
    /// If they take longer, and others come meanwhile; docs/results.md says how many have started by then.
    pub p80: Option<u64>,
}

/// A reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// Stable code; docs/REASONS.md has a section for it.
    pub code: String,
    /// The sentence.
    pub sentence: String,
}

/// Shows an answer.
///
/// # Errors
/// When standard output can't be written.
pub fn show(told: &Answer, ui: &mut Ui) -> Result<(), CliError> {
    if ui.is_json() { ui.json(told) } else { ui.text(&answer(told)) }
}

/// The answer for people.
#[must_use]
pub fn answer(answer: &Answer) -> String {
    let Answer { job, name, state, priority, tier, pool, reason, changes, eta_seconds, ahead, as_of, evicted, .. } =
        answer;
    let Answer { facts, to_do, .. } = answer;
    let mut lines = vec![
        shown(name),
        format!("  id        {job}"),
        format!("  state     {state}"),
        format!("  priority  {priority}, tier {tier}{}", of_pool(pool)),
        format!("  reason    {} ({})", reason.sentence, reason.code),
    ];
    match ahead {
        Some(0) => lines.push("  ahead     nobody".to_owned()),
        Some(1) => lines.push("  ahead     1 job".to_owned()),
        Some(count) => lines.push(format!("  ahead     {count} jobs")),
        None => {}
    }
    lines.extend(eta_seconds.map(|eta| format!("  starts    {}", expected(eta))));
    lines.extend(facts.iter().map(|Fact { about, sentence }| format!("  {about:8}  {sentence}")));
    lines.extend(to_do.iter().map(|to_do| format!("  to do     {to_do}")));
    let labels = std::iter::once("sooner").chain(std::iter::repeat(""));
    lines.extend(labels.zip(changes).map(|(label, change)| format!("  {label:8}  {}", shown(&change.sentence))));
    lines.extend(as_of.iter().map(|as_of| format!("  as of     {as_of}")));
    lines.extend(evicted.iter().map(|receipt| format!("  evicted   {}", shown(&receipt.to_string()))));
    lines.join("\n")
}

/// A job that was turned away has no pool.
fn of_pool(pool: &PoolName) -> String {
    if pool.as_str().is_empty() { String::new() } else { format!(", pool {pool}") }
}

/// When a job starts by itself.
#[must_use]
pub fn expected(eta: Eta) -> String {
    let within = |seconds: u64| time::short(i64::try_from(seconds).unwrap_or(i64::MAX / 1_000).saturating_mul(1_000));
    match eta {
        Eta { p50: Some(0), .. } => "in the next cycle".to_owned(),
        Eta { p50: Some(p50), p80: Some(p80) } => {
            format!("in about {}, or {} if runs take longer and others come first", within(p50), within(p80))
        }
        Eta { p50: Some(p50), p80: None } => format!("in about {}, or much later", within(p50)),
        Eta { p50: None, .. } => "at no time that can be foreseen".to_owned(),
    }
}
