//! The pools and their queues, for people and programs.

use osprey_model::pool::CapacityType;
use serde_json::{Value, json};

use super::table::Columns;
use super::time::{rfc3339, short};
use crate::joined::overview::{Overview, PoolStatus, TierStatus};

/// The pools, and below them who waits in their tiers.
#[must_use]
pub fn tables(overview: &Overview) -> String {
    let mut pools = Columns::new(&[
        "POOL",
        "MODE",
        "CAPACITY",
        "PREEMPTION",
        ">NODES",
        ">GPUS",
        ">USED",
        ">FREE",
        ">RESERVED",
        ">HEADROOM",
    ]);
    let mut tiers = Columns::new(&[
        "POOL",
        "TIER",
        ">WAITING",
        ">MEDIAN",
        ">OLDEST",
        ">WANTED",
        ">BLOCKED",
        ">SENT",
        ">RUNNING",
        ">GPUS",
        "OLDEST JOB",
    ]);
    for pool in &overview.pools {
        pools.row(pool_row(pool));
        pool.tiers.iter().for_each(|tier| tiers.row(tier_row(pool, tier)));
    }
    format!("{}\n\n{}", pools.render(), tiers.render())
}

fn pool_row(pool: &PoolStatus) -> [String; 10] {
    let PoolStatus { name, setup, gpus, nodes, obtainable, tiers: _ } = pool;
    let unknown = || "?".to_owned();
    let known = |number: Option<u32>| number.map_or_else(unknown, |number| number.to_string());
    let drained = if setup.is_some_and(|setup| setup.drained) { ", drained" } else { "" };
    let mode = format!("{}{drained}", setup.map_or("gone", |setup| setup.mode.as_str()));
    let all = |up: usize| format!("{up}/{}", up.saturating_add(usize::try_from(*obtainable).unwrap_or(0)));
    [
        name.to_string(),
        mode,
        setup.map_or_else(unknown, |setup| capacity(setup.capacity).to_owned()),
        setup.map_or_else(unknown, |setup| if setup.preemption { "on" } else { "off" }.to_owned()),
        nodes.as_ref().map_or_else(unknown, |nodes| all(nodes.len())),
        known(gpus.total),
        gpus.used.to_string(),
        known(gpus.free()),
        if gpus.reserved == 0 { "-".to_owned() } else { format!("{}/{}", gpus.reserved_used, gpus.reserved) },
        if gpus.headroom == 0 { "-".to_owned() } else { gpus.headroom.to_string() },
    ]
}

/// The word for what a pool's capacity can do to a job.
#[must_use]
pub fn capacity(capacity: CapacityType) -> &'static str {
    match capacity {
        CapacityType::OnDemand => "on-demand",
        CapacityType::Spot => "spot",
    }
}

fn tier_row(pool: &PoolStatus, tier: &TierStatus) -> [String; 11] {
    let wait = |ms: Option<i64>| ms.map_or_else(|| "-".to_owned(), short);
    [
        pool.name.to_string(),
        format!("{}{}", tier.name, if tier.drained { ", drained" } else { "" }),
        tier.waiting.to_string(),
        wait(tier.median_wait_ms),
        wait(tier.oldest_wait_ms),
        tier.wanted_gpus.to_string(),
        tier.blocked.to_string(),
        tier.sent.to_string(),
        tier.running.to_string(),
        tier.running_gpus.to_string(),
        tier.oldest.map(|job| job.to_string()).unwrap_or_default(),
    ]
}

/// The pools as JSON.
#[must_use]
pub fn document(overview: &Overview) -> Value {
    let as_of = rfc3339(overview.now_ms);
    overview.pools.iter().map(|pool| pool_document(pool, &as_of)).collect()
}

fn pool_document(pool: &PoolStatus, as_of: &str) -> Value {
    let PoolStatus { name, setup, gpus, nodes, obtainable, tiers } = pool;
    let node = |node: &osprey_ports::NodeCapacity| json!({ "id": node.id, "gpus": node.gpus, "used": node.gpus_used });
    json!({
        "pool": name,
        "as_of": as_of,
        "mode": setup.map(|setup| setup.mode),
        "capacity": setup.map(|setup| setup.capacity),
        "preemption": setup.map(|setup| setup.preemption),
        "drained": setup.map(|setup| setup.drained),
        "gpus": {
            "total": gpus.total,
            "used": gpus.used,
            "free": gpus.free(),
            "reserved": gpus.reserved,
            "reserved_used": gpus.reserved_used,
            "headroom": gpus.headroom,
        },
        "nodes": nodes.as_ref().map(|nodes| nodes.iter().map(node).collect::<Vec<_>>()),
        "nodes_obtainable": obtainable,
        "tiers": tiers.iter().map(tier_document).collect::<Vec<_>>(),
    })
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of a wait stay below 2^53")]
fn tier_document(tier: &TierStatus) -> Value {
    let seconds = |ms: Option<i64>| ms.map(|ms| ms as f64 / 1_000.0);
    json!({
        "tier": tier.name,
        "drained": tier.drained,
        "waiting": tier.waiting,
        "median_wait_seconds": seconds(tier.median_wait_ms),
        "oldest_wait_seconds": seconds(tier.oldest_wait_ms),
        "oldest_job": tier.oldest,
        "wanted_gpus": tier.wanted_gpus,
        "blocked": tier.blocked,
        "sent": tier.sent,
        "running": tier.running,
        "running_gpus": tier.running_gpus,
    })
}

#[cfg(test)]
mod tests {
    use osprey_model::pool::PoolMode;
    use osprey_ports::NodeCapacity;

    use super::*;
    use crate::joined::overview::{Gpus, Setup};

    #[test]
    fn pools_stand_above_their_tiers_and_what_isnt_known_is_a_question_mark() {
        let setup = Setup { mode: PoolMode::Held, capacity: CapacityType::Spot, preemption: true, drained: true };
        let waiting = TierStatus {
            name: "production".into(),
            waiting: 3,
            median_wait_ms: Some(61_000),
            oldest_wait_ms: Some(7_620_000),
            wanted_gpus: 24,
            ..TierStatus::default()
        };
        let known = PoolStatus {
            name: "main".into(),
            setup: Some(setup),
            gpus: Gpus { total: Some(32), used: 20, reserved: 6, reserved_used: 4, headroom: 2 },
            nodes: Some(vec![NodeCapacity::default(); 3]),
            obtainable: 1,
            tiers: vec![waiting],
        };
        let gone = PoolStatus { name: "old".into(), tiers: vec![TierStatus::default()], ..PoolStatus::default() };
        let overview = Overview { pools: vec![known, gone], ..Overview::default() };
        let want = "\
POOL  MODE           CAPACITY  PREEMPTION  NODES  GPUS  USED  FREE  RESERVED  HEADROOM
main  held, drained  spot      on            3/4    32    20    12       4/6         2
old   gone           ?         ?               ?     ?     0     ?         -         -

POOL  TIER        WAITING  MEDIAN  OLDEST  WANTED  BLOCKED  SENT  RUNNING  GPUS  OLDEST JOB
main  production        3   1m01s   2h07m      24        0     0        0     0
old                     0       -       -       0        0     0        0     0";
        assert_eq!(tables(&overview), want);
    }
}
