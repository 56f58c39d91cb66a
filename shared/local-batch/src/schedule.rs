//! Which runnable jobs start on which nodes: a pure function over plain structs.
//!
//! Like Batch's core: queues are served once a cycle, highest priority first; a queue's head that can't be placed
//! blocks its queue, and the cycle goes on to lower queues, which may then take what the head waits for.

use crate::requirement::Need;

/// A node as the scheduler sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Position of its environment in the caller's numbering.
    pub environment: usize,
    /// Index inside its environment.
    pub index: i64,
    /// Whether it takes jobs now: enabled, started, not draining.
    pub open: bool,
    /// Whether it belongs to its environment at all; a closed node still counts for what could ever fit.
    pub retired: bool,
    /// Numbers of its free devices, ascending.
    pub free_devices: Vec<i64>,
    /// Free thousandths of a vCPU and MiB; `gpus` isn't used.
    pub free: Need,
    /// Everything it has.
    pub total: Need,
}

/// A runnable job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Number of the job in the caller's store.
    pub job: i64,
    /// What it needs of one node.
    pub need: Need,
}

/// Runnable jobs of one share, in the order they are to start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Share {
    /// Share identifier; the order of equal shares.
    pub id: String,
    /// vCPU milliseconds used, past use decayed.
    pub usage: f64,
    /// Weight factor: lower gets more.
    pub weight: f64,
    /// Jobs, next first.
    pub jobs: Vec<Candidate>,
}

/// A queue: one share holding all jobs when it is FIFO.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queue {
    /// Environments it may use, preferred first, in the caller's numbering.
    pub environments: Vec<usize>,
    /// Its shares.
    pub shares: Vec<Share>,
}

/// A job that starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The job.
    pub job: i64,
    /// Position of the node in the slice that was given.
    pub node: usize,
    /// Devices it gets.
    pub devices: Vec<i64>,
}

/// A head that blocks its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The job.
    pub job: i64,
    /// Whether even an empty node would be too small.
    pub never_fits: bool,
}

/// What a cycle decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cycle {
    /// Starts, in order.
    pub placements: Vec<Placement>,
    /// Heads that couldn't be placed, at most one a queue.
    pub blocked: Vec<Blocked>,
}

/// What a job that starts is charged at once, so that shares take turns inside one cycle; in milliseconds of its
/// vCPUs.
pub const START_CHARGE_MS: f64 = 60_000.0;

/// Runs one cycle over `queues`, which are in the order of their priority, and takes what it gives from `nodes`.
#[must_use]
pub fn cycle(nodes: &mut [Node], queues: &mut [Queue]) -> Cycle {
    let mut cycle = Cycle::default();
    for queue in queues {
        serve(nodes, queue, &mut cycle);
    }
    cycle
}

fn serve(nodes: &mut [Node], queue: &mut Queue, cycle: &mut Cycle) {
    for share in &mut queue.shares {
        share.jobs.reverse();
    }
    while let Some(share) = next_share(&mut queue.shares) {
        let Some(head) = share.jobs.pop() else { return };
        let Some((node, devices)) = place(nodes, &queue.environments, &head.need) else {
            let never_fits = !nodes.iter().any(|node| could_fit(node, &queue.environments, &head.need));
            cycle.blocked.push(Blocked { job: head.job, never_fits });
            return;
        };
        share.usage += vcpus(&head.need) * START_CHARGE_MS;
        cycle.placements.push(Placement { job: head.job, node, devices });
    }
}

/// The share with work that has had the least for its weight; of equal ones the first by name.
fn next_share(shares: &mut [Share]) -> Option<&mut Share> {
    let turn = |share: &Share| share.usage * share.weight;
    shares
        .iter_mut()
        .filter(|share| !share.jobs.is_empty())
        .min_by(|a, b| turn(a).total_cmp(&turn(b)).then_with(|| a.id.cmp(&b.id)))
}

/// vCPUs as a float, for usage only.
#[expect(clippy::cast_precision_loss, reason = "a node has far fewer than 2^53 thousandths of a vCPU")]
pub(crate) fn vcpus(need: &Need) -> f64 {
    need.vcpus_milli as f64 / 1_000.0
}

/// Takes the devices for a job: the first environment of the queue that has room; in it the node with the fewest
/// free GPUs that suffices, so that large gaps stay whole; of equal nodes the lowest index.
fn place(nodes: &mut [Node], environments: &[usize], need: &Need) -> Option<(usize, Vec<i64>)> {
    let position = environments.iter().find_map(|environment| best(nodes, *environment, need))?;
    let node = nodes.get_mut(position)?;
    node.free.vcpus_milli -= need.vcpus_milli;
    node.free.memory_mib -= need.memory_mib;
    let devices = node.free_devices.drain(..usize::try_from(need.gpus).unwrap_or(0)).collect();
    Some((position, devices))
}

fn best(nodes: &[Node], environment: usize, need: &Need) -> Option<usize> {
    let fitting = nodes.iter().enumerate().filter(|(_, node)| node.environment == environment && fits(node, need));
    fitting.min_by_key(|(_, node)| (node.free_devices.len(), node.index)).map(|(position, _)| position)
}

fn fits(node: &Node, need: &Need) -> bool {
    node.open
        && usize::try_from(need.gpus).is_ok_and(|gpus| gpus <= node.free_devices.len())
        && need.vcpus_milli <= node.free.vcpus_milli
        && need.memory_mib <= node.free.memory_mib
}

fn could_fit(node: &Node, environments: &[usize], need: &Need) -> bool {
    environments.contains(&node.environment)
        && !node.retired
        && need.gpus <= node.total.gpus
        && need.vcpus_milli <= node.total.vcpus_milli
        && need.memory_mib <= node.total.memory_mib
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
