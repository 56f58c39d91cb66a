//! GetJobQueueSnapshot: who is next in a queue, and what its shares use.

use rusqlite::{named_params, params};

use crate::arn::name_of;
use crate::batch::LocalBatch;
use crate::change::Change;
use crate::error::BatchError;
use crate::queue::FairShare;
use crate::schedule::START_CHARGE_MS;
use crate::share::weight;

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

/// A runnable job on its way into the front.
struct Waiting {
    id: String,
    created_at: i64,
    vcpus: f64,
}

/// The runnable jobs of a share, next last, and how its turn is reckoned.
struct Line {
    share: String,
    usage: f64,
    weight: f64,
    jobs: Vec<Waiting>,
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
            let lines = match &queue.scheduling_policy_arn {
                None => vec![Line { share: String::new(), usage: 0.0, weight: 1.0, jobs: change.line(name, None)? }],
                Some(policy) => change.lines(name, &change.policy(name_of(policy))?.unwrap_or_default())?,
            };
            let arns = change.arns();
            let used = change.used(name)?;
            Ok(QueueSnapshot {
                front: front(lines).into_iter().map(|job| (arns.job(&job.id), job.created_at)).collect(),
                vcpus: used.iter().fold(0.0, |sum, (_, vcpus)| sum + vcpus),
                fair_share: queue.scheduling_policy_arn.is_some(),
                active_shares: change.active_shares(name)?,
                shares: used.into_iter().filter_map(|(share, vcpus)| Some((share?, vcpus))).take(SHARES_MAX).collect(),
                at_ms: change.now_ms,
            })
        })
    }
}

/// Lets the share that has had the least for its weight go first, as a cycle does.
fn front(mut lines: Vec<Line>) -> Vec<Waiting> {
    let mut front = Vec::new();
    while front.len() < FRONT_MAX {
        let turn = |line: &Line| line.usage * line.weight;
        let waiting = lines.iter_mut().filter(|line| !line.jobs.is_empty());
        let next = waiting.min_by(|a, b| turn(a).total_cmp(&turn(b)).then_with(|| a.share.cmp(&b.share)));
        let Some((next, job)) = next.and_then(|line| line.jobs.pop().map(|job| (line, job))) else { break };
        next.usage += job.vcpus * START_CHARGE_MS;
        front.push(job);
    }
    front
}

impl Change<'_> {
    fn lines(&self, queue: &str, policy: &FairShare) -> rusqlite::Result<Vec<Line>> {
        let mut statement = self
            .db
            .prepare_cached("SELECT DISTINCT share FROM job WHERE queue = ?1 AND status = 'RUNNABLE' ORDER BY share")?;
        let shares = statement.query_map(params![queue], |row| row.get::<_, Option<String>>(0))?;
        let shares: Vec<Option<String>> = shares.collect::<rusqlite::Result<_>>()?;
        let line = |share: String| {
            Ok(Line {
                usage: self.share_usage(queue, &share, policy)?,
                weight: weight(policy, &share),
                jobs: self.line(queue, Some(&share))?,
                share,
            })
        };
        shares.into_iter().flatten().map(line).collect()
    }

    /// Runnable jobs of a share, or of a queue without shares, the next one last.
    fn line(&self, queue: &str, share: Option<&str>) -> rusqlite::Result<Vec<Waiting>> {
        let order = if share.is_some() { "priority DESC, rank, seq" } else { "rank, seq" };
        let mut statement = self.db.prepare_cached(&format!(
            "SELECT id, created_at, vcpus_milli / 1000.0 FROM job
             WHERE queue = :queue AND status = 'RUNNABLE' AND share IS :share ORDER BY {order} LIMIT {FRONT_MAX}"
        ))?;
        let rows = statement.query_map(named_params! { ":queue": queue, ":share": share }, |row| {
            Ok(Waiting { id: row.get(0)?, created_at: row.get(1)?, vcpus: row.get(2)? })
        })?;
        let mut jobs = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        jobs.reverse();
        Ok(jobs)
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

    fn active_shares(&self, queue: &str) -> rusqlite::Result<i64> {
        self.db
            .prepare_cached(
                "SELECT count(DISTINCT share) FROM job WHERE queue = ?1 AND status NOT IN ('SUCCEEDED', 'FAILED')",
            )?
            .query_row(params![queue], |row| row.get(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(share: &str, usage: f64, weight: f64, ids: &[&str]) -> Line {
        let waiting = |id: &&str| Waiting { id: (*id).to_owned(), created_at: 0, vcpus: 1.0 };
        Line { share: share.to_owned(), usage, weight, jobs: ids.iter().rev().map(waiting).collect() }
    }

    fn ids(lines: Vec<Line>) -> Vec<String> {
        front(lines).into_iter().map(|job| job.id).collect()
    }

    #[test]
    fn one_line_keeps_its_order() {
        assert_eq!(ids(vec![line("", 0.0, 1.0, &["a", "b", "c"])]), ["a", "b", "c"]);
    }

    #[test]
    fn shares_take_turns_by_use_and_weight() {
        let lines = vec![line("x", 0.0, 1.0, &["x1", "x2", "x3"]), line("y", 0.0, 0.5, &["y1", "y2", "y3"])];
        assert_eq!(ids(lines), ["x1", "y1", "y2", "x2", "y3", "x3"]);
        let lines = vec![line("x", 1e9, 1.0, &["x1"]), line("y", 0.0, 1.0, &["y1", "y2"])];
        assert_eq!(ids(lines), ["y1", "y2", "x1"]);
    }
}
