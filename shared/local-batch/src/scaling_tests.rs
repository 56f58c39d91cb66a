//! Nodes that come and go with the jobs.

use serde_json::json;

use super::*;
use crate::ComputeEnvironmentUpdate;
use crate::event::tests::Stage;
use crate::files::Outcome;

/// Nodes that are up, as describe says.
fn up(stage: &Stage) -> (u32, u32, u32) {
    let environment = stage.batch.describe_compute_environments(&[]).unwrap().pop().unwrap();
    (environment.min_nodes, environment.desired_nodes, environment.nodes)
}

fn whole() -> serde_json::Value {
    json!({"containerOverrides": {"resourceRequirements": [{"type": "VCPU", "value": "1024"}]}})
}

fn stage(name: &str, nodes: u32) -> Stage {
    let stage = Stage::new(name);
    let update = ComputeEnvironmentUpdate { nodes: Some(nodes), ..Default::default() };
    stage.batch.update_compute_environment("spot-ce", &update).unwrap();
    stage
}

#[test]
fn nodes_start_for_jobs_and_stop_when_they_have_been_idle() {
    let stage = stage("scales", 3);
    assert_eq!(up(&stage), (3, 3, 3), "all nodes are up unless it is told to scale");
    let scaling = Scaling { min_nodes: 0, scale_down_delay_ms: 60_000 };
    stage.batch.set_scaling("spot-ce", Some(scaling)).unwrap();
    assert_eq!(up(&stage), (0, 0, 3));
    let id = stage.submit(&whole());
    let other = stage.submit(&whole());
    stage.cycle();
    assert_eq!((up(&stage), &stage.job(&id)["status"]), ((0, 2, 3), &json!("STARTING")));
    assert_eq!(stage.job(&other)["status"], "STARTING");
    stage.play(None, &Outcome::Code(0));
    assert_eq!(stage.cycle(), Some(60_000));
    stage.pass(30_000);
    stage.submit(&whole());
    stage.play(None, &Outcome::Code(0));
    assert_eq!(up(&stage), (0, 2, 3), "an idle node takes the next job");
    stage.cycle();
    stage.pass(30_000);
    stage.cycle();
    assert_eq!(up(&stage), (0, 1, 3), "the one that has been idle for a minute stops");
    stage.pass(30_000);
    assert_eq!((stage.cycle(), up(&stage)), (None, (0, 0, 3)));
}

#[test]
fn the_least_number_of_nodes_stays_up() {
    let stage = stage("least", 3);
    stage.batch.set_scaling("spot-ce", Some(Scaling { min_nodes: 1, scale_down_delay_ms: 0 })).unwrap();
    assert_eq!(up(&stage), (1, 1, 3));
    stage.submit(&whole());
    stage.submit(&whole());
    stage.cycle();
    assert_eq!(up(&stage), (1, 2, 3));
    stage.play(None, &Outcome::Code(0));
    stage.cycle();
    assert_eq!(up(&stage), (1, 1, 3));
    let refused = stage.batch.set_scaling("spot-ce", Some(Scaling { min_nodes: 4, ..Scaling::default() }));
    assert_eq!(refused.unwrap_err().message, "spot-ce has 3 nodes, fewer than 4");
    stage.batch.set_scaling("spot-ce", None).unwrap();
    assert_eq!(up(&stage), (3, 3, 3));
}
