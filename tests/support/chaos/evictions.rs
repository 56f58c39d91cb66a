//! Watches evictions as they are planned, recorded and asked for, by rules of its own.

use std::collections::{BTreeMap, BTreeSet};

use osprey_ports::{Item, Write};

use super::batch::Wanted;
use super::observer::{number, text};
use super::store::key_of;

/// How the reason of a stop begins that makes it an eviction.
pub const TOKEN: &str = "OSPREY preempt";

/// An eviction of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// The job that goes.
    pub job: String,
    /// Its attempt.
    pub attempt: u64,
    /// The Batch job that goes.
    pub batch: String,
    /// The job that it goes for; none for a person's wish.
    pub goes_for: Option<String>,
    /// The rule that it goes by; none for a person's wish.
    pub rule: String,
    /// Its pool and tier, as it was recorded.
    pub pool: String,
    /// The tier.
    pub tier: String,
    /// When that was written.
    pub at: i64,
}

/// What was seen.
#[derive(Default)]
pub struct Evictions {
    /// Evictions in the order in which they were recorded.
    pub seen: Vec<Eviction>,
    /// For each job that starts, the jobs and attempts that were planned to go for it.
    planned: BTreeMap<String, BTreeSet<(String, u64)>>,
    /// When each of these runs was first planned to go, or was told so.
    pub leaving: BTreeMap<(String, u64), i64>,
}

impl Evictions {
    /// Looks at the writes of one transaction; the rule that they break, if they break one.
    pub fn see(&mut self, writes: &[Write], now: i64) -> Option<String> {
        for write in writes {
            let key = key_of(write);
            if let (true, Write::Put { item, .. }) = (key.sort.starts_with("EVICT#"), write) {
                self.plan(item, now);
            }
        }
        let receipts = writes.iter().filter_map(|write| match write {
            Write::Put { item, .. } if item.key.sort.starts_with("EVICTION#") => Some(item),
            _ => None,
        });
        receipts.into_iter().find_map(|item| self.record(item, now))
    }

    fn plan(&mut self, item: &Item, now: i64) {
        let Some(starts) = item.key.sort.strip_prefix("EVICT#") else { return };
        let victims = item.body.split_once("\"victims\":[").map_or("", |(_, victims)| victims);
        for victim in victims.split('{').skip(1) {
            let (Some(job), Some(attempt)) = (text(victim, "job"), number(victim, "attempt")) else { continue };
            let victim = (job.to_owned(), attempt);
            self.leaving.entry(victim.clone()).or_insert(now);
            self.planned.entry(starts.to_owned()).or_default().insert(victim);
        }
    }

    /// A receipt: a run goes, or its end is known.
    fn record(&mut self, item: &Item, now: i64) -> Option<String> {
        let job = item.key.partition.strip_prefix("JOB#")?;
        let attempt: u64 = item.key.sort.strip_prefix("EVICTION#")?.parse().ok()?;
        if self.seen.iter().any(|seen| seen.job == job && seen.attempt == attempt) {
            return None;
        }
        let goes_for = text(&item.body, "job").map(str::to_owned);
        let is_planned = |starts: &String| {
            self.planned.get(starts).is_some_and(|victims| victims.contains(&(job.to_owned(), attempt)))
        };
        let broken = goes_for.as_ref().filter(|starts| !is_planned(starts)).map(|starts| {
            format!("attempt {attempt} of job {job} is evicted for job {starts}, whose plan says nothing of it")
        });
        let member = |name| text(&item.body, name).unwrap_or_default().to_owned();
        self.leaving.entry((job.to_owned(), attempt)).or_insert(now);
        self.seen.push(Eviction {
            job: job.to_owned(),
            attempt,
            batch: member("batch_job_id"),
            goes_for,
            rule: member("rule"),
            pool: member("pool"),
            tier: member("tier"),
            at: now,
        });
        broken
    }

    /// For each run that goes for a job, that job.
    pub fn goers(&self) -> impl Iterator<Item = (&str, &(String, u64))> {
        self.planned.iter().flat_map(|(starts, victims)| victims.iter().map(move |victim| (starts.as_str(), victim)))
    }

    /// Whether a job that is being submitted takes the place of others.
    #[must_use]
    pub fn is_for(&self, wanted: &Wanted) -> bool {
        wanted.tags.get("osprey:job-id").is_some_and(|job| self.planned.contains_key(job))
    }

    /// Batch is asked to stop a job in the words of an eviction; the rule that this breaks, if it breaks one.
    #[must_use]
    pub fn asked(&self, batch: &str) -> Option<String> {
        let is_recorded = self.seen.iter().any(|seen| seen.batch == batch);
        (!is_recorded).then(|| format!("Batch was asked to evict {batch} before its eviction was recorded"))
    }
}
