//! Actions that change what is in force: the policy, a pool's mode.

use osprey_model::id::PoolName;
use osprey_model::message::Action;
use osprey_model::message::words::{either, quote};
use osprey_model::pool::PoolMode;
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_pipeline::context::Context;
use osprey_pipeline::failure::Failure;
use osprey_pipeline::in_force::{self, StoredMode, StoredPolicy, StoredPreemption};
use osprey_policy::Policy;
use osprey_ports::{Expect, ReceivedMessage, StoreError, Write};

use crate::action::{kept, refuse};
use crate::handle::Ports;

/// Puts a policy into force, if it can be read and passes its own tests. Each process reads it within a minute.
pub async fn policy<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    message: &ReceivedMessage,
    action: &Action,
    text: &str,
) -> Result<(), Failure> {
    let now = ports.now().as_millisecond();
    let revision = match checked(ctx, text) {
        Ok(revision) => revision,
        Err(refusal) => return refuse(ports, kept(message, action, None, now, Err(refusal))).await,
    };
    let stored = StoredPolicy { text: text.to_owned(), applied_at: now, by: message.sender.principal.clone() };
    let mut writes = in_force::policy_writes(&stored, Expect::Any);
    writes.extend(kept(message, action, None, now, Ok(format!("policy {revision} is in force within a minute"))));
    once(ports, &writes).await
}

/// The revision of a policy that may be put into force.
pub(crate) fn checked(ctx: &Context<'_>, text: &str) -> Result<String, Refusal> {
    let invalid = |sentence: String| Refusal::new(ReasonCode::InvalidPolicy, sentence);
    if !ctx.settings.changeable {
        let sentence = "this pipeline took its policy when it began; end it, and start it again with `--policy FILE`: jobs that \
                        run go on";
        return Err(invalid(sentence.to_owned()));
    }
    let loaded = Policy::load(text).map_err(|errors| {
        let faults: Vec<String> = errors.iter().map(ToString::to_string).collect();
        invalid(format!("the policy has {} mistake(s): {}", faults.len(), faults.join("; ")))
    })?;
    let failed: Vec<String> = loaded
        .policy
        .run_tests()
        .iter()
        .filter(|outcome| !outcome.failures.is_empty())
        .map(|outcome| format!("{}: {}", quote(&outcome.name), outcome.failures.join(", ")))
        .collect();
    if !failed.is_empty() {
        return Err(invalid(format!("the policy fails {} of its own tests: {}", failed.len(), failed.join("; "))));
    }
    Ok(loaded.policy.revision().to_string())
}

/// Sets a pool's mode, and whether its cycles may evict. Each process reads it within a minute.
pub async fn mode<P: Ports>(
    ctx: &Context<'_>,
    ports: &P,
    message: &ReceivedMessage,
    action: &Action,
    pool: &PoolName,
    (mode, preemption): (Option<PoolMode>, Option<bool>),
) -> Result<(), Failure> {
    let now = ports.now().as_millisecond();
    match planned_mode(ctx, pool, (mode, preemption), (&message.sender.principal, now)) {
        Ok((mut writes, done)) => {
            writes.extend(kept(message, action, None, now, Ok(done)));
            once(ports, &writes).await
        }
        Err(refusal) => refuse(ports, kept(message, action, None, now, Err(refusal))).await,
    }
}

/// What sets a pool's mode, and the sentence that says so.
pub(crate) fn planned_mode(
    ctx: &Context<'_>,
    pool: &PoolName,
    (mode, preemption): (Option<PoolMode>, Option<bool>),
    (by, now): (&str, i64),
) -> Result<(Vec<Write>, String), Refusal> {
    known(ctx, pool)?;
    let by = || by.to_owned();
    let (mut writes, mut said) = (Vec::new(), Vec::new());
    if let Some(mode) = mode {
        writes.push(in_force::mode_write(pool, &StoredMode { mode, set_at: now, by: by() }));
        said.push(format!("is in mode `{}`", mode.as_str()));
    }
    if let Some(preemption) = preemption {
        writes.push(in_force::preemption_write(pool, &StoredPreemption { preemption, set_at: now, by: by() }));
        said.push(if preemption { "may evict".to_owned() } else { "evicts nobody".to_owned() });
    }
    Ok((writes, format!("pool `{pool}` {} within a minute", said.join(" and "))))
}

fn known(ctx: &Context<'_>, pool: &PoolName) -> Result<(), Refusal> {
    if !ctx.settings.changeable {
        let sentence = "this pipeline takes its pools from its command line; start it again with other ones";
        return Err(Refusal::new(ReasonCode::UnknownPool, sentence));
    }
    if ctx.pool(pool).is_some() {
        return Ok(());
    }
    let names = either(ctx.pools.iter().map(|pool| pool.name.as_str()));
    Err(Refusal::new(ReasonCode::UnknownPool, format!("there is no pool {}; there are {names}", quote(pool.as_str()))))
}

/// Writes what an action does and that it was done; not a second time.
pub(crate) async fn once<P: Ports>(ports: &P, writes: &[Write]) -> Result<(), Failure> {
    match ports.write_items(writes).await {
        Ok(()) | Err(StoreError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
