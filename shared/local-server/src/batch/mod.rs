//! Batch's operations, each at its path.

mod definitions;
mod environments;
mod instances;
mod jobs;
mod kept;
mod policies;
mod queues;
mod snapshot;
mod tags;

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::auth;
use crate::failure::{Failure, Protocol};
use crate::http::Call;
use crate::page::Page;
use crate::service::Service;
use crate::shape::Shapes;

static SHAPES: LazyLock<Shapes> = LazyLock::new(|| Shapes::parse(Protocol::Batch, include_str!("shapes.txt")));

/// A request that fits its shape.
pub(crate) type Input = Map<String, Value>;

type Handler = fn(&Service, &Input) -> Result<Value, Failure>;

/// Path and shape of each operation that is a POST.
const OPERATIONS: [(&str, &str, Handler); 21] = [
    ("/v1/submitjob", "SubmitJobRequest", jobs::submit),
    ("/v1/describejobs", "DescribeJobsRequest", jobs::describe),
    ("/v1/listjobs", "ListJobsRequest", jobs::list),
    ("/v1/canceljob", "CancelJobRequest", jobs::cancel),
    ("/v1/terminatejob", "TerminateJobRequest", jobs::terminate),
    ("/v1/canceljobs", "CancelJobsRequest", jobs::cancel_many),
    ("/v1/terminatejobs", "TerminateJobsRequest", jobs::terminate_many),
    ("/v1/registerjobdefinition", "RegisterJobDefinitionRequest", definitions::register),
    ("/v1/describejobdefinitions", "DescribeJobDefinitionsRequest", definitions::describe),
    ("/v1/deregisterjobdefinition", "DeregisterJobDefinitionRequest", definitions::deregister),
    ("/v1/createjobqueue", "CreateJobQueueRequest", queues::create),
    ("/v1/describejobqueues", "DescribeJobQueuesRequest", queues::describe),
    ("/v1/updatejobqueue", "UpdateJobQueueRequest", queues::update),
    ("/v1/createcomputeenvironment", "CreateComputeEnvironmentRequest", environments::create),
    ("/v1/describecomputeenvironments", "DescribeComputeEnvironmentsRequest", environments::describe),
    ("/v1/updatecomputeenvironment", "UpdateComputeEnvironmentRequest", environments::update),
    ("/v1/createschedulingpolicy", "CreateSchedulingPolicyRequest", policies::create),
    ("/v1/describeschedulingpolicies", "DescribeSchedulingPoliciesRequest", policies::describe),
    ("/v1/listschedulingpolicies", "ListSchedulingPoliciesRequest", policies::list),
    ("/v1/updateschedulingpolicy", "UpdateSchedulingPolicyRequest", policies::update),
    ("/v1/getjobqueuesnapshot", "GetJobQueueSnapshotRequest", snapshot::get),
];

/// Operations that AWS has and this doesn't, by the last part of their paths.
const UNSUPPORTED: [&str; 24] = [
    "DeleteJobQueue",
    "DeleteComputeEnvironment",
    "DeleteSchedulingPolicy",
    "CreateConsumableResource",
    "DeleteConsumableResource",
    "DescribeConsumableResource",
    "ListConsumableResources",
    "ListJobsByConsumableResource",
    "UpdateConsumableResource",
    "CreateQuotaShare",
    "DeleteQuotaShare",
    "DescribeQuotaShare",
    "ListQuotaShares",
    "UpdateQuotaShare",
    "CreateServiceEnvironment",
    "DeleteServiceEnvironment",
    "DescribeServiceEnvironments",
    "UpdateServiceEnvironment",
    "DescribeServiceJob",
    "ListServiceJobs",
    "SubmitServiceJob",
    "TerminateServiceJob",
    "TerminateServiceJobs",
    "UpdateServiceJob",
];

/// Answers a call whose signature was right.
///
/// # Errors
/// What Batch would answer.
pub fn answer(service: &Service, call: &Call) -> Result<Value, Failure> {
    if let Some(arn) = call.path.strip_prefix("/v1/tags/") {
        return tags::answer(service, call, arn);
    }
    let known = OPERATIONS.iter().find(|(path, ..)| *path == call.path && call.method == "POST");
    let Some((_, shape, handler)) = known else { return Err(unknown(call)) };
    handler(service, &SHAPES.read(shape, &call.body)?)
}

/// Batch's front answers an unknown path or verb as it does a call without a signature.
fn unknown(call: &Call) -> Failure {
    let path = call.path.strip_prefix("/v1/").unwrap_or_default();
    match UNSUPPORTED.iter().find(|name| name.eq_ignore_ascii_case(path)) {
        Some(name) if call.method == "POST" => Failure::unsupported(Protocol::Batch, name),
        _ => auth::missing(Protocol::Batch),
    }
}

/// Reading what was checked against its shape.
pub(crate) trait Members {
    /// A text.
    fn text(&self, name: &str) -> Option<&str>;
    /// A number.
    fn number(&self, name: &str) -> Option<i64>;
    /// A list of texts; empty when there is none.
    fn texts(&self, name: &str) -> Vec<String>;
    /// The page that is asked for.
    fn page(&self) -> Page<'_>;
}

impl Members for Input {
    fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(Value::as_i64)
    }

    fn texts(&self, name: &str) -> Vec<String> {
        let list = self.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    fn page(&self) -> Page<'_> {
        Page { max_results: self.number("maxResults"), token: self.text("nextToken") }
    }
}

/// One of the words that a member may be, read into what it stands for.
pub(crate) fn word<T: Copy>(input: &Input, name: &str, known: &[(&str, T)]) -> Result<Option<T>, Failure> {
    let Some(given) = input.text(name) else { return Ok(None) };
    match known.iter().find(|(word, _)| *word == given) {
        Some((_, meant)) => Ok(Some(*meant)),
        None => {
            let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
            Err(Failure::client(format!("{name} must be one of [{}], got {given}", words.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use osprey_model::definition::JobDefinition;
    use osprey_model::request::SubmitJobRequest;

    use super::*;

    /// Reads a value and writes it again.
    fn through<T: serde::Serialize + serde::de::DeserializeOwned>(value: &Value) -> Value {
        serde_json::to_value(serde_json::from_value::<T>(value.clone()).unwrap()).unwrap()
    }

    #[test]
    fn every_member_of_a_submission_goes_in_and_out() {
        let sample = SHAPES.sample("SubmitJobRequest");
        assert!(sample["containerOverrides"]["resourceRequirements"][0]["value"].is_string(), "{sample}");
        assert_eq!(through::<SubmitJobRequest>(&sample), sample);
    }

    #[test]
    fn every_member_of_a_definition_goes_in_and_out() {
        let sample = SHAPES.sample("RegisterJobDefinitionRequest");
        let mut got = through::<JobDefinition>(&sample);
        got.as_object_mut().unwrap().remove("revision");
        assert_eq!(got, sample);
    }

    #[test]
    fn every_operation_has_its_shape() {
        for (path, shape, _) in OPERATIONS {
            let read = SHAPES.object(shape, Value::Array(Vec::new()));
            let want = "SerializationException: Start of list found where not expected";
            assert_eq!(read.map_err(|error| error.to_string()), Err(want.to_owned()), "{path}");
            let empty = SHAPES.object(shape, Value::String(String::new())).map_err(|error| error.to_string());
            let known = "SerializationException: STRING_VALUE can not be converted to a structure";
            assert_eq!(empty, Err(known.to_owned()), "{path} has no shape");
        }
    }
}
