//! What the policy alone demands of a job at the door, for the policy's own tests. The whole of admission, which also
//! knows pools and Batch's limits, is another module; these are the parts of it that need nothing but the policy.

use osprey_model::facts::Facts;
use osprey_model::id::TierName;
use osprey_model::metadata::format_duration;
use osprey_model::reason::{ReasonCode, Refusal};

use crate::key::is_given;
use crate::policy::Policy;
use crate::rules::{AdmissionRules, Tier};

/// The codes that a policy's test can ask for.
pub(crate) const CODES: [ReasonCode; 5] = [
    ReasonCode::MissingMetadata,
    ReasonCode::ArrayTooWide,
    ReasonCode::DurationOverCap,
    ReasonCode::CheckpointTooRare,
    ReasonCode::CheckpointMissing,
];

/// Everything the policy refuses the job for.
pub(crate) fn refusals(policy: &Policy, facts: &Facts, tier: &TierName) -> Vec<Refusal> {
    let rules = policy.admission();
    let tier = policy.tier(tier);
    let mut refusals: Vec<_> = missing(rules, facts).into_iter().collect();
    refusals.extend(too_wide(rules, facts));
    refusals.extend(too_long(rules, tier, facts));
    refusals.extend(tier.and_then(|tier| checkpoint(tier, facts)));
    refusals
}

fn missing(rules: &AdmissionRules, facts: &Facts) -> Option<Refusal> {
    let missing: Vec<_> = rules.require.iter().filter(|key| !is_given(**key, &facts.job.metadata)).collect();
    let names: Vec<_> = missing.iter().map(|key| format!("`{}`", key.name())).collect();
    (!names.is_empty()).then(|| Refusal::new(ReasonCode::MissingMetadata, format!("{} is missing", names.join(", "))))
}

fn too_wide(rules: &AdmissionRules, facts: &Facts) -> Option<Refusal> {
    let (width, limit) = (facts.job.array_size, rules.array_width_max);
    (width > limit).then(|| Refusal::new(ReasonCode::ArrayTooWide, format!("{width} children, more than {limit}")))
}

fn too_long(rules: &AdmissionRules, tier: Option<&Tier>, facts: &Facts) -> Option<Refusal> {
    let of_tier = tier.and_then(|tier| tier.duration_max_seconds);
    let limit = [rules.duration_max_seconds, of_tier].into_iter().flatten().min()?;
    let given = facts.job.metadata.max_duration?;
    (given > limit).then(|| {
        let message = format!("{} is longer than {}", format_duration(given), format_duration(limit));
        Refusal::new(ReasonCode::DurationOverCap, message)
    })
}

/// A preemptible job loses at most its tier's window: it checkpoints within it, or ends within it.
fn checkpoint(tier: &Tier, facts: &Facts) -> Option<Refusal> {
    let metadata = &facts.job.metadata;
    let window = tier.checkpoint_window_seconds;
    if metadata.preemptible != Some(true) {
        return None;
    }
    match metadata.checkpoint_interval {
        Some(interval) if interval > window => {
            let message =
                format!("a checkpoint every {} is rarer than {}", format_duration(interval), format_duration(window));
            Some(Refusal::new(ReasonCode::CheckpointTooRare, message))
        }
        None if metadata.max_duration.is_none_or(|longest| longest > window) => {
            let message = format!("no checkpoints, and it may run longer than {}", format_duration(window));
            Some(Refusal::new(ReasonCode::CheckpointMissing, message))
        }
        _ => None,
    }
}
