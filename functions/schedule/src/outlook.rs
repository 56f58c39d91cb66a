//! What would start a job that waits, and when it starts by itself: the decision on pools as they would be.

use osprey_model::id::JobId;
use osprey_model::job::Job;
use osprey_model::pool::{Pool, PoolMode};
use osprey_pipeline::context::Context;
use osprey_pipeline::derive::{self, Evaluation};
use osprey_pipeline::failure::Failure;
use osprey_pipeline::line::InLine;
use osprey_pipeline::{dispatch, record};
use osprey_ports::{Clock, DescribeJobDefinition, GetItem, ObserveCapacity, QueryIndex, QueryItems};
use osprey_scheduler::change::{self, Change, DECISIONS_MAX, Found, Question, Verified};
use osprey_scheduler::forecast::{self, Pace};

use crate::why::{Fate, Look, look_beside};

/// Most other pools that are looked at: each is read as a cycle of it would read it.
const POOLS_MAX: usize = 4;

/// When a job starts by itself, milliseconds from the look; `None` where that can't be foreseen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Eta {
    /// If runs take as long as expected ([`Pace::P50`]).
    pub p50_ms: Option<u64>,
    /// If they take longer ([`Pace::P80`]).
    pub p80_ms: Option<u64>,
}

impl Look {
    /// The least changes that would start a job which waits; none for one that isn't among those looked at.
    #[must_use]
    pub fn changes(&self, job: JobId, gpus_per_node: Option<u32>) -> Found {
        let Fate::Waits(reason) = self.fate(job) else { return Found { is_complete: true, ..Found::default() } };
        change::least(&Question {
            snapshot: &self.snapshot,
            rules: &self.rules,
            now_ms: self.now_ms,
            job,
            reason,
            gpus_per_node: gpus_per_node.filter(|gpus| *gpus > 0),
            decisions_max: DECISIONS_MAX,
        })
    }

    /// When a job starts by itself.
    #[must_use]
    pub fn eta(&self, job: JobId) -> Eta {
        let after = |pace| {
            let at_ms = forecast::starts_at(&self.snapshot, &self.rules, self.now_ms, job, pace)?;
            u64::try_from(at_ms.saturating_sub(self.now_ms)).ok()
        };
        let p50_ms = after(Pace::P50);
        // Nobody is told a later time first: slower runs may let a job pass another one.
        let p80_ms = p50_ms.and_then(|p50_ms| after(Pace::P80).map(|p80_ms| with_newcomers(p80_ms).max(p50_ms)));
        Eta { p50_ms, p80_ms }
    }
}

/// Waits within this are hardly moved by jobs that are yet to be submitted, in milliseconds: an hour.
const NEAR_MS: u64 = 3_600_000;
/// What a longer one is taken for, beyond that hour, in percent: who is submitted meanwhile and goes before. Measured on replays
/// of mix256 (docs/results.md), so that four of five jobs start by then where estimates are off by a factor of two.
const LATER_PERCENT: u64 = 250;

/// A wait with those in it who come meanwhile.
fn with_newcomers(wait_ms: u64) -> u64 {
    let later_ms = wait_ms.saturating_sub(NEAR_MS);
    (wait_ms - later_ms).saturating_add(later_ms.saturating_mul(LATER_PERCENT) / 100)
}

/// The other pools whose next cycle would start a job if it were sent there: pools that hold jobs, and that would admit it.
///
/// # Errors
/// When the store or Batch fails.
pub async fn elsewhere<P>(ctx: &Context<'_>, ports: &P, job: &Job, look: &Look) -> Result<Vec<Verified>, Failure>
where
    P: GetItem + QueryItems + QueryIndex + DescribeJobDefinition + ObserveCapacity + Clock + Sync,
{
    let is_other =
        |pool: &&Pool| pool.name != job.pool && pool.mode == PoolMode::Held && pool.queues.contains_key(&job.tier);
    let others: Vec<&Pool> = ctx.pools.iter().filter(is_other).take(POOLS_MAX).collect();
    if others.is_empty() {
        return Ok(Vec::new());
    }
    let record = record::of_job(ports, job.id).await?;
    let mut request = dispatch::request_of(&record, job.id)?;
    let mut found = Vec::new();
    for pool in others {
        request.job_queue = Some(pool.name.to_string());
        let alone = Context { pools: std::slice::from_ref(pool), ..*ctx };
        let evaluation = derive::evaluate(&alone, ports, &request, &record.from(), None, None).await?;
        if !evaluation.refusals.is_empty() || evaluation.decision.pool != pool.name {
            continue;
        }
        let stands = InLine { not_before: 0, ..stands(job.id, &evaluation, job.created_at) };
        let there = look_beside(ctx, ports, pool, stands, Some(look)).await?;
        if there.fate(job.id) == Fate::Starts {
            let change = Change::Pool { from: job.pool.clone(), to: pool.name.clone() };
            found.push(Verified { change, victims: 0 });
        }
    }
    Ok(found)
}

/// How a request would stand in line, by what was evaluated of it.
#[must_use]
pub fn stands(id: JobId, evaluation: &Evaluation, enqueued_at: i64) -> InLine {
    let derivation = &evaluation.decision.derivation;
    InLine {
        job: id,
        tier: derivation.tier.clone(),
        priority: derivation.priority,
        enqueued_at,
        not_before: 0,
        gpus: evaluation.demand.gpus.saturating_mul(evaluation.demand.array_size.max(1)),
        needs: evaluation.needs(),
        kept_ms: 0,
        team: evaluation.metadata.team.clone(),
        charge: evaluation.charge.clone(),
        policy: evaluation.decision.policy_revision.clone(),
    }
}
