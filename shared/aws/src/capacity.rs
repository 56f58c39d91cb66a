//! What a pool has: the compute environments behind its job queues, and the container instances of their clusters.
//!
//! AWS Batch runs an environment's instances in an ECS cluster of its own and says of them only how many vCPUs there are;
//! ECS says of each what it has and what is left of it, whoever took it.

use std::collections::BTreeSet;

use aws_sdk_batch::types::{CeState, CeStatus, ComputeEnvironmentDetail, CrType, OrchestrationType};
use aws_sdk_ecs::types::{ContainerInstance, Resource};
use osprey_model::message::words::quote;
use osprey_model::pool::Pool;
use osprey_ports::capacity::node_id;
use osprey_ports::{CallError, Capacity, NodeCapacity};

use crate::batch::{AwsBatch, call_error};
use crate::clients::Clients;

/// Most container instances in one DescribeContainerInstances call; a limit of ECS.
const INSTANCES_MAX: usize = 100;
/// ECS counts 1,024 units a vCPU.
const CPU_UNITS: u32 = 1_024;

const ENVIRONMENTS: &str = "batch:DescribeComputeEnvironments";
const LIST: &str = "ecs:ListContainerInstances";
const DESCRIBE: &str = "ecs:DescribeContainerInstances";

/// Observes pools.
#[derive(Clone, Debug)]
pub struct PoolCapacity {
    batch: aws_sdk_batch::Client,
    ecs: aws_sdk_ecs::Client,
}

impl PoolCapacity {
    /// An observer with these clients.
    #[must_use]
    pub fn new(clients: &Clients) -> Self {
        Self { batch: clients.batch.clone(), ecs: clients.ecs.clone() }
    }

    /// The pool's nodes now.
    ///
    /// # Errors
    /// When a call fails, and with a sentence when what is behind the pool's queues has no instances that can be seen.
    pub async fn observe(&self, batch: &AwsBatch, pool: &Pool) -> Result<Capacity, CallError> {
        let mut capacity = Capacity::default();
        let mut room = Room::default();
        for environment in self.environments(batch, pool).await? {
            let instances = self.instances(cluster(&environment, pool)?).await?;
            room.count(&environment, pool, &instances);
            capacity.nodes.extend(instances.iter().filter(|instance| takes_jobs(instance)).map(node));
        }
        capacity.nodes.sort_by(|one, other| one.id.cmp(&other.id));
        capacity.obtainable = room.left(pool);
        Ok(capacity)
    }

    /// The environments behind a pool's queues.
    async fn environments(&self, batch: &AwsBatch, pool: &Pool) -> Result<Vec<ComputeEnvironmentDetail>, CallError> {
        let mut names = BTreeSet::new();
        for queue in pool.queues.values() {
            let facts = batch.queue_facts(queue).await?;
            let facts =
                facts.ok_or_else(|| refused(pool, &format!("there is no job queue {}", quote(queue.as_str()))))?;
            names.extend(facts.compute_environment_order.into_iter().map(|order| order.compute_environment));
        }
        let request =
            self.batch.describe_compute_environments().set_compute_environments(Some(names.iter().cloned().collect()));
        let found = request.send().await.map_err(call_error(ENVIRONMENTS))?.compute_environments.unwrap_or_default();
        if found.is_empty() {
            return Err(refused(pool, "its job queues have no compute environment"));
        }
        Ok(found)
    }

    /// Every container instance of a cluster, whatever its state.
    async fn instances(&self, cluster: &str) -> Result<Vec<ContainerInstance>, CallError> {
        let mut arns = Vec::new();
        let mut pages = self.ecs.list_container_instances().cluster(cluster).into_paginator().send();
        while let Some(page) = pages.next().await {
            arns.extend(page.map_err(call_error(LIST))?.container_instance_arns.unwrap_or_default());
        }
        let mut instances = Vec::new();
        for some in arns.chunks(INSTANCES_MAX) {
            let request =
                self.ecs.describe_container_instances().cluster(cluster).set_container_instances(Some(some.to_vec()));
            let answer = request.send().await.map_err(call_error(DESCRIBE))?;
            // One that is gone since it was listed is among the failures, and is no node any more.
            instances.extend(answer.container_instances.unwrap_or_default());
        }
        Ok(instances)
    }
}

fn refused(pool: &Pool, why: &str) -> CallError {
    CallError::Refused(format!("pool {} can't be held: {why}; set it to `direct`", quote(pool.name.as_str())))
}

/// The ECS cluster of an environment.
fn cluster<'a>(environment: &'a ComputeEnvironmentDetail, pool: &Pool) -> Result<&'a str, CallError> {
    let name = quote(environment.compute_environment_name.as_deref().unwrap_or_default());
    if environment.container_orchestration_type == Some(OrchestrationType::Eks) {
        return Err(refused(
            pool,
            &format!("compute environment {name} is on EKS, where AWS Batch shows no container instances"),
        ));
    }
    let kind = environment.compute_resources.as_ref().and_then(|resources| resources.r#type.clone());
    if let Some(kind @ (CrType::Fargate | CrType::FargateSpot)) = kind {
        let why = format!("compute environment {name} is {}, which has no instances and no GPUs", kind.as_str());
        return Err(refused(pool, &why));
    }
    let arn = environment.ecs_cluster_arn.as_deref().filter(|arn| !arn.is_empty());
    arn.ok_or_else(|| refused(pool, &format!("compute environment {name} has no ECS cluster yet")))
}

/// Whether ECS places containers there.
fn takes_jobs(instance: &ContainerInstance) -> bool {
    instance.status.as_deref() == Some("ACTIVE") && instance.agent_connected
}

fn node(instance: &ContainerInstance) -> NodeCapacity {
    let (has, left) = (instance.registered_resources(), instance.remaining_resources());
    let (gpus, vcpus) = (gpus(has), units(has).map(|units| units / CPU_UNITS));
    // Nothing runs on an instance without tasks, whatever lags behind.
    let is_idle = instance.running_tasks_count == 0 && instance.pending_tasks_count == 0;
    let used = units(has).unwrap_or(0).saturating_sub(units(left).unwrap_or(0));
    NodeCapacity {
        id: node_id(instance.container_instance_arn.as_deref().unwrap_or_default()).to_owned(),
        gpus,
        gpus_used: if is_idle { 0 } else { gpus.saturating_sub(self::gpus(left)) },
        vcpus,
        vcpus_used: if is_idle { 0 } else { used.div_ceil(CPU_UNITS) },
    }
}

/// GPUs among resources: a set of their ids.
fn gpus(resources: &[Resource]) -> u32 {
    let found = resources.iter().find(|resource| resource.name.as_deref() == Some("GPU"));
    found.map_or(0, |gpus| u32::try_from(gpus.string_set_value().len()).unwrap_or(u32::MAX))
}

/// CPU units among resources.
fn units(resources: &[Resource]) -> Option<u32> {
    let found = resources.iter().find(|resource| resource.name.as_deref() == Some("CPU"))?;
    u32::try_from(found.integer_value).ok()
}

/// How many nodes environments may still bring up.
#[derive(Debug, Default)]
struct Room {
    up: u32,
    more: u32,
}

impl Room {
    fn count(&mut self, environment: &ComputeEnvironmentDetail, pool: &Pool, instances: &[ContainerInstance]) {
        let up = u32::try_from(instances.len()).unwrap_or(u32::MAX);
        self.up = self.up.saturating_add(up);
        let grows = environment.state == Some(CeState::Enabled)
            && matches!(environment.status, Some(CeStatus::Valid | CeStatus::Updating));
        let vcpus_max = environment.compute_resources.as_ref().and_then(|resources| resources.maxv_cpus).unwrap_or(0);
        if grows {
            let vcpus_max = u32::try_from(vcpus_max).unwrap_or(0);
            let seen = || instances.iter().filter_map(|one| units(one.registered_resources())).max();
            let each = pool.vcpus_per_node.or_else(|| seen().map(|units| units / CPU_UNITS)).filter(|vcpus| *vcpus > 0);
            // An instance that drains or isn't connected counts against the environment's vCPUs all the same.
            let most = each.map(|each| vcpus_max / each).or(pool.nodes_max).unwrap_or(0);
            self.more = self.more.saturating_add(most.saturating_sub(up));
        }
    }

    fn left(&self, pool: &Pool) -> u32 {
        let most = pool.nodes_max.map_or(u32::MAX, |most| most.saturating_sub(self.up));
        self.more.min(most)
    }
}
