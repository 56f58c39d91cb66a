//! How long a job is expected to run: what it declares, else what runs like it have taught.

pub use osprey_model::job::EstimateSource as Source;
use osprey_model::metadata::Metadata;
use serde::{Deserialize, Serialize};

use crate::rules::EstimateRules;

/// Past runs that are kept of a kind: the newest ones. A quantile of 32 is within a few ranks of that of all, jobs of a
/// kind change over time, and the list fits an item of a few hundred bytes.
pub const RUNS_MAX: usize = 32;

/// The newest runs of a kind, in milliseconds, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Runs(Vec<u64>);

impl Runs {
    /// Takes in a run that has ended well.
    pub fn add(&mut self, run_ms: u64) {
        if self.0.len() >= RUNS_MAX {
            self.0.remove(0);
        }
        self.0.push(run_ms);
    }

    /// The run that so many percent of them don't exceed; `None` when fewer than `runs_min` are known.
    #[must_use]
    pub fn quantile_ms(&self, percent: u32, runs_min: u32) -> Option<u64> {
        let count = self.0.len();
        if count == 0 || u32::try_from(count).is_ok_and(|count| count < runs_min) {
            return None;
        }
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (count * usize::try_from(percent.min(100)).unwrap_or(100)).div_ceil(100).max(1);
        sorted.get(rank - 1).copied()
    }
}

/// What there is to learn from, the most like the job first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Experience<'a> {
    /// Runs of the jobs that it comes from, where they ran the same definition.
    pub predecessors: Option<&'a Runs>,
    /// Runs of its definition by its team.
    pub definition_of_team: Option<&'a Runs>,
    /// Runs of its definition.
    pub definition: Option<&'a Runs>,
    /// Runs of its team.
    pub team: Option<&'a Runs>,
}

/// How long a job is expected to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// In milliseconds.
    pub run_ms: u64,
    /// How that is known.
    pub source: Source,
}

/// How long a job is expected to run; `None` when nobody knows, which keeps it from nothing but passing a job that GPUs
/// are kept for. Never longer than it may run.
#[must_use]
pub fn expected(rules: &EstimateRules, metadata: &Metadata, experience: Experience<'_>) -> Option<Estimate> {
    let declared = metadata.expected_duration.map(|seconds| Estimate {
        run_ms: class_end_ms(&rules.classes_ms, seconds.saturating_mul(1_000)),
        source: Source::Declared,
    });
    let estimate = declared.or_else(|| learned(rules, experience))?;
    let most_ms = metadata.max_duration.map_or(u64::MAX, |seconds| seconds.saturating_mul(1_000));
    Some(Estimate { run_ms: estimate.run_ms.min(most_ms), ..estimate })
}

/// The end of the class that a run is in; a run longer than all of them stands for itself.
#[must_use]
pub fn class_end_ms(classes_ms: &[u64], run_ms: u64) -> u64 {
    classes_ms.iter().copied().find(|end_ms| run_ms <= *end_ms).unwrap_or(run_ms)
}

fn learned(rules: &EstimateRules, experience: Experience<'_>) -> Option<Estimate> {
    // One run of the very job before it says as much as several of others.
    let kinds = [
        (experience.predecessors, 1, Source::Predecessors),
        (experience.definition_of_team, rules.runs_min, Source::DefinitionOfTeam),
        (experience.definition, rules.runs_min, Source::Definition),
        (experience.team, rules.runs_min, Source::Team),
    ];
    kinds.into_iter().find_map(|(runs, runs_min, source)| {
        let run_ms = runs?.quantile_ms(rules.quantile_percent, runs_min)?;
        Some(Estimate { run_ms, source })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(minutes: &[u64]) -> Runs {
        let mut runs = Runs::default();
        minutes.iter().for_each(|minutes| runs.add(minutes * 60_000));
        runs
    }

    fn minutes(metadata: &Metadata, rules: &EstimateRules, experience: Experience<'_>) -> Option<(u64, Source)> {
        expected(rules, metadata, experience).map(|estimate| (estimate.run_ms / 60_000, estimate.source))
    }

    #[test]
    fn a_quantile_is_the_run_of_its_rank_among_the_newest() {
        let few = runs(&[30, 10, 20, 40]);
        assert_eq!(
            [1, 50, 75, 90, 100].map(|percent| few.quantile_ms(percent, 1)),
            [10, 20, 30, 40, 40].map(|m| Some(m * 60_000))
        );
        assert_eq!((few.quantile_ms(50, 5), Runs::default().quantile_ms(50, 0)), (None, None));
        let many = runs(&[[1_000; RUNS_MAX], [7; RUNS_MAX]].concat());
        assert_eq!(many.quantile_ms(99, 1), Some(7 * 60_000));
    }

    #[test]
    fn what_is_declared_counts_first_in_its_class_and_never_beyond_the_longest_run() {
        let rules = EstimateRules { classes_ms: vec![1_800_000, 14_400_000], ..EstimateRules::default() };
        let declared =
            |seconds, max_duration| Metadata { expected_duration: Some(seconds), max_duration, ..Metadata::default() };
        let taught = runs(&[5, 5, 5]);
        let experience = Experience { team: Some(&taught), ..Experience::default() };
        let told = |metadata: &Metadata| minutes(metadata, &rules, experience).map(|(minutes, _)| minutes);
        assert_eq!(told(&declared(60, None)), Some(30));
        assert_eq!(told(&declared(1_801, None)), Some(240));
        assert_eq!(told(&declared(36_000, None)), Some(600));
        assert_eq!(told(&declared(1_801, Some(3_600))), Some(60));
        assert_eq!(told(&Metadata::default()), Some(5));
    }

    #[test]
    fn what_is_most_like_the_job_teaches_once_there_is_enough_of_it() {
        let rules = EstimateRules::default();
        let (one, two, three) = (runs(&[90]), runs(&[50, 50]), runs(&[10, 20, 30]));
        let metadata = Metadata::default();
        let told = |predecessors, definition_of_team, definition| {
            minutes(&metadata, &rules, Experience { predecessors, definition_of_team, definition, team: None })
        };
        assert_eq!(told(Some(&one), Some(&three), None), Some((90, Source::Predecessors)));
        assert_eq!(told(None, Some(&two), Some(&three)), Some((20, Source::Definition)));
        assert_eq!(told(None, Some(&three), None), Some((20, Source::DefinitionOfTeam)));
        assert_eq!(told(None, Some(&two), None), None);
    }
}
