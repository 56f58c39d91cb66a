//! What ECS and AWS Batch say of a pool's instances, as the nodes that a cycle counts with.

use osprey_aws::SubmitTokens;
use osprey_aws::batch::AwsBatch;
use osprey_aws::capacity::PoolCapacity;
use osprey_model::pool::Pool;
use osprey_ports::{CallError, Capacity, NodeCapacity};
use serde_json::{Value, json};

use crate::stub::{Reply, Stub};
use crate::support::{clients, run};

fn pool(nodes_max: Option<u32>) -> Pool {
    let pool = json!({
        "name": "main", "mode": "held", "capacity": "on-demand", "gpus_per_node": 4, "nodes_max": nodes_max,
        "vcpus_per_node": 48, "memory_mib_per_node": null, "queues": {"critical": "osprey-main-critical"}, "fair_share": true,
    });
    serde_json::from_value(pool).unwrap()
}

fn queue() -> Value {
    json!({"jobQueues": [{
        "jobQueueName": "osprey-main-critical", "jobQueueArn": "arn:aws:batch:eu-west-1:1:job-queue/osprey-main-critical",
        "state": "ENABLED", "computeEnvironmentOrder": [{"order": 1, "computeEnvironment": "arn:ce/main"}],
    }]})
}

/// An environment of at most 192 vCPUs, with members of the test's own.
fn environment(more: &Value) -> Value {
    let mut one = json!({
        "computeEnvironmentName": "main", "computeEnvironmentArn": "arn:ce/main", "ecsClusterArn": "arn:cluster/main",
        "type": "MANAGED", "state": "ENABLED", "status": "VALID", "containerOrchestrationType": "ECS",
        "computeResources": {"type": "EC2", "maxvCpus": 192, "desiredvCpus": 48, "subnets": []},
    });
    for (name, value) in more.as_object().unwrap() {
        one[name] = value.clone();
    }
    json!({"computeEnvironments": [one]})
}

/// An instance of four GPUs and 48 vCPUs with so much left, on which tasks run if anything is taken.
fn instance(id: &str, gpus_left: usize, vcpus_left: u32, status: &str, connected: bool) -> Value {
    let resources = |gpus: usize, vcpus: u32| {
        let ids: Vec<String> = (0..gpus).map(|number| format!("GPU-{number}")).collect();
        json!([
            {"name": "CPU", "type": "INTEGER", "integerValue": vcpus * 1024},
            {"name": "MEMORY", "type": "INTEGER", "integerValue": 180_000},
            {"name": "PORTS", "type": "STRINGSET", "stringSetValue": ["22", "2375"]},
            {"name": "GPU", "type": "STRINGSET", "stringSetValue": ids},
        ])
    };
    json!({
        "containerInstanceArn": format!("arn:aws:ecs:eu-west-1:1:container-instance/main/{id}"), "status": status,
        "agentConnected": connected, "runningTasksCount": u32::from(gpus_left < 4), "pendingTasksCount": 0,
        "registeredResources": resources(4, 48), "remainingResources": resources(gpus_left, vcpus_left),
    })
}

fn observed(pool: &Pool, replies: &[Value]) -> (Result<Capacity, CallError>, Vec<String>) {
    let stub = Stub::new(replies.iter().map(|reply| Reply::ok(&reply.to_string())).collect());
    let outcome = run(async {
        let clients = clients(&stub.endpoint, "k", "s").await;
        let batch = AwsBatch::new(&clients, SubmitTokens::unlimited());
        PoolCapacity::new(&clients).observe(&batch, pool).await
    });
    (outcome, stub.bodies())
}

fn taken(id: &str, gpus_used: u32, vcpus_used: u32) -> NodeCapacity {
    NodeCapacity { id: id.to_owned(), gpus: 4, gpus_used, vcpus: Some(48), vcpus_used }
}

#[test]
fn instances_that_take_jobs_are_nodes_and_the_environment_grows_to_its_vcpus() {
    let list = |arns: &[&str], next: Value| json!({"containerInstanceArns": arns, "nextToken": next});
    let described = json!({"containerInstances": [
        instance("b", 1, 12, "ACTIVE", true),
        instance("a", 4, 48, "ACTIVE", true),
        instance("c", 4, 48, "DRAINING", true),
    ], "failures": [{"arn": "d", "reason": "MISSING"}]});
    let replies =
        [queue(), environment(&json!({})), list(&["b", "a"], json!("more")), list(&["c", "d"], Value::Null), described];
    let (outcome, bodies) = observed(&pool(None), &replies);
    // 192 vCPUs are four nodes of 48, three of which are there.
    assert_eq!(outcome, Ok(Capacity { nodes: vec![taken("a", 0, 0), taken("b", 3, 36)], obtainable: 1 }));
    assert_eq!(bodies.len(), 5);
    assert_eq!(serde_json::from_str::<Value>(&bodies[4]).unwrap()["containerInstances"], json!(["b", "a", "c", "d"]));
}

#[test]
fn an_environment_without_instances_grows_for_runnable_jobs() {
    let none = json!({"containerInstanceArns": []});
    let cases = [
        ("all its vCPUs", None, json!({}), 4),
        ("no more nodes than the pool may have", Some(3), json!({}), 3),
        ("not while it is disabled", None, json!({"state": "DISABLED"}), 0),
        ("not while it is invalid", None, json!({"status": "INVALID"}), 0),
    ];
    for (what, nodes_max, more, obtainable) in cases {
        let (outcome, _) = observed(&pool(nodes_max), &[queue(), environment(&more), none.clone()]);
        assert_eq!(outcome, Ok(Capacity { nodes: Vec::new(), obtainable }), "{what}");
    }
}

#[test]
fn an_instance_without_its_agent_takes_nothing_and_one_without_tasks_has_nothing_taken() {
    let described =
        json!({"containerInstances": [instance("a", 4, 48, "ACTIVE", false), instance("b", 4, 0, "ACTIVE", true)]});
    let replies = [queue(), environment(&json!({})), json!({"containerInstanceArns": ["a", "b"]}), described];
    let (outcome, _) = observed(&pool(Some(2)), &replies);
    assert_eq!(outcome, Ok(Capacity { nodes: vec![taken("b", 0, 0)], obtainable: 0 }));
}

#[test]
fn what_has_no_instances_to_see_is_refused_with_the_way_out() {
    let fargate = json!({"computeResources": {"type": "FARGATE", "maxvCpus": 192, "subnets": []}});
    let cases = [
        (json!({"jobQueues": []}), environment(&json!({})), "there is no job queue `osprey-main-critical`"),
        (queue(), json!({"computeEnvironments": []}), "its job queues have no compute environment"),
        (queue(), environment(&json!({"containerOrchestrationType": "EKS"})), "compute environment `main` is on EKS"),
        (queue(), environment(&fargate), "compute environment `main` is FARGATE"),
        (queue(), environment(&json!({"ecsClusterArn": ""})), "compute environment `main` has no ECS cluster yet"),
    ];
    for (queue, environment, want) in cases {
        let (outcome, _) = observed(&pool(None), &[queue, environment]);
        let Err(CallError::Refused(told)) = outcome else { panic!("{want}: {outcome:?}") };
        assert!(told.starts_with("pool `main` can't be held: ") && told.contains(want), "{told}");
        assert!(told.ends_with("; set it to `direct`"), "{told}");
    }
}

#[test]
fn a_denied_call_names_the_action_that_is_missing() {
    let denied =
        Reply::error(400, "AccessDeniedException", "x is not authorized to perform: ecs:ListContainerInstances on y");
    let stub =
        Stub::new(vec![Reply::ok(&queue().to_string()), Reply::ok(&environment(&json!({})).to_string()), denied]);
    let outcome = run(async {
        let clients = clients(&stub.endpoint, "k", "s").await;
        let batch = AwsBatch::new(&clients, SubmitTokens::unlimited());
        PoolCapacity::new(&clients).observe(&batch, &pool(None)).await
    });
    let Err(CallError::Denied(told)) = outcome else { panic!("{outcome:?}") };
    assert!(told.contains("the role lacks `ecs:ListContainerInstances`"), "{told}");
}
