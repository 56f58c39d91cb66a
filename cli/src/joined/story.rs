//! What is known of one job beside its record: its logs, its parents, the children of an array.

use osprey_model::event::{BatchStatus, JobDetail};
use osprey_model::id::{BatchJobId, JobId};
use osprey_pipeline::dependents::On;
use osprey_pipeline::view::JobView;
use osprey_ports::DescribeJobs as _;
use osprey_ports::batch::DESCRIBE_JOBS_MAX;

use super::Joined;
use crate::error::CliError;
use crate::render::job::{Array, FailedChild, Parent, Story};

/// Where the agent of AWS Batch writes logs, unless a job definition says otherwise.
const LOG_GROUP: &str = "/aws/batch/job";

impl Joined {
    /// Everything about a job.
    ///
    /// # Errors
    /// When the state can't be read, or there is no such job.
    pub fn story(&self, id: JobId) -> Result<Story, CliError> {
        let view = self.view(id)?;
        let ids = batch_jobs(&view);
        let details = self.described(&ids)?;
        let newest = ids.last().and_then(|id| details.iter().find(|detail| detail.job_id == id.as_str()));
        let array = newest.map(|newest| self.array(newest)).transpose()?.flatten();
        let log = |id: BatchJobId| {
            let log = self.log(&id, details.iter().find(|detail| detail.job_id == id.as_str()))?;
            Some((id, log))
        };
        Ok(Story {
            logs: ids.into_iter().filter_map(log).collect(),
            parents: self.parents(&view)?,
            array,
            now: self.now_ms(),
            view,
        })
    }

    /// Where the log of an attempt is, once there is one.
    fn log(&self, id: &BatchJobId, detail: Option<&JobDetail>) -> Option<String> {
        match self.local() {
            Some(local) => {
                let path = local.world.batch().log_path(id.as_str(), 1);
                path.is_file().then(|| path.display().to_string())
            }
            None => {
                let container = detail?.container.as_ref()?;
                Some(format!("{LOG_GROUP} {}", container.log_stream_name.as_ref()?))
            }
        }
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
    fn array(&self, parent: &JobDetail) -> Result<Option<Array>, CliError> {
        let Some(size) = parent.array_properties.as_ref().and_then(|array| array.size) else { return Ok(None) };
        let ids: Vec<BatchJobId> =
            (0..size).map(|index| BatchJobId::new(format!("{}:{index}", parent.job_id))).collect();
        let mut failed = Vec::new();
        for ids in ids.chunks(DESCRIBE_JOBS_MAX) {
            failed.extend(self.described(ids)?.iter().filter_map(|child| self.failed_child(child)));
        }
        Ok(Some(Array { size, failed }))
    }

    /// What AWS Batch, or the local one, says of these jobs.
    ///
    /// # Errors
    /// When it can't be asked.
    pub fn described(&self, ids: &[BatchJobId]) -> Result<Vec<JobDetail>, CliError> {
        let mut details = Vec::new();
        for ids in ids.chunks(DESCRIBE_JOBS_MAX) {
            details.extend(self.run(self.home.describe_jobs(ids))?);
        }
        Ok(details)
    }

    fn failed_child(&self, child: &JobDetail) -> Option<FailedChild> {
        if child.status != BatchStatus::Failed {
            return None;
        }
        let container = child.container.as_ref();
        Some(FailedChild {
            index: child.array_properties.as_ref()?.index?,
            exit_code: container.and_then(|container| container.exit_code),
            reason: container.and_then(|container| container.reason.clone()).or_else(|| child.status_reason.clone()),
            log: self.log(&BatchJobId::new(child.job_id.as_str()), Some(child)),
        })
    }
}

/// The Batch jobs of a job's attempts, oldest first.
fn batch_jobs(view: &JobView) -> Vec<BatchJobId> {
    let ended = view.attempts.iter().map(|attempt| attempt.batch_job_id.clone());
    ended.chain(view.job.run.iter().map(|run| run.id.clone())).collect()
}
