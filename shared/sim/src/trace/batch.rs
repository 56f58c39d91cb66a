//! What AWS Batch says of jobs: the output of `aws batch describe-jobs`, and of `aws batch list-jobs`.
//!
//! A file may hold several such documents one after the other. A job is submitted at its `createdAt` and runs from its
//! `startedAt` to its `stoppedAt`; a bad one is told by its place in the file, from 1.

use osprey_model::metadata::Metadata;
use osprey_model::request::SubmitJobRequest;
use serde_json::{Value, json};

use super::{BadLine, Entry, Trace};

/// Reads what Batch says.
///
/// # Errors
/// When the text is no JSON, or has neither jobs nor a list of them.
pub fn read(text: &str) -> Result<Trace, String> {
    let mut trace = Trace::default();
    let mut number = 0;
    let mut listed = 0_usize;
    let documents = serde_json::Deserializer::from_str(text.trim_start_matches('\u{feff}')).into_iter::<Value>();
    for document in documents {
        let document = document.map_err(|fault| format!("it is no JSON: {fault}"))?;
        let jobs = ["jobs", "jobSummaryList"].iter().find_map(|name| Some((*name, document.get(name)?.as_array()?)));
        let (name, jobs) = jobs.ok_or("it has neither `jobs` nor `jobSummaryList`")?;
        for job in jobs {
            number += 1;
            let is_listed = name == "jobSummaryList";
            match entry(number, job, is_listed) {
                Ok(entry) => {
                    listed += usize::from(is_listed);
                    trace.entries.push(entry);
                }
                Err(message) => trace.bad.push(BadLine { line: number, message }),
            }
        }
    }
    if listed > 0 {
        let note = "`list-jobs` says nothing of GPUs and tags: each node of a job counts as one GPU; `describe-jobs` says more";
        trace.notes.push(note.to_owned());
    }
    Ok(trace)
}

fn entry(line: u64, job: &Value, is_listed: bool) -> Result<Entry, String> {
    let text = |name: &str| job.get(name).and_then(Value::as_str);
    let time = |name: &str| job.get(name).and_then(Value::as_u64).filter(|ms| *ms <= TIME_MAX_MS);
    let id = text("jobId").or_else(|| text("jobArn")).filter(|id| !id.is_empty()).ok_or("it has no `jobId`")?;
    if let Some(size) = job.pointer("/arrayProperties/size").and_then(Value::as_u64)
        && job.pointer("/arrayProperties/index").is_none()
    {
        return Err(format!("`{id}` is an array of {size}; describe its children, `{id}:0` and so on"));
    }
    let status = text("status").unwrap_or("unknown");
    let created = time("createdAt").ok_or_else(|| format!("`{id}` has no `createdAt`"))?;
    let started = time("startedAt").ok_or_else(|| format!("`{id}` never ran; its status is {status}"))?;
    let stopped = time("stoppedAt").ok_or_else(|| format!("`{id}` hasn't ended; its status is {status}"))?;
    let duration_ms = stopped.checked_sub(started).ok_or_else(|| format!("`{id}` ended before it started"))?;
    let nodes = job.pointer("/nodeProperties/numNodes").and_then(Value::as_u64).unwrap_or(1);
    let gpus = if is_listed { nodes } else { gpus(job, nodes) };
    let gpus = u32::try_from(gpus).ok().filter(|gpus| *gpus > 0).ok_or_else(|| format!("`{id}` holds no GPU"))?;
    let priority = job.get("schedulingPriority").and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
    let metadata = metadata(job).map_err(|message| format!("`{id}`: {message}"))?;
    Ok(Entry {
        line,
        id: id.to_owned(),
        submit_ms: created,
        duration_ms,
        gpus,
        metadata,
        priority: priority.filter(|number| *number <= 9_999),
        ..Entry::default()
    })
}

/// The latest time: Unix milliseconds of this century.
const TIME_MAX_MS: u64 = (1 << 32) * 1_000;

/// GPUs of all nodes.
fn gpus(job: &Value, nodes: u64) -> u64 {
    let ranges = job.pointer("/nodeProperties/nodeRangeProperties").and_then(Value::as_array);
    match ranges {
        None => containers(job).iter().map(|container| gpus_of(container)).sum(),
        Some(ranges) => ranges
            .iter()
            .map(|range| {
                let each: u64 = containers(range).iter().map(|container| gpus_of(container)).sum();
                each.saturating_mul(width(range.get("targetNodes").and_then(Value::as_str).unwrap_or(":"), nodes))
            })
            .fold(0, u64::saturating_add),
    }
}

/// Containers of a job or of a range of nodes, on ECS or EKS.
fn containers(of: &Value) -> Vec<&Value> {
    let lists = ["/ecsProperties/taskProperties/0/containers", "/eksProperties/podProperties/containers"];
    let listed = lists.iter().find_map(|list| of.pointer(list).and_then(Value::as_array));
    match listed {
        Some(containers) => containers.iter().collect(),
        None => of.get("container").into_iter().collect(),
    }
}

fn gpus_of(container: &Value) -> u64 {
    let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
    let required = container.get("resourceRequirements").and_then(Value::as_array).into_iter().flatten();
    let is_gpu = |required: &&Value| required.get("type").and_then(Value::as_str) == Some("GPU");
    let on_ecs = required.filter(is_gpu).filter_map(|required| number(required.get("value")?)).sum();
    let on_eks = ["limits", "requests"].iter().find_map(|kind| {
        let resources = container.get("resources")?.get(kind)?;
        number(resources.get("nvidia.com/gpu")?)
    });
    on_eks.unwrap_or(on_ecs)
}

/// Nodes of a range such as `0:3`, `1:` or `2`; those at the end are inclusive.
fn width(range: &str, nodes: u64) -> u64 {
    let last = nodes.saturating_sub(1);
    let (from, to) = range.split_once(':').unwrap_or((range, range));
    let from = from.trim().parse().unwrap_or(0);
    let to = to.trim().parse().unwrap_or(last).min(last);
    (to + 1).saturating_sub(from)
}

/// What tags and variables say.
fn metadata(job: &Value) -> Result<Metadata, String> {
    let mut request = json!({ "jobName": "described", "jobDefinition": "described" });
    if let (Some(tags), Some(request)) = (job.get("tags").filter(|tags| tags.is_object()), request.as_object_mut()) {
        request.insert("tags".to_owned(), tags.clone());
    }
    let variables = containers(job).first().and_then(|container| container.get("environment"));
    if let (Some(variables), Some(request)) = (variables.filter(|list| list.is_array()), request.as_object_mut()) {
        request.insert("containerOverrides".to_owned(), json!({ "environment": variables }));
    }
    // What can't be read as tags and variables says nothing that anybody could use.
    let Ok(request) = serde_json::from_value::<SubmitJobRequest>(request) else { return Ok(Metadata::default()) };
    let read = Metadata::read(&request, None);
    let told = |refusals: Vec<osprey_model::reason::Refusal>| refusals.into_iter().map(|refusal| refusal.message);
    Ok(read.map_err(|refusals| told(refusals).collect::<Vec<_>>().join("; "))?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `aws batch describe-jobs` prints it, cut to what matters.
    const DESCRIBED: &str = r#"{ "jobs": [ {
        "jobArn": "arn:aws:batch:eu-west-1:123456789012:job/7d3", "jobName": "train", "jobId": "7d3",
        "jobQueue": "arn:aws:batch:eu-west-1:123456789012:job-queue/osprey-p4-production", "status": "SUCCEEDED",
        "schedulingPriority": 950, "shareIdentifier": "production",
        "attempts": [ { "startedAt": 1764000060000, "stoppedAt": 1764003660000 } ],
        "createdAt": 1764000000000, "startedAt": 1764000060000, "stoppedAt": 1764003660000,
        "container": { "environment": [ { "name": "OSPREY_WORKLOAD", "value": "training" } ],
                       "resourceRequirements": [ { "value": "8", "type": "GPU" }, { "value": "96", "type": "VCPU" } ] },
        "tags": { "team": "vision", "environment": "production" } } ] }"#;

    fn described(change: &dyn Fn(&mut Value)) -> Result<Entry, String> {
        let mut document: Value = serde_json::from_str(DESCRIBED).unwrap();
        change(&mut document["jobs"][0]);
        let mut trace = read(&document.to_string()).unwrap();
        trace.entries.pop().ok_or_else(|| trace.bad.remove(0).message)
    }

    #[test]
    fn a_described_job_has_its_times_gpus_tags_and_number() {
        let entry = described(&|_| {}).unwrap();
        assert_eq!((entry.line, entry.id.as_str(), entry.submit_ms), (1, "7d3", 1_764_000_000_000));
        assert_eq!((entry.duration_ms, entry.gpus, entry.priority), (3_600_000, 8, Some(950)));
        assert_eq!(entry.metadata.team.as_deref(), Some("vision"));
        assert_eq!(entry.metadata.workload.as_deref(), Some("training"));
    }

    #[test]
    fn gpus_are_summed_over_nodes_and_containers() {
        let gpu = |count: u32| json!([{ "type": "GPU", "value": count.to_string() }]);
        let nodes = described(&|job| {
            let container = |count| json!({ "resourceRequirements": gpu(count) });
            job["nodeProperties"] = json!({ "numNodes": 4, "nodeRangeProperties": [
                { "targetNodes": "0:0", "container": container(4) }, { "targetNodes": "1:", "container": container(8) }] });
        });
        assert_eq!(nodes.unwrap().gpus, 28);
        let task = described(&|job| {
            let containers = json!([{ "resourceRequirements": gpu(2) }, { "resourceRequirements": gpu(1) }]);
            job["ecsProperties"] = json!({ "taskProperties": [{ "containers": containers }] });
        });
        assert_eq!(task.unwrap().gpus, 3);
        let pod = described(&|job| {
            let containers = json!([{ "resources": { "limits": { "nvidia.com/gpu": "2" } } }]);
            job["eksProperties"] = json!({ "podProperties": { "containers": containers } });
        });
        assert_eq!(pod.unwrap().gpus, 2);
        assert_eq!([width("0:1", 4), width(":1", 4), width("2", 4), width("1:9", 4), width("7:", 4)], [2, 2, 1, 3, 0]);
    }

    #[test]
    fn jobs_that_say_too_little_are_told() {
        let fault = |change: &dyn Fn(&mut Value)| described(change).unwrap_err();
        let without = |name: &'static str| move |job: &mut Value| drop(job.as_object_mut().unwrap().remove(name));
        assert_eq!(fault(&without("startedAt")), "`7d3` never ran; its status is SUCCEEDED");
        assert_eq!(fault(&without("stoppedAt")), "`7d3` hasn't ended; its status is SUCCEEDED");
        assert_eq!(fault(&without("container")), "`7d3` holds no GPU");
        assert_eq!(fault(&|job| job["stoppedAt"] = json!(5)), "`7d3` ended before it started");
        let array = "`7d3` is an array of 9; describe its children, `7d3:0` and so on";
        assert_eq!(fault(&|job| job["arrayProperties"] = json!({ "size": 9 })), array);
    }

    #[test]
    fn lists_and_several_documents_are_read_and_anything_else_is_not() {
        let list = r#"{"jobSummaryList":[{"jobId":"a","createdAt":1,"startedAt":2,"stoppedAt":5},{"jobId":"b"}]}"#;
        let trace = read(&format!("{list}\n{DESCRIBED}")).unwrap();
        assert_eq!(trace.entries.iter().map(|entry| (entry.line, entry.gpus)).collect::<Vec<_>>(), [(1, 1), (3, 8)]);
        assert_eq!((trace.bad.len(), trace.notes.len()), (1, 1));
        assert_eq!(read("{}").unwrap_err(), "it has neither `jobs` nor `jobSummaryList`");
        assert!(read("{").unwrap_err().starts_with("it is no JSON: "));
    }
}
