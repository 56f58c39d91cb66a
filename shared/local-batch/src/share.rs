//! Use of a queue's shares: vCPU·time, decaying, plus what runs.

use rusqlite::{OptionalExtension, params};

use crate::attempt::AttemptRow;
use crate::change::Change;
use crate::queue::FairShare;
use crate::requirement::Need;
use crate::schedule::{START_CHARGE_MS, vcpus};

/// The weight of a share: its own entry, else the entry whose beginning it has, else 1.
pub(crate) fn weight(policy: &FairShare, share: &str) -> f64 {
    let of = |entry: &crate::queue::ShareWeight| match entry.share_identifier.strip_suffix('*') {
        Some(prefix) => share.starts_with(prefix),
        None => share == entry.share_identifier,
    };
    let entry = policy.share_distribution.iter().find(|entry| of(entry));
    entry.and_then(|entry| entry.weight_factor).unwrap_or(1.0)
}

/// What is left of `vcpu_ms` after `elapsed_ms`: e^(−t/T), where T is the policy's decay time; nothing when T is 0.
fn decayed(vcpu_ms: f64, elapsed_ms: f64, policy: &FairShare) -> f64 {
    if policy.share_decay_seconds == 0 {
        return 0.0;
    }
    vcpu_ms * (-elapsed_ms.max(0.0) / (float(policy.share_decay_seconds) * 1_000.0)).exp()
}

#[expect(clippy::cast_precision_loss, reason = "times and amounts stay far below 2^53")]
fn float(n: i64) -> f64 {
    n as f64
}

/// vCPU milliseconds of a run, at least the charge of its start.
fn used(attempt: &AttemptRow, until_ms: i64) -> f64 {
    let need = Need { gpus: 0, vcpus_milli: attempt.vcpus_milli, memory_mib: 0 };
    let elapsed = float(until_ms.saturating_sub(attempt.started_at.unwrap_or(attempt.placed_at)));
    vcpus(&need) * elapsed.max(START_CHARGE_MS)
}

impl Change<'_> {
    /// Past use of a share, as it counts now.
    fn past_usage(&self, queue: &str, share: &str, policy: &FairShare) -> rusqlite::Result<f64> {
        let row: Option<(f64, i64)> = self
            .db
            .prepare_cached("SELECT vcpu_ms, as_of FROM share_usage WHERE queue = ?1 AND share = ?2")?
            .query_row(params![queue, share], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        Ok(row.map_or(0.0, |(vcpu_ms, as_of)| decayed(vcpu_ms, float(self.now_ms - as_of), policy)))
    }

    /// Use of a share: what is left of the past plus what its running jobs have used so far.
    pub fn share_usage(&self, queue: &str, share: &str, policy: &FairShare) -> rusqlite::Result<f64> {
        let mut usage = self.past_usage(queue, share, policy)?;
        for attempt in AttemptRow::live_of_share(self.db, queue, share)? {
            usage += used(&attempt, self.now_ms);
        }
        Ok(usage)
    }

    /// Adds an attempt that has ended to the past use of its share.
    pub fn charge(&self, queue: &str, share: &str, attempt: &AttemptRow) -> rusqlite::Result<()> {
        let policy: Option<String> = self
            .db
            .prepare_cached(
                "SELECT body FROM scheduling_policy WHERE name = (SELECT policy FROM job_queue WHERE name = ?1)",
            )?
            .query_row(params![queue], |row| row.get(0))
            .optional()?;
        let Some(policy) = policy.and_then(|body| serde_json::from_str::<FairShare>(&body).ok()) else {
            return Ok(());
        };
        let until = attempt.stopped_at.unwrap_or(self.now_ms);
        let usage = self.past_usage(queue, share, &policy)? + used(attempt, until);
        self.db
            .prepare_cached(
                "INSERT INTO share_usage (queue, share, vcpu_ms, as_of) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (queue, share) DO UPDATE SET vcpu_ms = excluded.vcpu_ms, as_of = excluded.as_of",
            )?
            .execute(params![queue, share, usage, self.now_ms])?;
        Ok(())
    }
}
