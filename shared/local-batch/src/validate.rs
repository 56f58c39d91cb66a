//! What Batch checks of a `SubmitJob` request before it accepts it. Source of the limits: the API reference and the
//! service limits of AWS Batch; of the messages: AWS's own where they are publicly known.

use osprey_model::request::{ContainerOverrides, EvaluateOnExit, KeyValuePair, SubmitJobRequest};

use crate::error::BatchError;

/// Longest name of a job, queue, definition or environment, in characters.
pub const NAME_CHARACTERS_MAX: usize = 128;
/// Largest request, in bytes of its JSON.
pub const REQUEST_BYTES_MAX: usize = 30 * 1024;
/// Largest array.
pub const ARRAY_SIZE_MAX: i64 = 10_000;
/// Most dependencies of one job.
pub const DEPENDENCIES_MAX: usize = 20;
/// Most tags of one job.
pub const TAGS_MAX: usize = 50;
/// Most attempts of one job.
pub const ATTEMPTS_MAX: i64 = 10;
/// Most rules of a retry strategy.
pub const EXIT_RULES_MAX: usize = 5;
/// Shortest timeout of an attempt, in seconds.
pub const TIMEOUT_SECONDS_MIN: i64 = 60;
/// Highest scheduling priority.
pub const PRIORITY_MAX: i64 = 9_999;
/// Longest container overrides that ECS takes, in characters; longer ones are accepted and fail later.
pub const OVERRIDES_CHARACTERS_MAX: usize = 8_192;

/// How the queue that is asked for orders its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueOrder {
    /// First in, first out; takes neither share nor priority.
    Fifo,
    /// By shares; demands a share and a priority.
    FairShare,
}

/// Checks everything of a request that doesn't need the store.
///
/// # Errors
/// The first limit that the request breaks, as a ClientException.
pub fn request(request: &SubmitJobRequest) -> Result<(), BatchError> {
    size(request)?;
    name("Job name", &request.job_name)?;
    share_and_priority(request)?;
    array(request)?;
    dependencies(request)?;
    overrides(request)?;
    if let Some(strategy) = &request.retry_strategy {
        retry(strategy.attempts, strategy.evaluate_on_exit.as_deref().unwrap_or_default())?;
    }
    timeout(request.timeout.as_ref().and_then(|t| t.attempt_duration_seconds))?;
    request.tags.as_ref().map_or(Ok(()), |all| tags(all.iter()))?;
    unsupported(request)
}

fn refuse<T>(message: impl Into<String>) -> Result<T, BatchError> {
    Err(BatchError::client(message))
}

fn size(request: &SubmitJobRequest) -> Result<(), BatchError> {
    let bytes = serde_json::to_vec(request)?.len();
    if bytes > REQUEST_BYTES_MAX {
        return refuse(format!("Job size must be less than 30 KiB, got {} KiB", bytes.div_ceil(1024)));
    }
    Ok(())
}

/// Checks a name; `what` begins the message.
///
/// # Errors
/// A ClientException when it is too long or has characters that Batch doesn't take.
pub fn name(what: &str, name: &str) -> Result<(), BatchError> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() {
        return refuse(format!("{what} must not be empty"));
    }
    if name.chars().count() > NAME_CHARACTERS_MAX {
        return refuse(format!("{what} must be at most {NAME_CHARACTERS_MAX} characters"));
    }
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) || !name.chars().all(word) {
        return refuse(format!("{what} should match valid pattern, ^[a-zA-Z0-9][a-zA-Z0-9_-]*$"));
    }
    Ok(())
}

fn share_and_priority(request: &SubmitJobRequest) -> Result<(), BatchError> {
    if let Some(share) = &request.share_identifier {
        let body = share.strip_suffix('*').unwrap_or(share);
        if share.is_empty() || share.len() > 255 || !body.chars().all(|c| c.is_ascii_alphanumeric()) {
            return refuse("shareIdentifier must be at most 255 alphanumeric characters, optionally followed by *");
        }
    }
    priority("schedulingPriorityOverride", request.scheduling_priority_override)
}

/// Checks a scheduling priority; `what` begins the message.
///
/// # Errors
/// A ClientException when it is outside 0 to 9,999.
pub fn priority(what: &str, value: Option<i64>) -> Result<(), BatchError> {
    match value {
        Some(value) if !(0..=PRIORITY_MAX).contains(&value) => {
            refuse(format!("{what} must be between 0 and {PRIORITY_MAX}"))
        }
        _ => Ok(()),
    }
}

fn array(request: &SubmitJobRequest) -> Result<(), BatchError> {
    match request.array_properties.as_ref().and_then(|a| a.size) {
        Some(size) if !(2..=ARRAY_SIZE_MAX).contains(&size) => {
            refuse(format!("Array size must be between 2 and {ARRAY_SIZE_MAX}, got {size}"))
        }
        _ => Ok(()),
    }
}

fn dependencies(request: &SubmitJobRequest) -> Result<(), BatchError> {
    let all = request.depends_on.as_deref().unwrap_or_default();
    if all.len() > DEPENDENCIES_MAX {
        return refuse(format!("Job dependencies must be at most {DEPENDENCIES_MAX}, got {}", all.len()));
    }
    let is_array = request.array_properties.as_ref().is_some_and(|a| a.size.is_some());
    for dependency in all {
        let id = dependency.job_id.as_deref().unwrap_or_default();
        match dependency.kind.as_deref() {
            Some("SEQUENTIAL" | "N_TO_N") if !is_array => {
                return refuse("Dependency type SEQUENTIAL or N_TO_N is only valid for array jobs");
            }
            Some("SEQUENTIAL") if !id.is_empty() => {
                return refuse("Dependency type SEQUENTIAL must not have a jobId");
            }
            Some("SEQUENTIAL") => {}
            Some("N_TO_N") | None if !id.is_empty() => {}
            Some("N_TO_N") | None => return refuse("Dependency must have a jobId"),
            Some(other) => {
                return refuse(format!("Dependency type must be one of [N_TO_N, SEQUENTIAL], got {other}"));
            }
        }
    }
    Ok(())
}

fn overrides(request: &SubmitJobRequest) -> Result<(), BatchError> {
    if request.container_overrides.as_ref().is_some_and(|overrides| overrides.instance_type.is_some()) {
        return refuse("instanceType is only valid for multi-node parallel jobs");
    }
    all_overrides(request).try_for_each(|overrides| {
        if overrides.command.iter().flatten().any(String::is_empty) {
            return refuse("Container command must not contain empty strings");
        }
        environment(overrides.environment.as_deref().unwrap_or_default())
    })
}

/// The overrides of the container and of every range of nodes.
fn all_overrides(request: &SubmitJobRequest) -> impl Iterator<Item = &ContainerOverrides> {
    let nodes = request.node_overrides.iter().flat_map(|nodes| nodes.node_property_overrides.iter().flatten());
    request.container_overrides.iter().chain(nodes.filter_map(|range| range.container_overrides.as_ref()))
}

/// Checks the variables of a container.
///
/// # Errors
/// A ClientException when a name is missing, malformed, or begins with the prefix that Batch keeps for itself.
pub fn environment(variables: &[KeyValuePair]) -> Result<(), BatchError> {
    for variable in variables {
        let name = variable.name.as_deref().unwrap_or_default();
        if name.is_empty() {
            return refuse("Environment variable name must not be empty");
        }
        if name.starts_with("AWS_BATCH") {
            return refuse(format!(
                "Environment variable name {name} must not start with AWS_BATCH, which is reserved"
            ));
        }
        let value = variable.value.as_deref().unwrap_or_default();
        if name.contains(['=', '\0']) || value.contains('\0') {
            return refuse(format!("Environment variable {name:?} contains invalid characters"));
        }
    }
    Ok(())
}

/// Checks a retry strategy.
///
/// # Errors
/// A ClientException when attempts or rules are out of range, or a pattern has characters that Batch doesn't take.
pub fn retry(attempts: Option<i64>, rules: &[EvaluateOnExit]) -> Result<(), BatchError> {
    match attempts {
        Some(n) if !(1..=ATTEMPTS_MAX).contains(&n) => {
            return refuse(format!("retryStrategy attempts must be between 1 and {ATTEMPTS_MAX}"));
        }
        None if !rules.is_empty() => return refuse("retryStrategy attempts is required with evaluateOnExit"),
        _ => {}
    }
    if rules.len() > EXIT_RULES_MAX {
        return refuse(format!("evaluateOnExit must have at most {EXIT_RULES_MAX} rules, got {}", rules.len()));
    }
    rules.iter().try_for_each(exit_rule)
}

fn exit_rule(rule: &EvaluateOnExit) -> Result<(), BatchError> {
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == ':' || c.is_ascii_whitespace();
    let pattern = |key: &str, text: Option<&String>, allowed: &dyn Fn(char) -> bool, plain: &str| match text {
        Some(text) if text.len() > 512 || !text.strip_suffix('*').unwrap_or(text).chars().all(allowed) => {
            refuse(format!("{key} may contain only {plain} and a trailing *, at most 512 characters"))
        }
        _ => Ok(()),
    };
    pattern(
        "onStatusReason",
        rule.on_status_reason.as_ref(),
        &letters,
        "letters, digits, periods, colons, whitespace",
    )?;
    pattern("onReason", rule.on_reason.as_ref(), &letters, "letters, digits, periods, colons, whitespace")?;
    pattern("onExitCode", rule.on_exit_code.as_ref(), &|c| c.is_ascii_digit(), "digits")?;
    if !rule.action.eq_ignore_ascii_case("RETRY") && !rule.action.eq_ignore_ascii_case("EXIT") {
        return refuse(format!("evaluateOnExit action must be one of [RETRY, EXIT], got {}", rule.action));
    }
    Ok(())
}

/// Checks the timeout of an attempt, in seconds.
///
/// # Errors
/// A ClientException when it is shorter than 60 s.
pub fn timeout(seconds: Option<i64>) -> Result<(), BatchError> {
    match seconds {
        Some(seconds) if seconds < TIMEOUT_SECONDS_MIN => {
            refuse(format!("attemptDurationSeconds must be at least {TIMEOUT_SECONDS_MIN} seconds, got {seconds}"))
        }
        _ => Ok(()),
    }
}

/// Checks tags.
///
/// # Errors
/// A ClientException when there are too many, or a key or value has a length that Batch doesn't take.
pub fn tags<'a>(tags: impl ExactSizeIterator<Item = (&'a String, &'a String)>) -> Result<(), BatchError> {
    if tags.len() > TAGS_MAX {
        return refuse(format!("Tags must be at most {TAGS_MAX}, got {}", tags.len()));
    }
    for (key, value) in tags {
        if !(1..=128).contains(&key.chars().count()) {
            return refuse(format!("Tag key {key:?} must have 1 to 128 characters"));
        }
        if key.to_ascii_lowercase().starts_with("aws:") {
            return refuse(format!("Tag key {key:?} must not start with aws:, which is reserved"));
        }
        if value.chars().count() > 256 {
            return refuse(format!("Tag value of {key:?} must have at most 256 characters"));
        }
    }
    Ok(())
}

/// What real Batch takes and this one doesn't run yet.
fn unsupported(request: &SubmitJobRequest) -> Result<(), BatchError> {
    let what = if request.eks_properties_override.is_some() {
        "EKS jobs"
    } else if request.ecs_properties_override.is_some() {
        "ECS jobs of several containers"
    } else {
        return Ok(());
    };
    refuse(format!("The local Batch does not run {what}; submit a container job"))
}

/// Checks share and priority against the order of the queue.
///
/// # Errors
/// Batch's own sentences, as ClientExceptions.
pub fn for_queue(
    order: QueueOrder,
    share: Option<&str>,
    overriding: Option<i64>,
    of_definition: Option<i64>,
) -> Result<(), BatchError> {
    match order {
        QueueOrder::FairShare if share.is_none() => refuse("shareIdentifier must be specified."),
        QueueOrder::FairShare if overriding.or(of_definition).is_none() => {
            refuse("Either schedulingPriority in job definition or schedulingPriorityOverride should be specified.")
        }
        QueueOrder::Fifo if share.is_some() => {
            refuse("shareIdentifier must not be specified for a job queue without a fair-share scheduling policy.")
        }
        QueueOrder::Fifo if overriding.is_some() => refuse(
            "schedulingPriorityOverride must not be specified for a job queue without a fair-share scheduling policy.",
        ),
        _ => Ok(()),
    }
}

/// Why an accepted request will fail when it is about to run.
#[must_use]
pub fn doom(request: &SubmitJobRequest, definition_tags: usize) -> Option<String> {
    let mut overrides = all_overrides(request).filter_map(|overrides| serde_json::to_string(overrides).ok());
    if overrides.any(|text| text.chars().count() > OVERRIDES_CHARACTERS_MAX) {
        return Some(format!("Container Overrides length must be at most {OVERRIDES_CHARACTERS_MAX}"));
    }
    let tags = request.tags.as_ref().map_or(0, std::collections::BTreeMap::len) + definition_tags;
    (request.propagate_tags == Some(true) && tags > TAGS_MAX)
        .then(|| format!("Combined job and job definition tags must be at most {TAGS_MAX}, got {tags}"))
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
