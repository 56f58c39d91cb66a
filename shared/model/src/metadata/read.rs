//! From what is said of a job to its metadata: who wins, what is ambiguous, what can't be read.

use super::duration::parse_duration;
use super::flag::parse_flag;
use super::key::Key;
use super::size::parse_size;
use super::source::{Claim, Claims, Source};
use super::{Metadata, Sla};
use crate::definition::JobDefinition;
use crate::id::JobId;
use crate::limits::METADATA_CHARACTERS_MAX;
use crate::message::tags::chosen_job_id;
use crate::message::words::quote;
use crate::reason::{ReasonCode, Refusal};
use crate::request::SubmitJobRequest;

impl Metadata {
    /// Reads the metadata of a job, with warnings for its sender.
    ///
    /// Tags of the request win over its variables (with a warning when they differ), these over tags of the job
    /// definition, and these over its variables. A time-out counts as the longest run; when both are given, the
    /// smaller one. Empty values count as absent.
    ///
    /// # Errors
    /// Every key that can't be read ([`ReasonCode::InvalidMetadata`]), or that one source gives twice with different
    /// meanings ([`ReasonCode::AmbiguousMetadata`]), in the order of the keys; and a job that names itself as its parent
    /// ([`ReasonCode::SelfParent`]).
    pub fn read(
        request: &SubmitJobRequest,
        definition: Option<&JobDefinition>,
    ) -> Result<(Self, Vec<String>), Vec<Refusal>> {
        let Claims { claims, mut warnings } = Claims::of(request, definition);
        let mut metadata = Self::default();
        let mut refusals = Vec::new();
        for key in Key::all() {
            let said: Vec<&Claim> = claims.iter().filter(|claim| claim.key == key).collect();
            match winner(&said) {
                Ok(None) => {}
                Ok(Some(claim)) => {
                    warnings.extend(conflict(claim, &said));
                    refusals.extend(metadata.set(claim).err());
                }
                Err(refusal) => refusals.push(refusal),
            }
        }
        refusals.extend(metadata.parent_is_itself(request));
        metadata.cap_by_timeout(request, definition);
        if refusals.is_empty() { Ok((metadata, warnings)) } else { Err(refusals) }
    }

    /// Reads one claim into its field.
    fn set(&mut self, claim: &Claim) -> Result<(), Refusal> {
        let value = claim.value.as_str();
        let read = match claim.key {
            Key::Team => word(value).map(|word| self.team = Some(word)),
            Key::Project => text(value).map(|text| self.project = Some(text)),
            Key::User => text(value).map(|text| self.user = Some(text)),
            Key::Environment => word(value).map(|word| self.environment = Some(word)),
            Key::Workload => word(value).map(|word| self.workload = Some(word)),
            Key::Preemptible => flag(value).map(|flag| self.preemptible = Some(flag)),
            Key::MaxDuration => duration(value).map(|seconds| self.max_duration = Some(seconds)),
            Key::ExpectedDuration => duration(value).map(|seconds| self.expected_duration = Some(seconds)),
            Key::CheckpointInterval => duration(value).map(|seconds| self.checkpoint_interval = Some(seconds)),
            Key::DatasetSize => size(value).map(|bytes| self.dataset_size = Some(bytes)),
            Key::Sla => sla(value).map(|sla| self.sla = Some(sla)),
            Key::ParentJobId => job_id(value).map(|id| self.parent_job_id = Some(id)),
            Key::PriorityClass => word(value).map(|word| self.priority_class = Some(word)),
        };
        read.map_err(|Unread { wanted, cause }| {
            let mut message = format!("{claim} must be {wanted}; {} was given", quote(value));
            if let Some(cause) = cause {
                message.push_str(": ");
                message.push_str(&cause);
            }
            Refusal::new(ReasonCode::InvalidMetadata, message)
        })
    }

    /// Only an id that the sender chose can be named before the job is there.
    fn parent_is_itself(&self, request: &SubmitJobRequest) -> Option<Refusal> {
        let given = self.parent_job_id.as_deref()?;
        let whole = given.split(':').next().and_then(JobId::parse)?;
        let own = chosen_job_id(request).ok()??;
        (whole == own).then(|| {
            let message = format!("`parent-job-id` names the job itself ({}); leave it out", quote(given));
            Refusal::new(ReasonCode::SelfParent, message)
        })
    }

    fn cap_by_timeout(&mut self, request: &SubmitJobRequest, definition: Option<&JobDefinition>) {
        let of_definition = || definition.and_then(|definition| definition.timeout.as_ref());
        let timeout =
            request.timeout.as_ref().or_else(of_definition).and_then(|timeout| timeout.attempt_duration_seconds);
        let seconds = timeout.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
        if let Some(seconds) = seconds {
            self.max_duration = Some(self.max_duration.map_or(seconds, |given| given.min(seconds)));
        }
    }
}

/// The claim that stands for a key. Two claims of the winning source must mean the same.
fn winner<'c>(said: &[&'c Claim]) -> Result<Option<&'c Claim>, Refusal> {
    let Some(first) = said.iter().min_by_key(|claim| claim.source) else { return Ok(None) };
    let other = said.iter().filter(|claim| claim.source == first.source).find(|claim| !same_meaning(first, claim));
    other.map_or(Ok(Some(*first)), |other| {
        let message = format!(
            "{first} = {} and {other} = {} say different things about `{}`; keep one",
            quote(&first.value),
            quote(&other.value),
            first.key.name()
        );
        Err(Refusal::new(ReasonCode::AmbiguousMetadata, message))
    })
}

/// Whether two claims mean the same: `4h` and `240m` do. What can't be read only means the same as itself.
fn same_meaning(a: &Claim, b: &Claim) -> bool {
    let meaning = |claim: &Claim| {
        let mut metadata = Metadata::default();
        metadata.set(claim).ok().map(|()| metadata)
    };
    a.value == b.value || meaning(a).is_some_and(|a| Some(a) == meaning(b))
}

/// A variable of the request that says something else than the tag that wins over it.
fn conflict(tag: &Claim, said: &[&Claim]) -> Option<String> {
    if tag.source != Source::Tag {
        return None;
    }
    let variable = said.iter().find(|claim| claim.source == Source::Variable && !same_meaning(tag, claim))?;
    Some(format!("{tag} = {} wins over {variable} = {}", quote(&tag.value), quote(&variable.value)))
}

/// Why a value can't be read.
struct Unread {
    wanted: &'static str,
    cause: Option<String>,
}

impl Unread {
    fn because(wanted: &'static str, cause: impl Into<String>) -> Self {
        Self { wanted, cause: Some(cause.into()) }
    }
}

fn text(value: &str) -> Result<String, Unread> {
    const WANTED: &str = "one line of at most 256 characters";
    const { assert!(METADATA_CHARACTERS_MAX == 256) };
    let length = value.chars().count();
    if length > METADATA_CHARACTERS_MAX {
        return Err(Unread::because(WANTED, format!("it has {length}")));
    }
    if value.chars().any(char::is_control) {
        return Err(Unread::because(WANTED, "it holds a control character"));
    }
    Ok(value.to_owned())
}

fn word(value: &str) -> Result<String, Unread> {
    text(value).map(|text| text.to_lowercase())
}

fn flag(value: &str) -> Result<bool, Unread> {
    parse_flag(value).ok_or(Unread { wanted: "`true` or `false`", cause: None })
}

fn duration(value: &str) -> Result<u64, Unread> {
    const WANTED: &str = "a duration such as `4h`, `1h30m`, `PT4H` or a number of seconds";
    match parse_duration(value) {
        Ok(0) => Err(Unread::because(WANTED, "it is zero")),
        Ok(seconds) => Ok(seconds),
        Err(error) => Err(Unread::because(WANTED, error.to_string())),
    }
}

fn size(value: &str) -> Result<u64, Unread> {
    parse_size(value)
        .map_err(|error| Unread::because("a size such as `2TB`, `500GiB` or a number of bytes", error.to_string()))
}

/// A value with a date is a time; anything else is a duration.
fn sla(value: &str) -> Result<Sla, Unread> {
    const WANTED: &str = "a duration such as `4h` or a time such as `2026-12-01T08:00:00Z`";
    let has_date = value.get(4..5) == Some("-") && value.bytes().take(4).all(|byte| byte.is_ascii_digit());
    if has_date {
        return match value.parse::<jiff::Timestamp>() {
            Ok(time) => Ok(Sla::At(time.as_millisecond())),
            Err(_) => Err(Unread::because(WANTED, "a time needs date, time of day and offset")),
        };
    }
    match duration(value) {
        Ok(seconds) => Ok(Sla::Within(seconds)),
        Err(Unread { cause, .. }) => Err(Unread { wanted: WANTED, cause }),
    }
}

/// Ours or Batch's; a child of an array has its index behind a colon.
fn job_id(value: &str) -> Result<String, Unread> {
    let (id, index) = value.split_once(':').map_or((value, None), |(id, index)| (id, Some(index)));
    let is_index = |index: &str| !index.is_empty() && index.len() <= 5 && index.bytes().all(|b| b.is_ascii_digit());
    match (JobId::parse(id), index) {
        (Some(id), None) => Ok(id.to_string()),
        (Some(id), Some(index)) if is_index(index) => Ok(format!("{id}:{index}")),
        _ => Err(Unread { wanted: "the id of a job, a UUID", cause: None }),
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
