//! Exact plans of small problems: the best there is, with the proof that there is no better one.
//!
//! Of a kind the worthiest jobs are placed first (`kinds`), and nodes that have as much free are alike, so a
//! plan is known by how each node is filled (`patterns`). A bound over all of them (`bound`) tells how much less a
//! way of filling a node is worth than the best one; a better plan than the one at hand can only be made of ways that
//! lose less than what lies between it and the bound, and these are all tried (`states`). Jobs of several nodes are
//! branched on first: for every number of them that start, the rest is solved.

mod bound;
mod patterns;
mod states;

use super::kinds::Kind;
use super::order::by_priority;
use super::plan::Plan;
use super::problem::Problem;
use super::swarm::{self, InTurn, Settings};
use bound::{Bound, Market};
use patterns::{Class, classes};
use states::{KIND_JOBS_MAX, KINDS_MAX, Searched};

/// Most combinations of jobs of several nodes that are branched on.
const BRANCHES_MAX: usize = 20_000;
/// Most ways of filling one node more that are tried for one branch: a second of work, or two.
const TRIES_MAX: usize = 10_000_000;
/// Most branches that may take so many: after them the proof is given up.
const BRANCHES_OPEN_MAX: u32 = 3;
/// What lies between two plans at least, in thousandths, when the price of a stranded slot is a whole number of them.
const WHOLE: f64 = 1.0;
/// The same otherwise; rounding stays far below it.
const FRACTION: f64 = 1e-3;

/// The best plan that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Solved {
    /// The plan.
    pub plan: Plan,
    /// What no plan exceeds. The worth of this plan when it is proven to be the best.
    pub bound: f64,
    /// Whether it is proven.
    pub is_proven: bool,
}

/// Why a problem can't be solved exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooLarge {
    /// Too many kinds of jobs, or too many jobs of a kind.
    Kinds,
    /// Too many ways of filling a node.
    Patterns,
    /// Too many combinations of jobs of several nodes.
    Branches,
    /// Jobs of several nodes where nodes differ in size.
    MixedNodes,
    /// A reserved head.
    Reserved,
}

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Kinds => "there are more than 16 sizes of jobs, or more than 255 jobs of one size",
            Self::Patterns => "there are too many ways of filling a node",
            Self::Branches => "there are too many combinations of jobs of several nodes",
            Self::MixedNodes => "jobs of several nodes on nodes of different sizes",
            Self::Reserved => "jobs that would delay a reserved head",
        })
    }
}

/// The best plan, or the best of the swarm with a bound where the proof takes too much.
///
/// # Errors
/// When the problem isn't a small one.
pub fn exact(problem: &Problem) -> Result<Solved, TooLarge> {
    let small = Small::of(problem)?;
    let start = swarm::search(problem, &Settings::default(), &by_priority(problem), &InTurn).plan;
    Ok(small.solve(start))
}

/// A problem that is small enough.
struct Small<'p> {
    problem: &'p Problem,
    /// Kinds that go to one node.
    kinds: Vec<&'p Kind>,
    /// Kinds that need several, with how many.
    gangs: Vec<(&'p Kind, usize)>,
    classes: Vec<Class>,
    /// What lies between two plans at least.
    step: f64,
}

/// So many jobs of several nodes, what they are worth, and a bound of everything with them.
struct Branch {
    gangs: Vec<usize>,
    nodes: Vec<usize>,
    worth: f64,
    bound: Bound,
}

impl Branch {
    fn most(&self) -> f64 {
        self.worth + self.bound.worth
    }
}

impl<'p> Small<'p> {
    fn of(problem: &'p Problem) -> Result<Self, TooLarge> {
        let (one, several): (Vec<&Kind>, Vec<&Kind>) =
            problem.kinds.list().iter().partition(|kind| kind.slots <= problem.node_slots_max);
        if problem.kinds.list().iter().any(|kind| kind.outlasts) {
            return Err(TooLarge::Reserved);
        }
        if one.len() > KINDS_MAX || problem.kinds.list().iter().any(|kind| kind.jobs.len() > KIND_JOBS_MAX) {
            return Err(TooLarge::Kinds);
        }
        let node_slots = problem.node_slots_max;
        if !several.is_empty() && problem.nodes().iter().any(|node| node.slots != node_slots) {
            return Err(TooLarge::MixedNodes);
        }
        let nodes_of = |kind: &Kind| usize::try_from(kind.slots.div_ceil(node_slots.max(1))).unwrap_or(usize::MAX);
        let gangs = several.into_iter().map(|kind| (kind, nodes_of(kind))).collect();
        let shapes: Vec<(u32, usize)> = one.iter().map(|kind| (kind.slots, kind.jobs.len())).collect();
        let classes = classes(problem, &shapes).ok_or(TooLarge::Patterns)?;
        let step = if problem.stranded_price().fract() == 0.0 { WHOLE } else { FRACTION };
        let small = Self { problem, kinds: one, gangs, classes, step };
        if small.combinations().len() > BRANCHES_MAX { Err(TooLarge::Branches) } else { Ok(small) }
    }

    fn empty_nodes(&self) -> usize {
        self.classes.iter().filter(|class| class.is_empty).map(|class| class.nodes.len()).sum()
    }

    /// How many jobs of each kind of several nodes can start together; a little more than the most that are allowed when
    /// there are more.
    fn combinations(&self) -> Vec<Vec<usize>> {
        let mut found = vec![(Vec::new(), self.empty_nodes())];
        for (kind, nodes) in &self.gangs {
            let mut next = Vec::new();
            for (counts, left) in &found {
                for count in 0..=(left / nodes).min(kind.jobs.len()) {
                    let mut counts = counts.clone();
                    counts.push(count);
                    next.push((counts, left - count * nodes));
                }
                if next.len() > BRANCHES_MAX {
                    break;
                }
            }
            found = next;
        }
        found.into_iter().map(|(counts, _)| counts).collect()
    }

    fn solve(&self, start: Plan) -> Solved {
        let reached = |plan: &Plan| self.problem.objective(plan).unwrap_or(f64::NEG_INFINITY) * 1000.0;
        let (mut worth, mut plan) = (reached(&start), start);
        let mut branches = self.branches(worth);
        branches.sort_by(|a, b| b.most().total_cmp(&a.most()));
        let (mut open, mut open_worth) = (0, f64::NEG_INFINITY);
        for branch in &branches {
            // What a better plan would lose against the bound at most.
            let allowed = branch.most() - worth - self.step + FRACTION / 2.0;
            if allowed < 0.0 {
                break;
            }
            if open == BRANCHES_OPEN_MAX {
                open_worth = open_worth.max(branch.most());
                break;
            }
            match states::search(self.market(&branch.nodes), &branch.bound, allowed, TRIES_MAX) {
                Searched::Best(patterns, loss) if branch.most() - loss > worth => {
                    let found = self.plan(branch, &patterns);
                    let is_better = reached(&found) > worth;
                    if is_better {
                        (worth, plan) = (reached(&found), found);
                    }
                }
                Searched::Best(..) | Searched::Nothing => {}
                Searched::TooMany => {
                    open += 1;
                    open_worth = open_worth.max(branch.most());
                }
            }
        }
        let is_proven = open_worth <= worth;
        Solved { plan, bound: open_worth.max(worth) / 1000.0, is_proven }
    }

    fn branches(&self, reached: f64) -> Vec<Branch> {
        let mut prices = self.first_prices();
        let branch = |gangs: Vec<usize>| {
            let worth =
                self.gangs.iter().zip(&gangs).filter_map(|((kind, _), count)| kind.worth.get(*count)).sum::<i64>();
            let taken: usize = self.gangs.iter().zip(&gangs).map(|((_, nodes), count)| nodes * count).sum();
            let nodes: Vec<usize> =
                self.classes.iter().map(|class| class.nodes.len() - self.taken(class, taken)).collect();
            let worth = worth as f64;
            let bound = self.market(&nodes).bound(&prices, reached - worth);
            prices.clone_from(&bound.prices);
            Branch { gangs, nodes, worth, bound }
        };
        self.combinations().into_iter().map(branch).collect()
    }

    /// The prices to begin with: each slot at what the last one is worth when the worthiest jobs fill all that is free,
    /// as though jobs could be cut.
    fn first_prices(&self) -> Vec<f64> {
        let mut free: u64 = self.problem.nodes().iter().map(|node| u64::from(node.free)).sum();
        let mut jobs: Vec<(u32, u32)> = self.problem.jobs().iter().map(|job| (job.weight, job.slots)).collect();
        jobs.sort_unstable_by(|a, b| b.cmp(a));
        let last = jobs.into_iter().find(|(_, slots)| {
            let fits = u64::from(*slots) < free;
            free = free.saturating_sub(u64::from(*slots));
            !fits
        });
        let price = last.map_or(0, |(weight, _)| weight);
        self.kinds.iter().map(|kind| f64::from(price) * f64::from(kind.slots)).collect()
    }

    /// Nodes of a class that jobs of several nodes take.
    fn taken(&self, class: &Class, taken: usize) -> usize {
        if class.is_empty && !self.gangs.is_empty() { taken } else { 0 }
    }

    fn market<'m>(&'m self, nodes: &'m [usize]) -> Market<'m> {
        Market { kinds: &self.kinds, classes: &self.classes, nodes, stranded_price: self.problem.stranded_price() }
    }

    /// The plan in which nodes are filled like this: jobs of several nodes take the first empty ones.
    fn plan(&self, branch: &Branch, patterns: &[u16]) -> Plan {
        let mut plan = Plan { nodes: vec![Vec::new(); self.problem.jobs().len()] };
        let mut next = vec![0; self.kinds.len()];
        let mut patterns = patterns.iter();
        for (class, filled) in self.classes.iter().zip(&branch.nodes) {
            let (whole, rest) = class.nodes.split_at(class.nodes.len() - filled);
            self.place_gangs(&branch.gangs, whole, &mut plan);
            for (node, pattern) in rest.iter().zip(patterns.by_ref()) {
                let counts = class.patterns.get(usize::from(*pattern)).map_or(&[][..], |pattern| &pattern.counts);
                for ((kind, count), next) in self.kinds.iter().zip(counts).zip(&mut next) {
                    for job in kind.jobs.iter().skip(*next).take(usize::from(*count)) {
                        hold(&mut plan, *job, *node);
                    }
                    *next += usize::from(*count);
                }
            }
        }
        plan
    }

    fn place_gangs(&self, counts: &[usize], whole: &[usize], plan: &mut Plan) {
        let mut whole = whole.iter();
        for ((kind, nodes), count) in self.gangs.iter().zip(counts) {
            for job in kind.jobs.iter().take(*count) {
                whole.by_ref().take(*nodes).for_each(|node| hold(plan, *job, *node));
            }
        }
    }
}

fn hold(plan: &mut Plan, job: u32, node: usize) {
    let nodes = usize::try_from(job).ok().and_then(|job| plan.nodes.get_mut(job));
    if let (Some(nodes), Ok(node)) = (nodes, u32::try_from(node)) {
        nodes.push(node);
    }
}

#[cfg(test)]
mod tests;
