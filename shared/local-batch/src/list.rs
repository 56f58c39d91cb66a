//! ListJobs: by queue or array, by status or one filter, newest first, in pages.

use osprey_model::event::BatchStatus;
use rusqlite::params_from_iter;
use rusqlite::types::Value as Sql;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::arn::name_of;
use crate::batch::LocalBatch;
use crate::change::Change;
use crate::error::BatchError;
use crate::job::{JobRow, all_statuses};
use crate::schedule::vcpus;

/// Most jobs of a page that is asked for by status.
pub const PAGE_MAX: i64 = 1_000;
/// Most jobs of a page that is asked for by a filter.
pub const FILTERED_PAGE_MAX: i64 = 100;

/// What to list. Exactly one of queue and array is needed; without status and filter, running jobs are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListJobsRequest {
    /// Name or ARN of a queue.
    pub job_queue: Option<String>,
    /// Id of an array or of a multi-node job, to list its children or its nodes.
    pub array_job_id: Option<String>,
    /// Status, in the API's word; ignored with a filter other than SHARE_IDENTIFIER.
    pub job_status: Option<String>,
    /// At most one filter.
    pub filters: Vec<ListFilter>,
    /// Most jobs of a page: at most 1,000, with a filter 100, which are the defaults too.
    pub max_results: Option<i64>,
    /// Token of the page before.
    pub next_token: Option<String>,
}

/// One filter of ListJobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// JOB_NAME, JOB_DEFINITION, BEFORE_CREATED_AT, AFTER_CREATED_AT (milliseconds since 1970), SHARE_IDENTIFIER.
    pub name: String,
    /// Values, any of which may match; names match in any letter case, and `*` at the end matches any rest.
    pub values: Vec<String>,
}

/// A page of jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobList {
    /// Members are those of `JobSummary` in Batch's API.
    pub job_summary_list: Vec<Value>,
    /// Token of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_token: Option<String>,
}

/// A condition in SQL and its parameters.
#[derive(Default)]
struct Condition {
    terms: Vec<String>,
    parameters: Vec<Sql>,
}

impl Condition {
    fn and(&mut self, term: impl Into<String>, parameter: impl Into<Sql>) {
        self.terms.push(term.into());
        self.parameters.push(parameter.into());
    }

    fn any(&mut self, alternatives: Vec<(&str, Sql)>) {
        let terms: Vec<&str> = alternatives.iter().map(|(term, _)| *term).collect();
        self.terms.push(format!("({})", terms.join(" OR ")));
        self.parameters.extend(alternatives.into_iter().map(|(_, parameter)| parameter));
    }
}

impl LocalBatch {
    /// Lists jobs, newest first. Filters don't see children of arrays.
    ///
    /// # Errors
    /// A ClientException when not exactly one of queue and array is given, the queue is unknown, a status, filter or
    /// token is none, or a page is too large.
    pub fn list_jobs(&self, request: &ListJobsRequest) -> Result<JobList, BatchError> {
        let page = page_size(request)?;
        self.view(|change| {
            let mut condition = change.place(request)?;
            status_and_filter(request, &mut condition)?;
            if let Some(token) = &request.next_token {
                condition.and("seq < ?", parse_token(token)?);
            }
            let rest = format!("WHERE {} ORDER BY seq DESC LIMIT {}", condition.terms.join(" AND "), page + 1);
            let mut jobs = JobRow::select(change.db, &rest, params_from_iter(condition.parameters))?;
            let more = jobs.len() > usize::try_from(page).unwrap_or(usize::MAX);
            jobs.truncate(usize::try_from(page).unwrap_or(usize::MAX));
            let next_token = jobs.last().filter(|_| more).map(|job| format!("1-{}", job.seq));
            let summaries = jobs.iter().map(|job| change.summary(job)).collect::<rusqlite::Result<_>>()?;
            Ok(JobList { job_summary_list: summaries, next_token })
        })
    }
}

fn page_size(request: &ListJobsRequest) -> Result<i64, BatchError> {
    if request.filters.len() > 1 {
        return Err(BatchError::client("filters must have at most 1 entry"));
    }
    let most = if request.filters.is_empty() { PAGE_MAX } else { FILTERED_PAGE_MAX };
    match request.max_results {
        None => Ok(most),
        Some(n) if n >= 1 => Ok(n.min(most)),
        Some(n) => Err(BatchError::client(format!("maxResults must be at least 1, got {n}"))),
    }
}

fn parse_token(token: &str) -> Result<i64, BatchError> {
    let seq = token.strip_prefix("1-").and_then(|rest| rest.parse().ok());
    seq.ok_or_else(|| BatchError::client("nextToken is invalid"))
}

fn status_and_filter(request: &ListJobsRequest, condition: &mut Condition) -> Result<(), BatchError> {
    let filter = request.filters.first();
    if let Some(filter) = filter {
        // Children of arrays are listed by their array only.
        condition.terms.push("parent IS NULL".to_owned());
        filter_terms(filter, condition)?;
    }
    if filter.is_none_or(|filter| filter.name == "SHARE_IDENTIFIER") {
        let asked = request.job_status.as_deref().unwrap_or(BatchStatus::Running.as_str());
        if !all_statuses().iter().any(|status| status.as_str() == asked) {
            return Err(BatchError::client(format!("jobStatus must be one of the job states, got {asked}")));
        }
        condition.and("status = ?", asked.to_owned());
    }
    Ok(())
}

fn filter_terms(filter: &ListFilter, condition: &mut Condition) -> Result<(), BatchError> {
    if filter.values.is_empty() {
        return Err(BatchError::client(format!("filter {} must have a value", filter.name)));
    }
    let first = filter.values.first().map(String::as_str).unwrap_or_default();
    let time = || first.parse::<i64>().map_err(|_| BatchError::client(format!("{} must be milliseconds", filter.name)));
    match filter.name.as_str() {
        "JOB_NAME" => {
            condition.any(filter.values.iter().map(|value| pattern("name_lower", &value.to_lowercase())).collect());
        }
        "JOB_DEFINITION" => condition.any(filter.values.iter().map(|value| definition(value)).collect()),
        "SHARE_IDENTIFIER" => condition.any(filter.values.iter().map(|value| pattern("share", value)).collect()),
        "BEFORE_CREATED_AT" => condition.and("created_at < ?", time()?),
        "AFTER_CREATED_AT" => condition.and("created_at > ?", time()?),
        other => return Err(BatchError::client(format!("filter name {other} is not valid"))),
    }
    Ok(())
}

/// A whole value, or with `*` at its end a beginning.
fn pattern(column: &'static str, value: &str) -> (&'static str, Sql) {
    let (whole, beginning) = match column {
        "share" => ("share = ?", "share GLOB ?"),
        _ => ("name_lower = ?", "name_lower GLOB ?"),
    };
    match value.strip_suffix('*') {
        Some(prefix) => (beginning, Sql::Text(format!("{}*", glob_escaped(prefix)))),
        None => (whole, Sql::Text(value.to_owned())),
    }
}

/// A definition by ARN or `name:revision`, by name (every revision), or by the beginning of its name.
fn definition(value: &str) -> (&'static str, Sql) {
    let name = name_of(value);
    let glob = match name.strip_suffix('*') {
        Some(prefix) => format!("*:job-definition/{}*", glob_escaped(prefix)),
        None if name.contains(':') => format!("*:job-definition/{}", glob_escaped(name)),
        None => format!("*:job-definition/{}:*", glob_escaped(name)),
    };
    ("definition GLOB ?", Sql::Text(glob))
}

fn glob_escaped(text: &str) -> String {
    text.chars().map(|c| if "*?[".contains(c) { format!("[{c}]") } else { c.to_string() }).collect()
}

impl Change<'_> {
    fn place(&self, request: &ListJobsRequest) -> Result<Condition, BatchError> {
        let mut condition = Condition::default();
        match (&request.job_queue, &request.array_job_id) {
            (Some(queue), None) => {
                let known = self.queue(name_of(queue))?;
                let known = known.ok_or_else(|| BatchError::client(format!("JobQueue {queue} not found.")))?;
                condition.and("queue = ?", known.job_queue_name);
                condition.terms.push("parent IS NULL".to_owned());
            }
            (None, Some(array)) if request.filters.is_empty() => {
                condition.and("parent = ?", name_of(array).to_owned());
            }
            (None, Some(_)) => return Err(BatchError::client("filters can't be used with arrayJobId")),
            _ => return Err(BatchError::client("Exactly one of jobQueue and arrayJobId must be specified")),
        }
        Ok(condition)
    }

    fn summary(&self, job: &JobRow) -> rusqlite::Result<Value> {
        let mut summary = Map::new();
        let mut put = |key: &str, value: Value| {
            if !value.is_null() {
                summary.insert(key.to_owned(), value);
            }
        };
        put("jobArn", json!(self.arns().job(&job.id)));
        put("jobId", json!(job.id));
        put("jobName", json!(job.name));
        put("createdAt", json!(job.created_at));
        put("status", json!(job.status.as_str()));
        put("statusReason", json!(job.status_reason));
        put("startedAt", json!(job.started_at));
        put("stoppedAt", json!(job.stopped_at));
        if let Some(attempt) = self.attempts_of(job)?.last() {
            put("scheduledAt", json!(attempt.placed_at));
            let mut container = Map::new();
            if let Some(code) = attempt.exit_code {
                container.insert("exitCode".to_owned(), json!(code));
            }
            if let Some(reason) = &attempt.reason {
                container.insert("reason".to_owned(), json!(reason));
            }
            put("container", Value::Object(container));
        }
        put("arrayProperties", json!(self.array_detail(job)?));
        put("nodeProperties", node_summary(job));
        put("jobDefinition", json!(job.definition));
        put("shareIdentifier", json!(job.share));
        if job.size.is_none() {
            put("capacityUsage", json!([{"capacityUnit": "VCPU", "quantity": vcpus(job.vcpus_milli)}]));
        }
        put("isCancelled", json!(job.cancelled));
        put("isTerminated", json!(job.terminated));
        Ok(Value::Object(summary))
    }
}

fn node_summary(job: &JobRow) -> Value {
    match (job.nodes, job.node) {
        (None, _) => Value::Null,
        (Some(nodes), None) => json!({"numNodes": nodes, "isMainNode": false}),
        (Some(nodes), Some(node)) => json!({"numNodes": nodes, "isMainNode": job.is_main_node(), "nodeIndex": node}),
    }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
