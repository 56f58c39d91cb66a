//! What came of all jobs.

use std::collections::BTreeMap;

use osprey_scheduler::WaitReason;
use osprey_scheduler::change::Change;

use crate::run::Outcome;
use crate::say;

/// Most changes of which less would have done that are told.
const TOLD: usize = 20;
/// Of how many changes in a thousand less may do.
const SMALLER_PER_MILLE: usize = 10;

/// Counts.
#[derive(Default)]
pub struct Tally {
    passed: usize,
    failed: usize,
    reasons: BTreeMap<&'static str, usize>,
    kinds: BTreeMap<&'static str, usize>,
    changes: usize,
    smaller: Vec<String>,
}

impl Tally {
    /// Jobs so far.
    pub fn jobs(&self) -> usize {
        self.passed + self.failed
    }

    /// Takes a job in, and tells it when it failed.
    pub fn add(&mut self, outcome: Outcome, seed: u64) {
        let Outcome { what, number: (world, number), code, untrue, looked } = outcome;
        *self.reasons.entry(code).or_default() += 1;
        self.changes += looked.kinds.len();
        for kind in looked.kinds {
            *self.kinds.entry(kind).or_default() += 1;
        }
        let only = format!("--seed {seed} --only {world}.{number}");
        self.smaller.extend(looked.smaller.iter().map(|smaller| format!("{smaller} ({only}, {code})")));
        let faults: Vec<String> = untrue.into_iter().chain(looked.faults).collect();
        if faults.is_empty() {
            self.passed += 1;
            return;
        }
        self.failed += 1;
        say(&format!("seed {seed}, job {world}.{number}: {}", short(&what)));
        faults.iter().for_each(|fault| say(&format!("  {}", short(fault))));
        say(&format!("  replay: cargo run --release -p osprey-tests --bin truth -- {only}"));
    }

    /// Tells all. Answers whether everything was true, and no more than a few changes could have been less.
    pub fn tell(&self) -> bool {
        let row = |counts: &BTreeMap<&str, usize>, names: &[&str]| {
            let count = |name: &&str| format!("{name} {}", counts.get(name).copied().unwrap_or(0));
            names.iter().map(count).collect::<Vec<_>>().join(", ")
        };
        say(&format!("reasons: {}", row(&self.reasons, &WaitReason::CODES)));
        say(&format!("changes: {}", row(&self.kinds, &Change::KINDS)));
        self.smaller.iter().take(TOLD).for_each(|smaller| say(&format!("  {}", short(smaller))));
        let (less, all) = (self.smaller.len(), self.changes);
        let is_least = less * 1_000 <= all * SMALLER_PER_MILLE;
        let per_mille = (less * 1_000).checked_div(all).unwrap_or(0);
        say(&format!("a smaller change would have done for {less} of {all} ({}.{} %)", per_mille / 10, per_mille % 10));
        say(&format!("truth: {} passed, {} failed", self.passed, self.failed));
        self.failed == 0 && is_least
    }
}

/// A text in which jobs are called by their places in the workload.
fn short(text: &str) -> String {
    let mut parts = text.split("JobId(");
    let mut short = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (id, rest) = part.split_once(')').unwrap_or((part, ""));
        let place =
            u128::from_str_radix(&id.replace('-', ""), 16).map_or_else(|_| id.to_owned(), |place| place.to_string());
        short.push_str(&format!("#{place}{rest}"));
    }
    short
}
