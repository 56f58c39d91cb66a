//! Changes of state. Every one goes through here, and each writes its event in the same transaction.

use osprey_model::event::BatchStatus;

use crate::change::Change;
use crate::job::JobRow;

impl Change<'_> {
    /// Moves a job on to a state that isn't its end.
    pub fn enter(&self, job: &mut JobRow, status: BatchStatus) -> rusqlite::Result<()> {
        job.status = status;
        job.status_reason = None;
        self.record(job)
    }

    /// Ends a job. Its stop time is now unless the caller has set one. The caller tells dependents and parents.
    pub fn finish(&self, job: &mut JobRow, status: BatchStatus, reason: Option<String>) -> rusqlite::Result<()> {
        job.status = status;
        job.status_reason = reason;
        job.stopped_at.get_or_insert(self.now_ms);
        self.record(job)
    }

    fn record(&self, job: &mut JobRow) -> rusqlite::Result<()> {
        job.transitions += 1;
        job.save(self.db)?;
        self.emit(job)
    }
}
