//! A job as DescribeJobs and the state-change events show it.

use std::collections::BTreeMap;

use rusqlite::params;
use serde_json::{Map, Value, json};

use crate::arn::name_of;
use crate::attempt::{AttemptRow, AttemptState};
use crate::batch::LocalBatch;
use crate::change::Change;
use crate::error::BatchError;
use crate::job::{JobRow, all_statuses, spec_detail};

/// Most jobs of one DescribeJobs call.
pub const DESCRIBE_MAX: usize = 100;

/// Who reads the detail; a few members differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// DescribeJobs: every flag is shown.
    Describe,
    /// An event: flags only when set, and the injected tag `resourceArn`.
    Event,
}

impl LocalBatch {
    /// Describes jobs by id or ARN, in the order asked; unknown ones are left out, as on AWS. Members are those of
    /// `JobDetail` in Batch's API, times in virtual milliseconds since 1970.
    ///
    /// # Errors
    /// A ClientException for more than 100 ids.
    pub fn describe_jobs(&self, ids: &[String]) -> Result<Vec<Value>, BatchError> {
        if ids.len() > DESCRIBE_MAX {
            let message = format!("jobs must have at most {DESCRIBE_MAX} entries, got {}", ids.len());
            return Err(BatchError::client(message));
        }
        self.view(|change| {
            let mut found = Vec::new();
            for id in ids {
                if let Some(job) = JobRow::by_id(change.db, name_of(id))? {
                    found.push(Value::Object(change.detail(&job, Reader::Describe)?));
                }
            }
            Ok(found)
        })
    }

    /// The request of a job exactly as it was submitted; `None` for an unknown id.
    ///
    /// # Errors
    /// Failures of the store.
    pub fn submitted_request(&self, id: &str) -> Result<Option<Value>, BatchError> {
        self.view(|change| {
            let Some(job) = JobRow::by_id(change.db, name_of(id))? else { return Ok(None) };
            let text: String =
                change.db.query_row("SELECT request FROM spec WHERE id = ?1", params![job.spec], |row| row.get(0))?;
            Ok(Some(serde_json::from_str(&text)?))
        })
    }
}

impl Change<'_> {
    /// The whole detail of a job.
    pub fn detail(&self, job: &JobRow, reader: Reader) -> rusqlite::Result<Map<String, Value>> {
        let mut fixed = spec_detail(self.db, job)?;
        let attempts = self.attempts_of(job)?;
        let mut detail = self.head(job);
        let ended = attempts.iter().filter(|a| a.state == AttemptState::Ended).map(|a| self.attempt_detail(a));
        detail.insert("attempts".to_owned(), Value::Array(ended.collect()));
        put_some(&mut detail, "statusReason", job.status_reason.as_ref());
        put(&mut detail, "createdAt", job.created_at);
        move_members(&mut fixed, &mut detail, &["retryStrategy"]);
        put_some(&mut detail, "startedAt", job.started_at);
        put_some(&mut detail, "stoppedAt", job.stopped_at);
        move_members(&mut fixed, &mut detail, &["dependsOn", "jobDefinition", "parameters", "container"]);
        if let Some(Value::Object(container)) = detail.get_mut("container") {
            attempts.last().into_iter().for_each(|attempt| self.container_of(attempt, container));
        }
        if let Some(node) = job.node {
            put(&mut detail, "nodeDetails", json!({"nodeIndex": node, "isMainNode": job.is_main_node()}));
        }
        move_members(&mut fixed, &mut detail, &["nodeProperties"]);
        if let Some(array) = self.array_detail(job)? {
            put(&mut detail, "arrayProperties", array);
        }
        move_members(&mut fixed, &mut detail, &["timeout", "tags"]);
        if reader == Reader::Event
            && let Some(Value::Object(tags)) = detail.get_mut("tags")
        {
            let own = std::mem::take(tags);
            put(tags, "resourceArn", self.arns().job(&job.id));
            tags.extend(own);
        }
        detail.append(&mut fixed);
        for (key, flag) in [("isCancelled", job.cancelled), ("isTerminated", job.terminated)] {
            if flag || reader == Reader::Describe {
                put(&mut detail, key, flag);
            }
        }
        Ok(detail)
    }

    /// The attempts of a job; of a multi-node job, those of its main node.
    pub fn attempts_of(&self, job: &JobRow) -> rusqlite::Result<Vec<AttemptRow>> {
        if !job.is_gang() {
            return AttemptRow::of_job(self.db, job.seq);
        }
        let main = self.main_node(job)?;
        main.map_or(Ok(Vec::new()), |main| AttemptRow::of_job(self.db, main.seq))
    }

    fn head(&self, job: &JobRow) -> Map<String, Value> {
        let mut head = Map::new();
        put(&mut head, "jobArn", self.arns().job(&job.id));
        put(&mut head, "jobName", job.name.as_str());
        put(&mut head, "jobId", job.id.as_str());
        put(&mut head, "jobQueue", self.arns().queue(&job.queue));
        put(&mut head, "status", job.status.as_str());
        put_some(&mut head, "shareIdentifier", job.share.as_ref());
        put_some(&mut head, "schedulingPriority", job.priority);
        head
    }

    fn attempt_detail(&self, attempt: &AttemptRow) -> Value {
        let mut container = Map::new();
        self.container_of(attempt, &mut container);
        put(&mut container, "networkInterfaces", json!([]));
        let mut detail = Map::new();
        put(&mut detail, "container", container);
        put_some(&mut detail, "startedAt", attempt.started_at);
        put_some(&mut detail, "stoppedAt", attempt.stopped_at);
        put_some(&mut detail, "statusReason", attempt.status_reason.as_ref());
        Value::Object(detail)
    }

    /// What an attempt adds to its container.
    fn container_of(&self, attempt: &AttemptRow, container: &mut Map<String, Value>) {
        let arns = self.arns();
        let instance = arns.container_instance(&attempt.environment, &attempt.instance_id);
        put(container, "containerInstanceArn", instance);
        put(container, "taskArn", arns.task(&attempt.environment, &attempt.task_id));
        if attempt.started_at.is_some() {
            put(container, "logStreamName", attempt.log_stream());
        }
        put_some(container, "exitCode", attempt.exit_code);
        put_some(container, "reason", attempt.reason.as_ref());
    }

    /// Children by status of a parent, the index of a child, nothing of other jobs.
    pub fn array_detail(&self, job: &JobRow) -> rusqlite::Result<Option<Value>> {
        if let Some(index) = job.index {
            return Ok(Some(json!({"statusSummary": {}, "index": index})));
        }
        let Some(size) = job.size else { return Ok(None) };
        let mut summary: BTreeMap<&str, i64> = all_statuses().iter().map(|status| (status.as_str(), 0)).collect();
        let mut statement =
            self.db.prepare_cached("SELECT status, count(*) FROM job WHERE parent = ?1 GROUP BY status")?;
        let rows = statement.query_map(params![job.id], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?;
        for row in rows {
            let (status, count) = row?;
            summary.insert(crate::job::status_of(&status).as_str(), count);
        }
        Ok(Some(json!({"statusSummary": summary, "size": size})))
    }
}

fn put(map: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    map.insert(key.to_owned(), value.into());
}

fn put_some(map: &mut Map<String, Value>, key: &str, value: Option<impl serde::Serialize>) {
    if let Some(value) = value {
        map.insert(key.to_owned(), json!(value));
    }
}

fn move_members(from: &mut Map<String, Value>, to: &mut Map<String, Value>, keys: &[&str]) {
    for key in keys {
        if let Some(value) = from.shift_remove(*key) {
            to.insert((*key).to_owned(), value);
        }
    }
}
