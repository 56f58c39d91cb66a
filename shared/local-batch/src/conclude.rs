//! Writing down what was seen of an attempt: that it runs, and how it ended.

use osprey_model::event::BatchStatus;
use osprey_model::request::RetryStrategy;
use rusqlite::params;
use serde_json::Value;

use crate::attempt::{AttemptRow, AttemptState, StopCause};
use crate::change::Change;
use crate::clock::virtual_ms;
use crate::dependency::Ended;
use crate::ending::{End, Stop, classify};
use crate::files::{Exit, Outcome};
use crate::job::{JobRow, spec_detail};
use crate::observe::Seen;
use crate::retry::{Ending, runs_again};
use crate::spot::lost_reason;

impl Change<'_> {
    /// Writes down what was seen of an attempt. The row is read again: another process may have asked it to stop.
    pub fn conclude(&self, key: (i64, i64), seen: &Seen, ended: &mut Ended) -> rusqlite::Result<()> {
        let Some(attempt) = AttemptRow::live_of_job(self.db, key.0)?.filter(|a| a.number == key.1) else {
            return Ok(());
        };
        let Some(job) = JobRow::by_seq(self.db, attempt.job)? else { return Ok(()) };
        match seen {
            Seen::Nothing | Seen::Unclaimed => Ok(()),
            Seen::Started(started) => self.running(&mut job.clone(), &mut attempt.clone(), started.started_real_ms),
            Seen::Ended(exit) => self.exited(job, attempt, exit, ended),
            Seen::Lost => {
                let reason = lost_reason(&attempt.instance_id);
                let cause = attempt.stop_cause.unwrap_or(StopCause::HostLost);
                let reason = attempt.stop_reason.clone().unwrap_or(reason);
                let end = classify(&Outcome::Signal(9), Some(Stop { cause, reason: &reason }));
                let end = End { exit_code: None, ..end };
                self.end_attempt(job, attempt, self.now_ms, end, ended)
            }
        }
    }

    fn running(&self, job: &mut JobRow, attempt: &mut AttemptRow, started_real_ms: i64) -> rusqlite::Result<()> {
        if attempt.state != AttemptState::Starting {
            return Ok(());
        }
        let started = virtual_ms(&*self.options.clock, started_real_ms).max(attempt.placed_at).min(self.now_ms);
        attempt.state = AttemptState::Running;
        attempt.started_at = Some(started);
        if let Some(after) = job.reclaim_after_ms
            && self.is_spot(&attempt.environment)?
        {
            attempt.reclaim_at = Some(started.saturating_add(after));
            job.reclaim_after_ms = None;
        }
        attempt.save(self.db)?;
        job.started_at = Some(started);
        job.stopped_at = None;
        self.enter(job, BatchStatus::Running)?;
        if job.is_main_node() { self.main_node_runs(job) } else { Ok(()) }
    }

    fn is_spot(&self, environment: &str) -> rusqlite::Result<bool> {
        self.db
            .prepare_cached("SELECT kind = 'SPOT' FROM compute_environment WHERE name = ?1")?
            .query_row(params![environment], |row| row.get(0))
    }

    fn exited(&self, mut job: JobRow, mut attempt: AttemptRow, exit: &Exit, ended: &mut Ended) -> rusqlite::Result<()> {
        if let Some(started) = exit.started_real_ms {
            self.running(&mut job, &mut attempt, started)?;
        }
        let stopped = virtual_ms(&*self.options.clock, exit.ended_real_ms);
        let stopped = stopped.max(attempt.started_at.unwrap_or(attempt.placed_at)).min(self.now_ms);
        let signalled = attempt.term_at.is_some();
        let reason = attempt.stop_reason.clone().unwrap_or_default();
        let stop = attempt.stop_cause.filter(|_| signalled).map(|cause| Stop { cause, reason: &reason });
        let end = classify(&exit.outcome, stop);
        self.end_attempt(job, attempt, stopped, end, ended)
    }

    /// Ends an attempt that never got a supervisor.
    pub fn end_unlaunched(&self, key: (i64, i64), why: &str, ended: &mut Ended) -> rusqlite::Result<()> {
        let Some(attempt) = AttemptRow::live_of_job(self.db, key.0)?.filter(|a| a.number == key.1) else {
            return Ok(());
        };
        let Some(job) = JobRow::by_seq(self.db, attempt.job)? else { return Ok(()) };
        let reason = attempt.stop_reason.clone().unwrap_or_default();
        let stop = attempt.stop_cause.map(|cause| Stop { cause, reason: &reason });
        let end = classify(&Outcome::NotStarted(why.to_owned()), stop);
        self.end_attempt(job, attempt, self.now_ms, end, ended)
    }

    fn end_attempt(
        &self,
        job: JobRow,
        mut attempt: AttemptRow,
        stopped_at: i64,
        end: End,
        ended: &mut Ended,
    ) -> rusqlite::Result<()> {
        attempt.state = AttemptState::Ended;
        attempt.stopped_at = Some(stopped_at);
        attempt.exit_code = end.exit_code;
        attempt.reason.clone_from(&end.reason);
        attempt.status_reason = Some(end.status_reason.clone());
        attempt.save(self.db)?;
        if let Some(share) = &job.share {
            self.charge(&job.queue, share, &attempt)?;
        }
        if job.node.is_some() {
            return self.node_ended(job, &attempt, end, ended);
        }
        self.after_attempt(job, stopped_at, end, ended)
    }

    /// A job whose attempt is over runs again or ends.
    pub fn after_attempt(&self, mut job: JobRow, stopped_at: i64, end: End, ended: &mut Ended) -> rusqlite::Result<()> {
        if self.is_retried(&job, &end)? {
            return self.requeue(&mut job);
        }
        job.stopped_at = Some(stopped_at);
        let status = if end.success { BatchStatus::Succeeded } else { BatchStatus::Failed };
        self.finish(&mut job, status, Some(end.status_reason))?;
        ended.push_back(job);
        Ok(())
    }

    fn is_retried(&self, job: &JobRow, end: &End) -> rusqlite::Result<bool> {
        let open = end.retryable && !end.success && !job.cancelled && !job.terminated;
        if !open || job.attempts_made >= job.attempts_allowed {
            return Ok(false);
        }
        let strategy = spec_detail(self.db, job)?.remove("retryStrategy").unwrap_or(Value::Null);
        let strategy: RetryStrategy = serde_json::from_value(strategy).unwrap_or_default();
        let ending = Ending {
            status_reason: &end.status_reason,
            reason: end.reason.as_deref().unwrap_or_default(),
            exit_code: end.exit_code,
        };
        Ok(runs_again(strategy.evaluate_on_exit.as_deref().unwrap_or_default(), ending))
    }

    /// Batch's own retries go to the front of their queue.
    fn requeue(&self, job: &mut JobRow) -> rusqlite::Result<()> {
        let front: Option<i64> = self
            .db
            .prepare_cached("SELECT min(rank) FROM job WHERE queue = ?1 AND status = 'RUNNABLE'")?
            .query_row(params![job.queue], |row| row.get(0))?;
        job.rank = front.unwrap_or(0).min(0) - 1;
        self.enter(job, BatchStatus::Runnable)
    }
}
