//! A pool as it was read, as the snapshot that a decision takes.
//!
//! Which node a job lands on is Batch's choice, and an event says it once the job runs. What is taken of a node and
//! isn't a run that is known to be there is somebody else's, or ours and not heard of yet: it counts as taken either
//! way, and a dispatch in flight counts besides. That errs to the safe side until the event comes.

use std::collections::BTreeMap;

use osprey_model::id::JobId;
use osprey_model::job::Needs;
use osprey_model::pool::Pool;
use osprey_pipeline::context::Context;
use osprey_pipeline::line::{Holding, InLine};
use osprey_scheduler::rules::TierRules;
use osprey_scheduler::snapshot::{
    Array, Charge, Evicted, Gate, Hold, Landing, Node, NodeState, Queued, Running, Shape, TeamUse, UNCOUNTED,
};
use osprey_scheduler::{Rules, Snapshot};

use crate::load::Loaded;
use crate::rules;

/// How long an environment takes to bring up a node for a runnable job, milliseconds: about four minutes on EC2.
const START_UP_MS: u64 = 240_000;

/// Makes the snapshot of a pool at a time, milliseconds since 1970.
#[must_use]
pub fn of(ctx: &Context<'_>, pool: &Pool, loaded: &Loaded, rules: &Rules, now_ms: i64) -> Snapshot {
    let mut nodes = Nodes::of(pool, loaded);
    let mut charges = Charges::of(ctx, loaded, rules, now_ms);
    let mut running: Vec<Running> = loaded.holds.iter().map(|holding| run(holding, loaded, rules, now_ms)).collect();
    for (holding, run) in loaded.holds.iter().zip(&mut running) {
        run.charge = charges.charge(holding.team.as_ref(), &holding.charge);
        run.is_borrowed = holding.charge.borrowed;
    }
    // Runs that are known to be on a node come before those that are up somewhere: what is left of the nodes says where.
    for (holding, run) in loaded.holds.iter().zip(&mut running) {
        run.holds = nodes.settle(holding, run.shape);
    }
    for run in &mut running {
        run.has_landed = !run.holds.is_empty() && run.holds.iter().all(|hold| nodes.shows_all_on(hold.node));
    }
    let mut coming = Vec::new();
    for (holding, run) in loaded.holds.iter().zip(&mut running) {
        if run.holds.is_empty() && holding.started_at.is_some() {
            coming.extend(nodes.find(run));
            // Of what runs on one node an event will say which. Of several nodes none does, so these are as good as known.
            run.has_landed = !run.holds.is_empty() && (run.children > 1 || run.shape.nodes > 1);
        }
    }
    running.extend(coming);
    let queued = loaded.line.iter().map(|job| {
        let lent = loaded.lent.get(&job.job).copied().unwrap_or_default();
        Queued {
            lent: lent.priority,
            critical_path_ms: lent.critical_path_ms,
            has_other_pools: has_other_pools(ctx, pool, job),
            charge: charges.charge(job.team.as_ref(), &job.charge),
            ..queued(job, rules)
        }
    });
    let (queued, gate) = (queued.collect(), gate(ctx, loaded, now_ms));
    let teams = charges.teams;
    Snapshot {
        nodes: nodes.into_nodes(),
        running,
        queued,
        gate,
        drained: drained(loaded, rules),
        landing: Landing::Anywhere,
        evicted: evicted(loaded, rules, now_ms),
        teams,
    }
}

/// Teams, reserves and users, by the numbers that jobs of a snapshot name them by.
struct Charges<'a> {
    rules: &'a Rules,
    /// What the teams of the line use, and those that borrow.
    teams: Vec<TeamUse>,
    numbers: BTreeMap<&'a String, u16>,
    users: BTreeMap<&'a String, u32>,
}

impl<'a> Charges<'a> {
    fn of(ctx: &Context<'_>, loaded: &'a Loaded, rules: &'a Rules, now_ms: i64) -> Self {
        let teams = loaded.teams.iter().map(|(team, account)| account.team_use(team, ctx.policy, now_ms)).collect();
        let numbers = loaded.teams.keys().zip(0_u16..).collect();
        Self { rules, teams, numbers, users: BTreeMap::new() }
    }

    /// Whose use a job counts as. A team that has nobody in line and borrows nothing is told apart, and no more is known of it.
    fn charge(&mut self, team: Option<&'a String>, charge: &'a osprey_model::job::Charge) -> Charge {
        let next = u16::try_from(self.numbers.len()).unwrap_or(u16::MAX);
        let asks = self.rules.asks_of_teams();
        let number = team.filter(|_| asks).map(|team| *self.numbers.entry(team).or_insert(next));
        let named = |name: &String| self.rules.quota.reserves.iter().position(|reserve| reserve.name == *name);
        let ordered = || named(&rules::kept_for(team?));
        let reserve = charge.reserve.as_ref().and_then(named).or_else(ordered);
        let reserve = reserve.and_then(|place| u16::try_from(place).ok());
        let next = u32::try_from(self.users.len()).unwrap_or(u32::MAX);
        let user = charge.user.as_ref().map(|user| *self.users.entry(user).or_insert(next));
        Charge { team: number, reserve, user }
    }
}

/// Whether another pool has a queue of a job's tier, and so many GPUs. Whether it really takes the job is asked when the
/// job is to move.
fn has_other_pools(ctx: &Context<'_>, pool: &Pool, job: &InLine) -> bool {
    let could = |other: &&Pool| {
        other.name != pool.name
            && other.queues.contains_key(&job.tier)
            && other.gpus().is_none_or(|gpus| gpus >= job.gpus)
    };
    ctx.pools.iter().any(|other| could(&other))
}

/// Tiers that a person has drained.
fn drained(loaded: &Loaded, rules: &Rules) -> Vec<u16> {
    let of = |tier: &TierRules| loaded.orders.drains_tier(&tier.name).then(|| rules.tier(&tier.name));
    rules.tiers.iter().filter_map(of).collect()
}

/// A pool that could have more nodes, and in which a dispatch has been waiting for far longer than nodes take, doesn't
/// get them. Whoever has been silent for that long has been asked after meanwhile, so a lost event isn't taken for it.
fn gate(ctx: &Context<'_>, loaded: &Loaded, now_ms: i64) -> Gate {
    if loaded.orders.drains_all() {
        return Gate::Paused;
    }
    let patience_ms = ctx.settings.silence_ms.saturating_mul(3) / 2;
    let waiting = loaded.holds.iter().filter(|holding| holding.started_at.is_none());
    let since = waiting.map(|holding| holding.since).min().filter(|_| loaded.capacity.obtainable > 0);
    match since.filter(|since| now_ms.saturating_sub(*since) >= patience_ms) {
        Some(since_ms) => Gate::NoCapacity { since_ms },
        None => Gate::Open,
    }
}

/// What one child of an array needs of one node, or the job itself.
fn shape(gpus: u32, needs: &Needs) -> Shape {
    let (nodes, children) = (needs.nodes.max(1), needs.children.max(1));
    let parts = nodes.saturating_mul(children);
    Shape { nodes, gpus: gpus.div_ceil(parts), vcpus: needs.vcpus.div_ceil(parts) }
}

/// Evictions that the budgets count: those that were told to a job, and those that are planned and may be told now.
fn evicted(loaded: &Loaded, rules: &Rules, now_ms: i64) -> Vec<Evicted> {
    let told = loaded.evicted.iter().map(|was| Evicted { tier: rules.tier(&was.tier), at_ms: was.at });
    let planned = loaded.planned.iter().flat_map(|planned| {
        let tiers = planned.victims.iter().map(|victim| rules.tier(&victim.tier));
        tiers.map(|tier| Evicted { tier, at_ms: now_ms })
    });
    told.chain(planned).collect()
}

/// The job that a run goes for: it was told so, or will be once Batch has that job.
fn leaves_for(holding: &Holding, loaded: &Loaded) -> Option<JobId> {
    let planned = || loaded.planned.iter().find_map(|planned| planned.evicts(holding.job, holding.attempt));
    holding.leaves_for.or_else(planned)
}

fn run(holding: &Holding, loaded: &Loaded, rules: &Rules, now_ms: i64) -> Running {
    let started_ms = holding.started_at.unwrap_or(now_ms);
    let expected = expected_ms(&holding.needs, holding.kept_ms);
    // What it reported in a run before is where this one began, with so much of its work done.
    let saved = holding.saved.filter(|saved| saved.at >= started_ms);
    Running {
        done_ms: holding.kept_ms,
        evictions: holding.evictions,
        saved_ms: saved.map(|saved| saved.at),
        percent: holding.saved.and_then(|saved| saved.percent),
        saves_every_ms: holding.needs.saves_every_seconds.map(|seconds| seconds.saturating_mul(1_000)),
        leaves_for: leaves_for(holding, loaded),
        children: holding.needs.children.max(1),
        started_ms,
        expected_end_ms: expected.map(|ms| started_ms.saturating_add_unsigned(ms)),
        priority: holding.priority,
        tier: rules.tier(&holding.tier),
        ..Running::new(holding.job, shape(holding.gpus, &holding.needs))
    }
}

/// A job of the line as it is decided about, without what others lend it.
#[must_use]
pub fn queued(job: &InLine, rules: &Rules) -> Queued {
    let array = (job.needs.children > 1).then_some(Array { waiting: job.needs.children, singly: false });
    Queued {
        priority: job.priority,
        tier: rules.tier(&job.tier),
        enqueued_ms: job.enqueued_at,
        not_before_ms: job.not_before,
        array,
        expected_ms: expected_ms(&job.needs, job.kept_ms),
        ..Queued::new(job.job, shape(job.gpus, &job.needs))
    }
}

/// How long a run is thought to take: what its user expects, without the work that is kept of runs before; else the longest
/// that it may.
fn expected_ms(needs: &Needs, kept_ms: u64) -> Option<u64> {
    let ms = |seconds: u64| seconds.saturating_mul(1_000);
    if needs.expected_seconds > 0 {
        return Some(ms(needs.expected_seconds).saturating_sub(kept_ms).max(1));
    }
    (needs.longest_seconds > 0).then(|| ms(needs.longest_seconds))
}

/// The nodes of a pool, and what of them nobody has been named for yet.
struct Nodes<'a> {
    ids: Vec<&'a str>,
    nodes: Vec<Node>,
    /// GPUs of each node that are seen in use.
    used: Vec<u32>,
    /// GPUs of each node that runs were named for.
    named: Vec<u32>,
}

impl<'a> Nodes<'a> {
    fn of(pool: &Pool, loaded: &'a Loaded) -> Self {
        let used = loaded.capacity.nodes.iter().map(|node| node.gpus_used).collect();
        let named = vec![0; loaded.capacity.nodes.len()];
        let mut all = Self { ids: Vec::new(), nodes: Vec::new(), used, named };
        for node in &loaded.capacity.nodes {
            let vcpus = node.vcpus.unwrap_or(UNCOUNTED);
            all.ids.push(&node.id);
            all.nodes.push(Node {
                vcpus,
                foreign_gpus: node.gpus_used.min(node.gpus),
                foreign_vcpus: if vcpus == UNCOUNTED { 0 } else { node.vcpus_used.min(vcpus) },
                ..Node::new(node.gpus)
            });
        }
        // An environment grows for jobs that are runnable.
        let vcpus = pool.vcpus_per_node.filter(|_| loaded.capacity.nodes.iter().any(|node| node.vcpus.is_some()));
        for _ in 0..loaded.capacity.obtainable {
            all.ids.push("");
            all.nodes.push(Node {
                vcpus: vcpus.unwrap_or(UNCOUNTED),
                state: NodeState::Absent { start_up_ms: START_UP_MS },
                ..Node::new(pool.gpus_per_node)
            });
        }
        all
    }

    /// A run on the node that it is known to be on; nothing where that isn't known.
    fn settle(&mut self, holding: &Holding, shape: Shape) -> Vec<Hold> {
        let on = holding.node.as_deref().and_then(|node| self.ids.iter().position(|id| *id == node));
        on.and_then(|number| self.name(number, shape)).into_iter().collect()
    }

    /// Whether all that runs are said to hold of a node is seen in use there. Where it isn't, one of them has ended or isn't
    /// up, nobody knows which, and what others' work holds there can't be told: nobody is evicted on such a node, and its
    /// runs count as in flight besides.
    fn shows_all_on(&self, node: u32) -> bool {
        let of = |list: &[u32]| usize::try_from(node).ok().and_then(|node| list.get(node).copied());
        of(&self.named).zip(of(&self.used)).is_some_and(|(named, used)| named <= used)
    }

    /// Says whose so much of a node is. A run that has just begun or ended holds more than is seen of it.
    fn name(&mut self, number: usize, shape: Shape) -> Option<Hold> {
        let node = self.nodes.get_mut(number)?;
        if let Some(named) = self.named.get_mut(number) {
            *named = named.saturating_add(shape.gpus);
        }
        node.foreign_gpus = node.foreign_gpus.saturating_sub(shape.gpus);
        node.foreign_vcpus = node.foreign_vcpus.saturating_sub(shape.vcpus);
        Some(Hold { node: u32::try_from(number).ok()?, gpus: shape.gpus, vcpus: shape.vcpus })
    }

    /// Puts a run that is up, nobody knows where, on nodes where something of its size is that nobody was named for. One
    /// of which too little is found is as good as in flight; of an array the children that aren't found are, which is
    /// what this returns. Where others' work is of the same size it may be taken for ours: a start too many then waits
    /// in Batch for a while.
    fn find(&mut self, run: &mut Running) -> Option<Running> {
        let parts = run.shape.nodes.saturating_mul(run.children);
        let mut left: Vec<u32> = self.nodes.iter().map(|node| node.foreign_gpus).collect();
        let mut places = Vec::new();
        while run.shape.gpus > 0 && places.len() < usize::try_from(parts).unwrap_or(usize::MAX) {
            let fitting = left.iter_mut().enumerate().filter(|(_, gpus)| **gpus >= run.shape.gpus);
            let Some((number, gpus)) = fitting.min_by_key(|(_, gpus)| **gpus) else { break };
            *gpus -= run.shape.gpus;
            places.push(number);
        }
        let found = u32::try_from(places.len()).unwrap_or(u32::MAX);
        if found == 0 || (found < parts && run.shape.nodes > 1) {
            return None;
        }
        run.holds = places.into_iter().filter_map(|number| self.name(number, run.shape)).collect();
        let rest = Running { children: parts - found, holds: Vec::new(), ..run.clone() };
        run.children = if run.shape.nodes > 1 { run.children } else { found };
        (rest.children > 0 && run.shape.nodes == 1).then_some(rest)
    }

    fn into_nodes(self) -> Vec<Node> {
        self.nodes
    }
}
