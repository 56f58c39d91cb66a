//! What a policy changes job by job, before anything is scheduled.

use std::collections::BTreeMap;

use osprey_sim::workload::{Job, Workload};
use serde_json::{Value, json};

/// What a policy says of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub priority: u32,
    /// The tier; `None` for a job that isn't admitted.
    pub tier: Option<String>,
}

/// A job of which two policies say different things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub job: String,
    pub before: Said,
    pub after: Said,
}

/// In the place of a tier.
const REFUSED: &str = "(refused)";

impl Said {
    fn of(job: &Job, workload: &Workload) -> Self {
        let tier = workload.tiers.get(usize::from(job.tier)).cloned();
        Self { priority: job.priority, tier: tier.filter(|_| !job.is_refused) }
    }

    fn json(&self) -> Value {
        let Self { priority, tier } = self;
        json!({ "priority": priority, "tier": tier, "admitted": tier.is_some() })
    }

    /// Its tier, or that it is refused.
    fn place(&self) -> &str {
        self.tier.as_deref().unwrap_or(REFUSED)
    }
}

impl Change {
    pub(super) fn json(&self) -> Value {
        json!({ "job": self.job, "before": self.before.json(), "after": self.after.json() })
    }

    /// Whether it is in another tier, or admitted where it wasn't.
    pub(super) fn moves(&self) -> bool {
        self.before.tier != self.after.tier
    }
}

/// The jobs of which the policies say different things, in the order of submission.
pub(super) fn changes(before: &Workload, after: &Workload) -> Vec<Change> {
    let said: BTreeMap<&str, &Job> = after.jobs.iter().map(|job| (job.id.as_str(), job)).collect();
    let pairs = before.jobs.iter().filter_map(|job| {
        let new = said.get(job.id.as_str())?;
        Some(Change { job: job.id.clone(), before: Said::of(job, before), after: Said::of(new, after) })
    });
    pairs.filter(|change| change.before != change.after).collect()
}

/// How many jobs go from where to where, the most first.
pub(super) fn moves(changes: &[Change]) -> Vec<(String, String, usize)> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for change in changes.iter().filter(|change| change.moves()) {
        *counts.entry((change.before.place(), change.after.place())).or_default() += 1;
    }
    let mut moves: Vec<(String, String, usize)> =
        counts.into_iter().map(|((from, to), jobs)| (from.to_owned(), to.to_owned(), jobs)).collect();
    moves.sort_by_key(|(_, _, jobs)| std::cmp::Reverse(*jobs));
    moves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_found_by_name_and_counted_by_tier() {
        let job = |id: &str, priority, tier, is_refused| Job {
            id: id.to_owned(),
            priority,
            tier,
            is_refused,
            gpus: 1,
            ..Job::default()
        };
        let workload = |jobs| Workload::new(jobs, vec!["high".to_owned(), "low".to_owned()], Vec::new());
        let before = workload(vec![job("1", 900, 0, false), job("2", 500, 1, false), job("3", 400, 1, false)]);
        let after = workload(vec![job("1", 900, 0, false), job("2", 450, 1, false), job("3", 900, 0, true)]);
        let changes = changes(&before, &after);
        let names: Vec<(&str, bool)> = changes.iter().map(|change| (change.job.as_str(), change.moves())).collect();
        assert_eq!(names, [("2", false), ("3", true)]);
        assert_eq!(moves(&changes), [("low".to_owned(), "(refused)".to_owned(), 1)]);
    }
}
