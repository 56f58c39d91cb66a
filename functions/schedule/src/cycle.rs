//! One cycle of one pool.
//!
//! 1. Whoever plans next must have seen this: the pool's plan is read first.
//! 2. The pool is read: the front of its line, what is held, what its nodes have.
//! 3. Evictions of plans before that aren't done are gone on with, and the pool is read again. Of those who go Batch is asked
//!    who has gone.
//! 4. The decision, which is pure. Where it evicts somebody Batch is asked whether these still run, and if they don't it is
//!    made anew.
//! 5. The plan becomes the pool's, unless somebody planned or claimed since the first step.
//! 6. What starts is claimed and submitted, each claim under the plan's guard; first what others go for.

use osprey_model::pool::{Pool, PoolMode};
use osprey_pipeline::context::Context;
use osprey_pipeline::dispatch;
use osprey_pipeline::failure::Failure;
use osprey_pipeline::guard::{Guard, Seen};
use osprey_pipeline::line;
use osprey_scheduler::rules::Strategy;
use osprey_scheduler::snapshot::{Gate, Node};
use osprey_scheduler::{Plan, Rules, Snapshot, decide};

use crate::act::{self, Acted};
use crate::evict::{self, Evicted};
use crate::load::{self, Loaded};
use crate::{Ports, confirm, rules, snapshot};

/// How a cycle ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// There is nothing more to do now.
    Done,
    /// There is more to do, after so many seconds.
    Again {
        /// The seconds.
        delay_seconds: u32,
    },
    /// Somebody else planned for the pool, or claimed of it, after this cycle had looked at it.
    Superseded,
}

/// Runs a cycle; `before` is the pool's plan as it was read for it.
///
/// # Errors
/// When the store or Batch fails; the wake-up comes again.
pub async fn run<P: Ports>(ctx: &Context<'_>, ports: &P, pool: &Pool, before: Guard) -> Result<End, Failure> {
    let looked_at = ports.now().as_millisecond();
    if pool.mode != PoolMode::Held {
        osprey_pipeline::evict::resume(ctx, ports, &pool.name).await?;
        return drain(ctx, ports, pool, before, looked_at).await;
    }
    let rules = rules::of(ctx.policy, pool);
    let searched_to = before.state().searched_to.clone();
    let mut loaded = load::load(ports, pool, &rules, looked_at, searched_to.clone()).await?;
    if !loaded.planned.is_empty() {
        osprey_pipeline::evict::resume(ctx, ports, &pool.name).await?;
        loaded = load::load(ports, pool, &rules, looked_at, searched_to).await?;
    }
    let rules = rules::with_orders(rules, &loaded.orders, looked_at);
    if confirm::leaving(ports, &mut loaded).await? {
        // What was seen of the nodes before may be what they held.
        loaded.capacity = load::observed(ports, pool).await?;
    }
    let (snapshot, plan) = decided(ctx, ports, pool, &mut loaded, (&rules, looked_at)).await?;
    let no_capacity_since = no_capacity_since(&snapshot);
    let seen = Seen { looked_at, no_capacity_since, searched_to: loaded.searched_to.clone() };
    let Some(mut guard) = before.commit(ports, seen).await? else { return Ok(End::Superseded) };
    tell(pool, &loaded, &snapshot, &plan);
    let mut acted = Acted::default();
    match evict::act(ctx, ports, &mut guard, (&loaded, &rules), &plan, &mut acted).await? {
        Evicted::All => act::act(ctx, ports, guard, &plan, &mut acted).await?,
        Evicted::Stopped => {}
        Evicted::Impossible => {
            act::act(ctx, ports, guard, &decide(&snapshot, &peaceful(&rules), looked_at), &mut acted).await?;
        }
    }
    act::move_on(ctx, ports, pool, &plan, &mut acted).await?;
    act::demote(ctx, ports, pool, &plan, &mut acted).await?;
    act::bring_forward(ctx, ports, &loaded.aged, &acted).await?;
    measure(ports, pool, &snapshot, looked_at);
    Ok(end(&acted))
}

/// Decisions that find somebody to evict who isn't up as was thought; then nobody is evicted in this cycle.
const CONFIRMATIONS_MAX: u32 = 3;

/// The snapshot of what was loaded, and what is decided on it: everybody who goes is up, as far as Batch knows.
async fn decided<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    pool: &Pool,
    loaded: &mut Loaded,
    (rules, now_ms): (&Rules, i64),
) -> Result<(Snapshot, Plan), Failure> {
    for _ in 0..CONFIRMATIONS_MAX {
        let snapshot = snapshot::of(ctx, pool, loaded, rules, now_ms);
        let plan = decide(&snapshot, rules, now_ms);
        if confirm::confirm(ports, loaded, (&snapshot, &plan), now_ms).await? {
            return Ok((snapshot, plan));
        }
        // What was seen of the nodes before may be what he held who has gone, and would now look like others' work.
        loaded.capacity = load::observed(ports, pool).await?;
    }
    let snapshot = snapshot::of(ctx, pool, loaded, rules, now_ms);
    let plan = decide(&snapshot, &peaceful(rules), now_ms);
    Ok((snapshot, plan))
}

/// The same rules, by which nobody is evicted.
fn peaceful(rules: &Rules) -> Rules {
    Rules { strategy: Strategy::Backfill, ..rules.clone() }
}

/// Since when the pool doesn't get what it asked for.
fn no_capacity_since(snapshot: &Snapshot) -> Option<i64> {
    match snapshot.gate {
        Gate::NoCapacity { since_ms } => Some(since_ms),
        Gate::Open | Gate::Paused => None,
    }
}

fn end(acted: &Acted) -> End {
    match acted.again_after_seconds {
        Some(delay_seconds) => End::Again { delay_seconds },
        None => End::Done,
    }
}

/// Jobs that are let go at once from the line of a pool that holds no jobs any more.
const DRAINED_MAX: usize = 100;

/// The line of a pool that holds no jobs: nobody waits there for a plan.
async fn drain<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    pool: &Pool,
    before: Guard,
    looked_at: i64,
) -> Result<End, Failure> {
    let (line, is_cut) = line::front(ports, &pool.name, DRAINED_MAX).await?;
    if line.is_empty() || before.commit(ports, Seen { looked_at, ..Seen::default() }).await?.is_none() {
        return Ok(End::Done);
    }
    let rest = line.len() > DRAINED_MAX || is_cut;
    let mut failed = None;
    for job in line.iter().take(DRAINED_MAX) {
        if let Err(failure) = dispatch::dispatch(ctx, ports, job.job).await {
            tracing::warn!(job_id = %job.job, error = failure.story(), "a job could not leave the line.");
            failed = failed.or(Some(failure));
        }
    }
    if let Some(failure) = failed {
        return Err(failure);
    }
    Ok(if rest { End::Again { delay_seconds: 0 } } else { End::Done })
}

fn tell(pool: &Pool, loaded: &Loaded, snapshot: &Snapshot, plan: &Plan) {
    tracing::info!(
        pool = %pool.name,
        waiting = loaded.line.len(),
        held = loaded.holds.len(),
        gpus = snapshot.gpus(),
        starts = plan.starts.len(),
        evictions = plan.evictions.iter().map(|eviction| eviction.victims.len()).sum::<usize>(),
        reserved = plan.reservations.len(),
        no_capacity_since = no_capacity_since(snapshot),
        "a plan was made."
    );
}

/// The numbers of a cycle.
fn measure<P: Ports>(ports: &P, pool: &Pool, snapshot: &Snapshot, looked_at: i64) {
    let took = ports.now().as_millisecond().saturating_sub(looked_at);
    let pool = pool.name.as_str();
    tracing::debug!(metric = "CycleMilliseconds", pool, amount = took);
    tracing::debug!(metric = "FragmentationPercent", pool, amount = fragmentation_percent(snapshot));
}

/// GPUs that are free on nodes of which a part is taken, in percent of the pool's, at the beginning of a cycle.
fn fragmentation_percent(snapshot: &Snapshot) -> f64 {
    let holds = || snapshot.running.iter().flat_map(|running| &running.holds);
    let stranded = |(number, node): (u32, &Node)| {
        let ours: u32 = holds().filter(|hold| hold.node == number).map(|hold| hold.gpus).sum();
        let free = node.gpus.saturating_sub(node.foreign_gpus).saturating_sub(ours);
        if free < node.gpus { u64::from(free) } else { 0 }
    };
    let stranded: u64 = (0_u32..).zip(&snapshot.nodes).map(stranded).sum();
    let all: u64 = snapshot.nodes.iter().map(|node| u64::from(node.gpus)).sum();
    percent(stranded, all)
}

#[expect(clippy::cast_precision_loss, reason = "GPUs of a pool stay far below 2^53")]
fn percent(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 * 100.0 / all as f64 }
}
