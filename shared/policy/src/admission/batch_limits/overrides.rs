//! Overrides: which exclude each other, how long they are, and what their commands and variables may hold.

use osprey_model::definition::JobDefinition;
use osprey_model::limits::{OVERRIDES_CHARACTERS_MAX, OVERRIDES_CHARACTERS_OURS};
use osprey_model::message::words::{all_of, quote};
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_model::request::{
    ContainerOverrides, EcsPropertiesOverride, EksPropertiesOverride, KeyValuePair, SubmitJobRequest,
};
use osprey_model::resources::is_multi_node;

use super::json_length;
use crate::admission::Findings;

/// How names begin that belong to Batch.
const BATCH_PREFIX: &str = "AWS_BATCH";

/// Variables that Osprey sets in every attempt; what a user gives for them is replaced.
const OUR_VARIABLES: [&str; 7] = [
    "OSPREY_JOB_ID",
    "OSPREY_ATTEMPT",
    "OSPREY_TIER",
    "OSPREY_PRIORITY",
    "OSPREY_PREVIOUS_BATCH_JOB_ID",
    "OSPREY_RESUME_URI",
    "OSPREY_MEMORY_MIB",
];

pub(super) fn check(request: &SubmitJobRequest, definition: Option<&JobDefinition>, findings: &mut Findings) {
    exclusive(request, definition, findings);
    for (path, container) in containers(request) {
        container_faults(&path, container, findings);
    }
    for (path, ecs) in ecs_overrides(request) {
        ecs_faults(&path, ecs, findings);
    }
    for (path, eks) in eks_overrides(request) {
        eks_faults(&path, eks, findings);
    }
}

/// Containers that get Osprey's variables; at least one.
pub(super) fn container_count(request: &SubmitJobRequest) -> usize {
    let tasks: usize = ecs_overrides(request).iter().map(|(_, ecs)| containers_of(ecs)).sum();
    let pods: usize = eks_overrides(request).iter().map(|(_, eks)| pod_containers(eks)).sum();
    (containers(request).len() + tasks + pods).max(1)
}

fn containers_of(ecs: &EcsPropertiesOverride) -> usize {
    ecs.task_properties.iter().flatten().map(|task| task.containers.as_ref().map_or(0, Vec::len)).sum()
}

fn pod_containers(eks: &EksPropertiesOverride) -> usize {
    eks.pod_properties.as_ref().and_then(|pod| pod.containers.as_ref()).map_or(0, Vec::len)
}

fn containers(request: &SubmitJobRequest) -> Vec<(String, &ContainerOverrides)> {
    let own = request.container_overrides.iter().map(|container| ("containerOverrides".to_owned(), container));
    let of_nodes = ranges(request).filter_map(|(path, range)| {
        range.container_overrides.as_ref().map(|container| (format!("{path}.containerOverrides"), container))
    });
    own.chain(of_nodes).collect()
}

fn ecs_overrides(request: &SubmitJobRequest) -> Vec<(String, &EcsPropertiesOverride)> {
    let own = request.ecs_properties_override.iter().map(|ecs| ("ecsPropertiesOverride".to_owned(), ecs));
    let of_nodes = ranges(request).filter_map(|(path, range)| {
        range.ecs_properties_override.as_ref().map(|ecs| (format!("{path}.ecsPropertiesOverride"), ecs))
    });
    own.chain(of_nodes).collect()
}

fn eks_overrides(request: &SubmitJobRequest) -> Vec<(String, &EksPropertiesOverride)> {
    let own = request.eks_properties_override.iter().map(|eks| ("eksPropertiesOverride".to_owned(), eks));
    let of_nodes = ranges(request).filter_map(|(path, range)| {
        range.eks_properties_override.as_ref().map(|eks| (format!("{path}.eksPropertiesOverride"), eks))
    });
    own.chain(of_nodes).collect()
}

fn ranges(request: &SubmitJobRequest) -> impl Iterator<Item = (String, &osprey_model::request::NodePropertyOverride)> {
    let nodes = request.node_overrides.as_ref().and_then(|nodes| nodes.node_property_overrides.as_deref());
    let path = |index| format!("nodeOverrides.nodePropertyOverrides[{index}]");
    nodes.unwrap_or_default().iter().enumerate().map(move |(index, range)| (path(index), range))
}

/// A job is one container, or a task, or a pod, or several nodes; and its definition says which.
fn exclusive(request: &SubmitJobRequest, definition: Option<&JobDefinition>, findings: &mut Findings) {
    let given: Vec<&str> = [
        ("containerOverrides", request.container_overrides.is_some()),
        ("nodeOverrides", request.node_overrides.is_some()),
        ("ecsPropertiesOverride", request.ecs_properties_override.is_some()),
        ("eksPropertiesOverride", request.eks_properties_override.is_some()),
    ]
    .into_iter()
    .filter_map(|(name, is_given)| is_given.then_some(name))
    .collect();
    let mut conflict = |message| findings.refuse(Some(Refusal::new(ReasonCode::ConflictingOverrides, message)));
    match (given.as_slice(), definition.and_then(wanted_by)) {
        ([_, _, ..], _) => {
            conflict(format!("{} exclude each other; keep the one that fits the job definition", all_of(given)));
        }
        ([only], Some(wanted)) if *only != wanted => {
            let name = definition.map_or("", |definition| definition.job_definition_name.as_str());
            conflict(format!("`{only}` does not fit the job definition {}; give `{wanted}` instead", quote(name)));
        }
        _ => {}
    }
    let on_fargate =
        definition.is_some_and(|definition| definition.platform_capabilities.iter().any(|p| p == "FARGATE"));
    if on_fargate && is_multi_node(request, definition) {
        conflict("a multi-node job can't run on Fargate; take a job definition for EC2".to_owned());
    }
    let is_pod = request.eks_properties_override.is_some() || definition.is_some_and(|d| d.eks_properties.is_some());
    if is_pod && request.propagate_tags.is_some() {
        conflict("`propagateTags` is not for EKS jobs; leave it out".to_owned());
    }
    let has_instance_type = request.container_overrides.as_ref().is_some_and(|over| over.instance_type.is_some());
    if has_instance_type && !is_multi_node(request, definition) {
        conflict("`containerOverrides.instanceType` is for multi-node jobs; leave it out".to_owned());
    }
}

/// The override that a definition takes; `None` for one that doesn't say what it is.
fn wanted_by(definition: &JobDefinition) -> Option<&'static str> {
    if definition.node_properties.is_some() {
        Some("nodeOverrides")
    } else if definition.ecs_properties.is_some() {
        Some("ecsPropertiesOverride")
    } else if definition.eks_properties.is_some() {
        Some("eksPropertiesOverride")
    } else if definition.container_properties.is_some() {
        Some("containerOverrides")
    } else {
        None
    }
}

fn container_faults(path: &str, container: &ContainerOverrides, findings: &mut Findings) {
    findings.refuse(too_long(path, container, 1));
    command(&format!("{path}.command"), container.command.as_deref(), findings);
    environment(&format!("{path}.environment"), container.environment.as_deref(), findings);
}

fn ecs_faults(path: &str, ecs: &EcsPropertiesOverride, findings: &mut Findings) {
    findings.refuse(too_long(path, ecs, containers_of(ecs).max(1)));
    for (task, properties) in ecs.task_properties.iter().flatten().enumerate() {
        for (index, container) in properties.containers.iter().flatten().enumerate() {
            let path = format!("{path}.taskProperties[{task}].containers[{index}]");
            command(&format!("{path}.command"), container.command.as_deref(), findings);
            environment(&format!("{path}.environment"), container.environment.as_deref(), findings);
        }
    }
}

fn eks_faults(path: &str, eks: &EksPropertiesOverride, findings: &mut Findings) {
    let Some(pod) = &eks.pod_properties else { return };
    let path = format!("{path}.podProperties");
    for (list, containers) in [("containers", &pod.containers), ("initContainers", &pod.init_containers)] {
        for (index, container) in containers.iter().flatten().enumerate() {
            for (variable, given) in container.env.iter().flatten().enumerate() {
                let path = format!("{path}.{list}[{index}].env[{variable}]");
                variable_name(&path, Some(&given.name), findings);
            }
        }
    }
    let namespace = pod.metadata.as_ref().and_then(|metadata| metadata.namespace.as_deref());
    if let Some(namespace) = namespace.filter(|name| *name == "default" || name.starts_with("kube")) {
        let message = format!(
            "`{path}.metadata.namespace` {} belongs to the cluster itself; name one that is made for jobs",
            quote(namespace)
        );
        findings.refuse(Some(Refusal::new(ReasonCode::ConflictingOverrides, message)));
    }
}

/// Batch takes longer ones and fails the job when it is about to start.
fn too_long(path: &str, overrides: &impl serde::Serialize, containers: usize) -> Option<Refusal> {
    let given = json_length(overrides).characters;
    let ours = OVERRIDES_CHARACTERS_OURS * containers;
    let allowed = OVERRIDES_CHARACTERS_MAX.saturating_sub(ours);
    (given > allowed).then(|| {
        let message = format!(
            "`{path}` may have {allowed} characters, which is the container service's {OVERRIDES_CHARACTERS_MAX} less {ours} that Osprey adds; {given} were given; put large input into S3 and pass its address"
        );
        Refusal::new(ReasonCode::OverridesTooLong, message)
    })
}

fn command(path: &str, command: Option<&[String]>, findings: &mut Findings) {
    for (index, _) in command.unwrap_or_default().iter().enumerate().filter(|(_, word)| word.is_empty()) {
        let message = format!("`{path}[{index}]` is empty, which Batch refuses; give it text or leave it out");
        findings.refuse(Some(Refusal::new(ReasonCode::InvalidCommand, message)));
    }
}

fn environment(path: &str, variables: Option<&[KeyValuePair]>, findings: &mut Findings) {
    for (index, variable) in variables.unwrap_or_default().iter().enumerate() {
        variable_name(&format!("{path}[{index}]"), variable.name.as_deref(), findings);
    }
}

fn variable_name(path: &str, name: Option<&str>, findings: &mut Findings) {
    let name = name.unwrap_or_default();
    let message = if name.is_empty() {
        format!("`{path}.name` is missing; give the variable a name or leave it out")
    } else if name.starts_with(BATCH_PREFIX) {
        format!(
            "variable {} is refused: names that begin with `{BATCH_PREFIX}` belong to Batch; rename it",
            quote(name)
        )
    } else if name.contains('=') {
        format!("variable {} is refused: a name must not hold `=`; put what follows it into `value`", quote(name))
    } else {
        if OUR_VARIABLES.contains(&name) {
            findings.warn(format!("variable {} is set by Osprey: the value given is replaced", quote(name)));
        }
        return;
    };
    findings.refuse(Some(Refusal::new(ReasonCode::InvalidEnvironment, message)));
}
