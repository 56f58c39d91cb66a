//! What is known of one job beside its record: its logs, its parents, the children of an array.

use osprey_model::id::{BatchJobId, JobId};
use osprey_pipeline::dependents::On;
use osprey_pipeline::view::JobView;
use serde_json::Value;

use super::join::Joined;
use crate::error::CliError;
use crate::render::job::{Array, FailedChild, Parent, Story};

/// Children described in one call; the limit of `DescribeJobs`.
const DESCRIBED_MAX: usize = 100;

impl Joined {
    /// Everything about a job.
    ///
    /// # Errors
    /// When the state can't be read, or there is no such job.
    pub fn story(&self, id: JobId) -> Result<Story, CliError> {
        let view = self.view(id)?;
        let ids = batch_jobs(&view);
        let array = ids.last().map(|newest| self.array(newest)).transpose()?.flatten();
        let logs = ids.into_iter().filter_map(|id| self.log(id.as_str()).map(|log| (id, log))).collect();
        Ok(Story { logs, parents: self.parents(&view)?, array, now: self.now_ms(), view })
    }

    fn parents(&self, view: &JobView) -> Result<Vec<Parent>, CliError> {
        let parent = |dependency: &osprey_pipeline::dependents::Dependency| {
            let id = match &dependency.on {
                On::Job(id) => Some(*id),
                On::Unknown => JobId::parse(&dependency.given),
                On::Batch(_) => None,
            };
            let job = id.map(|id| self.job(id)).transpose()?.flatten();
            Ok(Parent { given: dependency.given.clone(), known: job.map(|job| (job.name, job.state)) })
        };
        view.dependencies.iter().map(parent).collect()
    }

    /// The children of an array; `None` for a job that is none.
    fn array(&self, id: &BatchJobId) -> Result<Option<Array>, CliError> {
        let parent = self.described(&[id.to_string()])?;
        let size = parent.first().and_then(|job| job.pointer("/arrayProperties/size")).and_then(Value::as_i64);
        let Some(size) = size else { return Ok(None) };
        let ids: Vec<String> = (0..size).map(|index| format!("{id}:{index}")).collect();
        let mut failed = Vec::new();
        for ids in ids.chunks(DESCRIBED_MAX) {
            failed.extend(self.described(ids)?.iter().filter_map(|child| self.failed_child(child)));
        }
        Ok(Some(Array { size, failed }))
    }

    fn described(&self, ids: &[String]) -> Result<Vec<Value>, CliError> {
        self.batch().describe_jobs(ids).map_err(|error| CliError::failed(error.to_string()))
    }

    fn failed_child(&self, child: &Value) -> Option<FailedChild> {
        let text = |pointer: &str| child.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        if text("/status")? != "FAILED" {
            return None;
        }
        Some(FailedChild {
            index: child.pointer("/arrayProperties/index")?.as_i64()?,
            exit_code: child.pointer("/container/exitCode").and_then(Value::as_i64),
            reason: text("/container/reason").or_else(|| text("/statusReason")),
            log: self.log(&text("/jobId")?),
        })
    }
}

/// The Batch jobs of a job's attempts, oldest first.
fn batch_jobs(view: &JobView) -> Vec<BatchJobId> {
    let ended = view.attempts.iter().map(|attempt| attempt.batch_job_id.clone());
    ended.chain(view.job.run.iter().map(|run| run.id.clone())).collect()
}
