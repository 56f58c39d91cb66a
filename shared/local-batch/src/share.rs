//! Use of a queue's shares: vCPU·time, decaying, plus what runs.

use osprey_model::event::BatchStatus;
use rusqlite::{OptionalExtension, named_params, params};

use crate::attempt::AttemptRow;
use crate::change::Change;
use crate::error::BatchError;
use crate::queue::{FairShare, ShareWeight};
use crate::schedule::{START_CHARGE_MS, vcpus};

/// Most active shares of a queue, and most entries of a policy.
pub const SHARES_MAX: usize = 500;

/// The weight of a share: its own entry, else the entry whose beginning it has, else 1.
#[must_use]
pub fn weight(policy: &FairShare, share: &str) -> f64 {
    let entry = policy.share_distribution.iter().find(|entry| covers(&entry.share_identifier, share));
    entry.and_then(|entry| entry.weight_factor).unwrap_or(1.0)
}

fn covers(entry: &str, share: &str) -> bool {
    match entry.strip_suffix('*') {
        Some(prefix) => share.starts_with(prefix),
        None => share == entry,
    }
}

/// Two entries that speak of one share; a policy must have none.
#[must_use]
pub fn overlapping(entries: &[ShareWeight]) -> Option<(&str, &str)> {
    let mut names: Vec<&str> = entries.iter().map(|entry| entry.share_identifier.as_str()).collect();
    // What a prefix covers comes right after it.
    names.sort_unstable_by_key(|name| (name.trim_end_matches('*'), !name.ends_with('*')));
    let bare = |name: &str| name.trim_end_matches('*').to_owned();
    let both = |pair: &[&str]| matches!(pair, [a, b] if bare(a) == bare(b) || covers(a, &bare(b)));
    names.windows(2).find(|pair| both(pair)).and_then(|pair| Some((*pair.first()?, *pair.last()?)))
}

/// What is left of `vcpu_ms` after `elapsed_ms`: e^(−t/T), where T is the policy's decay time; nothing when T is 0.
#[must_use]
pub fn decayed(vcpu_ms: f64, elapsed_ms: f64, policy: &FairShare) -> f64 {
    if policy.share_decay_seconds == 0 {
        return 0.0;
    }
    vcpu_ms * (-elapsed_ms.max(0.0) / (float(policy.share_decay_seconds) * 1_000.0)).exp()
}

/// What a queue keeps of its vCPUs for shares that aren't active yet: (r/100)^n of them, where r is the policy's
/// reservation and n is how many shares are active.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "a part of a number of vCPUs fits where the number did")]
pub fn reserved_vcpus_milli(max_milli: i64, policy: &FairShare, active_shares: i64) -> i64 {
    let part = (float(policy.compute_reservation.clamp(0, 99)) / 100.0).powf(float(active_shares.max(1)));
    (float(max_milli) * part).floor() as i64
}

#[expect(clippy::cast_precision_loss, reason = "times and amounts stay far below 2^53")]
fn float(n: i64) -> f64 {
    n as f64
}

/// vCPU milliseconds of a run, at least the charge of its start.
fn used(attempt: &AttemptRow, until_ms: i64) -> f64 {
    let elapsed = float(until_ms.saturating_sub(attempt.started_at.unwrap_or(attempt.placed_at)));
    vcpus(attempt.vcpus_milli) * elapsed.max(START_CHARGE_MS)
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

    /// Shares of a queue that have jobs of a status, by name. Each is found by a step in the index, however many jobs
    /// it has.
    pub fn shares_in(&self, queue: &str, status: BatchStatus) -> rusqlite::Result<Vec<String>> {
        let mut statement = self.db.prepare_cached(
            "WITH RECURSIVE found(share) AS (
                SELECT min(share) FROM job WHERE queue = :queue AND status = :status
                UNION ALL SELECT (SELECT min(share) FROM job
                    WHERE queue = :queue AND status = :status AND share > found.share)
                FROM found WHERE found.share IS NOT NULL)
             SELECT share FROM found WHERE share IS NOT NULL",
        )?;
        let parameters = named_params! { ":queue": queue, ":status": status.as_str() };
        statement.query_map(parameters, |row| row.get(0))?.collect()
    }

    /// How many shares of a queue are active: they have jobs that haven't ended, or use that hasn't decayed yet.
    pub fn active_shares(&self, queue: &str, policy: &FairShare) -> rusqlite::Result<i64> {
        let mut active = std::collections::BTreeSet::new();
        for status in crate::job::all_statuses().into_iter().filter(|status| !status.is_final()) {
            active.extend(self.shares_in(queue, status)?);
        }
        let mut statement = self.db.prepare_cached("SELECT share FROM share_usage WHERE queue = ?1 AND as_of > ?2")?;
        let since = self.now_ms.saturating_sub(policy.share_decay_seconds.saturating_mul(1_000));
        let decaying = statement.query_map(params![queue, since], |row| row.get::<_, String>(0))?;
        active.extend(decaying.collect::<rusqlite::Result<Vec<_>>>()?);
        Ok(i64::try_from(active.len()).unwrap_or(i64::MAX))
    }

    /// Refuses a share that would be one too many.
    pub fn admit_share(&self, queue: &str, share: &str, policy: &FairShare) -> Result<(), BatchError> {
        let known: bool = self
            .db
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM job WHERE queue = ?1 AND share = ?2
                    AND status IN ('SUBMITTED', 'PENDING', 'RUNNABLE', 'STARTING', 'RUNNING'))",
            )?
            .query_row(params![queue, share], |row| row.get(0))?;
        let most = i64::try_from(SHARES_MAX).unwrap_or(i64::MAX);
        if known || self.active_shares(queue, policy)? < most {
            return Ok(());
        }
        Err(BatchError::client(format!(
            "JobQueue {queue} has {SHARES_MAX} active share identifiers, the most it can have"
        )))
    }

    /// Thousandths of a vCPU that the jobs of a queue hold.
    pub fn vcpus_in_use(&self, queue: &str) -> rusqlite::Result<i64> {
        self.db
            .prepare_cached(
                "SELECT coalesce(sum(vcpus_milli), 0) FROM job WHERE queue = ?1
                 AND status IN ('STARTING', 'RUNNING') AND node IS NULL",
            )?
            .query_row(params![queue], |row| row.get(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(entries: &[(&str, f64)]) -> FairShare {
        let entry = |(id, weight): &(&str, f64)| ShareWeight {
            share_identifier: (*id).to_owned(),
            weight_factor: Some(*weight),
        };
        FairShare { share_distribution: entries.iter().map(entry).collect(), ..FairShare::default() }
    }

    #[test]
    fn a_share_has_the_weight_of_its_entry_or_of_its_beginning_or_one() {
        let policy = policy(&[("teamA", 0.5), ("lab*", 2.0)]);
        let cases = [("teamA", 0.5), ("teamAB", 1.0), ("lab", 2.0), ("labour", 2.0), ("Lab", 1.0)];
        for (share, want) in cases {
            assert!((weight(&policy, share) - want).abs() < 1e-9, "{share}");
        }
    }

    #[test]
    fn entries_that_speak_of_one_share_are_found() {
        let cases = [
            (vec!["a", "b", "ab"], None),
            (vec!["a", "a"], Some(("a", "a"))),
            (vec!["a*", "b", "ab"], Some(("a*", "ab"))),
            (vec!["user1", "user*"], Some(("user*", "user1"))),
            (vec!["a*", "ab*"], Some(("a*", "ab*"))),
            (vec!["a*", "a"], Some(("a*", "a"))),
        ];
        for (names, want) in cases {
            let entries: Vec<(&str, f64)> = names.iter().map(|name| (*name, 1.0)).collect();
            assert_eq!(overlapping(&policy(&entries).share_distribution), want, "{names:?}");
        }
    }

    #[test]
    fn what_is_kept_for_shares_to_come_shrinks_with_each_that_has_come() {
        let half = FairShare { compute_reservation: 50, ..FairShare::default() };
        let kept: Vec<i64> = (0..4).map(|active| reserved_vcpus_milli(64_000, &half, active)).collect();
        assert_eq!(kept, [32_000, 32_000, 16_000, 8_000]);
        assert_eq!(reserved_vcpus_milli(64_000, &FairShare::default(), 1), 0);
    }

    #[test]
    fn past_use_is_forgotten_over_the_decay_time() {
        let hour = FairShare { share_decay_seconds: 3_600, ..FairShare::default() };
        assert!((decayed(100.0, 3_600_000.0, &hour) - 36.788).abs() < 0.001);
        assert!(decayed(100.0, 0.0, &FairShare::default()).abs() < 1e-9);
    }
}
