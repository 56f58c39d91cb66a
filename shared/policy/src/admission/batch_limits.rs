//! What Batch would refuse, or accept and then fail: every rule of its `SubmitJob`, checked before it is called.
//!
//! Source: the Batch API reference, `SubmitJob`; the numbers and where each is from stand in [`osprey_model::limits`].

mod dependencies;
mod overrides;
mod retry;
mod tags;

use osprey_model::definition::JobDefinition;
use osprey_model::limits::{
    ARRAY_SIZE_MAX, ARRAY_SIZE_MIN, JOB_NAME_CHARACTERS_MAX, OVERRIDES_CHARACTERS_OURS, PRIORITY_MAX,
    REQUEST_BYTES_MAX, REQUEST_BYTES_OURS, SHARE_CHARACTERS_MAX, TIMEOUT_SECONDS_MAX, TIMEOUT_SECONDS_MIN,
};
use osprey_model::message::words::quote;
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_model::request::SubmitJobRequest;

use super::Findings;

/// Checks a request as it will be sent, with `our_tags` tags of Osprey's in it.
pub(super) fn check(
    request: &SubmitJobRequest,
    definition: Option<&JobDefinition>,
    our_tags: usize,
    findings: &mut Findings,
) {
    findings.refuse(size(request));
    findings.refuse(job_name(&request.job_name));
    findings.refuse(share(request.share_identifier.as_deref()));
    priority(request.scheduling_priority_override, findings);
    findings.refuse(array(request));
    dependencies::check(request, findings);
    overrides::check(request, definition, findings);
    retry::check(request.retry_strategy.as_ref(), findings);
    findings.refuse(timeout(request));
    tags::check(request, definition, our_tags, findings);
    consumables(request, findings);
}

/// The request in bytes with what Osprey adds: once for the request, and once for each container beyond the first.
fn size(request: &SubmitJobRequest) -> Option<Refusal> {
    let given = json_length(request).bytes;
    let ours = REQUEST_BYTES_OURS + OVERRIDES_CHARACTERS_OURS * overrides::container_count(request).saturating_sub(1);
    let allowed = REQUEST_BYTES_MAX.saturating_sub(ours);
    (given > allowed).then(|| {
        let message = format!(
            "the request may have {allowed} bytes, which is Batch's {REQUEST_BYTES_MAX} less {ours} that Osprey adds; {given} were given; put large input into S3 and pass its address"
        );
        Refusal::new(ReasonCode::RequestTooLarge, message)
    })
}

/// The length of a text that isn't kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Length {
    bytes: usize,
    characters: usize,
}

impl std::io::Write for Length {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.bytes += text.len();
        // Every character has one byte that doesn't go on another.
        self.characters += text.iter().filter(|byte| **byte & 0b1100_0000 != 0b1000_0000).count();
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The length of what is sent. A value that can't be written, which no request is, would count as nothing.
fn json_length(value: &impl serde::Serialize) -> Length {
    let mut length = Length::default();
    match serde_json::to_writer(&mut length, value) {
        Ok(()) => length,
        Err(_) => Length::default(),
    }
}

fn job_name(name: &str) -> Option<Refusal> {
    let may_begin = |c: char| c.is_ascii_alphanumeric();
    let allowed = |c: char| may_begin(c) || matches!(c, '-' | '_');
    let fits = name.starts_with(may_begin) && name.chars().all(allowed) && name.len() <= JOB_NAME_CHARACTERS_MAX;
    if fits {
        return None;
    }
    let mended: String = name
        .trim()
        .chars()
        .map(|c| if allowed(c) { c } else { '-' })
        .skip_while(|c| !may_begin(*c))
        .take(JOB_NAME_CHARACTERS_MAX)
        .collect();
    let mended = mended.trim_end_matches('-');
    let help = if mended.is_empty() { String::new() } else { format!("; {} would do", quote(mended)) };
    let message = format!(
        "`jobName` must have 1 to {JOB_NAME_CHARACTERS_MAX} letters, digits, `-` and `_`, the first a letter or digit; {} was given{help}",
        quote(name)
    );
    Some(Refusal::new(ReasonCode::InvalidJobName, message))
}

fn share(share: Option<&str>) -> Option<Refusal> {
    let share = share?;
    let name = share.strip_suffix('*').unwrap_or(share);
    let fits = !share.is_empty() && share.len() <= SHARE_CHARACTERS_MAX && is_alphanumeric(name);
    (!fits).then(|| {
        let mended: String = name.chars().filter(char::is_ascii_alphanumeric).take(SHARE_CHARACTERS_MAX).collect();
        let help = if mended.is_empty() { String::new() } else { format!("; {} would do", quote(&mended)) };
        let message = format!(
            "`shareIdentifier` must have 1 to {SHARE_CHARACTERS_MAX} letters and digits; {} was given{help}",
            quote(share)
        );
        Refusal::new(ReasonCode::InvalidShare, message)
    })
}

fn is_alphanumeric(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn priority(priority: Option<i64>, findings: &mut Findings) {
    match priority {
        Some(given) if !(0..=PRIORITY_MAX).contains(&given) => {
            let message = format!("`schedulingPriorityOverride` must be from 0 to {PRIORITY_MAX}; {given} was given");
            findings.refuse(Some(Refusal::new(ReasonCode::InvalidPriority, message)));
        }
        Some(given) => {
            findings.warn(format!("`schedulingPriorityOverride` {given} is not used: the priority is derived"));
        }
        None => {}
    }
}

fn array(request: &SubmitJobRequest) -> Option<Refusal> {
    let size = request.array_properties.as_ref()?.size?;
    let help = if size < ARRAY_SIZE_MIN { "leave `arrayProperties` out for a single job" } else { "split it" };
    (!(ARRAY_SIZE_MIN..=ARRAY_SIZE_MAX).contains(&size)).then(|| {
        let limits = format!("from {ARRAY_SIZE_MIN} to {ARRAY_SIZE_MAX}");
        let message = format!("`arrayProperties.size` must be {limits}; {size} was given; {help}");
        Refusal::new(ReasonCode::InvalidArraySize, message)
    })
}

fn timeout(request: &SubmitJobRequest) -> Option<Refusal> {
    let seconds = request.timeout.as_ref()?.attempt_duration_seconds?;
    (!(TIMEOUT_SECONDS_MIN..=TIMEOUT_SECONDS_MAX).contains(&seconds)).then(|| {
        let limits = format!("from {TIMEOUT_SECONDS_MIN} to {TIMEOUT_SECONDS_MAX} seconds");
        let message = format!("`timeout.attemptDurationSeconds` must be {limits}; {seconds} was given");
        Refusal::new(ReasonCode::InvalidTimeout, message)
    })
}

fn consumables(request: &SubmitJobRequest, findings: &mut Findings) {
    let list = request.consumable_resource_properties_override.as_ref();
    let list = list.and_then(|properties| properties.consumable_resource_list.as_deref()).unwrap_or_default();
    for (index, resource) in list.iter().enumerate() {
        if let Some(quantity) = resource.quantity.filter(|quantity| *quantity < 0) {
            let path = format!("consumableResourcePropertiesOverride.consumableResourceList[{index}].quantity");
            let message = format!("`{path}` must be at least 0; {quantity} was given");
            findings.refuse(Some(Refusal::new(ReasonCode::InvalidResource, message)));
        }
    }
}
