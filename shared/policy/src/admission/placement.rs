//! Placement: which pools are open to a job, and which of them can run it.

mod shape;

use osprey_model::decision::Derivation;
use osprey_model::id::{PoolName, QueueName, TierName};
use osprey_model::message::words::{all_of, nearest, quote};
use osprey_model::pool::{CapacityType, Pool};
use osprey_model::reason::{ReasonCode, Refusal};
use osprey_model::request::SubmitJobRequest;
use osprey_model::resources::Demand;

/// What placement looks at.
pub(super) struct Placing<'a> {
    pub(super) request: &'a SubmitJobRequest,
    pub(super) demand: &'a Demand,
    pub(super) tier: &'a TierName,
    /// Kinds of capacity open to the tier, the preferred one first; `None` for a tier that the policy doesn't have.
    pub(super) capacity: Option<&'a [CapacityType]>,
    pub(super) pools: &'a [Pool],
    pub(super) avoid_spot: bool,
}

impl Placing<'_> {
    /// Multi-node jobs run all nodes at once, and losing one loses all.
    fn is_multi_node(&self) -> bool {
        self.demand.nodes > 1 || self.request.node_overrides.is_some()
    }
}

/// Chooses a pool.
///
/// Ordered by: the tier's preference of capacity (with `avoid_spot` Spot last), then the order of the wiring.
pub(super) fn choose(placing: &Placing<'_>) -> Result<PoolName, Vec<Refusal>> {
    let named = named(placing.request, placing.pools)?;
    let open = open(placing, &named)?;
    let mut refused: Vec<(&Pool, Vec<Refusal>)> = Vec::new();
    for pool in open {
        let faults = faults(placing, pool);
        if faults.is_empty() {
            return Ok(pool.name.clone());
        }
        refused.push((pool, faults));
    }
    Err(told(placing, refused))
}

/// The pools that the request lets choose from: all, or the one that `jobQueue` names by itself or by one of its queues.
fn named<'p>(request: &SubmitJobRequest, pools: &'p [Pool]) -> Result<Vec<&'p Pool>, Vec<Refusal>> {
    let Some(queue) = queue_name(request) else { return Ok(pools.iter().collect()) };
    if let Some(pool) = pool_of(queue, pools) {
        return Ok(vec![pool]);
    }
    let names = || pools.iter().map(|pool| pool.name.as_str());
    let queues = pools.iter().flat_map(|pool| pool.queues.values()).map(QueueName::as_str);
    let help = nearest(queue, names().chain(queues)).map(|near| format!("; did you mean {}?", quote(near)));
    let help = help.unwrap_or_default();
    let known = match pools.len() {
        0 => "there are no pools".to_owned(),
        1 => format!("the only pool is {}", all_of(names())),
        _ => format!("the pools are {}", all_of(names())),
    };
    let message = format!("`jobQueue` {} is neither a pool nor a queue of one; {known}{help}", quote(queue));
    Err(vec![Refusal::new(ReasonCode::UnknownQueue, message)])
}

/// The name in `jobQueue`, without the front of an ARN; `None` when it is left out or empty.
fn queue_name(request: &SubmitJobRequest) -> Option<&str> {
    let given = request.job_queue.as_deref()?.trim();
    let name = given.rsplit_once(":job-queue/").map_or(given, |(_, name)| name);
    (!name.is_empty()).then_some(name)
}

fn pool_of<'p>(queue: &str, pools: &'p [Pool]) -> Option<&'p Pool> {
    let by_name = pools.iter().find(|pool| pool.name.as_str() == queue);
    by_name.or_else(|| pools.iter().find(|pool| pool.queues.values().any(|known| known.as_str() == queue)))
}

/// Says that a tier queue was named and another tier came out.
pub(super) fn warning(request: &SubmitJobRequest, derivation: &Derivation, pools: &[Pool]) -> Option<String> {
    let queue = queue_name(request)?;
    let pool = pool_of(queue, pools)?;
    let (asked, _) = pool.queues.iter().find(|(_, known)| known.as_str() == queue)?;
    let derived = &derivation.tier;
    (asked != derived).then(|| {
        let pool = quote(pool.name.as_str());
        format!("`jobQueue` {} is of tier `{asked}`: the job stays in pool {pool}, but its tier is derived and is `{derived}`", quote(queue))
    })
}

/// Pools of a kind of capacity that the tier takes, and with a queue for it, in the order of preference.
fn open<'p>(placing: &Placing<'_>, named: &[&'p Pool]) -> Result<Vec<&'p Pool>, Vec<Refusal>> {
    let rank = |pool: &Pool| match placing.capacity {
        None => Some(0),
        Some(kinds) => kinds.iter().position(|kind| *kind == pool.capacity),
    };
    // A pool without any queue is one whose queues aren't known yet.
    let has_queue = |pool: &Pool| pool.queues.is_empty() || pool.queues.contains_key(placing.tier);
    let mut ranked: Vec<(bool, usize, &Pool)> = named
        .iter()
        .filter(|pool| has_queue(pool))
        .filter_map(|pool| {
            rank(pool).map(|rank| (placing.avoid_spot && pool.capacity == CapacityType::Spot, rank, *pool))
        })
        .collect();
    if ranked.is_empty() {
        return Err(vec![closed(placing, named)]);
    }
    // The sort is stable: pools of one rank keep the order of the wiring.
    ranked.sort_by_key(|(last, rank, _)| (*last, *rank));
    Ok(ranked.into_iter().map(|(_, _, pool)| pool).collect())
}

fn closed(placing: &Placing<'_>, named: &[&Pool]) -> Refusal {
    let tier = quote(placing.tier.as_str());
    let kinds = placing.capacity.unwrap_or_default().iter().map(|kind| word(*kind)).collect::<Vec<_>>().join(" or ");
    let message = match named {
        [] => "there is no pool to run it; create one".to_owned(),
        [pool] if placing.capacity.is_some_and(|kinds| !kinds.contains(&pool.capacity)) => {
            let (name, kind) = (quote(pool.name.as_str()), word(pool.capacity));
            format!("pool {name} is {kind}, and tier {tier} takes {kinds}; name another pool, or none")
        }
        [pool] => format!("pool {} has no queue of tier {tier}; name another pool, or none", quote(pool.name.as_str())),
        _ if kinds.is_empty() => format!("no pool has a queue of tier {tier}; give one of them such a queue"),
        _ => format!("no pool with a queue of tier {tier} is {kinds}; create one, or open the tier to other capacity"),
    };
    Refusal::new(ReasonCode::NoEligiblePool, message)
}

fn word(kind: CapacityType) -> &'static str {
    match kind {
        CapacityType::OnDemand => "On-Demand",
        CapacityType::Spot => "Spot",
    }
}

/// Why a pool can't run the job; empty when it can.
fn faults(placing: &Placing<'_>, pool: &Pool) -> Vec<Refusal> {
    let mut faults = Vec::new();
    if placing.is_multi_node() && pool.capacity == CapacityType::Spot {
        let message = format!(
            "AWS Batch runs no multi-node job on Spot, and no On-Demand pool is open to this one; name one, or open tier {} to On-Demand",
            quote(placing.tier.as_str())
        );
        faults.push(Refusal::new(ReasonCode::MultiNodeOnSpot, message));
    }
    faults.extend(larger(placing.demand, pool));
    if pool.gpus_per_node > 0 {
        faults.extend(shape::fault(placing.demand, pool.gpus_per_node, placing.is_multi_node()));
    }
    faults
}

/// What the job asks for beyond the whole pool, or beyond one of its nodes.
fn larger(demand: &Demand, pool: &Pool) -> Vec<Refusal> {
    let name = quote(pool.name.as_str());
    let nodes = demand.nodes.max(1);
    let beyond = |owner: &str, has: u64, asked: u64, noun: &str| {
        (asked > has).then(|| {
            let message = format!(
                "{owner} has {has} {noun}; the job asks for {asked}; ask for at most {has}, or name a larger pool"
            );
            Refusal::new(ReasonCode::LargerThanPool, message)
        })
    };
    let no_gpus = (pool.gpus_per_node == 0 && demand.gpus > 0).then(|| {
        let asked = demand.gpus;
        let message = format!("pool {name} has no GPUs; the job asks for {asked}; name a pool with GPUs");
        Refusal::new(ReasonCode::LargerThanPool, message)
    });
    let (whole, node) = (format!("pool {name}"), format!("a node of pool {name}"));
    let gpus = pool.gpus().filter(|_| pool.gpus_per_node > 0);
    let gpus = gpus.and_then(|has| beyond(&whole, has.into(), demand.gpus.into(), &noun(has, "GPU")));
    let node_count = pool.nodes_max.and_then(|has| beyond(&whole, has.into(), nodes.into(), &noun(has, "node")));
    let vcpus = pool
        .vcpus_per_node
        .and_then(|has| beyond(&node, has.into(), demand.vcpus.div_ceil(nodes).into(), &noun(has, "vCPU")));
    let memory = pool
        .memory_mib_per_node
        .and_then(|has| beyond(&node, has, demand.memory_mib.div_ceil(nodes.into()), "MiB of memory"));
    [no_gpus, gpus, node_count, vcpus, memory].into_iter().flatten().collect()
}

/// A noun in the number that goes with `count`.
fn noun(count: u32, one: &str) -> String {
    if count == 1 { one.to_owned() } else { format!("{one}s") }
}

/// What is told when no pool can run the job: the faults of the pool that came nearest.
///
/// A job with GPUs isn't told of pools without; a multi-node job is told of Spot only when that is all there is; of
/// what is left the pool with the fewest faults speaks, the preferred one first.
fn told(placing: &Placing<'_>, refused: Vec<(&Pool, Vec<Refusal>)>) -> Vec<Refusal> {
    let distance = |pool: &Pool, faults: &[Refusal]| {
        let lacks_gpus = placing.demand.gpus > 0 && pool.gpus_per_node == 0;
        let is_spot = faults.iter().any(|fault| fault.code == ReasonCode::MultiNodeOnSpot);
        (lacks_gpus, is_spot, faults.len())
    };
    // `min_by_key` keeps the first of equals, and the pools come in order of preference.
    refused
        .into_iter()
        .min_by_key(|(pool, faults)| distance(pool, faults))
        .map(|(_, faults)| faults)
        .unwrap_or_default()
}
