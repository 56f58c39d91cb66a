//! `dependsOn`: what a job waits for, and what happens to those who wait when a job ends.
//!
//! An array waits as a whole for plain dependencies and child by child for `SEQUENTIAL` and `N_TO_N`. A child is let
//! go once its parent's own dependencies are settled and then its own.

use std::collections::{BTreeSet, VecDeque};

use osprey_model::event::BatchStatus;
use osprey_model::request::SubmitJobRequest;
use rusqlite::params;

use crate::arn::name_of;
use crate::change::Change;
use crate::error::BatchError;
use crate::job::JobRow;

/// The status reason of a job whose upstream job failed.
pub const FAILED_REASON: &str = "Dependent Job failed";

/// What one entry of `dependsOn` means for one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// Waits for a whole job.
    Whole { upstream: String, status: BatchStatus },
    /// Child i waits for child i of another array.
    Each { upstream: String },
    /// Child i waits for child i − 1.
    Sequential,
}

impl Link {
    pub fn is_per_child(&self) -> bool {
        !matches!(self, Self::Whole { .. })
    }

    pub fn is_open(&self) -> bool {
        matches!(self, Self::Whole { status, .. } if !status.is_final())
    }

    pub fn failed(&self) -> bool {
        matches!(self, Self::Whole { status: BatchStatus::Failed, .. })
    }
}

/// Jobs that ended in this transaction and whose dependents and parents haven't been told yet. A list and not
/// recursion: a sequential array can fail ten thousand children in a row.
pub(crate) type Ended = VecDeque<JobRow>;

impl Change<'_> {
    /// Reads `dependsOn` against the store.
    pub fn links(&self, request: &SubmitJobRequest) -> Result<Vec<Link>, BatchError> {
        let size = request.array_properties.as_ref().and_then(|a| a.size);
        let mut seen = BTreeSet::new();
        let mut links = Vec::new();
        for dependency in request.depends_on.iter().flatten() {
            let id = name_of(dependency.job_id.as_deref().unwrap_or_default());
            if !seen.insert(id.to_owned()) {
                continue;
            }
            if dependency.kind.as_deref() == Some("SEQUENTIAL") {
                links.push(Link::Sequential);
                continue;
            }
            let upstream = JobRow::by_id(self.db, id)?;
            let upstream = upstream.ok_or_else(|| BatchError::client(format!("Job {id} in dependsOn not found.")))?;
            if dependency.kind.as_deref() == Some("N_TO_N") {
                if upstream.size != size {
                    let message = format!("N_TO_N dependency {id} must be an array job of the same size");
                    return Err(BatchError::client(message));
                }
                links.push(Link::Each { upstream: upstream.id });
            } else {
                links.push(Link::Whole { upstream: upstream.id, status: upstream.status });
            }
        }
        Ok(links)
    }

    /// What one child of an array waits for besides its parent's own dependencies.
    pub fn links_of_child(&self, links: &[Link], parent: &JobRow, index: i64) -> Result<Vec<Link>, BatchError> {
        let mut own = Vec::new();
        for link in links {
            match link {
                Link::Whole { .. } => {}
                Link::Each { upstream } => {
                    let upstream = format!("{upstream}:{index}");
                    let status = JobRow::by_id(self.db, &upstream)?.map(|job| job.status).unwrap_or_default();
                    own.push(Link::Whole { upstream, status });
                }
                Link::Sequential if index > 0 => own.push(Link::Whole {
                    upstream: format!("{}:{}", parent.id, index - 1),
                    status: BatchStatus::Submitted,
                }),
                Link::Sequential => {}
            }
        }
        Ok(own)
    }

    /// Writes the links that are still open.
    pub fn put_dependencies<'l>(&self, job: i64, links: impl Iterator<Item = &'l Link>) -> rusqlite::Result<()> {
        let mut insert = self.db.prepare_cached("INSERT OR IGNORE INTO dependency (job, upstream) VALUES (?1, ?2)")?;
        for link in links.filter(|link| link.is_open()) {
            if let Link::Whole { upstream, .. } = link {
                insert.execute(params![job, upstream])?;
            }
        }
        Ok(())
    }

    /// Looks at jobs for the first time: they fail, wait, or become runnable. Answers whether there were any.
    pub fn admit_submitted(&self) -> rusqlite::Result<bool> {
        const AT_ONCE_MAX: i64 = 500;
        let jobs = JobRow::select(
            self.db,
            "WHERE status = 'SUBMITTED' AND parent IS NULL ORDER BY seq LIMIT ?1",
            params![AT_ONCE_MAX],
        )?;
        let any = !jobs.is_empty();
        for job in jobs {
            self.settling(|ended| self.admit(job, ended))?;
        }
        Ok(any)
    }

    fn admit(&self, mut job: JobRow, ended: &mut Ended) -> rusqlite::Result<()> {
        if !job.is_to_end() && job.doomed.as_deref() == Some(FAILED_REASON) {
            return self.fail_for_upstream(job, ended);
        }
        if job.unresolved > 0 {
            return self.enter(&mut job, BatchStatus::Pending);
        }
        self.release(job, ended)
    }

    /// Runs `f` and then tells dependents and parents of everything that ended, until nothing more ends.
    pub fn settling(&self, f: impl FnOnce(&mut Ended) -> rusqlite::Result<()>) -> rusqlite::Result<()> {
        let mut ended = Ended::new();
        f(&mut ended)?;
        while let Some(job) = ended.pop_front() {
            self.tell_dependents(&job, &mut ended)?;
            self.tell_parent(&job, &mut ended)?;
        }
        Ok(())
    }

    fn tell_dependents(&self, job: &JobRow, ended: &mut Ended) -> rusqlite::Result<()> {
        let mut statement = self.db.prepare_cached("SELECT job FROM dependency WHERE upstream = ?1 AND open = 1")?;
        let waiting = statement.query_map(params![job.id], |row| row.get(0))?;
        let waiting: Vec<i64> = waiting.collect::<rusqlite::Result<_>>()?;
        if waiting.is_empty() {
            return Ok(());
        }
        self.db
            .prepare_cached("UPDATE dependency SET open = 0 WHERE upstream = ?1 AND open = 1")?
            .execute(params![job.id])?;
        for seq in waiting {
            let Some(mut dependent) = JobRow::by_seq(self.db, seq)? else { continue };
            if dependent.status.is_final() {
                continue;
            }
            if job.status == BatchStatus::Failed {
                self.fail_for_upstream(dependent, ended)?;
                continue;
            }
            dependent.unresolved -= 1;
            dependent.save(self.db)?;
            if dependent.unresolved == 0 && self.gate_is_open(&dependent)? {
                self.release(dependent, ended)?;
            }
        }
        Ok(())
    }

    /// A child waits for its parent to be looked at and to have its own dependencies settled.
    fn gate_is_open(&self, job: &JobRow) -> rusqlite::Result<bool> {
        let Some(parent) = &job.parent else { return Ok(true) };
        let parent = JobRow::by_id(self.db, parent)?;
        Ok(parent.is_some_and(|parent| parent.status == BatchStatus::Pending && parent.unresolved == 0))
    }

    /// A job that was cancelled while it waited keeps the caller's reason.
    fn fail_for_upstream(&self, job: JobRow, ended: &mut Ended) -> rusqlite::Result<()> {
        let own = job.doomed.clone().filter(|_| job.is_to_end());
        self.fail_whole(job, own.as_deref().unwrap_or(FAILED_REASON), ended)
    }

    /// Fails a job that hasn't started; of an array, the parent first and then the children that haven't started.
    pub fn fail_whole(&self, mut job: JobRow, reason: &str, ended: &mut Ended) -> rusqlite::Result<()> {
        let children = if job.size.is_some() { self.children(&job)? } else { Vec::new() };
        let (cancelled, terminated) = (job.cancelled, job.terminated);
        self.finish(&mut job, BatchStatus::Failed, Some(reason.to_owned()))?;
        ended.push_back(job);
        for mut child in children {
            if child.status < BatchStatus::Starting {
                (child.cancelled, child.terminated) = (cancelled, terminated);
                self.finish(&mut child, BatchStatus::Failed, Some(reason.to_owned()))?;
                ended.push_back(child);
            }
        }
        Ok(())
    }

    /// Lets a job go whose dependencies are settled: it becomes runnable, or its children do.
    fn release(&self, mut job: JobRow, ended: &mut Ended) -> rusqlite::Result<()> {
        if let Some(reason) = job.doomed.clone().filter(|_| job.is_to_end()) {
            return self.fail_whole(job, &reason, ended);
        }
        if job.size.is_none() {
            return self.become_runnable(job, ended);
        }
        if job.status == BatchStatus::Submitted {
            let reason = job.status_reason.clone().filter(|_| job.is_to_end());
            self.enter(&mut job, BatchStatus::Pending)?;
            job.status_reason = reason;
            job.save(self.db)?;
        }
        for mut child in self.children(&job)? {
            if child.status.is_final() {
                continue;
            }
            if child.doomed.as_deref() == Some(FAILED_REASON) {
                self.fail_for_upstream(child, ended)?;
            } else if child.unresolved > 0 {
                self.enter(&mut child, BatchStatus::Pending)?;
            } else {
                self.become_runnable(child, ended)?;
            }
        }
        Ok(())
    }

    fn become_runnable(&self, mut job: JobRow, ended: &mut Ended) -> rusqlite::Result<()> {
        self.enter(&mut job, BatchStatus::Runnable)?;
        if let Some(reason) = job.doomed.clone() {
            self.finish(&mut job, BatchStatus::Failed, Some(reason))?;
            ended.push_back(job);
        }
        Ok(())
    }

    pub fn children(&self, parent: &JobRow) -> rusqlite::Result<Vec<JobRow>> {
        JobRow::select(self.db, "WHERE parent = ?1 ORDER BY seq", params![parent.id])
    }

    fn tell_parent(&self, job: &JobRow, ended: &mut Ended) -> rusqlite::Result<()> {
        let Some(parent) = &job.parent else { return Ok(()) };
        let Some(mut parent) = JobRow::by_id(self.db, parent)? else { return Ok(()) };
        parent.open_children -= 1;
        if parent.status.is_final() || parent.open_children > 0 {
            return parent.save(self.db);
        }
        let failed: bool = self
            .db
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM job WHERE parent = ?1 AND status = 'FAILED')")?
            .query_row(params![parent.id], |row| row.get(0))?;
        let (status, reason) = match (failed, parent.status_reason.take()) {
            (false, _) => (BatchStatus::Succeeded, None),
            // A parent that was cancelled or terminated keeps the caller's reason.
            (true, Some(reason)) => (BatchStatus::Failed, Some(reason)),
            (true, None) => (BatchStatus::Failed, Some("Array Child Job failed".to_owned())),
        };
        self.finish(&mut parent, status, reason)?;
        ended.push_back(parent);
        Ok(())
    }
}
