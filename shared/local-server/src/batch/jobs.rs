//! Jobs: submitted, seen, stopped.

use osprey_local_batch::list::{ListFilter, ListJobsRequest};
use osprey_local_batch::{BatchError, ErrorCode};
use osprey_model::request::SubmitJobRequest;
use serde_json::{Value, json};

use super::{Input, Members as _};
use crate::failure::Failure;
use crate::service::Service;

/// Most jobs of one bulk call.
const BULK_MAX: usize = 50;
/// Longest reason, in characters.
const REASON_CHARACTERS_MAX: usize = 1_024;

pub fn submit(service: &Service, input: &Input) -> Result<Value, Failure> {
    let request: SubmitJobRequest = serde_json::from_value(Value::Object(input.clone()))?;
    Ok(json!(service.batch().submit_job(&request)?))
}

pub fn describe(service: &Service, input: &Input) -> Result<Value, Failure> {
    Ok(json!({ "jobs": service.batch().describe_jobs(&input.texts("jobs"))? }))
}

pub fn list(service: &Service, input: &Input) -> Result<Value, Failure> {
    if input.contains_key("arrayJobId") && input.contains_key("multiNodeJobId") {
        return Err(Failure::client("Exactly one of jobQueue, arrayJobId and multiNodeJobId must be specified"));
    }
    let owned = |name: &str| input.text(name).map(str::to_owned);
    let filters = input.get("filters").and_then(Value::as_array);
    let request = ListJobsRequest {
        job_queue: owned("jobQueue"),
        array_job_id: owned("arrayJobId").or_else(|| owned("multiNodeJobId")),
        job_status: owned("jobStatus"),
        filters: filters.into_iter().flatten().filter_map(Value::as_object).map(filter).collect(),
        max_results: input.number("maxResults"),
        next_token: owned("nextToken"),
    };
    Ok(json!(service.batch().list_jobs(&request)?))
}

fn filter(given: &Input) -> ListFilter {
    ListFilter { name: given.text("name").unwrap_or_default().to_owned(), values: given.texts("values") }
}

pub fn cancel(service: &Service, input: &Input) -> Result<Value, Failure> {
    one(input, |id, reason| service.batch().cancel_job(id, reason))
}

pub fn terminate(service: &Service, input: &Input) -> Result<Value, Failure> {
    one(input, |id, reason| service.batch().terminate_job(id, reason))
}

pub fn cancel_many(service: &Service, input: &Input) -> Result<Value, Failure> {
    many(input, |id, reason| service.batch().cancel_job(id, reason))
}

pub fn terminate_many(service: &Service, input: &Input) -> Result<Value, Failure> {
    many(input, |id, reason| service.batch().terminate_job(id, reason))
}

fn one(input: &Input, stop: impl FnOnce(&str, &str) -> Result<(), BatchError>) -> Result<Value, Failure> {
    let id = input.text("jobId").filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| Failure::client("jobId must be specified."))?;
    stop(id, input.text("reason").unwrap_or_default())?;
    Ok(json!({}))
}

/// The bulk calls answer for each job; an unknown id counts as done, as the API reference says.
fn many(input: &Input, stop: impl Fn(&str, &str) -> Result<(), BatchError>) -> Result<Value, Failure> {
    let (ids, reason) = (input.texts("jobs"), input.text("reason").unwrap_or_default());
    if !(1..=BULK_MAX).contains(&ids.len()) {
        return Err(Failure::client(format!("jobs must have 1 to {BULK_MAX} entries, got {}", ids.len())));
    }
    if reason.is_empty() || reason.chars().count() > REASON_CHARACTERS_MAX {
        return Err(Failure::client(format!("reason must have 1 to {REASON_CHARACTERS_MAX} characters")));
    }
    let (mut successful, mut errors) = (Vec::new(), Vec::new());
    for id in ids {
        match stop(&id, reason) {
            Err(error) if error.message != format!("Job {id} not found.") => errors.push(detail(&id, &error)),
            _ => successful.push(id),
        }
    }
    Ok(json!({ "successful": successful, "errors": errors }))
}

fn detail(id: &str, error: &BatchError) -> Value {
    let code = match error.code {
        ErrorCode::ClientException => "ClientException",
        ErrorCode::ServerException => "ServerException",
        ErrorCode::TooManyRequestsException => "ThrottlingException",
    };
    json!({ "job": id, "code": code, "message": error.message })
}
