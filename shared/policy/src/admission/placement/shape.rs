//! Shapes: numbers of GPUs that leave no fragment of a node behind (E9).
//!
//! A count is legal when it divides a node or fills whole nodes: on a node of 8 these are 1, 2, 4, 8, 16 and so on.
//! Seven GPUs would leave one that only a job for one GPU can use.

use osprey_model::reason::{ReasonCode, Refusal};
use osprey_model::resources::Demand;

/// Why the GPUs of a job fit no node of `node` GPUs; `None` when they do, or when there are none.
pub(super) fn fault(demand: &Demand, node: u32, is_multi_node: bool) -> Option<Refusal> {
    let asked = demand.gpus_per_node;
    if asked == 0 || (asked <= node && node.is_multiple_of(asked)) {
        return None;
    }
    let message = if asked < node {
        let nearest = neighbours(asked, node);
        format!("`GPU` {asked} fits no whole part of {}; ask for {nearest}", a_node(node))
    } else if is_multi_node {
        format!(
            "`GPU` {asked} on one node of the job is more than {} has; ask for at most {node} on each node",
            a_node(node)
        )
    } else if asked.is_multiple_of(node) {
        let nodes = asked / node;
        format!(
            "`GPU` {asked} fills {nodes} nodes of {node}, and one container can't span nodes; submit a multi-node job of {nodes} nodes with `GPU` {node} each"
        )
    } else {
        let (below, above) = (asked / node, asked / node + 1);
        let lower = if below == 1 { format!("{node}") } else { multi_node(below, node) };
        format!("`GPU` {asked} is no multiple of {}; ask for {lower}, or for {}", a_node(node), multi_node(above, node))
    };
    Some(Refusal::new(ReasonCode::GpuShape, message))
}

/// The nearest divisors of a node on both sides of a count below it. One divides every node, and a node itself.
fn neighbours(asked: u32, node: u32) -> String {
    let divides = |count: &u32| node.is_multiple_of(*count);
    let below = (1..asked).rev().find(divides).unwrap_or(1);
    let above = (asked..=node).find(divides).unwrap_or(node);
    format!("{below} or {above}")
}

fn multi_node(nodes: u32, node: u32) -> String {
    format!("{} as a multi-node job of {nodes} nodes", u64::from(nodes) * u64::from(node))
}

/// "an 8-GPU node", "a 4-GPU node": the article goes by the sound of the number.
fn a_node(gpus: u32) -> String {
    let digits = gpus.to_string();
    let article = if digits.starts_with('8') || digits == "11" || digits == "18" { "an" } else { "a" };
    format!("{article} {gpus}-GPU node")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn legal(asked: u32, node: u32) -> bool {
        let demand = Demand { gpus_per_node: asked, nodes: 1, gpus: asked, ..Demand::default() };
        fault(&demand, node, false).is_none()
    }

    #[test]
    fn what_is_named_instead_is_legal_on_every_node_e9() {
        for node in 1..=64 {
            assert!(legal(1, node) && legal(node, node), "{node}");
            for asked in (1..node).filter(|asked| !legal(*asked, node)) {
                let named = neighbours(asked, node);
                let counts: Vec<u32> = named.split(" or ").map(|count| count.parse().unwrap()).collect();
                assert!(counts.iter().all(|count| legal(*count, node)), "{asked} on {node}: {named}");
                assert!(counts[0] < asked && asked < counts[1], "{asked} on {node}: {named}");
            }
        }
    }
}
