//! Which runnable jobs start on which nodes: pure functions over plain structs, so that a simulator can be held
//! against them.
//!
//! Like Batch's core: queues are served once a cycle, highest priority first; a queue's head that can't be placed
//! blocks its queue, and the cycle goes on to lower queues, which may then take what the head waits for. A multi-node
//! job starts on all its nodes at once or not at all, each of them empty and its own, in one On-Demand environment.

use crate::requirement::Need;

/// What a node can do for a job now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeState {
    /// It takes jobs.
    #[default]
    Open,
    /// Its instance is starting up.
    Starting,
    /// It has no instance, and can get one.
    Down,
    /// It has no instance, and none can be had.
    Unobtainable,
    /// It takes no jobs: disabled, draining, or beyond the environment's size.
    Closed,
}

/// A node as the scheduler sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Position of its environment in the caller's numbering.
    pub environment: usize,
    /// Index inside its environment.
    pub index: i64,
    /// What it can do now.
    pub state: NodeState,
    /// Whether it is gone for good; any other closed node still counts for what could ever fit.
    pub retired: bool,
    /// Whether its host may be reclaimed; such nodes take no multi-node jobs.
    pub spot: bool,
    /// Numbers of its free devices, ascending.
    pub free_devices: Vec<i64>,
    /// Free thousandths of a vCPU and MiB; `gpus` isn't used.
    pub free: Need,
    /// Everything it has.
    pub total: Need,
}

/// What a job asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Demand {
    /// A part of one node.
    One(Need),
    /// Several whole nodes at once, each with at least this.
    Gang(Vec<Need>),
}

impl Demand {
    /// What it needs of each node it takes.
    #[must_use]
    pub fn needs(&self) -> &[Need] {
        match self {
            Self::One(need) => std::slice::from_ref(need),
            Self::Gang(needs) => needs,
        }
    }

    /// Thousandths of a vCPU on all nodes.
    #[must_use]
    pub fn vcpus_milli(&self) -> i64 {
        self.needs().iter().fold(0, |sum, need| sum.saturating_add(need.vcpus_milli))
    }
}

/// A runnable job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Number of the job in the caller's store.
    pub job: i64,
    /// What it asks for.
    pub demand: Demand,
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
    /// Whether more jobs wait behind these; when it is their turn, another cycle has to go on.
    pub more: bool,
}

/// A queue: one share holding all jobs when it is FIFO.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queue {
    /// Environments it may use, preferred first, in the caller's numbering.
    pub environments: Vec<usize>,
    /// Its shares.
    pub shares: Vec<Share>,
    /// Thousandths of a vCPU that its jobs may still take; `None` for any amount. See
    /// [`crate::share::reserved_vcpus_milli`].
    pub vcpus_left_milli: Option<i64>,
}

/// A place on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Position of the node in the slice that was given.
    pub node: usize,
    /// Devices on it.
    pub devices: Vec<i64>,
}

/// A job that starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The job.
    pub job: i64,
    /// Its places, in the order of its nodes.
    pub seats: Vec<Seat>,
}

/// Why a head can't be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Others hold what it needs: it waits its turn.
    Busy,
    /// Even an empty node would be too small.
    NodeTooSmall,
    /// No environment has as many nodes.
    TooFewNodes,
    /// A node that it would fit on can't get an instance.
    NoCapacity,
}

/// A head that blocks its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// Position of the queue in the slice that was given.
    pub queue: usize,
    /// The job.
    pub job: i64,
    /// Why.
    pub wait: Wait,
}

/// What a cycle decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cycle {
    /// Starts, in order.
    pub placements: Vec<Placement>,
    /// Heads that couldn't be placed, at most one a queue.
    pub blocked: Vec<Blocked>,
    /// Whether it ended where only some of a share's jobs were known, so that another cycle has to go on.
    pub more: bool,
}

/// What a job that starts is charged at once, so that shares take turns inside one cycle; in milliseconds of its
/// vCPUs.
pub const START_CHARGE_MS: f64 = 60_000.0;

/// Runs one cycle over `queues`, which are in the order of their priority, and takes what it gives from `nodes`.
#[must_use]
pub fn cycle(nodes: &mut [Node], queues: &[Queue]) -> Cycle {
    run(nodes, queues, NodeState::Open)
}

/// The nodes that the jobs would take if every node had an instance: those of them that are down are worth starting,
/// and none of them is worth stopping. Run it after a cycle that placed all it could.
#[must_use]
pub fn wanted(mut nodes: Vec<Node>, queues: &[Queue]) -> Vec<usize> {
    let cycle = run(&mut nodes, queues, NodeState::Down);
    cycle.placements.into_iter().flat_map(|placement| placement.seats).map(|seat| seat.node).collect()
}

/// The order in which the jobs of a queue would start if there were room for all.
#[must_use]
pub fn order(queue: &Queue) -> Vec<i64> {
    let mut lines: Vec<Line<'_>> = queue.shares.iter().map(Line::of).collect();
    std::iter::from_fn(|| next_line(&mut lines)?.take()).map(|candidate| candidate.job).collect()
}

fn run(nodes: &mut [Node], queues: &[Queue], up_to: NodeState) -> Cycle {
    let mut cycle = Cycle::default();
    for (number, queue) in queues.iter().enumerate() {
        serve(nodes, queue, up_to, &mut cycle, number);
        if cycle.more {
            break;
        }
    }
    cycle
}

/// A share while its jobs are taken from it.
struct Line<'q> {
    share: &'q Share,
    taken: usize,
    usage: f64,
}

impl<'q> Line<'q> {
    fn of(share: &'q Share) -> Self {
        Self { share, taken: 0, usage: share.usage }
    }

    fn waits(&self) -> bool {
        self.share.more || self.taken < self.share.jobs.len()
    }

    /// The next job, charged; `None` when it isn't known.
    fn take(&mut self) -> Option<&'q Candidate> {
        let next = self.share.jobs.get(self.taken)?;
        self.taken += 1;
        self.usage += vcpus(next.demand.vcpus_milli()) * START_CHARGE_MS;
        Some(next)
    }
}

fn serve(nodes: &mut [Node], queue: &Queue, up_to: NodeState, cycle: &mut Cycle, number: usize) {
    let mut lines: Vec<Line<'_>> = queue.shares.iter().map(Line::of).collect();
    let mut left = queue.vcpus_left_milli;
    while let Some(line) = next_line(&mut lines) {
        let Some(head) = line.take() else {
            cycle.more = true;
            return;
        };
        let vcpus_milli = head.demand.vcpus_milli();
        let allowed = left.is_none_or(|left| vcpus_milli <= left);
        let Some(seats) = place(nodes, queue, &head.demand, up_to).filter(|_| allowed) else {
            let wait = if allowed { why(nodes, queue, &head.demand) } else { Wait::Busy };
            cycle.blocked.push(Blocked { queue: number, job: head.job, wait });
            return;
        };
        left = left.map(|left| left - vcpus_milli);
        take(nodes, &head.demand, &seats);
        cycle.placements.push(Placement { job: head.job, seats });
    }
}

/// The share with work that has had the least for its weight; of equal ones the first by name.
fn next_line<'l, 'q>(lines: &'l mut [Line<'q>]) -> Option<&'l mut Line<'q>> {
    let turn = |line: &Line<'_>| line.usage * line.share.weight;
    lines
        .iter_mut()
        .filter(|line| line.waits())
        .min_by(|a, b| turn(a).total_cmp(&turn(b)).then_with(|| a.share.id.cmp(&b.share.id)))
}

/// Thousandths of a vCPU as vCPUs, for usage only.
#[expect(clippy::cast_precision_loss, reason = "nodes have far fewer than 2^53 thousandths of a vCPU")]
pub(crate) fn vcpus(milli: i64) -> f64 {
    milli as f64 / 1_000.0
}

/// Finds the places for a job: in the first environment of the queue that has room.
fn place(nodes: &[Node], queue: &Queue, demand: &Demand, up_to: NodeState) -> Option<Vec<Seat>> {
    let devices = |node: usize, need: &Need| {
        let count = usize::try_from(need.gpus).ok()?;
        Some(Seat { node, devices: nodes.get(node)?.free_devices.get(..count)?.to_vec() })
    };
    let in_environment = |environment: &usize| match demand {
        Demand::One(need) => Some(vec![devices(best(nodes, *environment, need, up_to)?, need)?]),
        Demand::Gang(needs) => {
            let hosts = empty_hosts(nodes, *environment, needs, up_to)?;
            hosts.into_iter().zip(needs).map(|(host, need)| devices(host, need)).collect()
        }
    };
    queue.environments.iter().find_map(in_environment)
}

/// The node with the fewest free GPUs that suffices, so that large gaps stay whole; of equal nodes the lowest index.
/// One that needn't be started first comes before one that does.
fn best(nodes: &[Node], environment: usize, need: &Need, up_to: NodeState) -> Option<usize> {
    let here = nodes.iter().enumerate().filter(|(_, node)| node.environment == environment && node.state <= up_to);
    let fitting = here.filter(|(_, node)| has_room(node, need));
    fitting.min_by_key(|(_, node)| (node.state, node.free_devices.len(), node.index)).map(|(position, _)| position)
}

/// Empty nodes for a multi-node job, one for each of its own.
fn empty_hosts(nodes: &[Node], environment: usize, needs: &[Need], up_to: NodeState) -> Option<Vec<usize>> {
    let is_host = |node: &Node| {
        let empty = node.free.vcpus_milli == node.total.vcpus_milli && node.free.memory_mib == node.total.memory_mib;
        let whole = usize::try_from(node.total.gpus).is_ok_and(|gpus| gpus == node.free_devices.len());
        node.environment == environment && node.state <= up_to && !node.spot && empty && whole
    };
    let mut hosts: Vec<(NodeState, i64, usize)> = Vec::new();
    for (position, node) in nodes.iter().enumerate().filter(|(_, node)| is_host(node)) {
        if needs.iter().all(|need| has_room(node, need)) {
            hosts.push((node.state, node.index, position));
        }
    }
    hosts.sort_unstable();
    let hosts: Vec<usize> = hosts.into_iter().take(needs.len()).map(|(_, _, position)| position).collect();
    (hosts.len() == needs.len()).then_some(hosts)
}

/// Takes the places of a job. A host of a multi-node job is used up, whatever is left on it.
fn take(nodes: &mut [Node], demand: &Demand, seats: &[Seat]) {
    for (seat, need) in seats.iter().zip(demand.needs()) {
        let Some(node) = nodes.get_mut(seat.node) else { continue };
        if matches!(demand, Demand::Gang(_)) {
            node.use_up();
            continue;
        }
        node.free.vcpus_milli -= need.vcpus_milli;
        node.free.memory_mib -= need.memory_mib;
        node.free_devices.retain(|device| !seat.devices.contains(device));
    }
}

impl Node {
    /// Takes everything that is free.
    pub fn use_up(&mut self) {
        self.free = Need::default();
        self.free_devices.clear();
        // A job that asks for nothing doesn't fit either.
        self.free.vcpus_milli = -1;
    }
}

fn has_room(node: &Node, need: &Need) -> bool {
    usize::try_from(need.gpus).is_ok_and(|gpus| gpus <= node.free_devices.len())
        && need.vcpus_milli <= node.free.vcpus_milli
        && need.memory_mib <= node.free.memory_mib
}

/// Why a job that can't be placed can't.
fn why(nodes: &[Node], queue: &Queue, demand: &Demand) -> Wait {
    let may = |node: &&Node| !node.retired && demand.needs().iter().all(|need| could_fit(node, need));
    let kind = |node: &&Node| !(node.spot && matches!(demand, Demand::Gang(_)));
    let here = |environment: usize| nodes.iter().filter(move |node| node.environment == environment).filter(may);
    let most = queue.environments.iter().map(|environment| here(*environment).filter(kind).count()).max();
    match most.unwrap_or(0) {
        0 => Wait::NodeTooSmall,
        count if count < demand.needs().len() => Wait::TooFewNodes,
        _ if queue.environments.iter().any(|e| here(*e).any(|n| n.state == NodeState::Unobtainable)) => {
            Wait::NoCapacity
        }
        _ => Wait::Busy,
    }
}

fn could_fit(node: &Node, need: &Need) -> bool {
    need.gpus <= node.total.gpus
        && need.vcpus_milli <= node.total.vcpus_milli
        && need.memory_mib <= node.total.memory_mib
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
