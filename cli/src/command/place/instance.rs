//! A placement instance: the nodes, the jobs and the price of what is stranded, as JSON.

use std::collections::BTreeSet;
use std::path::Path;

use osprey_model::message::words::{counted, quote};
use osprey_scheduler::placement::problem::{JOBS_MAX, NODE_SLOTS_MAX, NODES_MAX, STRANDED_PRICE_MAX};
use osprey_scheduler::placement::{Job, Node, Problem};
use serde_json::{Map, Value};

use crate::error::{CliError, ErrorCode};
use crate::input;

/// The largest priority: what AWS Batch takes is far below.
const PRIORITY_MAX: u32 = 1_000_000;

/// An instance, as the file has it.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    pub problem: Problem,
    /// What each node is called, as a JSON number or text.
    pub nodes: Vec<Value>,
    /// What each job is called.
    pub jobs: Vec<String>,
    /// What a slot is.
    pub unit: Unit,
}

/// What is placed: GPUs, or vCPUs where nodes have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Gpu,
    Vcpu,
}

impl Unit {
    /// What it is called.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Gpu => "GPU",
            Self::Vcpu => "vCPU",
        }
    }

    /// The member of a job.
    fn of_job(self) -> &'static str {
        match self {
            Self::Gpu => "gpus",
            Self::Vcpu => "vcpus",
        }
    }

    /// The member of an instance.
    fn of_node(self) -> &'static str {
        match self {
            Self::Gpu => "gpus_per_node",
            Self::Vcpu => "vcpus_per_node",
        }
    }
}

impl Instance {
    /// Reads a file; `-` is standard input.
    ///
    /// # Errors
    /// One sentence about the first mistake.
    pub(super) fn read(path: &Path, dive_above: u32) -> Result<Self, CliError> {
        let text = input::read_text(path)?;
        Self::parse(&text, dive_above).map_err(|mistake| {
            let message = format!("instance `{}`: {mistake}", path.display());
            CliError::new(ErrorCode::InvalidInput, message).help("docs/osprey.md says what an instance is made of")
        })
    }

    fn parse(text: &str, dive_above: u32) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|fault| fault.to_string())?;
        let Value::Object(file) = &value else { return Err("it is no JSON object".to_owned()) };
        let unit = unit(file)?;
        let slots = whole(file, unit.of_node(), "the instance", 1, NODE_SLOTS_MAX)?;
        let alpha = alpha(file)?;
        let nodes = list(file, "nodes", NODES_MAX)?;
        let jobs = list(file, "jobs", JOBS_MAX)?;
        let node_names = names(&nodes, "node")?;
        let job_names = names(&jobs, "job")?;
        let nodes: Vec<Node> =
            nodes.iter().zip(&node_names).map(|(node, name)| read_node(node, name, slots)).collect::<Result<_, _>>()?;
        let reader = JobReader { unit, node_slots: slots, dive_above };
        let jobs: Vec<Job> =
            jobs.iter().zip(&job_names).map(|(job, name)| reader.read(job, name)).collect::<Result<_, _>>()?;
        let problem = Problem::new(nodes, jobs, alpha).map_err(|unusable| unusable.to_string())?;
        Ok(Self { problem, nodes: node_names, jobs: job_names.iter().map(plain).collect(), unit })
    }
}

fn unit(file: &Map<String, Value>) -> Result<Unit, String> {
    let [gpus, vcpus] = [Unit::Gpu, Unit::Vcpu].map(|unit| file.contains_key(unit.of_node()));
    match (gpus, vcpus) {
        (true, false) => Ok(Unit::Gpu),
        (false, true) => Ok(Unit::Vcpu),
        (true, true) => Err("it has `gpus_per_node` and `vcpus_per_node`; one of both is meant".to_owned()),
        (false, false) => Err("it has no `gpus_per_node`, nor `vcpus_per_node` for nodes without GPUs".to_owned()),
    }
}

fn alpha(file: &Map<String, Value>) -> Result<f64, String> {
    let alpha = file.get("alpha").ok_or("it has no `alpha`, the price of a slot left free on a partly used node")?;
    let number = alpha.as_f64().filter(|alpha| (0.0..=STRANDED_PRICE_MAX).contains(alpha));
    number.ok_or_else(|| format!("its `alpha` is {alpha}; a number from 0 to {STRANDED_PRICE_MAX} is meant"))
}

fn list<'v>(file: &'v Map<String, Value>, name: &str, most: usize) -> Result<Vec<&'v Map<String, Value>>, String> {
    let value = file.get(name).ok_or_else(|| format!("it has no `{name}`"))?;
    let Value::Array(list) = value else { return Err(format!("its `{name}` are no list")) };
    if list.len() > most {
        return Err(format!("it has {} {name}; at most {most} are planned at once", list.len()));
    }
    let objects = list.iter().enumerate();
    objects
        .map(|(at, value)| value.as_object().ok_or_else(|| format!("number {} of its `{name}` is no object", at + 1)))
        .collect()
}

/// What nodes or jobs are called, each name once.
fn names(list: &[&Map<String, Value>], noun: &str) -> Result<Vec<Value>, String> {
    let mut seen = BTreeSet::new();
    let named = list.iter().enumerate().map(|(at, object)| {
        let id = object.get("id").filter(|id| id.is_string() || id.is_i64() || id.is_u64());
        let id = id.ok_or_else(|| format!("{noun} number {} has no `id`, a whole number or a text", at + 1))?;
        let is_new = seen.insert(plain(id));
        if is_new { Ok(id.clone()) } else { Err(format!("there are two {noun}s {}", quote(&plain(id)))) }
    });
    named.collect()
}

/// A name as text.
pub(super) fn plain(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

fn whole(object: &Map<String, Value>, name: &str, of: &str, least: u32, most: u32) -> Result<u32, String> {
    let value = object.get(name).ok_or_else(|| format!("{of} has no `{name}`"))?;
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.filter(|number| (least..=most).contains(number)).ok_or_else(|| {
        let given: String = value.to_string().chars().take(40).collect();
        format!("`{name}` of {of} is {given}; a whole number from {least} to {most} is meant")
    })
}

fn read_node(node: &Map<String, Value>, name: &Value, slots: u32) -> Result<Node, String> {
    let of = format!("node {}", quote(&plain(name)));
    let free = slots - whole(node, "used", &of, 0, slots)?;
    Ok(Node { slots, free, spare: free })
}

/// Reads jobs.
struct JobReader {
    unit: Unit,
    node_slots: u32,
    dive_above: u32,
}

impl JobReader {
    fn read(&self, job: &Map<String, Value>, name: &Value) -> Result<Job, String> {
        let of = format!("job {}", quote(&plain(name)));
        let slots = whole(job, self.unit.of_job(), &of, 1, NODE_SLOTS_MAX * 64)?;
        let node_slots = self.node_slots;
        if slots > node_slots && !slots.is_multiple_of(node_slots) {
            let noun = self.unit.noun();
            let nodes = slots.div_ceil(node_slots);
            return Err(format!(
                "{of} needs {} and a node has {node_slots}: a job of several nodes takes whole ones, such as {} ({})",
                counted(slots.into(), noun),
                nodes * node_slots,
                counted(nodes.into(), "node"),
            ));
        }
        let weight = whole(job, "priority", &of, 0, PRIORITY_MAX)?;
        Ok(Job { slots, weight, is_urgent: weight > self.dive_above, outlasts: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(text: &str) -> String {
        Instance::parse(text, 800).unwrap_err()
    }

    #[test]
    fn an_instance_counts_gpus_or_vcpus() {
        let text = r#"{"gpus_per_node":8,"alpha":0.25,"nodes":[{"id":0,"used":3},{"id":"b","used":0}],
            "jobs":[{"id":7,"gpus":16,"priority":900},{"id":"x","gpus":1,"priority":0,"team":"a"}]}"#;
        let instance = Instance::parse(text, 800).unwrap();
        assert_eq!(instance.unit, Unit::Gpu);
        assert_eq!(instance.jobs, ["7", "x"]);
        assert_eq!(instance.nodes, [Value::from(0), Value::from("b")]);
        assert_eq!(instance.problem.nodes()[0], Node { slots: 8, free: 5, spare: 5 });
        assert_eq!(instance.problem.jobs()[0], Job { slots: 16, weight: 900, is_urgent: true, outlasts: false });
        let text = text.replace("gpus_per_node", "vcpus_per_node").replace("gpus\"", "vcpus\"");
        assert_eq!(Instance::parse(&text, 800).unwrap().unit, Unit::Vcpu);
    }

    #[test]
    fn every_mistake_is_one_sentence() {
        let with = |nodes: &str, jobs: &str| {
            format!(r#"{{"gpus_per_node":8,"alpha":0.25,"nodes":[{nodes}],"jobs":[{jobs}]}}"#)
        };
        for (text, want) in [
            ("[]", "it is no JSON object"),
            ("{}", "it has no `gpus_per_node`, nor `vcpus_per_node` for nodes without GPUs"),
            (
                r#"{"gpus_per_node":8,"vcpus_per_node":8}"#,
                "it has `gpus_per_node` and `vcpus_per_node`; one of both is meant",
            ),
            (r#"{"gpus_per_node":0}"#, "`gpus_per_node` of the instance is 0; a whole number from 1 to 1024 is meant"),
            (r#"{"gpus_per_node":8}"#, "it has no `alpha`, the price of a slot left free on a partly used node"),
            (r#"{"gpus_per_node":8,"alpha":-1}"#, "its `alpha` is -1; a number from 0 to 1000000 is meant"),
            (r#"{"gpus_per_node":8,"alpha":0}"#, "it has no `nodes`"),
            (r#"{"gpus_per_node":8,"alpha":0,"nodes":3}"#, "its `nodes` are no list"),
            (&with("7", ""), "number 1 of its `nodes` is no object"),
            (&with(r#"{"used":0}"#, ""), "node number 1 has no `id`, a whole number or a text"),
            (&with(r#"{"id":1,"used":0},{"id":"1","used":0}"#, ""), "there are two nodes `1`"),
            (&with(r#"{"id":1}"#, ""), "node `1` has no `used`"),
            (&with(r#"{"id":1,"used":9}"#, ""), "`used` of node `1` is 9; a whole number from 0 to 8 is meant"),
            (
                &with("", r#"{"id":1,"gpus":1.5,"priority":1}"#),
                "`gpus` of job `1` is 1.5; a whole number from 1 to 65536 is meant",
            ),
            (
                &with("", r#"{"id":1,"gpus":1,"priority":-4}"#),
                "`priority` of job `1` is -4; a whole number from 0 to 1000000 is meant",
            ),
            (
                &with("", r#"{"id":1,"gpus":12,"priority":1}"#),
                "job `1` needs 12 GPUs and a node has 8: a job of several nodes takes whole ones, such as 16 (2 nodes)",
            ),
        ] {
            assert_eq!(mistake(text), want);
        }
        assert!(mistake("{").starts_with("EOF while parsing"));
    }
}
