//! Why a job waits: the decision that a cycle would make now, asked about one job and acted on by nobody.

use osprey_model::id::JobId;
use osprey_model::pool::Pool;
use osprey_pipeline::context::Context;
use osprey_pipeline::failure::Failure;
use osprey_pipeline::guard::Guard;
use osprey_pipeline::line::InLine;
use osprey_ports::{Clock, GetItem, ObserveCapacity, QueryItems};
use osprey_scheduler::{Plan, Rules, Snapshot, WaitReason, decide};

use crate::load::{self, Loaded, WINDOW};
use crate::{rules, snapshot};

/// A pool's decision as it would be now.
#[derive(Clone, Debug)]
pub struct Look {
    /// What was read.
    pub loaded: Loaded,
    /// What was decided on.
    pub snapshot: Snapshot,
    /// By which rules.
    pub rules: Rules,
    /// What a cycle would do.
    pub plan: Plan,
    /// When, milliseconds since 1970.
    pub now_ms: i64,
}

/// What a cycle would do with a job in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The next cycle starts it.
    Starts,
    /// The next cycle starts it in the place of others.
    Preempts {
        /// How many jobs go.
        victims: usize,
    },
    /// It waits.
    Waits(WaitReason),
    /// So many of its tier are before it, and a cycle looks no further.
    FarBehind {
        /// How many a cycle looks at.
        window: usize,
    },
}

/// Decides about a pool as a cycle would now.
///
/// # Errors
/// When the store or Batch fails.
pub async fn look<P>(ctx: &Context<'_>, ports: &P, pool: &Pool) -> Result<Look, Failure>
where
    P: GetItem + QueryItems + ObserveCapacity + Clock + Sync,
{
    let now_ms = ports.now().as_millisecond();
    let rules = rules::of(ctx.policy, pool);
    let searched_to = Guard::read(ports, &pool.name).await?.state().searched_to.clone();
    let loaded = load::load(ports, pool, &rules, now_ms, searched_to).await?;
    let rules = rules::with_orders(rules, &loaded.orders, now_ms);
    let snapshot = snapshot::of(ctx, pool, &loaded, &rules, now_ms);
    let plan = decide(&snapshot, &rules, now_ms);
    Ok(Look { loaded, snapshot, rules, plan, now_ms })
}

/// The same about a pool in whose line one job more would stand. What is known of its team is taken from another look where the
/// pool has nobody of that team.
///
/// # Errors
/// When the store or Batch fails.
pub async fn look_beside<P>(
    ctx: &Context<'_>,
    ports: &P,
    pool: &Pool,
    job: InLine,
    known: Option<&Look>,
) -> Result<Look, Failure>
where
    P: GetItem + QueryItems + ObserveCapacity + Clock + Sync,
{
    let now_ms = ports.now().as_millisecond();
    let rules = rules::of(ctx.policy, pool);
    let searched_to = Guard::read(ports, &pool.name).await?.state().searched_to.clone();
    let mut loaded = load::load(ports, pool, &rules, now_ms, searched_to).await?;
    if let Some(team) = job.team.as_ref().filter(|team| rules.asks_of_teams() && !loaded.teams.contains_key(*team)) {
        let account = known.and_then(|look| look.loaded.teams.get(team)).cloned();
        let account = match account {
            Some(account) => account,
            None => osprey_pipeline::account::load(ports, team, now_ms).await?,
        };
        loaded.teams.insert(team.clone(), account);
    }
    loaded.line.retain(|other| other.job != job.job);
    loaded.line.push(job);
    let rules = rules::with_orders(rules, &loaded.orders, now_ms);
    let snapshot = snapshot::of(ctx, pool, &loaded, &rules, now_ms);
    let plan = decide(&snapshot, &rules, now_ms);
    Ok(Look { loaded, snapshot, rules, plan, now_ms })
}

impl Look {
    /// What becomes of a job that stands in line.
    #[must_use]
    pub fn fate(&self, job: JobId) -> Fate {
        if self.plan.starts.iter().any(|start| start.job == job) {
            return Fate::Starts;
        }
        if let Some(eviction) = self.plan.evictions.iter().find(|eviction| eviction.start.job == job) {
            return Fate::Preempts { victims: eviction.victims.len() };
        }
        let waiting = self.plan.waiting.iter().find(|waiting| waiting.job == job);
        waiting.map_or(Fate::FarBehind { window: WINDOW }, |waiting| Fate::Waits(waiting.reason))
    }

    /// Jobs of the line that come before this one, in the order of the decision; `None` for one that isn't there.
    #[must_use]
    pub fn ahead(&self, job: JobId) -> Option<usize> {
        let mut ordered = osprey_scheduler::order::of_snapshot(&self.snapshot, &self.rules, self.now_ms).into_iter();
        ordered.position(|queued| queued.job == job)
    }
}
