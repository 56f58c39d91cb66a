//! Compute environments: a maximum of vCPUs and instance types on AWS, nodes with GPU slots here.

use osprey_local_batch::arn::name_of;
use osprey_local_batch::{
    ComputeEnvironment, ComputeEnvironmentRequest, ComputeEnvironmentUpdate, EnvironmentKind, Scaling,
};
use serde_json::{Map, Value, json};

use super::instances::{self, Instance};
use super::queues::{STATES, tags};
use super::{Input, Members as _, kept, word};
use crate::failure::{Failure, Protocol};
use crate::page;
use crate::service::Service;

const KIND: &str = "compute-environment";
/// Most environments of a page.
const PAGE_MAX: usize = 100;
/// Most environments of an account and region.
const ENVIRONMENTS_MAX: usize = 50;
/// Most nodes of an environment here.
const NODES_MAX: u32 = 1_000;

pub fn create(service: &Service, input: &Input) -> Result<Value, Failure> {
    let name = input.text("computeEnvironmentName").unwrap_or_default();
    word(input, "type", &[("MANAGED", ()), ("UNMANAGED", ())])?;
    refuse_others(input)?;
    let resources = input.get("computeResources").and_then(Value::as_object);
    let resources = resources.ok_or_else(|| Failure::client("computeResources must be specified for type MANAGED"))?;
    let (nodes, node) = shape(resources, None)?;
    let scaling = scaling(resources, nodes, node.vcpus)?;
    let request = ComputeEnvironmentRequest {
        compute_environment_name: name.to_owned(),
        kind: kind(resources)?.unwrap_or_default(),
        state: word(input, "state", &STATES)?.unwrap_or_default(),
        nodes,
        gpus_per_node: node.gpus,
        vcpus_per_node: node.vcpus,
        memory_mib_per_node: node.memory_mib,
        tags: tags(input),
    };
    if service.batch().describe_compute_environments(&[])?.len() >= ENVIRONMENTS_MAX {
        return Err(Failure::client(format!("At most {ENVIRONMENTS_MAX} compute environments can be created")));
    }
    let arn = service.batch().create_compute_environment(&request)?;
    service.batch().set_scaling(&arn, Some(scaling))?;
    kept::write(service, KIND, name, &beyond(input))?;
    Ok(json!({ "computeEnvironmentName": name, "computeEnvironmentArn": arn }))
}

pub fn update(service: &Service, input: &Input) -> Result<Value, Failure> {
    refuse_others(input)?;
    let asked = input.text("computeEnvironment").unwrap_or_default();
    let known = service.batch().describe_compute_environments(&[asked.to_owned()])?;
    let known = known.first().ok_or_else(|| Failure::client(format!("{asked} does not exist")))?;
    let name = known.compute_environment_name.as_str();
    let mut body = resources_of(service, known)?;
    kept::merge(&mut body, beyond(input));
    let resources = body.get("computeResources").and_then(Value::as_object).cloned().unwrap_or_default();
    if kind(&resources)?.is_some_and(|kind| kind != known.kind) {
        return Err(Failure::client("The type of a compute environment can't be changed"));
    }
    let mut update =
        ComputeEnvironmentUpdate { state: word(input, "state", &STATES)?, ..ComputeEnvironmentUpdate::default() };
    let mut scaled = None;
    if input.contains_key("computeResources") {
        let (nodes, node) = shape(&resources, Some(known))?;
        scaled = Some(scaling(&resources, nodes, node.vcpus)?);
        update.nodes = Some(nodes);
        update.gpus_per_node = Some(node.gpus);
        update.vcpus_per_node = Some(node.vcpus);
        update.memory_mib_per_node = Some(node.memory_mib);
    }
    let arn = service.batch().update_compute_environment(asked, &update)?;
    if let Some(scaling) = scaled {
        service.batch().set_scaling(&arn, Some(scaling))?;
    }
    kept::write(service, KIND, name, &body)?;
    Ok(json!({ "computeEnvironmentName": name_of(&arn), "computeEnvironmentArn": arn }))
}

pub fn describe(service: &Service, input: &Input) -> Result<Value, Failure> {
    let all = service.batch().describe_compute_environments(&input.texts("computeEnvironments"))?;
    let (part, next) = page::cut(all, input.page(), PAGE_MAX)?;
    let environments = part.iter().map(|one| seen(service, one)).collect::<Result<Vec<_>, _>>()?;
    Ok(kept::listed("computeEnvironments", &environments, next))
}

fn seen(service: &Service, one: &ComputeEnvironment) -> Result<Value, Failure> {
    let name = one.compute_environment_name.as_str();
    let cluster = format!("arn:aws:ecs:us-east-1:{}:cluster/AWSBatch-{name}", service.account());
    let mut members = Map::new();
    let mut put = |key: &str, value: Value| members.insert(key.to_owned(), value);
    put("computeEnvironmentName", json!(name));
    put("computeEnvironmentArn", json!(one.compute_environment_arn));
    put("ecsClusterArn", json!(cluster));
    put("tags", json!(one.tags));
    put("type", json!("MANAGED"));
    put("state", json!(one.state));
    put("status", json!("VALID"));
    put("statusReason", json!("ComputeEnvironment Healthy"));
    put("containerOrchestrationType", json!("ECS"));
    put("updatePolicy", json!({ "terminateJobsOnUpdate": false, "jobExecutionTimeoutMinutes": 30 }));
    kept::merge(&mut members, resources_of(service, one)?);
    let desired =
        json!({ "computeResources": { "desiredvCpus": one.desired_nodes.saturating_mul(one.vcpus_per_node) } });
    kept::merge(&mut members, desired.as_object().cloned().unwrap_or_default());
    Ok(Value::Object(members))
}

/// What was said of an environment, or what there is to say of one that Osprey made.
fn resources_of(service: &Service, one: &ComputeEnvironment) -> Result<Map<String, Value>, Failure> {
    let mut body = kept::read(service, KIND, &one.compute_environment_name)?;
    if !body.contains_key("computeResources") {
        let vcpus = one.nodes.saturating_mul(one.vcpus_per_node);
        let resources =
            json!({ "type": one.kind, "minvCpus": 0, "maxvCpus": vcpus, "desiredvCpus": vcpus, "subnets": [] });
        body.insert("computeResources".to_owned(), resources);
    }
    Ok(body)
}

/// What is kept of a request: what the local Batch doesn't answer itself.
fn beyond(input: &Input) -> Map<String, Value> {
    let own = ["computeEnvironmentName", "computeEnvironment", "type", "state", "tags"];
    input.iter().filter(|(key, _)| !own.contains(&key.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect()
}

fn refuse_others(input: &Input) -> Result<(), Failure> {
    if input.text("type") == Some("UNMANAGED") {
        return Err(Failure::unsupported(Protocol::Batch, "unmanaged compute environments"));
    }
    if input.contains_key("eksConfiguration") {
        return Err(Failure::unsupported(Protocol::Batch, "EKS compute environments"));
    }
    Ok(())
}

fn kind(resources: &Input) -> Result<Option<EnvironmentKind>, Failure> {
    match resources.text("type") {
        Some(other @ ("FARGATE" | "FARGATE_SPOT" | "ECS_MANAGED_INSTANCES")) => {
            Err(Failure::unsupported(Protocol::Batch, &format!("compute environments of type {other}")))
        }
        _ => word(resources, "type", &[("EC2", EnvironmentKind::Ec2), ("SPOT", EnvironmentKind::Spot)]),
    }
}

/// Nodes and what each has: what its instance types say, else what it has already. Everything that the environment may
/// grow to is there.
fn shape(resources: &Input, known: Option<&ComputeEnvironment>) -> Result<(u32, Instance), Failure> {
    let number = |name: &str| resources.number(name).map(u32::try_from).transpose();
    let (min, max, desired) = match (number("minvCpus"), number("maxvCpus"), number("desiredvCpus")) {
        (Ok(min), Ok(max), Ok(desired)) => (min.unwrap_or(0), max.unwrap_or(0), desired),
        _ => return Err(Failure::client("minvCpus, maxvCpus and desiredvCpus must not be negative")),
    };
    let desired = desired.unwrap_or(min);
    if max == 0 || min > max || desired < min || desired > max {
        let message = format!("desiredvCpus {desired} must be between minvCpus {min} and maxvCpus {max}");
        return Err(Failure::client(message));
    }
    let types = resources.texts("instanceTypes");
    let node = match known.filter(|_| types.is_empty()) {
        Some(known) => Instance {
            vcpus: known.vcpus_per_node.max(1),
            memory_mib: known.memory_mib_per_node,
            gpus: known.gpus_per_node,
        },
        None => instances::node(&types, max),
    };
    Ok(((max / node.vcpus).clamp(1, NODES_MAX), node))
}

/// How it scales: nodes for `minvCpus` stay up, others stop when they have been idle for a while.
fn scaling(resources: &Input, nodes: u32, vcpus_per_node: u32) -> Result<Scaling, Failure> {
    let min = resources.number("minvCpus").and_then(|min| u32::try_from(min).ok()).unwrap_or(0);
    let mut scaling = Scaling { min_nodes: min.div_ceil(vcpus_per_node.max(1)).min(nodes), ..Scaling::default() };
    let policy = resources.get("scalingPolicy").and_then(Value::as_object);
    match policy.and_then(|policy| policy.number("minScaleDownDelayMinutes")) {
        None | Some(0) => {}
        Some(minutes @ 20..=10_080) => scaling.scale_down_delay_ms = minutes * 60_000,
        Some(minutes) => {
            let message = format!("minScaleDownDelayMinutes must be between 20 and 10080, got {minutes}");
            return Err(Failure::client(message));
        }
    }
    Ok(scaling)
}
