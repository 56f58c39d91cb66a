//! Arrays, dependencies, and who gets which device.

use std::collections::BTreeMap;

use osprey_local_batch::ListJobsRequest;
use osprey_model::request::{ArrayProperties, JobDependency, SubmitJobRequest};

use crate::support::{World, ending, options, shell, world};

fn array(size: i64, script: &str) -> SubmitJobRequest {
    SubmitJobRequest { array_properties: Some(ArrayProperties { size: Some(size) }), ..shell(script) }
}

fn after(ids: &[&str], kind: Option<&str>) -> Option<Vec<JobDependency>> {
    let one = |id: &&str| JobDependency { job_id: Some((*id).to_owned()), kind: kind.map(str::to_owned) };
    Some(ids.iter().map(one).collect())
}

fn children(world: &World, id: &str, size: usize) -> Vec<String> {
    (0..size).map(|index| world.status(&format!("{id}:{index}"))).collect()
}

#[test]
fn each_child_of_an_array_knows_its_index_and_the_parent_ends_when_all_have() {
    let mut world = world("array", 3, options(1.0));
    let id = world.submit(&array(5, "echo $AWS_BATCH_JOB_ARRAY_INDEX of $AWS_BATCH_JOB_ARRAY_SIZE"));
    world.until_status(&id, "PENDING");
    let parent = world.end_of(&id);
    assert_eq!(ending(&parent), "SUCCEEDED | - | - | -");
    assert_eq!(parent["arrayProperties"]["statusSummary"]["SUCCEEDED"], 5);
    assert_eq!(world.log(&format!("{id}:3"), 1), "3 of 5\n");
    assert_eq!(world.job(&format!("{id}:3"))["arrayProperties"]["index"], 3);
    let list = ListJobsRequest {
        array_job_id: Some(id),
        job_status: Some("SUCCEEDED".to_owned()),
        ..ListJobsRequest::default()
    };
    assert_eq!(world.batch.list_jobs(&list).unwrap().job_summary_list.len(), 5);
}

#[test]
fn an_array_with_a_failed_child_fails_and_its_other_children_go_on() {
    let mut world = world("array-fails", 3, options(1.0));
    let id = world.submit(&array(3, "exit $AWS_BATCH_JOB_ARRAY_INDEX"));
    assert_eq!(ending(&world.end_of(&id)), "FAILED | - | Array Child Job failed | -");
    assert_eq!(children(&world, &id, 3), ["SUCCEEDED", "FAILED", "FAILED"]);
}

#[test]
fn terminating_an_array_reaches_the_children_that_run_and_those_that_wait() {
    let mut world = world("array-ends", 2, options(1.0));
    let id = world.submit(&array(4, "exec sleep 30"));
    world.until("two run", |world| world.status(&format!("{id}:1")) == "RUNNING");
    world.batch.terminate_job(&id, "enough").unwrap();
    assert_eq!(ending(&world.end_of(&id)), "FAILED | - | enough | -");
    assert_eq!(children(&world, &id, 4), ["FAILED"; 4]);
    assert_eq!(ending(&world.job(&format!("{id}:3"))), "FAILED | - | enough | -");
}

#[test]
fn a_job_waits_for_its_dependencies_and_fails_with_the_first_that_fails() {
    let mut world = world("depends", 4, options(1.0));
    let good = world.submit(&shell("sleep 0.1"));
    let bad = world.submit(&shell("sleep 0.1; exit 1"));
    let waits = world.submit(&SubmitJobRequest { depends_on: after(&[&good], None), ..shell("true") });
    let doomed = world.submit(&SubmitJobRequest { depends_on: after(&[&good, &bad], None), ..shell("true") });
    let after_doomed = world.submit(&SubmitJobRequest { depends_on: after(&[&doomed], None), ..shell("true") });
    world.until_status(&waits, "PENDING");
    assert_eq!(ending(&world.end_of(&after_doomed)), "FAILED | - | Dependent Job failed | -");
    assert_eq!(world.job(&doomed)["attempts"], serde_json::json!([]));
    assert_eq!(world.end_of(&waits)["status"], "SUCCEEDED");
    let late = world.submit(&SubmitJobRequest { depends_on: after(&[&bad], None), ..shell("true") });
    assert_eq!(ending(&world.end_of(&late)), "FAILED | - | Dependent Job failed | -");
    let late = world.submit(&SubmitJobRequest { depends_on: after(&[&good], None), ..shell("true") });
    assert_eq!(world.end_of(&late)["status"], "SUCCEEDED");
}

#[test]
fn sequential_children_run_one_after_the_other_and_n_to_n_children_pair_by_pair() {
    let mut world = world("sequence", 4, options(1.0));
    let trace = world.dir.0.join("trace").display().to_string();
    let mut first = array(3, &format!("echo a$AWS_BATCH_JOB_ARRAY_INDEX >> {trace}"));
    first.depends_on = Some(vec![JobDependency { job_id: None, kind: Some("SEQUENTIAL".to_owned()) }]);
    let first = world.submit(&first);
    let mut second = array(3, &format!("echo b$AWS_BATCH_JOB_ARRAY_INDEX >> {trace}"));
    second.depends_on = after(&[&first], Some("N_TO_N"));
    let second = world.submit(&second);
    assert_eq!(world.end_of(&second)["status"], "SUCCEEDED");
    let trace = std::fs::read_to_string(trace).unwrap();
    let at = |word: &str| trace.lines().position(|line| line == word).unwrap();
    assert!(at("a0") < at("a1") && at("a1") < at("a2"), "{trace}");
    assert!((0..3).all(|i| at(&format!("a{i}")) < at(&format!("b{i}"))), "{trace}");
}

#[test]
fn a_sequential_array_whose_child_fails_fails_to_its_end() {
    let mut world = world("sequence-fails", 2, options(1.0));
    let mut asked = array(4, "exit $AWS_BATCH_JOB_ARRAY_INDEX");
    asked.depends_on = Some(vec![JobDependency { job_id: None, kind: Some("SEQUENTIAL".to_owned()) }]);
    let id = world.submit(&asked);
    assert_eq!(ending(&world.end_of(&id)), "FAILED | - | Array Child Job failed | -");
    assert_eq!(ending(&world.job(&format!("{id}:3"))), "FAILED | - | Dependent Job failed | -");
}

#[test]
fn no_device_is_given_to_two_jobs_at_once_in_either_environment() {
    let mut world = world("devices", 3, options(1.0));
    // Each job takes a lock for each of its devices and fails when it is taken.
    let script = format!(
        "for d in $(echo $CUDA_VISIBLE_DEVICES | tr , ' '); do mkdir {0}/d$d || exit 1; done; sleep 0.03; \
         for d in $(echo $CUDA_VISIBLE_DEVICES | tr , ' '); do rmdir {0}/d$d; done; echo $CUDA_VISIBLE_DEVICES",
        world.dir.0.display()
    );
    let mut seen = BTreeMap::new();
    let ids: Vec<String> = (0..24)
        .map(|n| {
            let mut asked = shell(&script);
            asked.job_queue = Some(if n % 2 == 0 { "main" } else { "spot" }.to_owned());
            let gpus = asked.container_overrides.as_mut().unwrap().resource_requirements.as_mut().unwrap();
            gpus[0].value = (1 + n % 3).to_string();
            world.submit(&asked)
        })
        .collect();
    world.until("devices are held", |world| !world.batch.describe_nodes().unwrap()[0].jobs.is_empty());
    let nodes = world.batch.describe_nodes().unwrap();
    assert_eq!((nodes[0].devices.as_slice(), nodes[1].devices.as_slice()), (&[0, 1, 2][..], &[3, 4, 5][..]));
    assert!(nodes[0].open && nodes[0].free_devices.len() < 3);
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(world.end_of(id)["status"], "SUCCEEDED");
        let log = world.log(id, 1);
        let devices: Vec<i64> = log.trim().split(',').map(|device| device.parse().unwrap()).collect();
        assert_eq!(devices.len(), 1 + n % 3);
        assert!(devices.iter().all(|device| (3 * (n as i64 % 2)..3 * (n as i64 % 2) + 3).contains(device)), "{log}");
        devices.iter().for_each(|device| *seen.entry(*device).or_insert(0) += 1);
    }
    assert_eq!(seen.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn a_job_that_could_never_fit_says_so_and_blocks_its_queue_only() {
    let mut world = world("unfit", 2, options(1.0));
    let mut wide = shell("true");
    wide.container_overrides.as_mut().unwrap().resource_requirements.as_mut().unwrap()[0].value = "3".to_owned();
    let wide = world.submit(&wide);
    let behind = world.submit(&shell("true"));
    let beside = world.submit(&SubmitJobRequest { job_queue: Some("spot".to_owned()), ..shell("true") });
    assert_eq!(world.end_of(&beside)["status"], "SUCCEEDED");
    let reason = world.job(&wide)["statusReason"].as_str().unwrap().to_owned();
    assert!(reason.starts_with("MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - "), "{reason}");
    assert_eq!((world.status(&wide), world.status(&behind)), ("RUNNABLE".to_owned(), "RUNNABLE".to_owned()));
    world.batch.cancel_job(&wide, "too wide").unwrap();
    assert_eq!(world.end_of(&behind)["status"], "SUCCEEDED");
}
