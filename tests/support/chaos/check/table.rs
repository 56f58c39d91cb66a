//! The table as the checkers read it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::store::Store;

/// Every item, by what it is.
#[derive(Default)]
pub struct Table {
    /// State of each job, and whether it is listed.
    pub jobs: BTreeMap<String, (Value, bool)>,
    /// Attempts that ended.
    pub attempts: BTreeMap<(String, u64), Value>,
    /// Receipts of evictions.
    pub receipts: BTreeMap<(String, u64), Value>,
    /// Evictions that are planned and not done.
    pub planned: Vec<String>,
    /// Job and attempt of each Batch job.
    pub owners: BTreeMap<String, (String, u64)>,
    /// Second Batch jobs: the job, and the row.
    pub extras: BTreeMap<String, (String, Value)>,
    /// Messages kept as duplicates, with the job.
    pub duplicates: Vec<(String, String)>,
    /// Recorded outcomes of actions, by message.
    pub actions: BTreeMap<String, Value>,
    /// Dead letters, and whether each is listed.
    pub letters: BTreeMap<String, (Value, bool)>,
    /// GPU-milliseconds by team, day and kind.
    pub usage: BTreeMap<(String, String, String), i64>,
    /// GPUs that teams hold by tier, as the counters have it.
    pub held: BTreeMap<(String, String), i64>,
    /// Jobs that hold something of their teams' quotas.
    pub holding: BTreeSet<String>,
    /// Events that aren't put yet.
    pub outbox: Vec<Value>,
    /// Jobs whose message is kept.
    pub records: BTreeSet<String>,
}

/// Whose attempt a Batch job is, as the table has it.
#[derive(serde::Deserialize)]
struct Owner {
    job: String,
    attempt: u64,
}

impl Table {
    /// Reads the table.
    ///
    /// # Errors
    /// An item that no rule knows, or that is no JSON.
    pub fn read(store: &Store) -> Result<Self, String> {
        let mut table = Self::default();
        for item in store.items() {
            let (partition, sort) = (item.key.partition.as_str(), item.key.sort.as_str());
            let (kind, id) = partition.split_once('#').unwrap_or((partition, ""));
            let is_listed = item.indexes.iter().any(|entry| entry.partition == "JOBS" || entry.partition == "DEAD");
            if sort.starts_with("RECORD#") {
                if kind == "JOB" {
                    table.records.insert(id.to_owned());
                }
                continue;
            }
            let bad = |error| format!("item {partition} {sort} is no JSON: {error}");
            if kind == "BATCH" {
                let Owner { job, attempt } = serde_json::from_str(&item.body).map_err(bad)?;
                table.owners.insert(id.to_owned(), (job, attempt));
            } else if is_looked_into(kind, sort) {
                let body: Value = serde_json::from_str(&item.body).map_err(bad)?;
                table.take(kind, id, sort, body, is_listed);
            } else {
                serde_json::from_str::<serde::de::IgnoredAny>(&item.body).map_err(bad)?;
                table.take(kind, id, sort, Value::Null, is_listed);
            }
        }
        Ok(table)
    }

    fn take(&mut self, kind: &str, id: &str, sort: &str, body: Value, is_listed: bool) {
        let rest = |prefix: &str| sort.strip_prefix(prefix).map(str::to_owned);
        match kind {
            "JOB" if sort == "STATE" => drop(self.jobs.insert(id.to_owned(), (body, is_listed))),
            "JOB" => {
                if let Some(number) = rest("ATTEMPT#").and_then(|number| number.parse().ok()) {
                    self.attempts.insert((id.to_owned(), number), body);
                } else if let Some(number) = rest("EVICTION#").and_then(|number| number.parse().ok()) {
                    self.receipts.insert((id.to_owned(), number), body);
                } else if let Some(batch) = rest("EXTRA#") {
                    self.extras.insert(batch, (id.to_owned(), body));
                } else if let Some(message) = rest("DUPLICATE#") {
                    self.duplicates.push((id.to_owned(), message));
                }
                // `ACTION#message` with a job is a copy for its readers; the place is the item of its own.
            }
            "POOL" => self.planned.extend(rest("EVICT#").map(|job| format!("for job {job} in pool {id}"))),
            "OUTBOX" => self.outbox.push(body),
            "ACTION" => drop(self.actions.insert(id.to_owned(), body)),
            "DEAD" => drop(self.letters.insert(id.to_owned(), (body, is_listed))),
            "USAGE" if sort == "GPUS" => {
                for (tier, amount) in body.as_object().into_iter().flatten() {
                    self.held.insert((id.to_owned(), tier.clone()), amount.as_i64().unwrap_or(i64::MIN));
                }
            }
            "USAGE" if sort.starts_with("HOLD#") => drop(self.holding.insert(rest("HOLD#").unwrap_or_default())),
            "USAGE" => {
                let day = sort.strip_prefix("DAY#").unwrap_or_default().to_owned();
                for (name, amount) in body.as_object().into_iter().flatten() {
                    let key = (id.to_owned(), day.clone(), name.clone());
                    self.usage.insert(key, amount.as_i64().unwrap_or(i64::MIN));
                }
            }
            _ => {}
        }
    }
}

/// Whether a rule looks at what an item says, and not only at its being there.
fn is_looked_into(kind: &str, sort: &str) -> bool {
    match kind {
        "JOB" => sort == "STATE" || ["ATTEMPT#", "EVICTION#", "EXTRA#"].iter().any(|kind| sort.starts_with(kind)),
        "ACTION" | "DEAD" | "OUTBOX" | "USAGE" => true,
        _ => false,
    }
}

/// The text of a member.
pub fn text(value: &Value, member: &str) -> String {
    value.get(member).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The number of a member; 0 when it is left out.
pub fn number(value: &Value, member: &str) -> u64 {
    value.get(member).and_then(Value::as_u64).unwrap_or(0)
}
