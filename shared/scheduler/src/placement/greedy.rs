//! Greedy: once down the queue, each job to the tightest node.

use super::order::by_priority;
use super::packing::Packer;
use super::plan::Plan;
use super::problem::Problem;

/// The plan of one walk down the queue: the highest number first, each job to the node with the fewest free slots that
/// fit it. What the swarm starts from, and never falls below.
#[must_use]
pub fn greedy(problem: &Problem) -> Plan {
    let mut packer = Packer::new(problem);
    packer.pack(&by_priority(problem));
    packer.plan()
}
