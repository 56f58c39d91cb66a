//! The place that the runs happen in: policies, pools, job definitions. Made once for all seeds.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use osprey_model::definition::{ContainerProperties, JobDefinition};
use osprey_model::pool::{CapacityType, Pool, PoolMode};
use osprey_policy::Policy;

use super::quota::Quota;
use super::random::Random;
use super::senders;

/// Retries after failures that the most patient policy allows.
pub const FAILURES_MAX: u32 = 2;
/// Requeues after interruptions that the most patient policy allows.
pub const INTERRUPTIONS_MAX: u32 = 5;

/// So many policies come into force as the days go by; those behind them are faults of their own.
pub const USUAL_POLICIES: usize = 3;
/// The policy under which urgent jobs belong to a tier that no pool has a queue for.
pub const WITHOUT_TIER: usize = 3;

/// Most evictions of a job.
pub const EVICTIONS_PER_JOB: usize = 1;
/// Most evictions of jobs of the tier `experimental` in a pool within the window.
pub const EVICTIONS_PER_WINDOW: usize = 2;
/// The window.
pub const EVICTION_WINDOW_MS: i64 = 1_200_000;

const TIERS: &str = r#"
[preemption]
wait = "5s"
wait_per_victim = "1s"
restart = "1s"
near_done = 0.99

[[tier]]
name = "critical"
at_least = 1100
may_preempt = ["preemptible", "experimental"]
evictions_per_job = 1

[[tier]]
name = "experimental"
at_least = 0
capacity = ["on-demand", "spot"]
minimum_run = "1s"
evictions_per_job = 1
evictions_per_window = 2
eviction_window = "20m"

[[tier]]
name = "preemptible"
takes = "preemptible"
evictions_per_job = 1
minimum_run = "1s"
capacity = ["spot", "on-demand"]
"#;

const PLAIN: &str = r#"
name = "plain"

[[rule]]
id = "inference in production"
why = "users wait, and somebody waits for each answer"
when = 'job.environment == "production" && job.workload == "inference"'
set = 1200

[requeue]
failures_max = 1
interruptions_max = 5
base = "2s"
cap = "30s"
on_demand_after = 1
"#;

const RULED: &str = r#"
name = "ruled"

[[rule]]
id = "production"
why = "users wait"
when = 'job.environment == "production"'
set = 1000

[[rule]]
id = "inference"
why = "somebody waits for each answer"
when = 'job.workload == "inference"'
add = 200

[[rule]]
id = "failures"
why = "a job that keeps failing must not keep its place"
when = "lineage.failures > 0"
amount = "-10 * lineage.failures"

[requeue]
failures_max = 2
interruptions_max = 2
base = "5s"
cap = "2m"
dependency_grace = "2m"
memory_cap_mib = 4096
"#;

const BRIEF: &str = r#"
name = "brief"

[[rule]]
id = "inference in production"
why = "users wait, and somebody waits for each answer"
when = 'job.environment == "production" && job.workload == "inference"'
set = 1200


[[rule]]
id = "busy"
why = "a team that has much gets less"
when = "team.gpus_running > 8"
add = -100

[requeue]
failures_max = 0
interruptions_max = 3
base = "1s"
cap = "10s"
"#;

/// Has a tier above the others, and no pool has a queue of it: somebody took it away, or forgot to make it.
const ABOVE: &str = r#"
name = "above"

[[rule]]
id = "urgent"
why = "users wait"
when = 'job.environment == "production" && job.workload == "inference"'
set = 1200

[requeue]
failures_max = 1
interruptions_max = 5
base = "2s"
cap = "30s"

[[tier]]
name = "above"
at_least = 1150
"#;

/// For each kind of quota the policies without and with identities.
type Variants = Vec<[Vec<Arc<Policy>>; 2]>;

/// Every policy; a run switches between them.
static POLICIES: LazyLock<Variants> = LazyLock::new(|| variants(TIERS));
/// The same policies with a tier that may evict and shouldn't.
static LAWLESS: LazyLock<Variants> = LazyLock::new(|| variants(&lawless_tiers()));

fn variants(tiers: &str) -> Variants {
    let guarded = |rest: &str| [all(rest), all(&format!("{rest}{}", senders::IDENTITIES))];
    Quota::ALL.iter().map(|quota| guarded(&format!("{tiers}{}", quota.text()))).collect()
}

fn lawless_tiers() -> String {
    TIERS.replace("at_least = 0\n", "at_least = 0\nmay_preempt = [\"preemptible\"]\n")
}

fn all(rest: &str) -> Vec<Arc<Policy>> {
    [PLAIN, RULED, BRIEF, ABOVE].iter().map(|text| Arc::new(load(&format!("{text}{rest}")))).collect()
}

/// A policy by its number, with or without identities, with some quotas; the first for a number that none has.
#[must_use]
pub fn policy(number: usize, is_guarded: bool, quota: Quota) -> Arc<Policy> {
    of(&POLICIES, number, is_guarded, quota)
}

/// The same, in which a tier may evict that shouldn't.
#[must_use]
pub fn lawless(number: usize, is_guarded: bool, quota: Quota) -> Arc<Policy> {
    of(&LAWLESS, number, is_guarded, quota)
}

fn of(variants: &Variants, number: usize, is_guarded: bool, quota: Quota) -> Arc<Policy> {
    let place = Quota::ALL.iter().position(|known| *known == quota);
    let policies = place.and_then(|place| variants.get(place)?.get(usize::from(is_guarded)));
    let found = policies.and_then(|policies| policies.get(number).or(policies.first()));
    found.cloned().unwrap_or_else(|| Arc::new(load(TIERS)))
}

fn load(text: &str) -> Policy {
    match Policy::load(text) {
        Ok(loaded) => loaded.policy,
        Err(errors) => unreachable!("the policies of the harness have no mistakes: {errors:?}"),
    }
}

/// The pools of a run: one of Spot, one On-Demand.
#[derive(Clone)]
pub struct Wired {
    /// The pools as they begin.
    pub pools: Arc<Vec<Pool>>,
    /// Whether both hold their jobs.
    pub is_held: bool,
    /// GPUs of the first node of each pool that somebody else's work holds until faults stop.
    pub foreign_gpus: u32,
}

/// The pools of a seed. Those that hold their jobs are small, so that there is something to wait for.
#[must_use]
pub fn wired(seed: u64) -> Wired {
    let mut random = Random::fork(seed, "pools");
    if is_packed(seed) {
        let nodes = random.pick(&[1, 2, 2]).copied().unwrap_or(2);
        let foreign_gpus = random.pick(&[0, 0, 0, 3]).copied().unwrap_or(0);
        return held(nodes, foreign_gpus);
    }
    let is_held = random.chance(450_000);
    if !is_held {
        return direct();
    }
    let nodes = random.pick(&[4, 5, 8]).copied().unwrap_or(4);
    let foreign_gpus = random.pick(&[0, 0, 3, 8]).copied().unwrap_or(0);
    // A pool that evicts is smaller yet: there must be something to evict for.
    let mut own = Random::fork(seed, "preemption");
    let preemption = own.chance(700_000);
    let nodes = if preemption { own.pick(&[2, 2, 3, 4]).copied().unwrap_or(2) } else { nodes };
    Wired { pools: evicting(&pools(PoolMode::Held, nodes), preemption), is_held, foreign_gpus }
}

/// Small pools that hold their jobs and may evict.
#[must_use]
pub fn held(nodes: u32, foreign_gpus: u32) -> Wired {
    Wired { pools: pools(PoolMode::Held, nodes), is_held: true, foreign_gpus }
}

/// Whether a seed is one of those in which urgent jobs meet full pools all the time: one of eight.
#[must_use]
pub fn is_packed(seed: u64) -> bool {
    seed % 8 == 3
}

/// Whether the pools of a seed may evict.
#[must_use]
pub fn evicts(seed: u64) -> bool {
    let wired = wired(seed);
    wired.is_held && wired.pools.iter().any(|pool| pool.preemption)
}

/// Pools that may evict, or may not.
fn evicting(pools: &[Pool], preemption: bool) -> Arc<Vec<Pool>> {
    Arc::new(pools.iter().map(|pool| Pool { preemption, ..pool.clone() }).collect())
}

/// Pools that submit at once.
#[must_use]
pub fn direct() -> Wired {
    Wired { pools: pools(PoolMode::Direct, 16), is_held: false, foreign_gpus: 0 }
}

fn pools(mode: PoolMode, nodes: u32) -> Arc<Vec<Pool>> {
    let pool = |name, capacity, fair_share| pool(name, capacity, fair_share, mode, nodes);
    Arc::new(vec![pool("spot", CapacityType::Spot, true), pool("steady", CapacityType::OnDemand, false)])
}

fn pool(name: &str, capacity: CapacityType, fair_share: bool, mode: PoolMode, nodes: u32) -> Pool {
    let tiers = ["critical", "experimental", "preemptible"];
    let queue = |tier: &str| format!("osprey-{name}-{tier}");
    Pool {
        name: name.into(),
        mode,
        capacity,
        gpus_per_node: 8,
        nodes_max: Some(nodes),
        vcpus_per_node: None,
        memory_mib_per_node: None,
        queues: tiers.iter().map(|tier| ((*tier).into(), queue(tier).as_str().into())).collect(),
        fair_share,
        preemption: true,
    }
}

/// Whether a queue is of the Spot pool.
#[must_use]
pub fn is_spot(queue: &str) -> bool {
    queue.starts_with("osprey-spot-")
}

/// The registered job definitions.
pub static DEFINITIONS: LazyLock<BTreeMap<&'static str, JobDefinition>> =
    LazyLock::new(|| BTreeMap::from([("train", definition("train", 7)), ("serve", definition("serve", 2))]));

fn definition(name: &str, revision: u32) -> JobDefinition {
    JobDefinition {
        job_definition_name: name.to_owned(),
        revision,
        job_definition_arn: format!("arn:aws:batch:us-east-1:123456789012:job-definition/{name}:{revision}"),
        kind: "container".to_owned(),
        container_properties: Some(ContainerProperties {
            image: Some("train:1".to_owned()),
            command: vec!["train".to_owned()],
            ..ContainerProperties::default()
        }),
        ..JobDefinition::default()
    }
}
