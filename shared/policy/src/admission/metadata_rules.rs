//! What the policy asks of a job's metadata: checkpoints, durations, required keys, known tiers, width of arrays.

use osprey_model::message::tags::ARRAY_INDEX_TAG;
use osprey_model::message::words::{all_of, nearest, quote};
use osprey_model::metadata::{Metadata, format_duration};
use osprey_model::reason::{ReasonCode, Refusal};

use super::{AdmissionInput, Findings};
use crate::key::{MetadataKey, is_given};
use crate::policy::Policy;
use crate::rules::{AdmissionRules, Takes, Tier};

pub(super) fn check(input: &AdmissionInput<'_>, findings: &mut Findings) {
    let rules = input.policy.admission();
    let tier = input.policy.tier(&input.derivation.tier);
    findings.refuse(array_width(input, rules));
    if let Some(tier) = tier {
        findings.refuse(checkpoints(input.metadata, tier, Policy::is_demoted(input.derivation)));
    }
    findings.refuse(durations(input.metadata, tier, rules));
    findings.refuse(priority_class(input.metadata, input.policy.tiers()));
    findings.refuse(required(input.metadata, tier, rules));
}

/// One wide array inside Batch would take every GPU that falls free, before anything more urgent is seen.
fn array_width(input: &AdmissionInput<'_>, rules: &AdmissionRules) -> Option<Refusal> {
    let (width, most) = (input.demand.array_size, rules.array_width_max);
    let runs_singly = input.request.tags.as_ref().is_some_and(|tags| tags.contains_key(ARRAY_INDEX_TAG));
    (width > most && !runs_singly).then(|| {
        let message = format!(
            "`arrayProperties.size` {width} is above the policy's {most}; split the array, or let its children run singly: name the variable of their index in the tag `{ARRAY_INDEX_TAG}`"
        );
        Refusal::new(ReasonCode::ArrayTooWide, message)
    })
}

/// Evicting a job costs the work since its last checkpoint; a preemptible job must keep that within its tier's window. Who
/// is demoted didn't ask to be evicted, and saves as he does: he isn't refused for that.
fn checkpoints(metadata: &Metadata, tier: &Tier, is_demoted: bool) -> Option<Refusal> {
    let is_preemptible = metadata.preemptible == Some(true) || tier.takes == Takes::Preemptible && !is_demoted;
    if !is_preemptible {
        return None;
    }
    let window = tier.checkpoint_window_seconds;
    let name = quote(tier.name.as_str());
    let most = format_duration(window);
    match (metadata.checkpoint_interval, metadata.max_duration) {
        (Some(interval), _) if interval > window => {
            let given = format_duration(interval);
            let message = format!(
                "`checkpoint-interval` {given} is above the {most} that an eviction from tier {name} may cost; save at least every {most}, or leave out `preemptible`"
            );
            Some(Refusal::new(ReasonCode::CheckpointTooRare, message))
        }
        (None, longest) if longest.is_none_or(|longest| longest > window) => {
            let may_run = match longest {
                Some(longest) => format!("may run for {}", format_duration(longest)),
                None => "has no `max-duration`".to_owned(),
            };
            let message = format!(
                "a preemptible job of tier {name} that may run for more than {most} needs a `checkpoint-interval`, and this one {may_run}; give an interval or a `max-duration` of at most {most}"
            );
            Some(Refusal::new(ReasonCode::CheckpointMissing, message))
        }
        _ => None,
    }
}

/// The smallest cap on the job's run in seconds, and whose it is.
fn cap(tier: Option<&Tier>, rules: &AdmissionRules) -> Option<(u64, String)> {
    let of_tier =
        tier.and_then(|tier| tier.duration_max_seconds.map(|cap| (cap, format!("tier {}", quote(tier.name.as_str())))));
    let of_policy = rules.duration_max_seconds.map(|cap| (cap, "the policy".to_owned()));
    [of_tier, of_policy].into_iter().flatten().min_by_key(|(cap, _)| *cap)
}

fn durations(metadata: &Metadata, tier: Option<&Tier>, rules: &AdmissionRules) -> Option<Refusal> {
    let (cap, whose) = cap(tier, rules)?;
    let above = |given: Option<u64>| given.filter(|given| *given > cap).map(format_duration);
    let (key, given) = match (above(metadata.max_duration), above(metadata.expected_duration)) {
        (Some(given), _) => ("max-duration", given),
        (None, Some(given)) => ("expected-duration", given),
        (None, None) => return None,
    };
    let most = format_duration(cap);
    let message = format!(
        "`{key}` {given} is above the {most} of {whose}; ask for at most {most}, and go on from a checkpoint in another job"
    );
    Some(Refusal::new(ReasonCode::DurationOverCap, message))
}

/// A class that isn't a tier caps nothing: its author would be sure of a bound that isn't there.
fn priority_class(metadata: &Metadata, tiers: &[Tier]) -> Option<Refusal> {
    let class = metadata.priority_class.as_deref()?;
    let names = || tiers.iter().map(|tier| tier.name.as_str());
    if names().any(|name| name.eq_ignore_ascii_case(class)) {
        return None;
    }
    let help = match nearest(class, names()) {
        Some(near) => format!("did you mean {}?", quote(near)),
        None => format!("the tiers are {}", all_of(names())),
    };
    let message = format!("`priority-class` {} is no tier of the policy; {help}", quote(class));
    Some(Refusal::new(ReasonCode::InvalidMetadata, message))
}

/// Every key that is demanded and not given. A cap demands `max-duration`: a job could pass it by saying nothing.
fn required(metadata: &Metadata, tier: Option<&Tier>, rules: &AdmissionRules) -> Option<Refusal> {
    let by_cap = (cap(tier, rules).is_some() && !rules.require.contains(&MetadataKey::MaxDuration))
        .then_some(MetadataKey::MaxDuration);
    let demanded = rules.require.iter().copied().chain(by_cap);
    let missing: Vec<&str> = demanded.filter(|key| !is_given(*key, metadata)).map(MetadataKey::name).collect();
    let first = missing.first()?;
    let example = format!("OSPREY_{}", first.replace('-', "_").to_uppercase());
    let (are, them) =
        if missing.len() == 1 { ("is", "it as a tag or a variable") } else { ("are", "them as tags or variables") };
    let message =
        format!("{} {are} missing, which the policy requires; give {them} such as `{example}`", all_of(missing));
    Some(Refusal::new(ReasonCode::MissingMetadata, message))
}
