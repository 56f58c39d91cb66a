//! Batch's words: the detail of a job as an answer, and as the body of an event.

use osprey_model::event::{ArrayDetail, AttemptDetail, BatchStatus, ContainerDetail, JobDetail};

use super::batch::{BatchJob, Unit};

/// The id of a job or of one of its children.
#[must_use]
pub fn id_of(job: &BatchJob, part: Option<usize>) -> String {
    match part {
        Some(child) => format!("{}:{child}", job.id),
        None => job.id.clone(),
    }
}

/// The detail of a job or of one of its children.
#[must_use]
pub fn detail(job: &BatchJob, part: Option<usize>) -> JobDetail {
    let unit = job.unit(part);
    let id = id_of(job, part);
    let told = unit.told.as_ref();
    JobDetail {
        job_arn: format!("arn:aws:batch:us-east-1:123456789012:job/{id}"),
        job_name: job.name.clone(),
        job_queue: format!("arn:aws:batch:us-east-1:123456789012:job-queue/{}", job.queue),
        status: unit.status,
        status_reason: told.map(|told| told.status_reason.clone()),
        attempts: attempts(unit),
        created_at: Some(job.created_at),
        started_at: unit.started_at,
        stopped_at: unit.stopped_at,
        container: Some(container(unit)),
        array_properties: array(job, part),
        tags: job.tags.clone(),
        job_id: id,
        ..JobDetail::default()
    }
}

fn container(unit: &Unit) -> ContainerDetail {
    let told = unit.told.as_ref();
    ContainerDetail {
        exit_code: told.and_then(|told| told.exit_code),
        reason: told.and_then(|told| told.container_reason.map(str::to_owned)),
        ..ContainerDetail::default()
    }
}

fn attempts(unit: &Unit) -> Vec<AttemptDetail> {
    if unit.started_at.is_none() || unit.told.is_none() {
        return Vec::new();
    }
    vec![AttemptDetail {
        container: container(unit),
        started_at: unit.started_at,
        stopped_at: unit.stopped_at,
        status_reason: unit.told.as_ref().map(|told| told.status_reason.clone()),
    }]
}

fn array(job: &BatchJob, part: Option<usize>) -> Option<ArrayDetail> {
    if job.children.is_empty() {
        return None;
    }
    if let Some(child) = part {
        return Some(ArrayDetail { index: i64::try_from(child).ok(), ..ArrayDetail::default() });
    }
    let mut summary = std::collections::BTreeMap::new();
    for child in &job.children {
        *summary.entry(child.status.as_str().to_owned()).or_insert(0) += 1;
    }
    Some(ArrayDetail { size: i64::try_from(job.children.len()).ok(), index: None, status_summary: summary })
}

/// The body of an event, as EventBridge puts it into the queue.
#[must_use]
pub fn event(job: &BatchJob, part: Option<usize>, number: u64) -> String {
    let unit = job.unit(part);
    let id = id_of(job, part);
    let mut body = String::with_capacity(1_200);
    body.push_str(&format!(
        r#"{{"version":"0","id":"event-{number}","detail-type":"Batch Job State Change","source":"aws.batch","account":"123456789012","time":"2026-11-30T09:05:26Z","region":"us-east-1","resources":["arn:aws:batch:us-east-1:123456789012:job/{id}"],"detail":{{"jobArn":"arn:aws:batch:us-east-1:123456789012:job/{id}","jobName":"{}","jobId":"{id}","jobQueue":"arn:aws:batch:us-east-1:123456789012:job-queue/{}","status":"{}","createdAt":{},"#,
        job.name,
        job.queue,
        unit.status.as_str(),
        job.created_at
    ));
    number_member(&mut body, "startedAt", unit.started_at);
    number_member(&mut body, "stoppedAt", unit.stopped_at);
    let container = container_text(unit);
    if let Some(told) = &unit.told {
        body.push_str(&format!(r#""statusReason":{},"#, text(&told.status_reason)));
    }
    if unit.started_at.is_some() && unit.told.is_some() {
        body.push_str(&format!(r#""attempts":[{{"container":{container}"#));
        if let Some(told) = &unit.told {
            body.push_str(&format!(r#","statusReason":{}"#, text(&told.status_reason)));
        }
        body.push_str("}],");
    }
    body.push_str(&array_text(job, part));
    body.push_str(&format!(r#""container":{container},"tags":{{"#));
    for (at, (name, value)) in job.tags.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        body.push_str(&format!("{comma}{}:{}", text(name), text(value)));
    }
    body.push_str("}}}");
    body
}

fn number_member(body: &mut String, name: &str, value: Option<i64>) {
    if let Some(value) = value {
        body.push_str(&format!(r#""{name}":{value},"#));
    }
}

fn container_text(unit: &Unit) -> String {
    let told = unit.told.as_ref();
    let code = told.and_then(|told| told.exit_code).map(|code| format!(r#""exitCode":{code},"#)).unwrap_or_default();
    let reason = told.and_then(|told| told.container_reason);
    let reason = reason.map(|reason| format!(r#""reason":{},"#, text(reason))).unwrap_or_default();
    format!(r#"{{{code}{reason}"image":"train:1"}}"#)
}

fn array_text(job: &BatchJob, part: Option<usize>) -> String {
    match (job.children.is_empty(), part) {
        (true, _) => String::new(),
        (false, Some(child)) => format!(r#""arrayProperties":{{"index":{child}}},"#),
        (false, None) => {
            let failed = job.children.iter().filter(|child| child.status == BatchStatus::Failed).count();
            let size = job.children.len();
            format!(r#""arrayProperties":{{"size":{size},"statusSummary":{{"FAILED":{failed}}}}},"#)
        }
    }
}

fn text(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}
