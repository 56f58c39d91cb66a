//! What a plan is worth, and whether it can be carried out: the rules as they are published, on the file as it is.

use std::collections::BTreeMap;

use osprey_scheduler::placement::{Job, Node, Plan, Problem};
use serde::Deserialize;

use crate::Checked;

/// An instance as its file has it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Instance {
    pub(crate) gpus_per_node: u32,
    pub(crate) alpha: f64,
    pub(crate) nodes: Vec<FileNode>,
    pub(crate) jobs: Vec<FileJob>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct FileNode {
    pub(crate) id: u32,
    pub(crate) used: u32,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct FileJob {
    pub(crate) id: u32,
    pub(crate) gpus: u32,
    pub(crate) priority: u32,
}

/// A plan as its file has it: nodes by job.
pub(crate) type FilePlan = BTreeMap<String, Vec<u32>>;

impl Instance {
    /// The instance of this name.
    pub(crate) fn load(name: &str) -> Result<Self, Box<dyn std::error::Error>> {
        Ok(serde_json::from_str(&read(&format!("{name}.json"))?)?)
    }

    /// The problem that the code under test solves.
    pub(crate) fn problem(&self) -> Result<Problem, Box<dyn std::error::Error>> {
        let slots = self.gpus_per_node;
        let node = |node: &FileNode| Node { slots, free: slots - node.used, spare: slots - node.used };
        let job = |job: &FileJob| Job {
            slots: job.gpus,
            weight: job.priority,
            is_urgent: job.priority > 800,
            outlasts: false,
        };
        let (nodes, jobs) = (self.nodes.iter().map(node).collect(), self.jobs.iter().map(job).collect());
        Ok(Problem::new(nodes, jobs, self.alpha).map_err(|unusable| unusable.to_string())?)
    }

    /// A plan of the code under test, as a file has it.
    pub(crate) fn named(&self, plan: &Plan) -> FilePlan {
        let placed = self.jobs.iter().zip(&plan.nodes).filter(|(_, nodes)| !nodes.is_empty());
        let id = |node: &u32| self.nodes.get(*node as usize).map_or(u32::MAX, |node| node.id);
        placed.map(|(job, nodes)| (job.id.to_string(), nodes.iter().map(id).collect())).collect()
    }

    /// What a plan is worth.
    ///
    /// # Errors
    /// When it can't be carried out.
    pub(crate) fn worth(&self, plan: &FilePlan) -> Result<f64, String> {
        let mut used: BTreeMap<u32, u32> = self.nodes.iter().map(|node| (node.id, node.used)).collect();
        let mut worth = 0.0;
        for (name, nodes) in plan {
            let job = self.jobs.iter().find(|job| job.id.to_string() == *name).ok_or(format!("no job {name}"))?;
            self.hold(job, nodes, &mut used)?;
            worth += f64::from(job.priority) / 1000.0 * f64::from(job.gpus);
        }
        let partly = used.values().filter(|used| (1..self.gpus_per_node).contains(*used));
        let stranded: u32 = partly.map(|used| self.gpus_per_node - used).sum();
        Ok(worth - self.alpha * f64::from(stranded))
    }

    fn hold(&self, job: &FileJob, nodes: &[u32], used: &mut BTreeMap<u32, u32>) -> Result<(), String> {
        let is_whole = job.gpus > self.gpus_per_node;
        let wanted = if is_whole { job.gpus / self.gpus_per_node } else { 1 };
        if nodes.len() != wanted as usize {
            return Err(format!("job {} is on {} nodes and needs {wanted}", job.id, nodes.len()));
        }
        for node in nodes {
            let used = used.get_mut(node).ok_or(format!("no node {node}"))?;
            if is_whole && *used > 0 {
                return Err(format!("job {} shares node {node}", job.id));
            }
            *used += job.gpus.min(self.gpus_per_node);
            if *used > self.gpus_per_node {
                return Err(format!("node {node} is overfull"));
            }
        }
        Ok(())
    }
}

/// The plan that an exact solver found for the instance of this name.
pub(crate) fn known_plan(name: &str) -> Result<FilePlan, Box<dyn std::error::Error>> {
    Ok(serde_json::from_str(&read(&format!("{name}.plan.json"))?)?)
}

fn read(file: &str) -> std::io::Result<String> {
    std::fs::read_to_string(osprey_tests::root().join("tests/placement/instances").join(file))
}

#[test]
fn the_checker_refuses_what_cant_be_carried_out() -> Checked {
    let instance = Instance::load("seed_cli_n10_j100")?;
    let plan = |text: &str| serde_json::from_str::<FilePlan>(text);
    // Jobs 1 and 3 need 8 GPUs, job 4 needs one.
    assert!(instance.worth(&plan(r#"{"1":[0],"3":[1],"4":[2]}"#)?).is_ok());
    for (text, want) in [
        (r#"{"1":[0],"4":[0]}"#, "node 0 is overfull"),
        (r#"{"4":[0,1]}"#, "job 4 is on 2 nodes and needs 1"),
        (r#"{"4":[77]}"#, "no node 77"),
        (r#"{"777":[0]}"#, "no job 777"),
    ] {
        assert_eq!(instance.worth(&plan(text)?), Err(want.to_owned()));
    }
    Ok(())
}
