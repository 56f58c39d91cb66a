//! CancelJob and TerminateJob.
//!
//! A job that waits for dependencies ends when they have ended, as on AWS; until then it shows that it was asked to.

use osprey_model::event::BatchStatus;

use crate::arn::name_of;
use crate::attempt::{AttemptRow, StopCause};
use crate::batch::LocalBatch;
use crate::change::Change;
use crate::dependency::Ended;
use crate::error::BatchError;
use crate::job::JobRow;

/// Longest reason, in characters.
pub const REASON_CHARACTERS_MAX: usize = 1_024;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Cancel,
    Terminate,
}

impl LocalBatch {
    /// Cancels a job that hasn't started: it ends FAILED with the reason and without attempts, at once or when its
    /// dependencies have ended. Of an array, the children that haven't started. A job that has started or ended is
    /// left as it is, without an error.
    ///
    /// # Errors
    /// A ClientException for an unknown id or a reason that is missing or too long.
    pub fn cancel_job(&self, job_id: &str, reason: &str) -> Result<(), BatchError> {
        self.stop(job_id, reason, Verb::Cancel)
    }

    /// Ends a job wherever it is: before it starts as [`Self::cancel_job`] does; afterwards with SIGTERM, and SIGKILL
    /// after the grace. The reason becomes its status reason. Of an array, all children. A job that has ended is
    /// left as it is, without an error.
    ///
    /// # Errors
    /// A ClientException for an unknown id or a reason that is missing or too long.
    pub fn terminate_job(&self, job_id: &str, reason: &str) -> Result<(), BatchError> {
        self.stop(job_id, reason, Verb::Terminate)
    }

    fn stop(&self, job_id: &str, reason: &str, verb: Verb) -> Result<(), BatchError> {
        if reason.is_empty() {
            return Err(BatchError::client("reason must be specified."));
        }
        if reason.chars().count() > REASON_CHARACTERS_MAX {
            return Err(BatchError::client(format!("reason must be at most {REASON_CHARACTERS_MAX} characters")));
        }
        self.change(|change| {
            let job = JobRow::by_id(change.db, name_of(job_id))?;
            let job = job.ok_or_else(|| BatchError::client(format!("Job {job_id} not found.")))?;
            if let (Some(_), Some(whole)) = (job.node, &job.parent) {
                let message = format!("Job {job_id} is a node and can't be stopped on its own; stop {whole}");
                return Err(BatchError::client(message));
            }
            Ok(change.settling(|ended| change.stop_job(job, reason, verb, ended))?)
        })
    }
}

impl Change<'_> {
    fn stop_job(&self, mut job: JobRow, reason: &str, verb: Verb, ended: &mut Ended) -> rusqlite::Result<()> {
        if job.status.is_final() {
            return Ok(());
        }
        let waits = job.unresolved > 0;
        if job.size.is_some() && !waits {
            return self.stop_array(job, reason, verb, ended);
        }
        let started = job.status >= BatchStatus::Starting;
        if started && verb == Verb::Cancel {
            return Ok(());
        }
        let first = !job.is_to_end();
        mark(&mut job, verb);
        if started || waits {
            // The first reason counts.
            if first && waits {
                job.doomed = Some(reason.to_owned());
            }
            job.save(self.db)?;
            return if job.is_gang() {
                self.stop_nodes(&job, reason)
            } else {
                self.ask_to_stop(job.seq, StopCause::Terminated, reason)
            };
        }
        self.finish(&mut job, BatchStatus::Failed, Some(reason.to_owned()))?;
        ended.push_back(job);
        Ok(())
    }

    /// The parent remembers the reason and ends when its last child has ended.
    fn stop_array(&self, mut job: JobRow, reason: &str, verb: Verb, ended: &mut Ended) -> rusqlite::Result<()> {
        mark(&mut job, verb);
        job.status_reason = Some(reason.to_owned());
        job.save(self.db)?;
        for child in self.children(&job)? {
            self.stop_job(child, reason, verb, ended)?;
        }
        Ok(())
    }

    /// Notes that the live attempt of a job is to end, and why. The first reason counts.
    pub fn ask_to_stop(&self, job: i64, cause: StopCause, reason: &str) -> rusqlite::Result<()> {
        let Some(mut attempt) = AttemptRow::live_of_job(self.db, job)? else { return Ok(()) };
        if attempt.stop_cause.is_none() {
            attempt.stop_cause = Some(cause);
            attempt.stop_reason = Some(reason.to_owned());
            attempt.save(self.db)?;
        }
        Ok(())
    }
}

fn mark(job: &mut JobRow, verb: Verb) {
    match verb {
        Verb::Cancel => job.cancelled = true,
        Verb::Terminate => job.terminated = true,
    }
}
