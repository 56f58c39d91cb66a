//! What a container needs of a node, and the container itself, merged from definition and overrides.

use osprey_model::definition::{ContainerProperties, JobDefinition};
use osprey_model::request::{ContainerOverrides, KeyValuePair, ResourceRequirement, SubmitJobRequest};
use serde_json::{Map, Value, json};

/// GPUs, thousandths of a vCPU, and MiB of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// Whole devices, all on one node.
    pub gpus: i64,
    /// Thousandths of a vCPU; 1,000 when a job doesn't say.
    pub vcpus_milli: i64,
    /// MiB; 0 when a job doesn't say, and then nothing is enforced.
    pub memory_mib: i64,
}

/// Resource requirements by type: an override replaces the definition's amount of the same type, and the deprecated
/// members `vcpus` and `memory` count where the newer form says nothing.
#[must_use]
pub fn merged_requirements(
    definition: &ContainerProperties,
    overrides: Option<&ContainerOverrides>,
) -> Vec<ResourceRequirement> {
    let mut merged: Vec<ResourceRequirement> = Vec::new();
    let mut put = |kind: &str, value: String| match merged.iter_mut().find(|r| r.kind == kind) {
        Some(known) => known.value = value,
        None => merged.push(ResourceRequirement { value, kind: kind.to_owned() }),
    };
    let older = |vcpus: Option<i64>, memory: Option<i64>| {
        [("VCPU", vcpus), ("MEMORY", memory)].into_iter().filter_map(|(kind, n)| Some((kind, n?.to_string())))
    };
    older(definition.vcpus, definition.memory).for_each(|(kind, value)| put(kind, value));
    definition.resource_requirements.iter().for_each(|r| put(&r.kind, r.value.clone()));
    if let Some(overrides) = overrides {
        older(overrides.vcpus, overrides.memory).for_each(|(kind, value)| put(kind, value));
        overrides.resource_requirements.iter().flatten().for_each(|r| put(&r.kind, r.value.clone()));
    }
    merged
}

/// Reads the amounts.
///
/// # Errors
/// A sentence that names the type, the value and what is allowed.
pub fn need_of(requirements: &[ResourceRequirement]) -> Result<Need, String> {
    let mut need = Need { gpus: 0, vcpus_milli: 1_000, memory_mib: 0 };
    for requirement in requirements {
        let wrong = || format!("Invalid {} value: {}", requirement.kind, requirement.value);
        match requirement.kind.as_str() {
            "GPU" => need.gpus = whole(&requirement.value).ok_or_else(wrong)?,
            "MEMORY" => need.memory_mib = whole(&requirement.value).filter(|mib| *mib >= 4).ok_or_else(wrong)?,
            "VCPU" => need.vcpus_milli = thousandths(&requirement.value).filter(|n| *n > 0).ok_or_else(wrong)?,
            other => {
                return Err(format!("resourceRequirements type must be one of [GPU, VCPU, MEMORY], got {other}"));
            }
        }
    }
    Ok(need)
}

fn whole(text: &str) -> Option<i64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Reads a decimal number with at most three digits after the point, without the rounding of floating point.
fn thousandths(text: &str) -> Option<i64> {
    let (units, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 3 {
        return None;
    }
    let fraction = whole(&format!("{fraction:0<3}"))?;
    whole(units)?.checked_mul(1_000)?.checked_add(fraction)
}

/// Environment of the container: the definition's, each name replaced or joined by the override's.
#[must_use]
pub fn merged_environment(
    definition: &ContainerProperties,
    overrides: Option<&ContainerOverrides>,
) -> Vec<KeyValuePair> {
    let mut merged = definition.environment.clone();
    for pair in overrides.and_then(|o| o.environment.as_ref()).into_iter().flatten() {
        match merged.iter_mut().find(|known| known.name == pair.name) {
            Some(known) => known.value.clone_from(&pair.value),
            None => merged.push(pair.clone()),
        }
    }
    merged
}

/// The member `container` of DescribeJobs, as far as it is known before the job runs: every member of the definition,
/// with the overrides merged in.
#[must_use]
pub fn merged_container(definition: &JobDefinition, request: &SubmitJobRequest) -> Map<String, Value> {
    let empty = ContainerProperties::default();
    let properties = definition.container_properties.as_ref().unwrap_or(&empty);
    merged_container_of(properties, request.container_overrides.as_ref())
}

/// One container with its overrides merged in.
#[must_use]
pub fn merged_container_of(
    properties: &ContainerProperties,
    overrides: Option<&ContainerOverrides>,
) -> Map<String, Value> {
    let command = overrides.and_then(|o| o.command.as_ref()).unwrap_or(&properties.command);
    let mut container = Map::new();
    let mut put = |key: &str, value: Value| container.insert(key.to_owned(), value);
    put("image", json!(properties.image.as_deref().unwrap_or_default()));
    put("command", json!(command));
    if let Some(role) = &properties.job_role_arn {
        put("jobRoleArn", json!(role));
    }
    for list in ["volumes", "environment", "mountPoints", "ulimits", "networkInterfaces"] {
        put(list, json!([]));
    }
    put("environment", json!(merged_environment(properties, overrides)));
    put("resourceRequirements", json!(merged_requirements(properties, overrides)));
    put("secrets", json!([]));
    for (key, value) in &properties.other {
        put(key, value.clone());
    }
    container
}

/// Replaces each argument `Ref::name` by the value of that parameter; unknown names stay as they are, as on AWS.
#[must_use]
pub fn substituted(command: &[String], parameter: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let one = |word: &String| word.strip_prefix("Ref::").and_then(&parameter).unwrap_or_else(|| word.clone());
    command.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirement(kind: &str, value: &str) -> ResourceRequirement {
        ResourceRequirement { kind: kind.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn an_override_replaces_the_definitions_amount_of_the_same_type_only() {
        let definition = ContainerProperties {
            vcpus: Some(2),
            resource_requirements: vec![requirement("GPU", "1"), requirement("MEMORY", "512")],
            ..Default::default()
        };
        let overrides =
            ContainerOverrides { resource_requirements: Some(vec![requirement("GPU", "4")]), ..Default::default() };
        let merged = merged_requirements(&definition, Some(&overrides));
        assert_eq!(need_of(&merged), Ok(Need { gpus: 4, vcpus_milli: 2_000, memory_mib: 512 }));
    }

    #[test]
    fn amounts_are_read_exactly_or_refused_by_name() {
        let cases = [
            ("VCPU", "0.25", Ok(250)),
            ("VCPU", "1.5", Ok(1_500)),
            ("VCPU", "0.0001", Err("Invalid VCPU value: 0.0001")),
            ("VCPU", "0", Err("Invalid VCPU value: 0")),
            ("GPU", "1.5", Err("Invalid GPU value: 1.5")),
            ("GPU", "-1", Err("Invalid GPU value: -1")),
            ("GPU", "", Err("Invalid GPU value: ")),
            ("MEMORY", "3", Err("Invalid MEMORY value: 3")),
            ("MEMORY", "99999999999999999999", Err("Invalid MEMORY value: 99999999999999999999")),
            ("TPU", "1", Err("resourceRequirements type must be one of [GPU, VCPU, MEMORY], got TPU")),
        ];
        for (kind, value, want) in cases {
            let got = need_of(&[requirement(kind, value)]).map(|need| need.vcpus_milli);
            assert_eq!(got, want.map_err(str::to_owned), "{kind} {value}");
        }
    }

    #[test]
    fn placeholders_are_whole_arguments_and_unknown_ones_stay() {
        let command = ["train", "Ref::epochs", "--x=Ref::epochs", "Ref::nothing"].map(str::to_owned);
        let got = substituted(&command, |name| (name == "epochs").then(|| "3".to_owned()));
        assert_eq!(got, ["train", "3", "--x=Ref::epochs", "Ref::nothing"]);
    }
}
