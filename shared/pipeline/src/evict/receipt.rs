//! The receipt of an eviction, for its owner: the row `JOB#id` / `EVICTION#nnnn`, written before Batch is asked, closed with
//! the attempt.

use std::fmt;

use osprey_model::end::EndClass;
use osprey_model::id::{BatchJobId, JobId, PoolName, TierName};
use osprey_model::job::{Evict, Job, Run};
use osprey_ports::{Expect, GetItem, Item, Write};
use serde::{Deserialize, Serialize};

use super::window;
use crate::failure::Failure;
use crate::{key, repository, usage};

/// Who was evicted, for whom, by which rule, what it cost, and where it goes on. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The attempt that goes.
    pub attempt: u32,
    /// Batch's id of it.
    pub batch_job_id: BatchJobId,
    /// When it was recorded.
    pub at: i64,
    /// For whom.
    #[serde(flatten)]
    pub by: By,
    /// The pool that it ran in.
    pub pool: PoolName,
    /// Its tier, whose budget it is counted in.
    pub tier: TierName,
    /// Work that no checkpoint keeps, in GPU-milliseconds: as of the record until its end is known, then as of that.
    pub lost_gpu_ms: u64,
    /// Work that is kept, in milliseconds of its runs: where it goes on.
    pub kept_ms: u64,
    /// How the attempt ended; `None` while it hasn't. Whatever isn't `preempted` came first, and nothing was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<EndClass>,
}

/// For whom a run goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum By {
    /// A job that starts in its place.
    Job {
        /// The job.
        job: JobId,
        /// Its tier.
        job_tier: TierName,
        /// Its priority.
        job_priority: u32,
        /// The rule.
        rule: Rule,
    },
    /// A person.
    Person {
        /// Who, as the queue authenticated them.
        sender: String,
        /// Why.
        reason: String,
    },
}

/// What lets a run be evicted for a job: a key of that job's tier, or of the quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// `may_preempt`.
    MayPreempt,
    /// `may_preempt_when_full`.
    MayPreemptWhenFull,
    /// `borrowing`: what went on beyond its team's quota is taken back by a job that is within its own team's.
    Borrowing,
}

impl Rule {
    /// The key in a policy.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::MayPreempt => "may_preempt",
            Self::MayPreemptWhenFull => "may_preempt_when_full",
            Self::Borrowing => "borrowing",
        }
    }

    /// Whose key it is, in a sentence about the job that starts.
    fn whose(self) -> &'static str {
        match self {
            Self::MayPreempt | Self::MayPreemptWhenFull => "its tier's",
            Self::Borrowing => "the quota's",
        }
    }
}

/// An eviction that begins: the job marked, and the writes that go with it. `None` for a job without a run, or one that
/// goes already.
#[must_use]
pub fn begun(job: &Job, by: By, now: i64) -> Option<(Job, Receipt)> {
    let run = job.run.as_ref().filter(|_| job.evict.is_none() && job.stop.is_none())?;
    let goes_for = match &by {
        By::Job { job, .. } => Some(*job),
        By::Person { .. } => None,
    };
    let (lost_gpu_ms, kept_ms) = cost(job, run, now);
    let receipt = Receipt {
        attempt: job.attempt,
        batch_job_id: run.id.clone(),
        at: now,
        by,
        pool: job.pool.clone(),
        tier: job.tier.clone(),
        lost_gpu_ms,
        kept_ms,
        end: None,
    };
    let evict = Some(Evict { at: now, goes_for });
    Some((Job { evict, updated_at: now, ..job.clone() }, receipt))
}

/// GPU-milliseconds that are lost when a run ends at a time, and the milliseconds of work that are kept.
fn cost(job: &Job, run: &Run, at: i64) -> (u64, u64) {
    let Some(started_at) = run.started_at else { return (0, job.kept_ms) };
    let kept_ms = job.kept_ms_at(started_at, at);
    let ran = usage::gpu_ms(job.gpus, started_at, at);
    let saved = u64::from(job.gpus).saturating_mul(kept_ms.saturating_sub(job.kept_ms));
    (ran.saturating_sub(saved), kept_ms)
}

impl Receipt {
    /// The writes of an eviction of a job that begins: its receipt, and its place among what its tier's budget counts.
    #[must_use]
    pub fn writes(&self, job: JobId) -> Vec<Write> {
        vec![repository::create(key::eviction(job, self.attempt), repository::json(self)), window::write(job, self)]
    }

    /// The writes that close it with its attempt, which ended so at a time.
    #[must_use]
    pub fn close(&self, job: &Job, run: &Run, class: EndClass, at: i64) -> Vec<Write> {
        let is_eviction = class == EndClass::Preempted;
        let (lost_gpu_ms, kept_ms) = if is_eviction { cost(job, run, at) } else { (0, job.kept_ms) };
        let closed = Self { end: Some(class), lost_gpu_ms, kept_ms, ..self.clone() };
        let item = Item::new(key::eviction(job.id, self.attempt), repository::json(&closed));
        let mut writes = vec![Write::Put { item, expect: Expect::Any }];
        if !is_eviction {
            // It ended by itself, so nobody was disturbed.
            writes.push(Write::Delete { key: window::key_of(job.id, self), expect: Expect::Any });
        }
        writes
    }

    /// The sentence about what it costs, of an eviction that begins.
    #[must_use]
    pub fn cost(&self) -> String {
        let lost = Minutes(self.lost_gpu_ms);
        match self.kept_ms {
            0 => format!("{lost} GPU-minutes of work are lost, and it begins anew: no checkpoint is known"),
            kept_ms => {
                let kept = Minutes(kept_ms);
                format!("{lost} GPU-minutes of work are lost, and it goes on {kept} minutes into its run")
            }
        }
    }
}

/// Reads the receipt of a job that is being evicted; `None` for one that isn't.
///
/// # Errors
/// When the store fails.
pub async fn open<P: GetItem + Sync>(ports: &P, job: &Job) -> Result<Option<Receipt>, Failure> {
    if job.evict.is_none() {
        return Ok(None);
    }
    let item = ports.get_item(&key::eviction(job.id, job.attempt)).await?;
    item.as_ref().map(repository::read).transpose()
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.by {
            By::Job { job, job_tier, job_priority, rule } => {
                let (whose, key) = (rule.whose(), rule.key());
                write!(f, "for job {job} (priority {job_priority}, tier {job_tier}) by {whose} `{key}`")?;
            }
            By::Person { reason, .. } => write!(f, "by a person: {reason}")?,
        }
        match self.end {
            Some(EndClass::Preempted) | None => write!(f, "; {}", self.cost()),
            Some(class) => write!(f, "; it had ended by then ({}), and nothing was lost", class.as_str()),
        }
    }
}

/// Milliseconds as minutes with a tenth.
struct Minutes(u64);

impl fmt::Display for Minutes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.0 / 6_000 + u64::from(self.0 % 6_000 >= 3_000);
        write!(f, "{}.{}", tenths / 10, tenths % 10)
    }
}

#[cfg(test)]
mod tests {
    use osprey_model::id::MessageId;
    use osprey_model::job::{AfterStop, JobState, Needs, Saved, Stop};

    use super::*;

    fn running() -> Job {
        let message = MessageId::new("m");
        let run = Run {
            id: "b".into(),
            queue: "q".into(),
            submitted_at: 0,
            claimed_at: None,
            started_at: Some(60_000),
            node: None,
        };
        let job = Job::new(JobId::of_message(&message), message, 0);
        let needs = Needs { saves_every_seconds: Some(600), ..Needs::default() };
        Job { state: JobState::Running, attempt: 3, gpus: 4, run: Some(run), needs, kept_ms: 90_000, ..job }
    }

    fn by() -> By {
        let job = JobId::of_message(&MessageId::new("urgent"));
        By::Job { job, job_tier: "critical".into(), job_priority: 1200, rule: Rule::MayPreempt }
    }

    #[test]
    fn a_receipt_says_for_whom_by_which_rule_what_is_lost_and_where_it_goes_on() {
        // 25 minutes of run, the last checkpoint after 20 of them.
        let (job, receipt) = begun(&running(), by(), 1_560_000).unwrap();
        assert_eq!((receipt.lost_gpu_ms, receipt.kept_ms), (4 * 300_000, 90_000 + 1_200_000));
        assert_eq!(job.evict.and_then(|evict| evict.goes_for), Some(JobId::of_message(&MessageId::new("urgent"))));
        let told = receipt.to_string();
        let end = "(priority 1200, tier critical) by its tier's `may_preempt`; 20.0 GPU-minutes of work are lost, and it goes \
                   on 21.5 minutes into its run";
        assert!(told.ends_with(end), "{told}");
        let back: Receipt = serde_json::from_str(&repository::json(&receipt)).unwrap();
        assert_eq!(back, receipt);
    }

    #[test]
    fn what_is_saved_while_it_is_told_to_stop_isnt_lost() {
        let (job, receipt) = begun(&running(), by(), 1_560_000).unwrap();
        let job = Job { saved: Some(Saved { at: 1_570_000, percent: None }), ..job };
        let writes = receipt.close(&job, job.run.as_ref().unwrap(), EndClass::Preempted, 1_575_000);
        let [Write::Put { item, .. }] = writes.as_slice() else { panic!("{writes:?}") };
        let closed: Receipt = repository::read(item).unwrap();
        assert_eq!((closed.end, closed.lost_gpu_ms), (Some(EndClass::Preempted), 4 * 5_000));
    }

    #[test]
    fn a_victim_that_finished_meanwhile_has_finished_and_counts_in_no_budget() {
        let (job, receipt) = begun(&running(), by(), 1_560_000).unwrap();
        let writes = receipt.close(&job, job.run.as_ref().unwrap(), EndClass::Succeeded, 1_575_000);
        let [Write::Put { item, .. }, Write::Delete { key, .. }] = writes.as_slice() else { panic!("{writes:?}") };
        let closed: Receipt = repository::read(item).unwrap();
        assert_eq!((closed.lost_gpu_ms, *key == window::key_of(job.id, &receipt)), (0, true));
        assert!(closed.to_string().ends_with("it had ended by then (succeeded), and nothing was lost"));
    }

    #[test]
    fn who_goes_already_isnt_evicted_again() {
        let (going, _) = begun(&running(), by(), 1_560_000).unwrap();
        assert_eq!(begun(&going, by(), 1_600_000), None);
        let stop = Some(Stop { then: AfterStop::Fail, reason: "enough".to_owned() });
        assert_eq!(begun(&Job { stop, ..running() }, by(), 1_600_000), None);
        assert_eq!(begun(&Job { state: JobState::Queued, run: None, ..running() }, by(), 1_600_000), None);
    }
}
