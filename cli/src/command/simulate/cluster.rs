//! The cluster of a simulation: flags, or a JSON file.

use osprey_sim::cluster::{Cluster, Placement};
use serde::Deserialize;

use super::SimulateArgs;
use crate::error::{CliError, ErrorCode};
use crate::input;

/// Most nodes.
pub const NODES_MAX: i64 = 100_000;
/// Most GPUs of a node.
pub const GPUS_PER_NODE_MAX: i64 = 1_024;
/// The cluster that nobody described.
const USUAL: (u32, u32) = (10, 8);

/// How jobs are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PlacementArg {
    /// GPUs are counted.
    Count,
    /// Nodes matter.
    Node,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    nodes: Vec<DescribedNode>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribedNode {
    id: String,
    gpus: u32,
}

/// The cluster that the arguments describe.
///
/// # Errors
/// For a file that is no cluster of one shape.
pub fn of(args: &SimulateArgs) -> Result<Cluster, CliError> {
    let usual = if args.trace.is_some() { PlacementArg::Count } else { PlacementArg::Node };
    let placement = match args.placement.unwrap_or(usual) {
        PlacementArg::Count => Placement::Count,
        PlacementArg::Node => Placement::Node,
    };
    let (nodes, gpus_per_node) = match &args.cluster {
        None => (args.nodes.unwrap_or(USUAL.0), args.gpus_per_node.unwrap_or(USUAL.1)),
        Some(path) => {
            let text = input::read_text(path)?;
            shape(&text).map_err(|message| {
                CliError::new(ErrorCode::InvalidInput, format!("`{}` is no cluster: {message}", path.display()))
                    .help("write it as `{\"nodes\": [{\"id\": \"a\", \"gpus\": 8}, {\"id\": \"b\", \"gpus\": 8}]}`")
            })?
        }
    };
    Ok(Cluster { nodes, gpus_per_node, placement })
}

/// Nodes and GPUs of each.
fn shape(text: &str) -> Result<(u32, u32), String> {
    let described: Described = serde_json::from_str(text).map_err(|fault| fault.to_string())?;
    let first = described.nodes.first().ok_or("it has no nodes")?;
    if first.gpus == 0 {
        return Err(format!("node `{}` has no GPUs", first.id));
    }
    if let Some(other) = described.nodes.iter().find(|node| node.gpus != first.gpus) {
        return Err(format!(
            "nodes of a pool have one shape, and `{}` has {} GPUs while `{}` has {}",
            other.id, other.gpus, first.id, first.gpus
        ));
    }
    let nodes = u32::try_from(described.nodes.len()).ok().filter(|nodes| i64::from(*nodes) <= NODES_MAX);
    Ok((nodes.ok_or_else(|| format!("it has more than {NODES_MAX} nodes"))?, first.gpus))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_has_one_shape() {
        let node = |id: &str, gpus: u32| format!(r#"{{"id":"{id}","gpus":{gpus}}}"#);
        let file = |nodes: &[String]| format!(r#"{{"nodes":[{}]}}"#, nodes.join(","));
        assert_eq!(shape(&file(&[node("a", 4), node("b", 4)])), Ok((2, 4)));
        assert_eq!(
            shape(&file(&[node("a", 4), node("b", 8)])).unwrap_err(),
            "nodes of a pool have one shape, and `b` has 8 GPUs while `a` has 4"
        );
        assert_eq!(shape(&file(&[])).unwrap_err(), "it has no nodes");
        assert_eq!(shape(&file(&[node("a", 0)])).unwrap_err(), "node `a` has no GPUs");
        assert!(shape("{}").is_err());
    }
}
