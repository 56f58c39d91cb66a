//! The cluster as a file: nodes by name, or pools.

use std::collections::BTreeSet;

use osprey_model::message::words::{counted, quote};
use osprey_model::pool::CapacityType;
use osprey_sim::scenario::{Change, PoolSpec};
use serde::Deserialize;

use super::{AWAY_SECONDS, GPUS_PER_NODE_MAX, NODES_MAX, Parts, RATE_MAX, RECLAIMS_PER_DAY, SCALE_DOWN_SECONDS};
use super::{spot, starts_up};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    nodes: Vec<FileNode>,
    #[serde(default)]
    pools: Vec<FilePool>,
    #[serde(default)]
    changes: Vec<FileChange>,
    failure_rate: Option<f64>,
    checkpoint_seconds: Option<u64>,
    restart_seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileNode {
    id: String,
    gpus: u32,
    pool: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FilePool {
    name: String,
    /// 0 for a pool whose nodes are listed.
    #[serde(default)]
    nodes: u32,
    #[serde(default)]
    gpus_per_node: u32,
    capacity: Option<CapacityType>,
    reclaims_per_day: Option<f64>,
    away_seconds: Option<u64>,
    start_up_seconds: Option<u64>,
    warm_nodes: Option<u32>,
    scale_down_seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileChange {
    at_seconds: u64,
    pool: String,
    nodes: u32,
}

/// What a file says.
///
/// # Errors
/// One sentence about the first mistake.
pub(super) fn parts(text: &str) -> Result<Parts, String> {
    let file: File = serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|fault| fault.to_string())?;
    let listed = listed(&file.nodes)?;
    let mut names = Vec::new();
    let mut pools = Vec::new();
    for described in &file.pools {
        let nodes: Vec<&FileNode> = listed
            .iter()
            .filter(|(name, _)| *name == described.name)
            .flat_map(|(_, nodes)| nodes.iter().copied())
            .collect();
        pools.push(pool(described, &nodes)?);
        names.extend(named(described, &nodes));
    }
    for (name, nodes) in listed.iter().filter(|(name, _)| !file.pools.iter().any(|pool| pool.name == *name)) {
        let described = FilePool { name: name.clone(), ..FilePool::default() };
        pools.push(pool(&described, nodes)?);
        names.extend(named(&described, nodes));
    }
    check(&pools)?;
    let changes = file.changes.iter().map(|change| planned(change, &pools)).collect::<Result<Vec<_>, _>>()?;
    // Names are told by number, and a pool that grows has nodes without one.
    if !changes.is_empty() {
        names.clear();
    }
    let failure_chance = file.failure_rate;
    if failure_chance.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
        return Err("its `failure_rate` is a share from 0 to 1".to_owned());
    }
    let File { checkpoint_seconds, restart_seconds, .. } = file;
    Ok(Parts { pools, changes, names, failure_chance, checkpoint_seconds, restart_seconds })
}

/// Nodes by pool; those that name none are together with those of their shape.
fn listed(nodes: &[FileNode]) -> Result<Vec<(String, Vec<&FileNode>)>, String> {
    let mut seen = BTreeSet::new();
    let mut pools: Vec<(String, Vec<&FileNode>)> = Vec::new();
    for node in nodes {
        if !seen.insert(&node.id) {
            return Err(format!("there are two nodes {}", quote(&node.id)));
        }
        if node.gpus == 0 || node.gpus > GPUS_PER_NODE_MAX {
            let id = quote(&node.id);
            return Err(format!("node {id} has {}; from 1 to {GPUS_PER_NODE_MAX} are meant", counted_gpus(node.gpus)));
        }
        let name = node.pool.clone().unwrap_or_else(|| format!("nodes of {}", node.gpus));
        match pools.iter_mut().find(|(known, _)| *known == name) {
            Some((_, nodes)) => nodes.push(node),
            None => pools.push((name, vec![node])),
        }
    }
    Ok(pools)
}

fn counted_gpus(gpus: u32) -> String {
    counted(gpus.into(), "GPU")
}

/// A pool, with its listed nodes.
fn pool(described: &FilePool, nodes: &[&FileNode]) -> Result<PoolSpec, String> {
    let name = quote(&described.name);
    if let Some(first) = nodes.first()
        && let Some(other) = nodes.iter().find(|node| node.gpus != first.gpus)
    {
        return Err(format!(
            "nodes of a pool have one shape, and {} of pool {name} has {} GPUs while {} has {}",
            quote(&other.id),
            other.gpus,
            quote(&first.id),
            first.gpus
        ));
    }
    let count = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
    if count > 0 && described.nodes > 0 {
        return Err(format!("pool {name} gives a number of nodes and lists nodes too; one of both is enough"));
    }
    let count = if count > 0 { count } else { described.nodes };
    let gpus = nodes.first().map_or(described.gpus_per_node, |node| node.gpus);
    if gpus == 0 || gpus > GPUS_PER_NODE_MAX {
        return Err(format!(
            "pool {name} has nodes of {}; from 1 to {GPUS_PER_NODE_MAX} are meant",
            counted_gpus(gpus)
        ));
    }
    with_habits(PoolSpec::on_demand(&described.name, count, gpus), described)
}

/// What happens to its nodes.
fn with_habits(pool: PoolSpec, described: &FilePool) -> Result<PoolSpec, String> {
    let name = quote(&described.name);
    let is_spot = described.capacity == Some(CapacityType::Spot);
    if !is_spot && (described.reclaims_per_day.is_some() || described.away_seconds.is_some()) {
        return Err(format!("pool {name} is taken back, and isn't Spot; add `\"capacity\": \"spot\"`"));
    }
    let rate = described.reclaims_per_day.unwrap_or(RECLAIMS_PER_DAY);
    if !(0.0..=RATE_MAX).contains(&rate) {
        return Err(format!("`reclaims_per_day` of pool {name} is a number from 0 to {RATE_MAX}"));
    }
    let away = described.away_seconds.unwrap_or(AWAY_SECONDS);
    let pool = if is_spot { spot(pool, rate, away) } else { pool };
    Ok(match described.start_up_seconds {
        None => pool,
        Some(seconds) => {
            let idle = described.scale_down_seconds.unwrap_or(SCALE_DOWN_SECONDS);
            starts_up(pool, seconds, described.warm_nodes.unwrap_or(0), idle)
        }
    })
}

/// Its nodes' names: their ids, or the pool's name and a number.
fn named(described: &FilePool, nodes: &[&FileNode]) -> Vec<String> {
    if nodes.is_empty() {
        return (0..described.nodes).map(|number| format!("{}-{number}", described.name)).collect();
    }
    nodes.iter().map(|node| node.id.clone()).collect()
}

fn check(pools: &[PoolSpec]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    if let Some(twice) = pools.iter().find(|pool| !seen.insert(&pool.name)) {
        return Err(format!("there are two pools {}", quote(&twice.name)));
    }
    match pools.iter().map(|pool| u64::from(pool.nodes)).sum::<u64>() {
        0 => Err("it has no nodes".to_owned()),
        nodes if nodes > u64::from(NODES_MAX) => Err(format!("it has {nodes} nodes, and {NODES_MAX} are the most")),
        _ => Ok(()),
    }
}

fn planned(change: &FileChange, pools: &[PoolSpec]) -> Result<Change, String> {
    let found = pools.iter().position(|pool| pool.name == change.pool);
    let pool = found.ok_or_else(|| format!("a change names pool {}, which it doesn't have", quote(&change.pool)))?;
    if change.nodes > NODES_MAX {
        return Err(format!("a change wants {} nodes, and {NODES_MAX} are the most", change.nodes));
    }
    Ok(Change { at_ms: change.at_seconds.saturating_mul(1_000), pool, nodes: change.nodes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: &str, gpus: u32) -> String {
        format!(r#"{{"id":"{id}","gpus":{gpus}}}"#)
    }

    fn fault(text: &str) -> String {
        parts(text).unwrap_err()
    }

    #[test]
    fn b24_nodes_are_given_by_id_and_gpus() {
        let file = |nodes: &[String]| format!(r#"{{"nodes":[{}]}}"#, nodes.join(","));
        let found = parts(&file(&[node("a", 4), node("b", 8), node("c", 4)])).unwrap();
        let shapes: Vec<_> =
            found.pools.iter().map(|pool| (pool.name.as_str(), pool.nodes, pool.gpus_per_node)).collect();
        assert_eq!(shapes, [("nodes of 4", 2, 4), ("nodes of 8", 1, 8)]);
        assert_eq!(found.names, ["a", "c", "b"]);
        assert_eq!(fault(&file(&[])), "it has no nodes");
        assert_eq!(fault(&file(&[node("a", 0)])), "node `a` has 0 GPUs; from 1 to 1024 are meant");
        assert_eq!(fault(&file(&[node("a", 4), node("a", 4)])), "there are two nodes `a`");
        assert!(fault("{\"nodez\":[]}").starts_with("unknown field `nodez`"));
    }

    #[test]
    fn pools_have_habits() {
        let text = r#"{"pools":[
            {"name":"base","nodes":2,"gpus_per_node":8},
            {"name":"spot","nodes":3,"gpus_per_node":4,"capacity":"spot","reclaims_per_day":4,"start_up_seconds":90}],
            "changes":[{"at_seconds":60,"pool":"spot","nodes":1}],"failure_rate":0.1,"restart_seconds":5}"#;
        let found = parts(text).unwrap();
        let [base, spot] = found.pools.as_slice() else { panic!("{found:?}") };
        assert_eq!(base, &PoolSpec::on_demand("base", 2, 8));
        assert_eq!(
            (spot.capacity, spot.reclaim_mean_ms, spot.away_ms),
            (CapacityType::Spot, Some(21_600_000), 600_000)
        );
        assert_eq!((spot.start_up_ms, spot.warm, spot.scale_down_ms), (90_000, 0, Some(600_000)));
        assert_eq!(found.changes, [Change { at_ms: 60_000, pool: 1, nodes: 1 }]);
        assert_eq!((found.failure_chance, found.restart_seconds), (Some(0.1), Some(5)));
    }

    #[test]
    fn mistakes_are_told() {
        let pool = |more: &str| format!(r#"{{"pools":[{{"name":"p","nodes":1,"gpus_per_node":8{more}}}]}}"#);
        let text =
            r#"{"pools":[{"name":"p"}],"nodes":[{"id":"a","gpus":4,"pool":"p"},{"id":"b","gpus":8,"pool":"p"}]}"#;
        assert_eq!(fault(text), "nodes of a pool have one shape, and `b` of pool `p` has 8 GPUs while `a` has 4");
        assert_eq!(
            fault(&pool(r#","reclaims_per_day":1"#)),
            "pool `p` is taken back, and isn't Spot; add `\"capacity\": \"spot\"`"
        );
        let much = pool(r#","capacity":"spot","reclaims_per_day":-1"#);
        assert_eq!(fault(&much), "`reclaims_per_day` of pool `p` is a number from 0 to 1440");
        let change =
            r#"{"pools":[{"name":"p","nodes":1,"gpus_per_node":8}],"changes":[{"at_seconds":1,"pool":"q","nodes":1}]}"#;
        assert_eq!(fault(change), "a change names pool `q`, which it doesn't have");
        assert_eq!(
            fault(r#"{"pools":[{"name":"p","nodes":1}]}"#),
            "pool `p` has nodes of 0 GPUs; from 1 to 1024 are meant"
        );
    }
}
