//! The cluster of a simulation, and what happens to it: flags, or a JSON file.

mod file;

use std::path::PathBuf;

use clap::Args;
use osprey_model::metadata::parse_duration;
use osprey_model::pool::CapacityType;
use osprey_policy::Policy;
use osprey_sim::cluster::{Cluster, Placement};
use osprey_sim::machine::Costs;
use osprey_sim::scenario::{Budgets, Change, PoolSpec, Scenario};
use osprey_sim::world;

use crate::error::{CliError, ErrorCode};
use crate::input;

/// Most nodes.
pub const NODES_MAX: u32 = 100_000;
/// Most GPUs of a node.
const GPUS_PER_NODE_MAX: u32 = 1_024;
/// The cluster that nobody described.
const USUAL: (u32, u32) = (10, 8);
/// How often a Spot node is taken back unless something else is said: once a day.
const RECLAIMS_PER_DAY: f64 = 1.0;
/// How long a reclaimed node is away: 10 minutes.
const AWAY_SECONDS: u64 = 600;
/// How long an idle node that can start up again stays provisioned: 10 minutes.
const SCALE_DOWN_SECONDS: u64 = 600;

/// How jobs are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PlacementArg {
    /// GPUs are counted.
    Count,
    /// Nodes matter.
    Node,
    /// Nodes matter, and reference strategies spread jobs over them.
    Spread,
}

/// Flags about the cluster.
#[derive(Debug, Args)]
pub struct ClusterArgs {
    /// Whether GPUs are counted, or nodes matter; `spread` has the reference strategies put jobs on the emptiest node that
    /// fits, not on the fullest [default: count with a trace, node without one, and wherever something happens to nodes]
    #[arg(long, value_enum, value_name = "count|node|spread", hide_possible_values = true)]
    placement: Option<PlacementArg>,
    /// Nodes [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(NODES_MAX)))]
    nodes: Option<u32>,
    /// GPUs of each node [default: 8]
    #[arg(long, value_name = "G", value_parser = clap::value_parser!(u32).range(1..=i64::from(GPUS_PER_NODE_MAX)))]
    gpus_per_node: Option<u32>,
    /// How many of the nodes are Spot; only tiers whose capacity the policy says so go there
    #[arg(long, value_name = "N")]
    spot_nodes: Option<u32>,
    /// How often a day each Spot node is taken back, on average [default: 1]
    #[arg(long, value_name = "RATE", requires = "spot_nodes", value_parser = rate)]
    reclaims_per_day: Option<f64>,
    /// How long a node takes to start up; all of them are then scaled to zero at the start and after 10 idle minutes
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    start_up: Option<u64>,
    /// From then on there are so many nodes, Spot ones not counted; what runs on one that goes ends first. May be given
    /// several times
    #[arg(long, value_name = "WHEN=N", value_parser = change)]
    resize: Vec<(u64, u32)>,
    /// Chance that a run of a job fails [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    failure_rate: Option<f64>,
    /// How much work of a run a checkpoint comes after, for jobs that don't say; 0 for jobs that lose nothing
    /// [default: 5m]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    checkpoint_every: Option<u64>,
    /// What a job needs to go on after an interruption; the references pay nothing [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    restart_cost: Option<u64>,
    /// The cluster as JSON: `{"nodes": [{"id": "a", "gpus": 8}]}`, or pools (docs/simulator.md)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["nodes", "gpus_per_node", "spot_nodes", "start_up", "resize"])]
    cluster: Option<PathBuf>,
}

/// A cluster as it was described.
#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// Its size. Where pools have several shapes, the largest.
    pub cluster: Cluster,
    /// Its pools, and what happens to them; `None` where nothing does.
    pub scenario: Option<Scenario>,
    /// Names of the nodes; empty where they have none.
    pub names: Vec<String>,
    /// What interruptions cost.
    pub costs: Costs,
}

/// What a file or the flags say.
#[derive(Clone, Debug, PartialEq)]
struct Parts {
    pools: Vec<PoolSpec>,
    changes: Vec<Change>,
    names: Vec<String>,
    failure_chance: Option<f64>,
    checkpoint_seconds: Option<u64>,
    restart_seconds: Option<u64>,
}

impl Described {
    /// GPUs of all pools at the start.
    #[must_use]
    pub fn gpus(&self) -> u32 {
        match &self.scenario {
            None => self.cluster.gpus(),
            Some(scenario) => scenario.pools.iter().map(|pool| pool.nodes.saturating_mul(pool.gpus_per_node)).sum(),
        }
    }

    /// GPUs of the largest job that could ever run.
    #[must_use]
    pub fn largest(&self) -> u32 {
        let Some(scenario) = &self.scenario else { return self.cluster.gpus() };
        let pools = scenario.pools.iter().enumerate().map(|(index, pool)| match pool.capacity {
            CapacityType::OnDemand => scenario.nodes_max(index).saturating_mul(pool.gpus_per_node),
            CapacityType::Spot => pool.gpus_per_node,
        });
        pools.max().unwrap_or(0)
    }

    /// GPUs of every node that there can ever be.
    #[must_use]
    pub fn node_gpus(&self) -> Vec<u32> {
        match &self.scenario {
            None => vec![self.cluster.gpus_per_node; usize::try_from(self.cluster.nodes).unwrap_or(0)],
            Some(scenario) => scenario.nodes(),
        }
    }

    /// What a node is called.
    #[must_use]
    pub fn name(&self, node: usize) -> String {
        self.names.get(node).cloned().unwrap_or_else(|| node.to_string())
    }

    /// Whether something is left to chance.
    #[must_use]
    pub fn has_chance(&self) -> bool {
        self.scenario.as_ref().is_some_and(|scenario| {
            scenario.failure_chance > 0.0 || scenario.pools.iter().any(|pool| pool.reclaim_mean_ms.is_some())
        })
    }
}

/// The cluster that the arguments describe.
///
/// # Errors
/// For a file that is no cluster, and flags that contradict each other.
pub fn of(args: &ClusterArgs, policy: &Policy, has_trace: bool) -> Result<Described, CliError> {
    let mut parts = match &args.cluster {
        None => by_flags(args)?,
        Some(path) => file::parts(&input::read_text(path)?).map_err(|message| {
            CliError::new(ErrorCode::InvalidInput, format!("`{}` is no cluster: {message}", path.display())).help(
                "write it as `{\"nodes\": [{\"id\": \"a\", \"gpus\": 8}]}`, or as pools; docs/simulator.md shows how",
            )
        })?,
    };
    parts.failure_chance = args.failure_rate.or(parts.failure_chance);
    parts.checkpoint_seconds = args.checkpoint_every.or(parts.checkpoint_seconds);
    parts.restart_seconds = args.restart_cost.or(parts.restart_seconds);
    described(args, policy, has_trace, parts)
}

fn described(args: &ClusterArgs, policy: &Policy, has_trace: bool, parts: Parts) -> Result<Described, CliError> {
    let nodes = parts.pools.iter().map(|pool| pool.nodes).sum();
    let gpus_per_node = parts.pools.iter().map(|pool| pool.gpus_per_node).max().unwrap_or(0);
    let checkpoint_ms = parts.checkpoint_seconds.unwrap_or(300).saturating_mul(1_000);
    let costs = Costs { checkpoint_ms, restart_ms: parts.restart_seconds.unwrap_or(60).saturating_mul(1_000) };
    let failure_chance = parts.failure_chance.unwrap_or(0.0);
    let budgets = budgets(policy);
    let scenario = Scenario { pools: parts.pools, changes: parts.changes, failure_chance, budgets, seed: 0 };
    let is_quiet = world::is_quiet(&scenario);
    let placement = match args.placement {
        Some(PlacementArg::Count) if !is_quiet => {
            let message = "`--placement count` counts GPUs, and what was described happens to nodes";
            return Err(CliError::new(ErrorCode::Usage, message).help("leave `--placement` out"));
        }
        Some(PlacementArg::Spread) if !is_quiet => {
            let message = "`--placement spread` is for a cluster to which nothing happens";
            return Err(CliError::new(ErrorCode::Usage, message).help("leave `--placement` out"));
        }
        Some(PlacementArg::Count) => Placement::Count,
        Some(PlacementArg::Spread) => Placement::Spread,
        None if is_quiet && has_trace => Placement::Count,
        _ => Placement::Node,
    };
    let cluster = Cluster { nodes, gpus_per_node, placement };
    Ok(Described { cluster, scenario: (!is_quiet).then_some(scenario), names: parts.names, costs })
}

/// How often a job may be interrupted, as the policy says.
fn budgets(policy: &Policy) -> Budgets {
    let rules = policy.requeue();
    Budgets {
        failures_max: rules.failures_max,
        host_losses_max: rules.interruptions_max,
        on_demand_after: rules.on_demand_after,
        back_off_ms: rules.base_ms,
        back_off_max_ms: rules.cap_ms,
    }
}

fn by_flags(args: &ClusterArgs) -> Result<Parts, CliError> {
    let (nodes, gpus) = (args.nodes.unwrap_or(USUAL.0), args.gpus_per_node.unwrap_or(USUAL.1));
    let spot_nodes = args.spot_nodes.unwrap_or(0);
    let Some(on_demand) = nodes.checked_sub(spot_nodes) else {
        let message = format!("`--spot-nodes {spot_nodes}` are more than the {nodes} nodes that there are");
        return Err(CliError::new(ErrorCode::Usage, message).help("`--nodes` counts all of them, Spot ones too"));
    };
    let start_up = |pool: PoolSpec| match args.start_up {
        None => pool,
        Some(seconds) => starts_up(pool, seconds, 0, SCALE_DOWN_SECONDS),
    };
    let mut pools = Vec::new();
    if on_demand > 0 || !args.resize.is_empty() {
        pools.push(start_up(PoolSpec::on_demand("on-demand", on_demand, gpus)));
    }
    if spot_nodes > 0 {
        let rate = args.reclaims_per_day.unwrap_or(RECLAIMS_PER_DAY);
        pools.push(start_up(spot(PoolSpec::on_demand("spot", spot_nodes, gpus), rate, AWAY_SECONDS)));
    }
    // Spot nodes come last, and are called so where numbers stay.
    let is_fixed = args.resize.is_empty() && spot_nodes > 0;
    let names = (0..nodes).map(|node| match node.checked_sub(on_demand) {
        Some(number) => format!("spot-{number}"),
        None => node.to_string(),
    });
    let names = if is_fixed { names.collect() } else { Vec::new() };
    let changes =
        args.resize.iter().map(|(at, nodes)| Change { at_ms: at.saturating_mul(1_000), pool: 0, nodes: *nodes });
    Ok(Parts {
        pools,
        changes: changes.collect(),
        names,
        failure_chance: None,
        checkpoint_seconds: None,
        restart_seconds: None,
    })
}

/// A pool whose nodes are taken back so often a day.
fn spot(pool: PoolSpec, reclaims_per_day: f64, away_seconds: u64) -> PoolSpec {
    let reclaim_mean_ms = (reclaims_per_day > 0.0).then(|| mean_ms(reclaims_per_day));
    PoolSpec { capacity: CapacityType::Spot, reclaim_mean_ms, away_ms: away_seconds.saturating_mul(1_000), ..pool }
}

/// A pool whose nodes start up, and go when idle.
fn starts_up(pool: PoolSpec, seconds: u64, warm: u32, idle_seconds: u64) -> PoolSpec {
    let scale_down_ms = Some(idle_seconds.saturating_mul(1_000));
    PoolSpec { start_up_ms: seconds.saturating_mul(1_000), warm, scale_down_ms, ..pool }
}

/// Milliseconds between two things that happen so often a day.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the rate is bounded, and above 0")]
fn mean_ms(per_day: f64) -> u64 {
    (86_400_000.0 / per_day).round() as u64
}

/// Most reclaims of a node a day: one a minute.
const RATE_MAX: f64 = 1_440.0;

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (0.0..=RATE_MAX).contains(rate));
    rate.ok_or_else(|| format!("a number from 0 to {RATE_MAX} is wanted"))
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share from 0 to 1 is wanted".to_owned())
}

/// Seconds of a duration such as `90m`.
fn duration(text: &str) -> Result<u64, String> {
    parse_duration(text).map_err(|_| "a duration such as `5m`, `4h` or `300` (seconds) is wanted".to_owned())
}

fn change(text: &str) -> Result<(u64, u32), String> {
    let parts = text.split_once('=').and_then(|(at, nodes)| {
        let nodes = nodes.trim().parse().ok().filter(|nodes| *nodes <= NODES_MAX)?;
        Some((parse_duration(at).ok()?, nodes))
    });
    parts.ok_or_else(|| {
        format!("a time and a number of nodes are wanted, such as `36h=6`, and at most {NODES_MAX} nodes")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_with_their_limits() {
        assert_eq!(change("36h=6"), Ok((129_600, 6)));
        assert!(change("36h").is_err() && change("x=6").is_err() && change("1h=100001").is_err());
        assert_eq!(rate("2.5"), Ok(2.5));
        assert!(["-1", "NaN", "inf", "1441", "x"].iter().all(|text| rate(text).is_err()));
        assert!(["-0.1", "NaN", "1.1"].iter().all(|text| share(text).is_err()));
        assert_eq!(duration("90m"), Ok(5_400));
        assert_eq!(mean_ms(2.0), 43_200_000);
    }
}
