//! Step 6, headroom: GPUs that stay free for urgent jobs that haven't come yet.

use crate::priority::Standing;
use crate::reason::WaitReason;
use crate::room::{Room, is_empty};
use crate::rules::Headroom;
use crate::snapshot::{Hold, Node, NodeState};

/// GPUs that must stay free when a job of so many starts.
///
/// Urgent jobs take the headroom, and jobs whose wait has brought them to the front needn't leave it. A job so large that
/// the pool can't leave as much beside it leaves what is left over; one without GPUs leaves what one of a single GPU does,
/// since it takes a place on a node as well.
pub(crate) fn of(headroom: Headroom, pool_gpus: u32, gpus: u32, standing: Standing) -> u32 {
    if standing.is_urgent || standing.goes_by_age() {
        return 0;
    }
    headroom.of(pool_gpus).min(pool_gpus.saturating_sub(gpus.max(1)))
}

/// Whether a start leaves as many whole nodes empty as the headroom makes up: GPUs that are free here and there are of no
/// use to an urgent job that needs a node. A job that takes no empty node may start whatever is left.
pub(crate) fn leaves_nodes(room: &Room<'_>, holds: &[Hold], headroom: u32) -> Result<(), WaitReason> {
    let node_gpus = room.all().map(|(_, node, _)| node.gpus).max().unwrap_or(0);
    let kept = headroom.checked_div(node_gpus).unwrap_or(0);
    if kept == 0 {
        return Ok(());
    }
    let is_taken = |number: u32| holds.iter().any(|hold| hold.node == number);
    let is_whole = |node: &Node| node.gpus > 0 && node.state != NodeState::Closed;
    let all = room.all().filter(|(_, node, free)| is_whole(node) && is_empty(node, *free));
    let (taken, left): (Vec<u32>, Vec<u32>) = all.map(|(number, ..)| number).partition(|number| is_taken(*number));
    let [nodes, left] = [taken, left].map(|nodes| u32::try_from(nodes.len()).unwrap_or(u32::MAX));
    if nodes == 0 || left >= kept {
        return Ok(());
    }
    Err(WaitReason::HeadroomNodes { nodes, empty: nodes.saturating_add(left), kept })
}
