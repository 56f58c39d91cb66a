//! GetJobQueueSnapshot: who is next in a queue, and what its shares use.

use rusqlite::params;

use crate::arn::name_of;
use crate::batch::LocalBatch;
use crate::change::Change;
use crate::error::BatchError;
use crate::job::JobRow;
use crate::schedule;

/// Most jobs of a snapshot.
pub const FRONT_MAX: usize = 100;
/// Most shares of a snapshot.
pub const SHARES_MAX: usize = 20;

/// A queue at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueSnapshot {
    /// Runnable jobs in the order they would start, if there were room: ARN and when each was submitted, in virtual
    /// milliseconds since 1970.
    pub front: Vec<(String, i64)>,
    /// vCPUs that its jobs use now.
    pub vcpus: f64,
    /// Whether the queue has shares.
    pub fair_share: bool,
    /// Shares with jobs that haven't ended.
    pub active_shares: i64,
    /// Shares that use the most vCPUs now, and how many.
    pub shares: Vec<(String, f64)>,
    /// When it was taken, in virtual milliseconds since 1970.
    pub at_ms: i64,
}

impl LocalBatch {
    /// What the head of a queue looks like.
    ///
    /// # Errors
    /// A ClientException when there is no such queue.
    pub fn job_queue_snapshot(&self, name_or_arn: &str) -> Result<QueueSnapshot, BatchError> {
        self.view(|change| {
            let queue = change.queue(name_of(name_or_arn))?;
            let queue = queue.ok_or_else(|| BatchError::client(format!("{name_or_arn} does not exist")))?;
            let name = queue.job_queue_name.as_str();
            let policy = queue.scheduling_policy_arn.as_deref().map(|arn| change.policy(name_of(arn))).transpose()?;
            let policy = policy.flatten().unwrap_or_default();
            let view = change.queue_view(&queue, &[], FRONT_MAX)?;
            let front = schedule::order(&view).into_iter().take(FRONT_MAX);
            let front = front.map(|seq| change.front_entry(seq)).collect::<Result<Vec<_>, BatchError>>()?;
            let used = change.used(name)?;
            Ok(QueueSnapshot {
                front,
                vcpus: used.iter().fold(0.0, |sum, (_, vcpus)| sum + vcpus),
                fair_share: queue.scheduling_policy_arn.is_some(),
                active_shares: change.active_shares(name, &policy)?,
                shares: used.into_iter().filter_map(|(share, vcpus)| Some((share?, vcpus))).take(SHARES_MAX).collect(),
                at_ms: change.now_ms,
            })
        })
    }
}

impl Change<'_> {
    fn front_entry(&self, seq: i64) -> Result<(String, i64), BatchError> {
        let job = JobRow::by_seq(self.db, seq)?.unwrap_or_default();
        Ok((self.arns().job(&job.id), job.created_at))
    }

    /// vCPUs in use by share, the greediest first.
    fn used(&self, queue: &str) -> rusqlite::Result<Vec<(Option<String>, f64)>> {
        let mut statement = self.db.prepare_cached(
            "SELECT share, sum(vcpus_milli) / 1000.0 AS used FROM job
             WHERE queue = ?1 AND status IN ('STARTING', 'RUNNING') AND size IS NULL AND node IS NULL
             GROUP BY share ORDER BY used DESC, share",
        )?;
        statement.query_map(params![queue], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }
}
