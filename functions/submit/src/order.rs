//! Orders about who goes first: a job moved to the front of its tier, a step's report, a pool or tier that is drained, GPUs
//! that are kept for a team.

use osprey_model::id::{PoolName, TierName};
use osprey_model::job::{Job, JobState};
use osprey_model::message::Action;
use osprey_model::message::words::{either, quote};
use osprey_model::pool::{Pool, PoolMode};
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_pipeline::context::Context;
use osprey_pipeline::failure::Failure;
use osprey_pipeline::order::{self, Drain, Reservation};
use osprey_pipeline::repository::Change;
use osprey_pipeline::wake;
use osprey_policy::Policy;
use osprey_policy::feedback::Unmoved;
use osprey_ports::{ReceivedMessage, Write};

use crate::action::{Planned, kept, refuse, wrong};
use crate::configure::{checked, once, planned_mode};
use crate::handle::Ports;

/// The front of its tier, for a job that waits.
pub(crate) fn top(policy: &Policy, job: &Job, now: i64) -> Planned {
    if !matches!(job.state, JobState::Held | JobState::Waiting | JobState::Queued) {
        return Err(wrong(job, "top", "; only what waits can be moved forward"));
    }
    let Some(number) = policy.top_of(&job.tier) else {
        let sentence = format!(
            "job `{}` is of tier `{}`, whose jobs have no numbers and go by their age; submit it as one that isn't preemptible",
            job.id, job.tier
        );
        return Err(Refusal::new(ReasonCode::WrongState, sentence));
    };
    let next = Job { priority: number, topped: Some(now), updated_at: now, ..job.clone() };
    Ok((Change::of(next), format!("at the front of tier `{}`, with {number}", job.tier)))
}

/// What a step reports. A refused job is no step; any other may still be heard, since its last word may come after its end.
pub(crate) fn report(policy: &Policy, job: &Job, points: i32, sent_at: i64) -> Planned {
    if job.state == JobState::Refused {
        return Err(wrong(job, "take a report of", ""));
    }
    let reported = policy.feedback().after(job.reported, points, sent_at).map_err(|why| unmoved(job, why))?;
    let next = Job { reported: Some(reported), ..job.clone() };
    let done = format!("{:+} points for what comes after it", reported.points);
    Ok((Change::of(next), done))
}

fn unmoved(job: &Job, why: Unmoved) -> Refusal {
    let id = job.id;
    let sentence = match why {
        Unmoved::Off => "the policy takes no reports of priority; `most` in `[feedback]` allows them".to_owned(),
        Unmoved::Older => format!("a newer report of job `{id}` is known"),
        Unmoved::TooSoon { pause_ms } => {
            format!(
                "job `{id}`, or a step before it, reported within the last {} s, and one report in that time counts",
                pause_ms / 1_000
            )
        }
        Unmoved::TooSmall { least } => {
            format!("the report of job `{id}` would move less than {} points, and moves nothing", least.max(1))
        }
    };
    Refusal::new(ReasonCode::WrongState, sentence)
}

/// Carries out an order about a pool; the pool's next cycle follows it, and is called at once.
pub(crate) async fn on_pool<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    message: &ReceivedMessage,
    action: &Action,
) -> Result<(), Failure> {
    let now = ports.now().as_millisecond();
    match planned(ctx, &message.sender.principal, action, now) {
        Ok((pool, mut writes, done)) => {
            writes.extend(kept(message, action, None, now, Ok(done)));
            once(ports, &writes).await?;
            wake::pool(ports, pool, 0).await;
            Ok(())
        }
        Err(refusal) => refuse(ports, kept(message, action, None, now, Err(refusal))).await,
    }
}

/// What an order about a pool, a new mode of it, or a new policy would do: the sentence that says so.
///
/// # Errors
/// Why it would be refused.
pub fn preview_order(ctx: &Context<'_>, action: &Action, now: i64) -> Result<String, Refusal> {
    if let Action::SetMode { pool, mode, preemption, .. } = action {
        return planned_mode(ctx, pool, (*mode, *preemption), ("", now)).map(|(_, done)| done);
    }
    if let Action::ApplyPolicy { policy, .. } = action {
        return checked(ctx, policy).map(|revision| format!("policy {revision} is in force within a minute"));
    }
    planned(ctx, "", action, now).map(|(_, _, done)| done)
}

/// The pool, what is written, and the sentence that says so.
type OnPool<'a> = (&'a PoolName, Vec<Write>, String);

fn planned<'a>(ctx: &Context<'_>, by: &str, action: &'a Action, now: i64) -> Result<OnPool<'a>, Refusal> {
    let by = by.to_owned();
    match action {
        Action::DrainPool { pool, tier, .. } => {
            held(ctx, pool)?;
            known_tier(ctx, tier.as_ref())?;
            let drain = Drain { tier: tier.clone(), at: now, by };
            let done = format!("{} starts nothing more; what runs goes on", named(pool, tier.as_ref()));
            Ok((pool, vec![order::drain_write(pool, &drain)], done))
        }
        Action::ResumePool { pool, tier, .. } => {
            known(ctx, pool)?;
            let tiers = || ctx.policy.tiers().iter().map(|tier| order::resume_write(pool, Some(&tier.name)));
            let mut writes = vec![order::resume_write(pool, tier.as_ref())];
            writes.extend(tier.is_none().then(tiers).into_iter().flatten());
            Ok((pool, writes, format!("{} starts jobs again", named(pool, tier.as_ref()))))
        }
        Action::Reserve { pool, team, gpus, until, .. } => {
            let there = held(ctx, pool)?;
            enough(there, *gpus)?;
            let until = until.map_or(now, |until| until.as_millisecond());
            if *gpus > 0 && until <= now {
                let sentence = "`until` has passed already; give a time to come";
                return Err(Refusal::new(ReasonCode::InvalidText, sentence));
            }
            let team = team.trim().to_lowercase();
            let done = if *gpus == 0 {
                format!("nothing of pool `{pool}` is kept for team {} any more", quote(&team))
            } else {
                let until = jiff::Timestamp::from_millisecond(until).unwrap_or_default();
                format!("{gpus} GPUs of pool `{pool}` are kept for team {} until {until:.3}", quote(&team))
            };
            let kept = Reservation { team, gpus: *gpus, until, at: now, by };
            Ok((pool, vec![order::reserve_write(pool, &kept)], done))
        }
        _ => Err(Refusal::new(ReasonCode::UnknownAction, "this is no order about a pool")),
    }
}

fn named(pool: &PoolName, tier: Option<&TierName>) -> String {
    tier.map_or_else(|| format!("pool `{pool}`"), |tier| format!("tier `{tier}` of pool `{pool}`"))
}

fn known<'c>(ctx: &Context<'c>, pool: &PoolName) -> Result<&'c Pool, Refusal> {
    ctx.pools.iter().find(|known| known.name == *pool).ok_or_else(|| {
        let names = either(ctx.pools.iter().map(|pool| pool.name.as_str()));
        Refusal::new(ReasonCode::UnknownPool, format!("there is no pool {}; there are {names}", quote(pool.as_str())))
    })
}

/// A pool whose jobs Osprey holds: of any other Batch says what starts.
fn held<'c>(ctx: &Context<'c>, pool: &PoolName) -> Result<&'c Pool, Refusal> {
    let known = known(ctx, pool)?;
    if known.mode == PoolMode::Held {
        return Ok(known);
    }
    let sentence = format!(
        "pool `{pool}` is in mode `{}`, in which Batch starts what it has; set its mode to `held` first, or disable its job queues",
        known.mode.as_str()
    );
    Err(Refusal::new(ReasonCode::WrongState, sentence))
}

fn known_tier(ctx: &Context<'_>, tier: Option<&TierName>) -> Result<(), Refusal> {
    let Some(tier) = tier.filter(|tier| ctx.tier(tier).is_none()) else { return Ok(()) };
    let names = either(ctx.policy.tiers().iter().map(|tier| tier.name.as_str()));
    let sentence = format!("there is no tier {}; there are {names}", quote(tier.as_str()));
    Err(Refusal::new(ReasonCode::UnknownTier, sentence))
}

fn enough(pool: &Pool, gpus: u32) -> Result<(), Refusal> {
    let Some(most) = pool.gpus().filter(|most| gpus > *most) else { return Ok(()) };
    let sentence = format!("{gpus} GPUs are asked for, and pool `{}` has {most}; keep at most those", pool.name);
    Err(Refusal::new(ReasonCode::LargerThanPool, sentence))
}
