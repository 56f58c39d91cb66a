//! What a team's quota makes of a job when it is derived, and when it is submitted without a cycle.
//!
//! A cycle holds a job over its quota with everything it knows ([`osprey_policy::share`]); this is for the door, for the
//! tier of a job that the policy demotes, and for pools of unknown capacity.

use std::collections::BTreeMap;

use osprey_model::decision::{Derivation, FactValue};
use osprey_model::id::TierName;
use osprey_model::job::{Charge, cut};
use osprey_model::metadata::Metadata;
use osprey_model::pool::{Pool, PoolMode};
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_model::resources::Demand;
use osprey_policy::Policy;
use osprey_policy::rules::{Over, Reserve};
use osprey_policy::share::Reached;
use osprey_ports::{Clock, QueryItems};

use crate::account;
use crate::context::Context;
use crate::derive::Evaluation;
use crate::failure::Failure;

/// Most characters of a user that a record keeps.
const USER_CHARS_MAX: usize = 64;
/// A job that a quota holds in a pool of unknown capacity is looked at again after so long, at least and at most.
const WAIT_MS: (i64, i64) = (60_000, 900_000);

/// Whose use a job counts as.
fn charge(policy: &Policy, metadata: &Metadata, tier: &TierName) -> Charge {
    let reserve = policy.quota().reserve_of(metadata, tier);
    let limited = reserve.filter(|reserve| reserve.user_percent.is_some());
    Charge {
        counted: metadata.team.is_some() && policy.asks_of_teams(),
        borrowed: false,
        reserve: reserve.map(|reserve| reserve.name.clone()),
        user: limited.and(metadata.user.as_deref()).map(|user| cut(user, USER_CHARS_MAX)),
    }
}

/// GPUs that a job holds at once.
fn gpus(demand: &Demand) -> u32 {
    demand.gpus.saturating_mul(demand.array_size.max(1))
}

/// The limit of GPU-hours that a job's team has reached, where that says what becomes of the job.
async fn reached<P: QueryItems + Sync>(
    ctx: &Context<'_>,
    ports: &P,
    metadata: &Metadata,
    demand: &Demand,
    tier: &TierName,
    now_ms: i64,
) -> Result<Option<Reached>, Failure> {
    let Some(team) = metadata.team.as_deref().filter(|_| ctx.policy.quota().limits_hours()) else { return Ok(None) };
    let is_free = ctx.tier(tier).is_some_and(|tier| tier.at_least().is_none());
    if is_free || gpus(demand) == 0 {
        return Ok(None);
    }
    let account = account::load(ports, team, now_ms).await?;
    Ok(account.team_use(team, ctx.policy, now_ms).over_hours((0, 0)))
}

/// What quotas make of a request.
pub(crate) struct Judged {
    /// Number and tier.
    pub derivation: Derivation,
    /// Whose use it counts as.
    pub charge: Charge,
    /// Why it is refused.
    pub refusals: Vec<Refusal>,
}

/// Judges a request, or a job that was admitted before, by the quotas of its team. Only what is new is refused.
///
/// # Errors
/// When the store fails.
pub(crate) async fn judge<P: QueryItems + Clock + Sync>(
    ctx: &Context<'_>,
    ports: &P,
    (metadata, demand): (&Metadata, &Demand),
    derivation: Derivation,
    is_new: bool,
) -> Result<Judged, Failure> {
    let now_ms = ports.now().as_millisecond();
    let (derivation, over) = over(ctx, ports, (metadata, demand), derivation, (is_new, now_ms)).await?;
    let charge = charge(ctx.policy, metadata, &derivation.tier);
    let too_large = too_large(ctx.policy, metadata, demand, &derivation.tier);
    let too_large = too_large.filter(|_| is_new && charge.counted);
    Ok(Judged { derivation, charge, refusals: over.into_iter().chain(too_large).collect() })
}

/// What the door says of a team that has used up its GPU-hours: another derivation, or a refusal of a job that is new.
async fn over<P: QueryItems + Sync>(
    ctx: &Context<'_>,
    ports: &P,
    (metadata, demand): (&Metadata, &Demand),
    derivation: Derivation,
    (is_new, now_ms): (bool, i64),
) -> Result<(Derivation, Option<Refusal>), Failure> {
    let quota = ctx.policy.quota();
    let asks = !quota.borrowing && (quota.over == Over::Demote || quota.over == Over::Reject && is_new);
    let reached = match asks {
        true => reached(ctx, ports, metadata, demand, &derivation.tier, now_ms).await?,
        false => None,
    };
    let Some(reached) = reached else { return Ok((derivation, None)) };
    if quota.over == Over::Demote {
        let because = BTreeMap::from([("quota".to_owned(), FactValue::Text(reached.to_string()))]);
        return Ok((ctx.policy.demoted(derivation, because), None));
    }
    let sentence = format!("{reached}; submit it again later, or ask for a larger quota (`[quota]` in the policy)");
    Ok((derivation, Some(Refusal::new(ReasonCode::QuotaExceeded, sentence))))
}

/// Why a job can never start: it needs more GPUs at once than its team may hold in its tier.
fn too_large(policy: &Policy, metadata: &Metadata, demand: &Demand, tier: &TierName) -> Option<Refusal> {
    let (gpus, most) = (gpus(demand), policy.team_gpus_max(metadata.team.as_deref()?, tier)?);
    (gpus > most).then(|| {
        let sentence = format!(
            "it needs {gpus} GPUs, and its team may hold {most} at once in tier `{tier}`; ask for fewer, or split the job"
        );
        Refusal::new(ReasonCode::QuotaExceeded, sentence)
    })
}

/// Why a job can never start in its pool: what is reserved there for others leaves too little, or its user may not have so
/// much. An array that Batch unfolds takes what it can of a pool.
pub(crate) fn kept_from(policy: &Policy, charge: &Charge, demand: &Demand, pool: &Pool) -> Option<Refusal> {
    let pool_gpus = pool.gpus().filter(|_| pool.mode == PoolMode::Held)?;
    let gpus = gpus(demand).min(pool_gpus.max(demand.gpus));
    let (own, others): (Vec<&Reserve>, Vec<&Reserve>) =
        policy.quota().reserves.iter().partition(|reserve| charge.reserve.as_ref() == Some(&reserve.name));
    let kept = others.iter().fold(0_u32, |sum, reserve| sum.saturating_add(reserve.gpus(pool_gpus)));
    let open = pool_gpus.saturating_sub(kept);
    let name = &pool.name;
    let sentence = if kept > 0 && gpus > open {
        format!(
            "it needs {gpus} GPUs, and what is reserved for other jobs leaves {open} of pool `{name}`; ask for fewer"
        )
    } else {
        let limited = own.first().filter(|_| charge.user.is_some());
        let most = limited.and_then(|reserve| reserve.user_gpus(pool_gpus)).filter(|most| gpus > *most)?;
        format!("it needs {gpus} GPUs, and a user may hold {most} at once of what is reserved; ask for fewer")
    };
    Some(Refusal::new(ReasonCode::QuotaExceeded, sentence))
}

/// What GPU-hours say of a job that is submitted without a cycle.
pub(crate) enum Hours {
    /// Its team is within them.
    Within,
    /// Its team goes on beyond them.
    Borrows,
    /// It waits until then, milliseconds since 1970.
    Waits(i64),
}

/// Looks at the GPU-hours of a job that is about to be submitted without a cycle.
///
/// # Errors
/// When the store fails.
pub(crate) async fn hours<P: QueryItems + Sync>(
    ctx: &Context<'_>,
    ports: &P,
    evaluation: &Evaluation,
    now_ms: i64,
) -> Result<Hours, Failure> {
    let Evaluation { metadata, demand, decision, .. } = evaluation;
    let tier = &decision.derivation.tier;
    Ok(match reached(ctx, ports, metadata, demand, tier, now_ms).await? {
        None => Hours::Within,
        Some(_) if ctx.policy.quota().borrowing => Hours::Borrows,
        Some(reached) => Hours::Waits(wait(reached.passes_ms, now_ms)),
    })
}

/// When a job that a quota holds is looked at again.
pub(crate) fn wait(passes_ms: Option<i64>, now_ms: i64) -> i64 {
    let (least, most) = WAIT_MS;
    let after = passes_ms.map_or(least, |passes| passes.saturating_sub(now_ms).clamp(least, most));
    now_ms.saturating_add(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_soon_is_looked_at_then_and_nothing_more_often_than_each_minute() {
        assert_eq!(
            [None, Some(1), Some(300_000), Some(i64::MAX)].map(|passes| wait(passes, 0)),
            [60_000, 60_000, 300_000, 900_000]
        );
    }

    fn policy() -> Policy {
        let text = "name = \"x\"\n[[tier]]\nname = \"high\"\nat_least = 0\nteam_gpus_max = 16\n[[quota.reserve]]\n\
                    name = \"r\"\nworkload = \"interactive\"\nshare = 0.2\nuser_share = 0.5\n";
        Policy::load(text).unwrap_or_else(|errors| panic!("{errors:#?}")).policy
    }

    #[test]
    fn a_job_larger_than_what_its_team_may_hold_is_refused_with_the_way_out() {
        let team = Metadata { team: Some("search".to_owned()), ..Metadata::default() };
        let of = |gpus, array_size, metadata: &Metadata| {
            let demand = Demand { gpus, array_size, ..Demand::default() };
            too_large(&policy(), metadata, &demand, &"high".into()).map(|refusal| refusal.message)
        };
        assert_eq!((of(16, 1, &team), of(64, 1, &Metadata::default())), (None, None));
        let told = "it needs 24 GPUs, and its team may hold 16 at once in tier `high`; ask for fewer, or split the job";
        assert_eq!(of(8, 3, &team).as_deref(), Some(told));
    }

    #[test]
    fn a_job_that_a_reserve_leaves_no_room_for_or_gives_its_user_too_little_is_refused() {
        let pool = Pool {
            name: "main".into(),
            mode: PoolMode::Held,
            capacity: osprey_model::pool::CapacityType::OnDemand,
            gpus_per_node: 8,
            nodes_max: Some(2),
            vcpus_per_node: None,
            memory_mib_per_node: None,
            queues: BTreeMap::new(),
            fair_share: true,
            preemption: true,
        };
        let reserve =
            |name: &str| Charge { reserve: Some(name.to_owned()), user: Some("ada".to_owned()), ..Charge::default() };
        let of = |gpus, array_size, charge: &Charge, pool: &Pool| {
            let demand = Demand { gpus, array_size, ..Demand::default() };
            kept_from(&policy(), charge, &demand, pool).map(|refusal| refusal.message)
        };
        let nobody = Charge::default();
        assert_eq!((of(13, 1, &nobody, &pool), of(2, 1, &reserve("r"), &pool)), (None, None));
        let told = "it needs 16 GPUs, and what is reserved for other jobs leaves 13 of pool `main`; ask for fewer";
        assert_eq!(
            (of(16, 1, &nobody, &pool).as_deref(), of(4, 9, &nobody, &pool).as_deref()),
            (Some(told), Some(told))
        );
        let told = "it needs 4 GPUs, and a user may hold 2 at once of what is reserved; ask for fewer";
        assert_eq!(of(4, 1, &reserve("r"), &pool).as_deref(), Some(told));
        let direct = Pool { mode: PoolMode::Direct, ..pool };
        assert_eq!(of(16, 1, &nobody, &direct), None);
    }

    #[test]
    fn a_job_is_charged_where_its_policy_asks_and_its_user_only_where_a_reserve_limits_users() {
        let metadata = |workload: &str| Metadata {
            team: Some("search".to_owned()),
            user: Some("ada".to_owned()),
            workload: Some(workload.to_owned()),
            ..Metadata::default()
        };
        let tier = TierName::new("high");
        let interactive = charge(&policy(), &metadata("interactive"), &tier);
        assert_eq!((interactive.counted, interactive.user.as_deref()), (true, Some("ada")));
        assert_eq!(interactive.reserve.as_deref(), Some("r"));
        let training = charge(&policy(), &metadata("training"), &tier);
        assert_eq!((training.counted, training.user, training.reserve), (true, None, None));
        let text = "name = \"x\"\n[[tier]]\nname = \"high\"\nat_least = 0\n";
        let without = Policy::load(text).unwrap_or_else(|errors| panic!("{errors:#?}")).policy;
        assert_eq!(charge(&without, &metadata("interactive"), &tier), Charge::default());
    }
}
