//! What a plan evicts: the row `POOL#pool` / `EVICT#job`, from the claim of the job that starts to the moment when Batch
//! has been asked to stop every victim.

use osprey_model::id::{JobId, PoolName, TierName};
use osprey_model::job::Job;
use osprey_ports::{Expect, Item, Write};
use serde::{Deserialize, Serialize};

use super::receipt::Rule;
use crate::{key, repository};

/// A job that starts in the place of others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// The job that starts.
    pub job: JobId,
    /// Its attempt.
    pub attempt: u32,
    /// When that was claimed, milliseconds since 1970: an attempt that is given back is claimed again under its number.
    pub claimed_at: i64,
    /// Its pool.
    pub pool: PoolName,
    /// Its tier.
    pub tier: TierName,
    /// Its priority.
    pub priority: u32,
    /// The runs that go for it.
    pub victims: Vec<Victim>,
}

/// A run that goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Victim {
    /// The job.
    pub job: JobId,
    /// Its attempt: a later one is another run.
    pub attempt: u32,
    /// Its tier, whose budget it is counted in.
    pub tier: TierName,
    /// What lets it be evicted.
    pub rule: Rule,
}

impl Planned {
    /// What is planned for a job that was claimed.
    #[must_use]
    pub fn of(job: &Job, victims: Vec<Victim>) -> Self {
        Self {
            job: job.id,
            attempt: job.attempt,
            claimed_at: job.claim_at().unwrap_or(job.updated_at),
            pool: job.pool.clone(),
            tier: job.tier.clone(),
            priority: job.priority,
            victims,
        }
    }

    /// The write that keeps it, in the transaction that claims the job.
    #[must_use]
    pub fn write(&self) -> Write {
        let item = Item::new(key::planned(&self.pool, self.job), repository::json(self));
        Write::Put { item, expect: Expect::Any }
    }

    /// The job that a run goes for, if this plan evicts it.
    #[must_use]
    pub fn evicts(&self, job: JobId, attempt: u32) -> Option<JobId> {
        self.victims.iter().any(|victim| victim.job == job && victim.attempt == attempt).then_some(self.job)
    }

    /// How far the job that starts is.
    #[must_use]
    pub fn standing(&self, job: &Job) -> Standing {
        if job.attempt != self.attempt || job.stop.is_some() || job.evict.is_some() {
            return Standing::Over;
        }
        if job.claim_at() == Some(self.claimed_at) {
            return Standing::Unknown;
        }
        let is_ours = job.run.as_ref().is_some_and(|run| run.claimed_at == Some(self.claimed_at));
        if is_ours { Standing::InBatch } else { Standing::Over }
    }
}

/// How far the job is for which others go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It was claimed, and nobody knows yet whether Batch has it. Nobody goes for it so far.
    Unknown,
    /// Batch has it: the others go.
    InBatch,
    /// It isn't on its way any more: nobody goes.
    Over,
}

#[cfg(test)]
mod tests {
    use osprey_model::id::MessageId;
    use osprey_model::job::{AfterStop, Claim, JobState, Run, Stop};

    use super::*;

    fn claimed() -> Job {
        let message = MessageId::new("m");
        let claim = Claim { at: 7_000, queue: "q".into(), empty_lists: 0 };
        let job = Job::new(JobId::of_message(&message), message, 0);
        Job { state: JobState::Claimed, attempt: 2, claim: Some(claim), ..job }
    }

    fn submitted(claimed_at: Option<i64>) -> Job {
        let run =
            Run { id: "b".into(), queue: "q".into(), submitted_at: 7_500, claimed_at, started_at: None, node: None };
        Job { state: JobState::Submitted, claim: None, run: Some(run), ..claimed() }
    }

    #[test]
    fn others_go_only_once_batch_has_the_job_under_the_claim_that_planned_it() {
        let planned = Planned::of(&claimed(), Vec::new());
        let stop = Some(Stop { then: AfterStop::Fail, reason: "enough".to_owned() });
        let again = Claim { at: 9_000, queue: "q".into(), empty_lists: 0 };
        for (job, want) in [
            (claimed(), Standing::Unknown),
            (submitted(Some(7_000)), Standing::InBatch),
            (Job { state: JobState::Running, ..submitted(Some(7_000)) }, Standing::InBatch),
            (Job { stop, ..submitted(Some(7_000)) }, Standing::Over),
            (Job { claim: Some(again), ..claimed() }, Standing::Over),
            (submitted(Some(9_000)), Standing::Over),
            (submitted(None), Standing::Over),
            (Job { attempt: 3, ..submitted(Some(7_000)) }, Standing::Over),
            (Job { state: JobState::Queued, attempt: 1, claim: None, ..claimed() }, Standing::Over),
            (Job { state: JobState::Succeeded, claim: None, ..claimed() }, Standing::Over),
        ] {
            assert_eq!(planned.standing(&job), want, "{job:?}");
        }
    }
}
