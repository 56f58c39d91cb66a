//! A higher number.

use super::bound::least;
use super::trial::Trial;
use super::{Change, Verified};

/// The greatest number: Batch takes no greater one.
const NUMBER_MAX: u32 = 9_999;

/// The lowest higher number that starts.
///
/// At the threshold of a tier, and of what is urgent, the rules change: these numbers and those right before them are tried first,
/// so that only between two thresholds the effect is taken to be monotone.
pub(super) fn higher(trial: &mut Trial<'_>) -> Vec<Verified> {
    let from = trial.job.priority;
    let change = |to: u64| Change::Priority { from, to: u32::try_from(to).unwrap_or(NUMBER_MAX) };
    let rules = trial.question.rules;
    let tiers = rules.tiers.iter().filter_map(|tier| tier.at_least);
    let thresholds = tiers.chain([rules.dive_above.saturating_add(1), NUMBER_MAX]);
    let steps = thresholds.flat_map(|step| [step.saturating_sub(1), step]);
    let mut steps: Vec<u32> = steps.filter(|step| from < *step && *step <= NUMBER_MAX).collect();
    steps.sort_unstable();
    steps.dedup();
    let mut below = from;
    for step in steps {
        if trial.starts(&change(step.into())).is_some() {
            let found = least(below.into(), step.into(), Some(step.into()), |to| trial.starts(&change(to)).is_some());
            return found.and_then(|to| trial.verified(change(to))).into_iter().collect();
        }
        below = step;
    }
    Vec::new()
}
