//! Jobs: describing, listing, stopping.

use jiff::Timestamp;
use osprey_model::event::JobDetail;
use osprey_model::id::{BatchJobId, QueueName};
use osprey_ports::{CallError, CancelJob, DescribeJobs, JobSummary, ListChildren, ListJobs, TerminateJob};
use serde::Deserialize;

use super::{AwsBatch, call_error, unreadable};
use crate::wire::Answer;

const DESCRIBE: &str = "batch:DescribeJobs";
const LIST: &str = "batch:ListJobs";

#[derive(Deserialize)]
struct Described {
    #[serde(default)]
    jobs: Vec<JobDetail>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    #[serde(default)]
    job_summary_list: Vec<Row>,
    #[serde(default)]
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    job_id: String,
    #[serde(default)]
    job_name: String,
    #[serde(default)]
    created_at: i64,
}

impl From<Row> for JobSummary {
    fn from(row: Row) -> Self {
        let created_at = Timestamp::from_millisecond(row.created_at).unwrap_or_default();
        Self { id: BatchJobId::new(row.job_id), name: row.job_name, created_at }
    }
}

impl DescribeJobs for AwsBatch {
    async fn describe_jobs(&self, ids: &[BatchJobId]) -> Result<Vec<JobDetail>, CallError> {
        // Batch refuses an empty list.
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let answer = Answer::default();
        let ids = ids.iter().map(ToString::to_string).collect();
        let request = self.client.describe_jobs().set_jobs(Some(ids)).customize().interceptor(answer.clone());
        request.send().await.map_err(call_error(DESCRIBE))?;
        let described: Described = answer.read().map_err(unreadable(DESCRIBE))?;
        Ok(described.jobs)
    }
}

impl ListJobs for AwsBatch {
    async fn list_jobs(
        &self,
        queue: &QueueName,
        name: &str,
        created_from: Timestamp,
    ) -> Result<Vec<JobSummary>, CallError> {
        let from = created_from.as_millisecond();
        let by_name = aws_sdk_batch::types::KeyValuesPair::builder().name("JOB_NAME").values(name).build();
        let (mut found, mut token): (Vec<JobSummary>, Option<String>) = (Vec::new(), None);
        loop {
            let answer = Answer::default();
            let request =
                self.client.list_jobs().job_queue(queue.as_str()).filters(by_name.clone()).set_next_token(token.take());
            request.customize().interceptor(answer.clone()).send().await.map_err(call_error(LIST))?;
            let page: Listed = answer.read().map_err(unreadable(LIST))?;
            // Newest first: after one that is too old there are only older ones.
            let reached_older = page.job_summary_list.iter().any(|row| row.created_at < from);
            found.extend(page.job_summary_list.into_iter().filter(|row| row.created_at >= from).map(JobSummary::from));
            token = page.next_token;
            if token.is_none() || reached_older {
                return Ok(found);
            }
        }
    }
}

impl ListChildren for AwsBatch {
    async fn list_failed_children(&self, parent: &BatchJobId, limit: usize) -> Result<Vec<BatchJobId>, CallError> {
        let (mut found, mut token): (Vec<BatchJobId>, Option<String>) = (Vec::new(), None);
        while found.len() < limit {
            let answer = Answer::default();
            let request = self
                .client
                .list_jobs()
                .array_job_id(parent.as_str())
                .job_status(aws_sdk_batch::types::JobStatus::Failed)
                .set_next_token(token.take());
            request.customize().interceptor(answer.clone()).send().await.map_err(call_error(LIST))?;
            let page: Listed = answer.read().map_err(unreadable(LIST))?;
            found.extend(page.job_summary_list.into_iter().map(|row| BatchJobId::new(row.job_id)));
            token = page.next_token;
            if token.is_none() {
                break;
            }
        }
        found.truncate(limit);
        Ok(found)
    }
}

impl CancelJob for AwsBatch {
    async fn cancel_job(&self, id: &BatchJobId, reason: &str) -> Result<(), CallError> {
        let request = self.client.cancel_job().job_id(id.as_str()).reason(reason);
        request.send().await.map(drop).map_err(call_error("batch:CancelJob"))
    }
}

impl TerminateJob for AwsBatch {
    async fn terminate_job(&self, id: &BatchJobId, reason: &str) -> Result<(), CallError> {
        let request = self.client.terminate_job().job_id(id.as_str()).reason(reason);
        request.send().await.map(drop).map_err(call_error("batch:TerminateJob"))
    }
}
