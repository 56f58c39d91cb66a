//! What a decision looks at: one pool at one moment. Times are milliseconds since 1970.
//!
//! Every type has a constructor and plain fields, so that a caller states what it knows and leaves the rest:
//! `Queued { priority: 950, ..Queued::new(job, Shape::gpus(8)) }`.

use osprey_model::id::JobId;
pub use osprey_policy::share::{Budget, TeamUse};

/// A pool at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The nodes; their place in the list is their number.
    pub nodes: Vec<Node>,
    /// What holds GPUs: running jobs, and dispatched ones from the moment of their claim.
    pub running: Vec<Running>,
    /// Jobs that wait, in any order. The order of [`crate::order::ordered`] is the quickest to decide about.
    pub queued: Vec<Queued>,
    /// Whether the pool takes starts at all.
    pub gate: Gate,
    /// Tiers that a person has drained, by their place in [`crate::Rules::tiers`]: nothing of them starts.
    pub drained: Vec<u16>,
    /// Who chooses the nodes of a start.
    pub landing: Landing,
    /// Evictions within the longest window of the rules, in any order.
    pub evicted: Vec<Evicted>,
    /// What the teams of its jobs use, of every pool; their place in the list is what jobs name them by. None where nothing
    /// asks for it.
    pub teams: Vec<TeamUse>,
}

/// Whose use a job counts as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// Its team: an index into [`Snapshot::teams`]. A job without one has no quota.
    pub team: Option<u16>,
    /// The reserve that it may take from: an index into the reserves of [`crate::Rules::quota`].
    pub reserve: Option<u16>,
    /// Its user, by any number that tells users apart.
    pub user: Option<u32>,
}

/// An eviction that has been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// The tier of the job that was evicted: an index into [`crate::Rules::tiers`].
    pub tier: u16,
    /// When.
    pub at_ms: i64,
}

/// Whether a pool takes starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gate {
    /// It does.
    #[default]
    Open,
    /// A person has drained or paused it.
    Paused,
    /// It can't get capacity: what has been dispatched waits for nodes that don't come.
    NoCapacity {
        /// Since when.
        since_ms: i64,
    },
}

/// Who chooses the nodes that a started job lands on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Landing {
    /// The plan does: a job lands where it says.
    #[default]
    AsPlanned,
    /// Batch does, and tells only once the job runs: a start must fit wherever the dispatches in flight, and the starts
    /// of the same plan, may land.
    Anywhere,
}

/// An amount that isn't counted: there is always enough of it.
pub const UNCOUNTED: u32 = u32::MAX;

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// GPUs that jobs can hold; 0 for a node that takes no more jobs and has none.
    pub gpus: u32,
    /// vCPUs that jobs can hold; [`UNCOUNTED`] where nobody counts them.
    pub vcpus: u32,
    /// What work that isn't ours holds of the GPUs.
    pub foreign_gpus: u32,
    /// What work that isn't ours holds of the vCPUs.
    pub foreign_vcpus: u32,
    /// Whether it is there.
    pub state: NodeState,
}

impl Node {
    /// A node that is up and has only this, with vCPUs that nobody counts.
    #[must_use]
    pub const fn new(gpus: u32) -> Self {
        Self { gpus, vcpus: UNCOUNTED, foreign_gpus: 0, foreign_vcpus: 0, state: NodeState::Up }
    }
}

/// Whether a node is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeState {
    /// It is.
    #[default]
    Up,
    /// It starts up, and a job dispatched now runs once it has.
    Starting {
        /// When it is expected to be up.
        ready_ms: i64,
    },
    /// It isn't provisioned: a job dispatched now makes it start up.
    Absent {
        /// How long that takes, in milliseconds.
        start_up_ms: u64,
    },
    /// It takes no more jobs. What runs there keeps what it holds.
    Closed,
}

/// What a job needs: so much on each of so many nodes, all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// Nodes; 1 unless the job is multi-node. A job of several takes whole empty ones.
    pub nodes: u32,
    /// GPUs on each. A job of one node that asks for more than any node has takes whole empty ones until they are
    /// enough.
    pub gpus: u32,
    /// vCPUs on each.
    pub vcpus: u32,
}

impl Shape {
    /// So many GPUs on one node.
    #[must_use]
    pub const fn gpus(gpus: u32) -> Self {
        Self { nodes: 1, gpus, vcpus: 0 }
    }

    /// What so many jobs of one node each hold of a node.
    #[must_use]
    pub const fn times(&self, node: u32, count: u32) -> Hold {
        Hold { node, gpus: self.gpus.saturating_mul(count), vcpus: self.vcpus.saturating_mul(count) }
    }

    /// GPUs on all of its nodes.
    #[must_use]
    pub const fn all_gpus(&self) -> u32 {
        if self.nodes > 1 { self.nodes.saturating_mul(self.gpus) } else { self.gpus }
    }
}

/// A part of one node, as a job holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hold {
    /// The node's number.
    pub node: u32,
    /// GPUs.
    pub gpus: u32,
    /// vCPUs.
    pub vcpus: u32,
}

impl Hold {
    /// GPUs of one node.
    #[must_use]
    pub const fn gpus(node: u32, gpus: u32) -> Self {
        Self { node, gpus, vcpus: 0 }
    }
}

/// A job that holds GPUs, or is about to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The job.
    pub job: JobId,
    /// What it needs; of an array, what one child needs.
    pub shape: Shape,
    /// Children of an array that run or are dispatched; 1 for a job that is none.
    pub children: u32,
    /// What it holds; while its nodes aren't known, what its plan gave it, or nothing.
    pub holds: Vec<Hold>,
    /// Whether its nodes are known. A dispatch in flight may land on others than its plan says.
    pub has_landed: bool,
    /// When it started, or was dispatched.
    pub started_ms: i64,
    /// When it is expected to end; `None` when nobody knows. One that is overdue is expected to end at any moment.
    pub expected_end_ms: Option<i64>,
    /// The derived priority, 0 to 9999.
    pub priority: u32,
    /// Its tier: an index into [`crate::Rules::tiers`].
    pub tier: u16,
    /// Work of earlier attempts that this one goes on from, in milliseconds.
    pub done_ms: u64,
    /// Times that it was evicted. One that was has to restart before it goes on.
    pub evictions: u32,
    /// When it last reported a checkpoint.
    pub saved_ms: Option<i64>,
    /// How much of its work it had done by then, in percent, where it said so.
    pub percent: Option<u32>,
    /// How often it says that it saves, in milliseconds of its run; 0 for one that saves all the time.
    pub saves_every_ms: Option<u64>,
    /// Whose use it counts as.
    pub charge: Charge,
    /// Whether it goes on beyond its team's quota while nobody within his own wants the GPUs: whoever is may take them back
    /// ([`crate::quota::may_take_back`]).
    pub is_borrowed: bool,
    /// The job that it is being evicted for. While that one is dispatched, what both hold is that one's.
    pub leaves_for: Option<JobId>,
}

impl Charge {
    /// Nobody's.
    pub const NOBODY: Self = Self { team: None, reserve: None, user: None };
}

impl Running {
    /// A job of which only this is known: it is in flight, and nobody knows when it ends.
    #[must_use]
    pub const fn new(job: JobId, shape: Shape) -> Self {
        Self {
            job,
            shape,
            children: 1,
            holds: Vec::new(),
            has_landed: false,
            started_ms: 0,
            expected_end_ms: None,
            priority: 0,
            tier: u16::MAX,
            done_ms: 0,
            evictions: 0,
            saved_ms: None,
            percent: None,
            saves_every_ms: None,
            charge: Charge::NOBODY,
            is_borrowed: false,
            leaves_for: None,
        }
    }
}

/// A job that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// The job.
    pub job: JobId,
    /// The derived priority, 0 to 9999.
    pub priority: u32,
    /// The highest number of those that wait for it ([`crate::lending`]); 0 when nobody does.
    pub lent: u32,
    /// Its tier: an index into [`crate::Rules::tiers`]. One that isn't there stands for the tier of its number.
    pub tier: u16,
    /// When it was submitted. A requeue doesn't change it.
    pub enqueued_ms: i64,
    /// How much of the time since then it ran instead of waiting, in milliseconds.
    pub ran_ms: u64,
    /// Not to be started before: the end of a back-off, or when it came back.
    pub not_before_ms: i64,
    /// What it needs; of an array, what one child needs.
    pub shape: Shape,
    /// What it is an array of; `None` for a job that is none.
    pub array: Option<Array>,
    /// How long it is expected to run once it starts, in milliseconds; `None` when nobody knows, which keeps it from
    /// nothing but passing a job that GPUs are kept for.
    pub expected_ms: Option<u64>,
    /// Expected run of the longest chain of jobs that wait for it, in milliseconds ([`crate::lending`]).
    pub critical_path_ms: u64,
    /// Whether it may go to another pool.
    pub has_other_pools: bool,
    /// Whose use it counts as.
    pub charge: Charge,
}

impl Queued {
    /// A job of which only this is known: the lowest number, submitted at 0.
    #[must_use]
    pub const fn new(job: JobId, shape: Shape) -> Self {
        Self {
            job,
            priority: 0,
            lent: 0,
            tier: u16::MAX,
            enqueued_ms: 0,
            ran_ms: 0,
            not_before_ms: 0,
            shape,
            array: None,
            expected_ms: None,
            critical_path_ms: 0,
            has_other_pools: false,
            charge: Charge::NOBODY,
        }
    }

    /// How long it has waited in all, in milliseconds. A clock that went back makes nobody wait for less than 0.
    #[must_use]
    pub fn waited_ms(&self, now_ms: i64) -> u64 {
        let since_ms = u64::try_from(now_ms.saturating_sub(self.enqueued_ms)).unwrap_or(0);
        since_ms.saturating_sub(self.ran_ms)
    }

    /// GPUs that it takes where there is room for all of it.
    #[must_use]
    pub fn all_gpus(&self) -> u32 {
        let children = self.array.map_or(1, |array| array.waiting);
        self.shape.all_gpus().saturating_mul(children)
    }
}

/// Children of an array that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array {
    /// How many.
    pub waiting: u32,
    /// Whether they may be started one by one, each as a job of its own. Else the array is started as one, when all of
    /// them fit or as many as the empty pool holds: Batch would give every freed GPU to the rest.
    pub singly: bool,
}

impl Snapshot {
    /// GPUs of the pool.
    #[must_use]
    pub fn gpus(&self) -> u32 {
        self.nodes.iter().fold(0, |sum, node| sum.saturating_add(node.gpus))
    }
}
