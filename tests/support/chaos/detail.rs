//! Batch's words: the detail of a job as an answer, and as the body of an event.

use std::fmt::Write as _;

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
        container: Some(ContainerDetail { container_instance_arn: instance(job, unit), ..container(unit) }),
        array_properties: array(job, part),
        tags: job.tags.clone(),
        job_id: id,
        ..JobDetail::default()
    }
}

/// The instance that it runs on.
fn instance(job: &BatchJob, unit: &Unit) -> Option<String> {
    let pool = job.queue.strip_prefix("osprey-")?.split('-').next()?;
    Some(format!("arn:aws:ecs:us-east-1:123456789012:container-instance/osprey/{pool}-{}", unit.node?))
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

/// The body of an event, as EventBridge puts it into the queue. Put together by hand: there are hundreds in a run.
#[must_use]
pub fn event(job: &BatchJob, part: Option<usize>, number: u64) -> String {
    let unit = job.unit(part);
    let id = id_of(job, part);
    let mut body = String::with_capacity(1_400);
    body.push_str(r#"{"version":"0","id":"event-"#);
    push_number(&mut body, number);
    body.push_str(concat!(
        r#"","detail-type":"Batch Job State Change","source":"aws.batch","account":"123456789012","#,
        r#""time":"2026-11-30T09:05:26Z","region":"us-east-1","#,
        r#""resources":["arn:aws:batch:us-east-1:123456789012:job/"#
    ));
    body.push_str(&id);
    body.push_str(r#""],"detail":{"jobArn":"arn:aws:batch:us-east-1:123456789012:job/"#);
    body.push_str(&id);
    body.push_str(r#"","jobName":""#);
    body.push_str(&job.name);
    body.push_str(r#"","jobId":""#);
    body.push_str(&id);
    body.push_str(r#"","jobQueue":"arn:aws:batch:us-east-1:123456789012:job-queue/"#);
    body.push_str(&job.queue);
    body.push_str(r#"","status":""#);
    body.push_str(unit.status.as_str());
    body.push_str(r#"","createdAt":"#);
    push_number(&mut body, job.created_at);
    body.push(',');
    number_member(&mut body, "startedAt", unit.started_at);
    number_member(&mut body, "stoppedAt", unit.stopped_at);
    push_end(&mut body, unit);
    push_array(&mut body, job, part);
    body.push_str(r#""container":"#);
    push_container(&mut body, unit, instance(job, unit).as_deref());
    body.push_str(r#","tags":{"#);
    for (at, (name, value)) in job.tags.iter().enumerate() {
        if at > 0 {
            body.push(',');
        }
        push_text(&mut body, name);
        body.push(':');
        push_text(&mut body, value);
    }
    body.push_str("}}}");
    body
}

fn push_end(body: &mut String, unit: &Unit) {
    let Some(told) = &unit.told else { return };
    body.push_str(r#""statusReason":"#);
    push_text(body, &told.status_reason);
    body.push(',');
    if unit.started_at.is_some() {
        body.push_str(r#""attempts":[{"container":"#);
        push_container(body, unit, None);
        body.push_str(r#","statusReason":"#);
        push_text(body, &told.status_reason);
        body.push_str("}],");
    }
}

fn number_member(body: &mut String, name: &str, value: Option<i64>) {
    if let Some(value) = value {
        body.push('"');
        body.push_str(name);
        body.push_str("\":");
        push_number(body, value);
        body.push(',');
    }
}

fn push_container(body: &mut String, unit: &Unit, instance: Option<&str>) {
    let told = unit.told.as_ref();
    body.push('{');
    number_member(body, "exitCode", told.and_then(|told| told.exit_code));
    if let Some(reason) = told.and_then(|told| told.container_reason) {
        body.push_str(r#""reason":"#);
        push_text(body, reason);
        body.push(',');
    }
    if let Some(instance) = instance {
        body.push_str(r#""containerInstanceArn":"#);
        push_text(body, instance);
        body.push(',');
    }
    body.push_str(r#""image":"train:1"}"#);
}

fn push_array(body: &mut String, job: &BatchJob, part: Option<usize>) {
    if job.children.is_empty() {
        return;
    }
    body.push_str(r#""arrayProperties":{"#);
    if let Some(child) = part {
        body.push_str(r#""index":"#);
        push_number(body, child);
        body.push_str("},");
        return;
    }
    let failed = job.children.iter().filter(|child| child.status == BatchStatus::Failed).count();
    body.push_str(r#""size":"#);
    push_number(body, job.children.len());
    body.push_str(r#","statusSummary":{"FAILED":"#);
    push_number(body, failed);
    body.push_str("}},");
}

fn push_number(body: &mut String, number: impl std::fmt::Display) {
    // Writing into a text can't fail.
    let _ = write!(body, "{number}");
}

/// A text as JSON. Nearly none holds anything that must be escaped.
fn push_text(body: &mut String, text: &str) {
    if text.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        body.push_str(&serde_json::to_string(text).unwrap_or_default());
        return;
    }
    body.push('"');
    body.push_str(text);
    body.push('"');
}
