//! The pools as they are now: what each has, what is taken of it, who waits and for how long.

use std::collections::BTreeMap;

use osprey_model::id::{JobId, PoolName, TierName};
use osprey_model::pool::{CapacityType, Pool, PoolMode};
use osprey_pipeline::census::{self, Census, Count, OpenJob};
use osprey_pipeline::line::{self, Held};
use osprey_pipeline::order::Orders;
use osprey_policy::Policy;
use osprey_ports::{Capacity, NodeCapacity, ObserveCapacity as _};

use super::Joined;
use crate::error::CliError;

/// All pools at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overview {
    /// The pools of the pipeline in their order, and behind them those that aren't there any more and have jobs left.
    pub pools: Vec<PoolStatus>,
    /// When, milliseconds since 1970.
    pub now_ms: i64,
    /// Whether there are more jobs than are counted.
    pub is_cut: bool,
    /// What could not be seen, in sentences.
    pub faults: Vec<String>,
}

/// A pool at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PoolStatus {
    /// Its name.
    pub name: PoolName,
    /// What is known of it; `None` for one that isn't there any more, or where nobody said what the pools are.
    pub setup: Option<Setup>,
    /// Its GPUs.
    pub gpus: Gpus,
    /// The nodes that are up, in the order in which they are seen; `None` where they can't be seen.
    pub nodes: Option<Vec<NodeCapacity>>,
    /// Nodes that aren't up and can be had.
    pub obtainable: u32,
    /// Its tiers, the most urgent first.
    pub tiers: Vec<TierStatus>,
}

/// How a pool is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// How jobs reach Batch.
    pub mode: PoolMode,
    /// What its capacity can do to a job.
    pub capacity: CapacityType,
    /// Whether its cycles may evict.
    pub preemption: bool,
    /// Whether a person has drained it: it starts nothing.
    pub drained: bool,
}

/// The GPUs of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gpus {
    /// All that it may have; `None` where that isn't known.
    pub total: Option<u32>,
    /// Held by jobs that run or are on their way to a node, and by others' work where that is seen.
    pub used: u32,
    /// What the policy reserves of them for some jobs, and what people have kept for teams.
    pub reserved: u32,
    /// What of that those jobs hold now.
    pub reserved_used: u32,
    /// Kept free for urgent jobs that haven't come yet.
    pub headroom: u32,
}

impl Gpus {
    /// What nobody holds; `None` where it isn't known how many there are.
    #[must_use]
    pub fn free(&self) -> Option<u32> {
        self.total.map(|total| total.saturating_sub(self.used))
    }
}

/// A tier of a pool at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TierStatus {
    /// Its name.
    pub name: TierName,
    /// Whether a person has drained it: nothing of it starts.
    pub drained: bool,
    /// Jobs that may start and wait.
    pub waiting: usize,
    /// How long the middle one waits, in milliseconds; `None` where nobody does.
    pub median_wait_ms: Option<i64>,
    /// How long the oldest waits, in milliseconds: the starvation index.
    pub oldest_wait_ms: Option<i64>,
    /// Which that is.
    pub oldest: Option<JobId>,
    /// GPUs that the waiting jobs want.
    pub wanted_gpus: u32,
    /// Jobs that wait for other jobs.
    pub blocked: u32,
    /// Jobs on their way to a node.
    pub sent: u32,
    /// Jobs that run.
    pub running: u32,
    /// GPUs of these.
    pub running_gpus: u32,
}

impl Joined {
    /// The pools now; `only` names one. A request for each thousand jobs that have not ended, one for each five hundred
    /// that a pool holds, and those that observe the nodes of a pool.
    ///
    /// # Errors
    /// When the store or the policy can't be read. Nodes that can't be seen are a fault in the answer.
    pub fn overview(&self, only: Option<&str>) -> Result<Overview, CliError> {
        let (jobs, is_cut) = self.open_jobs()?;
        Ok(Overview { is_cut, ..self.overview_of(&jobs, only)? })
    }

    /// The jobs that have not ended and that nobody holds, and whether there are more.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn open_jobs(&self) -> Result<(Vec<OpenJob>, bool), CliError> {
        Ok(self.run(census::jobs(&self.home))?)
    }

    /// The pools now, by the jobs that have not ended.
    ///
    /// # Errors
    /// As [`Self::overview`].
    pub fn overview_of(&self, jobs: &[OpenJob], only: Option<&str>) -> Result<Overview, CliError> {
        let (policy, pools) = if self.knows_pools() {
            let (policy, pools, _) = self.deciding(None)?;
            (Some(policy), pools)
        } else {
            (None, Vec::new())
        };
        let line = policy.as_ref().map_or(u32::MAX, |policy| policy.order().dive_above);
        let census = Census::of(jobs, line);
        let mut overview = Overview { now_ms: self.now_ms(), ..Overview::default() };
        let is_meant = |name: &str| only.is_none_or(|only| only == name);
        if let Some(policy) = &policy {
            for pool in pools.iter().filter(|pool| is_meant(pool.name.as_str())) {
                let seen = self.run(self.home.observe_capacity(pool));
                let seen = seen.map_err(|error| {
                    overview.faults.push(format!("the nodes of pool `{}` can't be seen: {error}", pool.name));
                });
                let held = self.run(line::held(&self.home, &pool.name))?;
                overview.pools.push(status(policy, pool, &census, seen.ok(), &held, overview.now_ms));
            }
        }
        let known = |name: &str| pools.iter().any(|pool| pool.name.as_str() == name);
        overview.pools.extend(left_over(&census, overview.now_ms, |name| !known(name) && is_meant(name)));
        Ok(overview)
    }
}

fn status(
    policy: &Policy,
    pool: &Pool,
    census: &Census,
    seen: Option<Capacity>,
    held: &Held,
    now_ms: i64,
) -> PoolStatus {
    let name = pool.name.as_str();
    // Where Batch chooses when a job starts, what it was sent holds nothing yet.
    let ours = if pool.mode == PoolMode::Held { census.held_gpus(name) } else { census.running_gpus(name) };
    let shown = seen.as_ref().map_or(0, |seen| seen.nodes.iter().map(|node| node.gpus_used).sum());
    let up = seen.as_ref().map(|seen| seen.gpus().saturating_add(seen.obtainable.saturating_mul(pool.gpus_per_node)));
    let total = pool.gpus().or(up);
    let of_pool = total.unwrap_or(0);
    let reserves: u32 = policy.quota().reserves.iter().map(|reserve| reserve.gpus(of_pool)).sum();
    let kept: u32 = held.orders.kept_at(now_ms).map(|kept| kept.gpus.min(of_pool)).sum();
    let is_kept_for = |team: &Option<String>| held.orders.kept_at(now_ms).any(|kept| team.as_ref() == Some(&kept.team));
    let inside = held.holds.iter().filter(|hold| hold.charge.reserve.is_some() || is_kept_for(&hold.team));
    PoolStatus {
        name: pool.name.clone(),
        setup: Some(Setup {
            mode: pool.mode,
            capacity: pool.capacity,
            preemption: pool.preemption,
            drained: held.orders.drains_all(),
        }),
        gpus: Gpus {
            total,
            used: ours.max(shown),
            reserved: reserves.saturating_add(kept),
            reserved_used: inside.map(|hold| hold.gpus).sum(),
            headroom: policy.order().headroom_of(&pool.name).of(of_pool),
        },
        obtainable: seen.as_ref().map_or(0, |seen| seen.obtainable),
        nodes: seen.map(|seen| seen.nodes),
        tiers: tiers(policy, pool, census, &held.orders, now_ms),
    }
}

/// The tiers that a pool has a queue for, in the order of the policy, and others that have jobs there.
fn tiers(policy: &Policy, pool: &Pool, census: &Census, orders: &Orders, now_ms: i64) -> Vec<TierStatus> {
    let count = |tier: &TierName| census.tiers.get(&(pool.name.clone(), tier.clone()));
    let own = policy.tiers().iter().map(|tier| &tier.name).filter(|tier| pool.queues.contains_key(*tier));
    let mut tiers: Vec<TierStatus> =
        own.map(|tier| tier_status(tier.clone(), count(tier).unwrap_or(&Count::default()), now_ms)).collect();
    let here = census.tiers.iter().filter(|((name, _), _)| *name == pool.name);
    for ((_, tier), count) in here {
        if !tiers.iter().any(|known| known.name == *tier) {
            tiers.push(tier_status(tier.clone(), count, now_ms));
        }
    }
    for tier in &mut tiers {
        tier.drained = orders.drains_tier(&tier.name);
    }
    tiers
}

fn tier_status(name: TierName, count: &Count, now_ms: i64) -> TierStatus {
    let waits = count.waits_ms(now_ms);
    TierStatus {
        name,
        drained: false,
        waiting: count.since.len(),
        median_wait_ms: waits.map(|(median, _)| median),
        oldest_wait_ms: waits.map(|(_, oldest)| oldest),
        oldest: count.oldest.map(|(_, job)| job),
        wanted_gpus: count.wanted_gpus,
        blocked: count.blocked,
        sent: count.sent,
        running: count.running,
        running_gpus: count.running_gpus,
    }
}

/// Pools that nobody set up and that jobs are in, by name.
fn left_over(census: &Census, now_ms: i64, is_meant: impl Fn(&str) -> bool) -> Vec<PoolStatus> {
    let mut pools: BTreeMap<&PoolName, PoolStatus> = BTreeMap::new();
    for ((pool, tier), count) in census.tiers.iter().filter(|((pool, _), _)| is_meant(pool.as_str())) {
        let gpus = Gpus { used: census.held_gpus(pool.as_str()), ..Gpus::default() };
        let new = || PoolStatus { name: pool.clone(), gpus, ..PoolStatus::default() };
        pools.entry(pool).or_insert_with(new).tiers.push(tier_status(tier.clone(), count, now_ms));
    }
    pools.into_values().collect()
}

#[cfg(test)]
mod tests {
    use osprey_pipeline::key;
    use osprey_pipeline::order::{Drain, Reservation};

    use super::*;

    fn pool(mode: PoolMode) -> Pool {
        Pool {
            name: "main".into(),
            mode,
            capacity: CapacityType::OnDemand,
            gpus_per_node: 8,
            nodes_max: Some(4),
            vcpus_per_node: None,
            memory_mib_per_node: None,
            queues: [(TierName::new("production"), "q".into()), (TierName::new("critical"), "q".into())].into(),
            fair_share: true,
            preemption: true,
        }
    }

    fn census() -> Census {
        let entries = [
            "0000000001000#id#queued#8#900#4000#production#main",
            "0000000001000#id#running#16#100#1000#old#main",
            "0000000001000#id#claimed#4#100#1000#old#main",
            "0000000001000#id#queued#4#100#1000#old#gone",
        ];
        let id = |number: u128| JobId::from_uuid(uuid::Uuid::from_u128(number));
        let jobs: Vec<OpenJob> =
            (1..).zip(entries).filter_map(|(number, sort)| OpenJob::read(sort, &key::job(id(number)))).collect();
        Census::of(&jobs, 800)
    }

    #[test]
    fn what_is_sent_holds_gpus_where_cycles_start_jobs_and_not_where_batch_does() {
        let policy = crate::policy_file::load(None).unwrap();
        for (mode, used) in [(PoolMode::Held, 20), (PoolMode::Direct, 16)] {
            let status = status(&policy, &pool(mode), &census(), None, &Held::default(), 5_000);
            assert_eq!((status.gpus.total, status.gpus.used, status.gpus.free()), (Some(32), used, Some(32 - used)));
        }
        let node = |gpus_used| NodeCapacity { gpus: 8, gpus_used, ..NodeCapacity::default() };
        let seen = Capacity { nodes: vec![node(8), node(8), node(8)], obtainable: 1 };
        let status = status(&policy, &pool(PoolMode::Held), &census(), Some(seen), &Held::default(), 5_000);
        assert_eq!(status.gpus.used, 24, "others' work is seen on the nodes");
        let kept = Reservation { team: "vision".to_owned(), gpus: 6, until: 9_000, at: 0, by: "ada".to_owned() };
        let over = Reservation { until: 5_000, ..kept.clone() };
        let drains = vec![Drain { tier: None, at: 0, by: "ada".to_owned() }];
        let held = Held { orders: Orders { drains, reservations: vec![kept, over] }, ..Held::default() };
        let status = self::status(&policy, &pool(PoolMode::Held), &census(), None, &held, 5_000);
        assert_eq!((status.gpus.reserved, status.gpus.reserved_used), (6, 0), "what has run out is kept no more");
        assert!(status.setup.is_some_and(|setup| setup.drained));
    }

    #[test]
    fn tiers_come_in_the_order_of_the_policy_and_others_that_have_jobs_behind_them() {
        let policy = crate::policy_file::load(None).unwrap();
        let drain = |tier: Option<TierName>| Drain { tier, at: 0, by: "ada".to_owned() };
        let orders = Orders { drains: vec![drain(Some("production".into()))], ..Orders::default() };
        let tiers = tiers(&policy, &pool(PoolMode::Held), &census(), &orders, 5_000);
        let names: Vec<&str> = tiers.iter().map(|tier| tier.name.as_str()).collect();
        assert_eq!(names, ["critical", "production", "old"]);
        assert_eq!(tiers.iter().map(|tier| tier.drained).collect::<Vec<_>>(), [false, true, false]);
        let production = tiers.get(1).unwrap();
        assert_eq!((production.waiting, production.oldest_wait_ms, production.wanted_gpus), (1, Some(1_000), 8));
    }

    #[test]
    fn a_pool_that_is_gone_shows_the_jobs_that_it_has_left() {
        let left = left_over(&census(), 5_000, |name| name == "gone");
        assert_eq!(left.len(), 1);
        assert_eq!(left.first().map(|pool| (pool.setup, pool.gpus.total)), Some((None, None)));
    }
}
