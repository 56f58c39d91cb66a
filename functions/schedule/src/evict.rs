//! Jobs that start in the place of others. For each of them, in this order:
//!
//! 1. It is claimed under the plan's guard, and the transaction also says who goes for it.
//! 2. It is submitted.
//! 3. The others are told to go ([`osprey_pipeline::evict`]), which demands that Batch has it.
//!
//! The rest of the plan takes the room for granted that they leave, so nothing of it is done when one of these steps isn't.

use osprey_model::id::{JobId, TierName};
use osprey_model::job::Job;
use osprey_pipeline::context::Context;
use osprey_pipeline::evict::{self, Planned, Rule, Victim};
use osprey_pipeline::failure::{Disposition, Failure};
use osprey_pipeline::guard::Guard;
use osprey_pipeline::start::{self, Claimed, Preparation, Prepared};
use osprey_pipeline::wake;
use osprey_scheduler::plan::{Eviction, Opened, Receipt};
use osprey_scheduler::rules::TierRules;
use osprey_scheduler::{Plan, Rules};

use crate::Ports;
use crate::act::{Acted, TURNED_AWAY_SECONDS, may_submit};
use crate::load::Loaded;

/// Most jobs that go for one: more would make the row that names them large, and nobody wants to see it happen.
const VICTIMS_MAX: usize = 500;

/// What came of the evictions of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evicted {
    /// All of them were made: the rest of the plan may be.
    All,
    /// One of them wasn't: the pool has to be looked at again.
    Stopped,
    /// The first of them can't be made, now or later, and nobody was told to go: a plan without any may be made.
    Impossible,
}

/// Starts the jobs of a plan that others go for.
///
/// # Errors
/// When the store or Batch fails. What was claimed by then is gone on with later.
pub async fn act<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    guard: &mut Guard,
    (loaded, rules): (&Loaded, &Rules),
    plan: &Plan,
    acted: &mut Acted,
) -> Result<Evicted, Failure> {
    for (number, eviction) in plan.evictions.iter().enumerate() {
        if !may_submit(ports, acted).await {
            return Ok(Evicted::Stopped);
        }
        match one(ctx, ports, guard, &Wanted::of(eviction, loaded, rules), acted).await? {
            Evicted::All => {}
            Evicted::Impossible if number == 0 => return Ok(Evicted::Impossible),
            Evicted::Impossible => {
                acted.again(0);
                return Ok(Evicted::Stopped);
            }
            Evicted::Stopped => return Ok(Evicted::Stopped),
        }
    }
    Ok(Evicted::All)
}

/// A job that starts in the place of others.
struct Wanted {
    job: JobId,
    /// The number that counts: its own, or one that is lent to it.
    number: u32,
    /// The tier of that number, by whose rules others go.
    tier: Option<TierName>,
    /// Whether its team borrows for it.
    is_borrowed: bool,
    victims: Vec<Victim>,
}

impl Wanted {
    fn of(eviction: &Eviction, loaded: &Loaded, rules: &Rules) -> Self {
        let job = eviction.start.job;
        let own = loaded.line.iter().find(|in_line| in_line.job == job).map_or(0, |in_line| in_line.priority);
        let lent = loaded.lent.get(&job).map_or(0, |lent| lent.priority);
        let is_of = |tier: &&TierRules| tier.at_least.is_some_and(|least| lent >= least);
        let tier = rules.tiers.iter().find(is_of).filter(|_| lent > own).map(|tier| tier.name.clone());
        let is_borrowed = eviction.start.is_borrowed;
        Self { job, number: own.max(lent), tier, is_borrowed, victims: victims(eviction, loaded) }
    }

    /// What is written with the job's claim.
    fn planned(&self, job: &Job) -> Planned {
        let planned = Planned::of(job, self.victims.clone());
        let tier = self.tier.clone().unwrap_or_else(|| planned.tier.clone());
        Planned { tier, priority: planned.priority.max(self.number), ..planned }
    }
}

/// The runs that go, as the holds say which they are.
fn victims(eviction: &Eviction, loaded: &Loaded) -> Vec<Victim> {
    let victim = |receipt: &Receipt| {
        let holding = loaded.holds.iter().find(|holding| holding.job == receipt.job)?;
        let rule = match receipt.opened {
            Opened::Always => Rule::MayPreempt,
            Opened::WhenFull => Rule::MayPreemptWhenFull,
            Opened::Borrowed => Rule::Borrowing,
        };
        Some(Victim { job: holding.job, attempt: holding.attempt, tier: holding.tier.clone(), rule })
    };
    eviction.victims.iter().filter_map(victim).collect()
}

/// Starts one job in the place of others.
async fn one<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    guard: &mut Guard,
    wanted: &Wanted,
    acted: &mut Acted,
) -> Result<Evicted, Failure> {
    let (job, victims) = (wanted.job, &wanted.victims);
    if victims.len() > VICTIMS_MAX {
        tracing::error!(job_id = %job, victims = victims.len(), "too many jobs would have to go for one; it waits.");
        return Ok(Evicted::Impossible);
    }
    let pool = guard.pool().clone();
    match start::prepare(ctx, ports, &pool, job).await {
        Ok(Preparation::Ready(mut prepared)) => {
            prepared.borrow(wanted.is_borrowed);
            claimed(ctx, ports, guard, &prepared, wanted, acted).await
        }
        Ok(Preparation::Gone) => {
            acted.again(0);
            Ok(Evicted::Stopped)
        }
        Ok(Preparation::Moved(pool)) => {
            acted.again(0);
            wake::pool(ports, &pool, 0).await;
            Ok(Evicted::Stopped)
        }
        // It would fail again, and mustn't keep the others from starting.
        Err(failure) if failure.disposition() == Disposition::DeadLetter => {
            tracing::error!(job_id = %job, error = failure.story(), "a job can't be read, and isn't started.");
            Ok(Evicted::Impossible)
        }
        Err(failure) => Err(failure),
    }
}

async fn claimed<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    guard: &mut Guard,
    prepared: &Prepared,
    wanted: &Wanted,
    acted: &mut Acted,
) -> Result<Evicted, Failure> {
    let planned = |job: &Job| vec![wanted.planned(job).write()];
    let ready = match start::claim(ctx, ports, prepared, guard.step(), &planned).await? {
        Claimed::Ready(ready) => ready,
        Claimed::Gone | Claimed::OverQuota | Claimed::Superseded => {
            acted.again(0);
            return Ok(Evicted::Stopped);
        }
    };
    guard.stepped();
    let job = ready.job();
    acted.started.push(job.id);
    let is_taken = start::send(ctx, ports, &ready).await?;
    // Also when it was turned away: then nobody goes.
    evict::carry_out(ctx, ports, &job.pool, job.id).await?;
    if is_taken {
        return Ok(Evicted::All);
    }
    acted.again(TURNED_AWAY_SECONDS);
    Ok(Evicted::Stopped)
}
