//! Job queues.

use std::collections::BTreeMap;

use osprey_local_batch::arn::name_of;
use osprey_local_batch::head::{LIMIT_REASONS, LIMIT_SECONDS_MAX, LIMIT_SECONDS_MIN};
use osprey_local_batch::{
    ComputeEnvironmentOrder, JobQueue, JobQueueRequest, JobQueueUpdate, JobStateTimeLimit, State,
};
use serde_json::{Value, json};

use super::{Input, Members as _, kept, word};
use crate::failure::{Failure, Protocol};
use crate::page;
use crate::service::Service;

/// Most queues of a page.
const PAGE_MAX: usize = 100;
/// Most queues of an account and region.
const QUEUES_MAX: usize = 50;
/// Words for whether something takes new work.
pub const STATES: [(&str, State); 2] = [("ENABLED", State::Enabled), ("DISABLED", State::Disabled)];
pub fn create(service: &Service, input: &Input) -> Result<Value, Failure> {
    refuse_services(input)?;
    let name = input.text("jobQueueName").unwrap_or_default();
    let request = JobQueueRequest {
        job_queue_name: name.to_owned(),
        state: word(input, "state", &STATES)?.unwrap_or_default(),
        priority: input.number("priority").unwrap_or_default(),
        scheduling_policy: input.text("schedulingPolicyArn").map(str::to_owned),
        compute_environment_order: order(input).unwrap_or_default(),
        tags: tags(input),
    };
    let limits = limits(input)?;
    if service.batch().describe_job_queues(&[])?.len() >= QUEUES_MAX {
        return Err(Failure::client(format!("At most {QUEUES_MAX} job queues can be created")));
    }
    let arn = service.batch().create_job_queue(&request)?;
    if let Some(limits) = limits {
        service.batch().set_time_limits(name, &limits)?;
    }
    Ok(json!({ "jobQueueName": name, "jobQueueArn": arn }))
}

pub fn update(service: &Service, input: &Input) -> Result<Value, Failure> {
    refuse_services(input)?;
    let asked = input.text("jobQueue").unwrap_or_default();
    let update = JobQueueUpdate {
        state: word(input, "state", &STATES)?,
        priority: input.number("priority"),
        scheduling_policy: input.text("schedulingPolicyArn").map(str::to_owned),
        compute_environment_order: order(input),
    };
    let limits = limits(input)?;
    let arn = service.batch().update_job_queue(asked, &update)?;
    if let Some(limits) = limits {
        service.batch().set_time_limits(&arn, &limits)?;
    }
    Ok(json!({ "jobQueueName": name_of(&arn), "jobQueueArn": arn }))
}

pub fn describe(service: &Service, input: &Input) -> Result<Value, Failure> {
    let all = service.batch().describe_job_queues(&input.texts("jobQueues"))?;
    let (part, next) = page::cut(all, input.page(), PAGE_MAX)?;
    let queues = part.iter().map(seen).collect::<Result<Vec<_>, _>>()?;
    Ok(kept::listed("jobQueues", &queues, next))
}

fn seen(queue: &JobQueue) -> Result<Value, Failure> {
    let mut value = serde_json::to_value(queue)?;
    if let Some(members) = value.as_object_mut() {
        members.insert("statusReason".to_owned(), json!("JobQueue Healthy"));
        members.insert("jobQueueType".to_owned(), json!("ECS"));
    }
    Ok(value)
}

fn refuse_services(input: &Input) -> Result<(), Failure> {
    let kind = input.text("jobQueueType").unwrap_or("ECS");
    if input.contains_key("serviceEnvironmentOrder") || kind == "SAGEMAKER_TRAINING" {
        return Err(Failure::unsupported(Protocol::Batch, "service environments"));
    }
    Ok(())
}

fn order(input: &Input) -> Option<Vec<ComputeEnvironmentOrder>> {
    let list = input.get("computeEnvironmentOrder")?.as_array()?;
    let entry = |entry: &Value| {
        let entry = entry.as_object()?;
        let compute_environment = entry.text("computeEnvironment")?.to_owned();
        Some(ComputeEnvironmentOrder { order: entry.number("order")?, compute_environment })
    };
    list.iter().map(entry).collect()
}

/// The tags of a request.
pub fn tags(input: &Input) -> BTreeMap<String, String> {
    let tags = input.get("tags").and_then(Value::as_object);
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    tags.into_iter().flatten().filter_map(text).collect()
}

/// The time limits of a request, checked before anything is changed.
fn limits(input: &Input) -> Result<Option<Vec<JobStateTimeLimit>>, Failure> {
    let Some(given) = input.get("jobStateTimeLimitActions") else { return Ok(None) };
    given.as_array().into_iter().flatten().filter_map(Value::as_object).try_for_each(check_limit)?;
    Ok(Some(serde_json::from_value(given.clone())?))
}

fn check_limit(limit: &Input) -> Result<(), Failure> {
    let reason = limit.text("reason").unwrap_or_default();
    if !LIMIT_REASONS.contains(&reason) {
        let known = LIMIT_REASONS.join(", ");
        return Err(Failure::client(format!("reason must be one of [{known}], got {reason}")));
    }
    word(limit, "state", &[("RUNNABLE", ())])?;
    word(limit, "action", &[("CANCEL", ())])?;
    let (min, max) = (LIMIT_SECONDS_MIN, LIMIT_SECONDS_MAX);
    match limit.number("maxTimeSeconds").unwrap_or_default() {
        given if (min..=max).contains(&given) => Ok(()),
        given => Err(Failure::client(format!("maxTimeSeconds must be between {min} and {max}, got {given}"))),
    }
}
