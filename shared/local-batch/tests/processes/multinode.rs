//! Multi-node jobs with real processes on the nodes of one machine.

use osprey_local_batch::{ComputeEnvironmentUpdate, ListJobsRequest};
use osprey_model::request::{EvaluateOnExit, NodeOverrides, RetryStrategy, SubmitJobRequest};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{World, ending, options, shell, world};

/// A world with `nodes` nodes of two GPUs in `main`, and a definition `mesh` of two nodes.
fn mesh(name: &str, nodes: u32) -> World {
    let world = world(name, 2, options(1.0));
    let update = ComputeEnvironmentUpdate { nodes: Some(nodes), ..Default::default() };
    world.batch.update_compute_environment("main", &update).unwrap();
    let container = json!({"image": "busybox", "command": ["true"],
        "resourceRequirements": [{"type": "GPU", "value": "2"}]});
    let definition = json!({"jobDefinitionName": "mesh", "type": "multinode", "nodeProperties": {
        "numNodes": 2, "mainNode": 0, "nodeRangeProperties": [{"targetNodes": "0:", "container": container}]}});
    world.batch.register_job_definition(&serde_json::from_value(definition).unwrap()).unwrap();
    world
}

/// A request for `mesh`, or another definition, with a script for each range of nodes.
fn on_nodes(definition: &str, nodes: i64, scripts: &[(&str, &str)]) -> SubmitJobRequest {
    let range = |(range, script): &(&str, &str)| json!({"targetNodes": range, "containerOverrides": {"command": ["sh", "-c", script]}});
    let ranges: Vec<Value> = scripts.iter().map(range).collect();
    let overrides = json!({"numNodes": nodes, "nodePropertyOverrides": ranges});
    SubmitJobRequest {
        job_definition: definition.to_owned(),
        container_overrides: None,
        node_overrides: Some(serde_json::from_value::<NodeOverrides>(overrides).unwrap()),
        ..shell("")
    }
}

const TELL: &str = "echo $AWS_BATCH_JOB_NODE_INDEX of $AWS_BATCH_JOB_NUM_NODES main $AWS_BATCH_JOB_MAIN_NODE_INDEX at \
                    [$AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS] on $CUDA_VISIBLE_DEVICES";

fn wait_for(file: &std::path::Path) -> String {
    format!("while ! [ -e {} ]; do sleep 0.01; done", file.display())
}

#[test]
fn every_node_knows_its_place_and_the_job_ends_as_its_main_node_does() {
    let mut world = mesh("mesh", 3);
    let ready = world.dir.0.join("ready");
    let worker = format!("{TELL}; touch {}$AWS_BATCH_JOB_NODE_INDEX; exec sleep 30", ready.display());
    let all = (1..3).map(|n| wait_for(&ready.with_file_name(format!("ready{n}")))).collect::<Vec<_>>().join("; ");
    let id = world.submit(&on_nodes("mesh", 3, &[("0:0", &format!("{TELL}; {all}; exit 3")), ("1:", &worker)]));
    let job = world.end_of(&id);
    assert_eq!(job["statusReason"], "Essential container in task exited");
    assert_eq!((&job["status"], &job["attempts"][0]["container"]["exitCode"]), (&json!("FAILED"), &json!(3)));
    assert_eq!((&job["container"], &job["nodeProperties"]["numNodes"]), (&Value::Null, &json!(3)));
    assert_eq!(world.log(&id, 1), "0 of 3 main 0 at [] on 0,1\n");
    assert_eq!(world.log(&format!("{id}#1"), 1), "1 of 3 main 0 at [127.0.0.1] on 4,5\n");
    assert_eq!(world.log(&format!("{id}#2"), 1), "2 of 3 main 0 at [127.0.0.1] on 6,7\n");
    let node = world.job(&format!("{id}#2"));
    assert_eq!(ending(&node), "FAILED | 143 | Essential container in task exited | -", "stopped with the main node");
    assert_eq!(node["nodeDetails"], json!({"nodeIndex": 2, "isMainNode": false}));
    let list = ListJobsRequest {
        array_job_id: Some(id.clone()),
        job_status: Some("FAILED".to_owned()),
        ..ListJobsRequest::default()
    };
    let nodes = world.batch.list_jobs(&list).unwrap().job_summary_list;
    assert_eq!(nodes[2]["nodeProperties"], json!({"numNodes": 3, "isMainNode": true, "nodeIndex": 0}));
    let events = world.batch.fetch_events(1_000).unwrap();
    let of = |id: &str| {
        let own = events.iter().filter(|event| event.body["detail"]["jobId"] == id);
        own.map(|event| event.body["detail"]["status"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(of(&id), "RUNNABLE STARTING RUNNING FAILED");
    assert_eq!(of(&format!("{id}#1")), "STARTING RUNNING FAILED");
    let last = events.iter().rfind(|event| event.body["detail"]["jobId"] == id.as_str()).unwrap();
    assert_eq!(last.body["detail"]["nodeProperties"]["mainNode"], 0);
    assert!(world.batch.describe_nodes().unwrap()[0].free_devices.len() == 2, "its hosts are free again");
}

#[test]
fn a_job_waits_until_it_gets_all_its_hosts_at_once_and_shares_none() {
    let mut world = mesh("mesh-waits", 2);
    let holder = world.submit(&shell("exec sleep 30"));
    world.until_status(&holder, "RUNNING");
    let id = world.submit(&on_nodes("mesh", 2, &[("0:", "exec sleep 30")]));
    let mut small = shell("true");
    small.container_overrides.as_mut().unwrap().resource_requirements = None;
    let small = world.submit(&small);
    world.until_status(&id, "RUNNABLE");
    assert_eq!(world.status(&small), "RUNNABLE", "it waits behind the head");
    world.batch.terminate_job(&holder, "make room").unwrap();
    world.until_status(&id, "RUNNING");
    world.until_status(&format!("{id}#1"), "RUNNING");
    assert_eq!(world.status(&small), "RUNNABLE", "hosts of a multi-node job take nothing else");
    let refused = world.batch.terminate_job(&format!("{id}#1"), "x").unwrap_err().message;
    assert!(refused.contains("can't be stopped on its own"), "{refused}");
    world.batch.terminate_job(&id, "enough").unwrap();
    let job = world.end_of(&id);
    assert_eq!((&job["statusReason"], &job["isTerminated"]), (&json!("enough"), &json!(true)));
    assert_eq!(world.end_of(&small)["status"], "SUCCEEDED");
}

#[test]
fn only_the_main_node_decides_and_its_loss_is_retried_by_rule() {
    let mut world = mesh("mesh-lost", 2);
    let go = world.dir.0.join("go");
    let main = format!("[ $AWS_BATCH_JOB_ATTEMPT = 2 ] && exit 0; {}; exit 1", wait_for(&go));
    let mut asked = on_nodes("mesh", 2, &[("0:0", &main), ("1:", "exec sleep 30")]);
    let again = EvaluateOnExit {
        on_status_reason: Some("Host EC2*".to_owned()),
        action: "RETRY".to_owned(),
        ..Default::default()
    };
    asked.retry_strategy = Some(RetryStrategy { attempts: Some(2), evaluate_on_exit: Some(vec![again]) });
    let id = world.submit(&asked);
    let kill_host = |world: &mut World, node: &str| {
        world.until_status(node, "RUNNING");
        let files = osprey_local_batch::files::AttemptFiles::new(&world.dir.0.join("batch/jobs"), node, 1);
        let pid = files.read_claim().and_then(|claim| claim.supervisor).unwrap().pid;
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    };
    let worker = format!("{id}#1");
    world.until_status(&id, "RUNNING");
    kill_host(&mut world, &worker);
    world.until_status(&worker, "FAILED");
    assert!(world.job(&worker)["statusReason"].as_str().unwrap().starts_with("Host EC2 (instance i-"));
    assert_eq!(world.status(&id), "RUNNING", "another node's host is nobody's business");
    kill_host(&mut world, &format!("{id}#0"));
    let job = world.end_of(&id);
    assert_eq!((&job["status"], job["attempts"].as_array().unwrap().len()), (&json!("SUCCEEDED"), 2));
}

#[test]
fn a_crash_between_its_nodes_loses_and_doubles_none() {
    let mut world = mesh("mesh-crash", 2);
    let runs = world.dir.0.join("runs");
    let ready = world.dir.0.join("ready");
    let note = format!("echo $AWS_BATCH_JOB_NODE_INDEX >> {}", runs.display());
    let main = format!("{note}; {}", wait_for(&ready));
    let worker = format!("{note}; touch {}; exec sleep 30", ready.display());
    let id = world.submit(&on_nodes("mesh", 2, &[("0:0", &main), ("1:", &worker)]));
    for status in ["STARTING", "RUNNING"] {
        world.until_status(&id, status);
        world.crash();
        world.batch = osprey_local_batch::LocalBatch::open(&world.dir.0, options(1.0)).unwrap();
        world.engine = Some(world.batch.engine().unwrap());
    }
    assert_eq!(world.end_of(&id)["status"], "SUCCEEDED");
    let mut ran: Vec<String> = std::fs::read_to_string(runs).unwrap().lines().map(str::to_owned).collect();
    ran.sort_unstable();
    assert_eq!(ran, ["0", "1"]);
}

#[test]
fn what_cannot_be_a_multi_node_job_is_refused_in_a_sentence() {
    let mut world = mesh("mesh-refused", 2);
    let refusal = |asked: &SubmitJobRequest| world.batch.submit_unregistered(asked).unwrap_err().message;
    let right = on_nodes("mesh", 2, &[("0:", "true")]);
    let on_spot = SubmitJobRequest { job_queue: Some("spot".to_owned()), ..right.clone() };
    assert_eq!(
        refusal(&on_spot),
        "Multi-node parallel jobs are not supported on compute environments that use Spot Instances"
    );
    let array = SubmitJobRequest {
        array_properties: Some(osprey_model::request::ArrayProperties { size: Some(2) }),
        ..right.clone()
    };
    assert_eq!(refusal(&array), "Multi-node parallel jobs can't be array jobs");
    let single = SubmitJobRequest { job_definition: "shell".to_owned(), ..right.clone() };
    assert_eq!(refusal(&single), "nodeOverrides can only be specified for multi-node parallel jobs");
    let both = SubmitJobRequest { container_overrides: shell("true").container_overrides, ..right.clone() };
    assert_eq!(refusal(&both), "containerOverrides can't be specified for multi-node parallel jobs; use nodeOverrides");
    let half = on_nodes("nowhere", 2, &[("0:0", "true")]);
    assert_eq!(
        refusal(&half),
        "JobDefinition nowhere not found; without it nodeOverrides must give numNodes and a command for each node"
    );
    let whole = on_nodes("nowhere", 2, &[("0:0", "true"), ("1:", "true")]);
    let id = world.batch.submit_unregistered(&whole).unwrap().job_id;
    assert_eq!(world.end_of(&id)["status"], "SUCCEEDED");
}
