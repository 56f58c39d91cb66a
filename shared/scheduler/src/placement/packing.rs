//! Packing: from an order of jobs to a plan, and what it is worth.

use super::levels::Levels;
use super::plan::Plan;
use super::problem::Problem;

/// Packs one order after the other into the same nodes; the memory is used again each time.
///
/// Best fit: a job goes to the node with the fewest free slots that fit it, the lowest number of equals. A job larger
/// than any node takes entirely empty nodes, the lowest numbers first. What doesn't fit waits. An order names a job,
/// and the worthiest of its kind that has no place yet is taken ([`super::kinds`]).
#[derive(Clone, Debug)]
pub(super) struct Packer<'p> {
    problem: &'p Problem,
    fresh: State,
    now: State,
    /// How many of each kind have a place.
    counts: Vec<u32>,
    /// Kinds that nothing more is placed of: what didn't fit once never fits later.
    closed: Vec<bool>,
    holds: Vec<Hold>,
}

/// A node that a job of some kind has.
#[derive(Clone, Copy, Debug)]
struct Hold {
    kind: usize,
    node: usize,
    /// Whether it is the job's first.
    leads: bool,
}

/// What is free.
#[derive(Clone, Debug)]
struct State {
    free: Vec<u32>,
    spare: Vec<u32>,
    levels: Levels,
    /// Slots of entirely empty nodes.
    empty: u64,
    /// Slots left free on partly used nodes.
    stranded: u64,
    /// Slots taken from the reserved head.
    overdrawn: u64,
}

impl State {
    fn of(problem: &Problem) -> Self {
        let free: Vec<u32> = problem.nodes.iter().map(|node| node.free).collect();
        let sum = |is_empty: bool| {
            let nodes = problem.nodes.iter().filter(|node| (node.free == node.slots) == is_empty);
            nodes.map(|node| u64::from(node.free)).sum()
        };
        let levels = Levels::of(&free);
        let spare = problem.nodes.iter().map(|node| node.spare.min(node.free)).collect();
        Self { free, spare, levels, empty: sum(true), stranded: sum(false), overdrawn: 0 }
    }

    fn copy(&mut self, other: &Self) {
        let Self { free, spare, levels, empty, stranded, overdrawn } = self;
        free.copy_from_slice(&other.free);
        spare.copy_from_slice(&other.spare);
        levels.copy(&other.levels);
        (*empty, *stranded, *overdrawn) = (other.empty, other.stranded, other.overdrawn);
    }
}

#[expect(clippy::indexing_slicing, reason = "nodes and kinds come from the problem that this was made for")]
impl<'p> Packer<'p> {
    pub(super) fn new(problem: &'p Problem) -> Self {
        let fresh = State::of(problem);
        let kinds = problem.kinds.list().len();
        let (counts, closed) = (vec![0; kinds], vec![false; kinds]);
        Self { problem, now: fresh.clone(), fresh, counts, closed, holds: Vec::new() }
    }

    /// Packs the jobs in this order, and says what the plan is worth, in thousandths.
    pub(super) fn pack(&mut self, order: &[u32]) -> f64 {
        self.now.copy(&self.fresh);
        self.holds.clear();
        self.counts.fill(0);
        self.closed.fill(false);
        let mut open = self.closed.len();
        for job in order {
            let Some(kind) = self.problem.kinds.of_job(*job) else { continue };
            if !self.closed[kind] && !self.place(kind) {
                self.closed[kind] = true;
                open -= 1;
                if open == 0 {
                    break;
                }
            }
        }
        self.drop_unworthy();
        self.score()
    }

    /// Places the next job of a kind; false when none is left or it doesn't fit.
    fn place(&mut self, kind: usize) -> bool {
        let of = &self.problem.kinds.list()[kind];
        let Some(worth) = of.next_worth(self.counts[kind] as usize) else { return false };
        if of.slots > self.problem.node_slots_max {
            return self.place_whole(kind, of.slots);
        }
        let found = if of.outlasts { self.beside_head(of.slots, worth) } else { self.now.levels.tightest(of.slots) };
        let Some(node) = found else { return false };
        self.take(node, of.slots, of.outlasts);
        self.holds.push(Hold { kind, node, leads: true });
        self.counts[kind] += 1;
        true
    }

    /// The tightest node where a long job doesn't delay the reserved head; one where it does, if it is worth the delay.
    fn beside_head(&self, slots: u32, worth: i64) -> Option<usize> {
        let spare = &self.now.spare;
        let beside = self.now.levels.tightest_that(slots, |node| spare[node] >= slots);
        let is_worth = || worth as f64 > self.problem.head.slot_price * f64::from(slots);
        beside.or_else(|| self.now.levels.tightest(slots).filter(|_| is_worth()))
    }

    /// Places a job on entirely empty nodes.
    fn place_whole(&mut self, kind: usize, slots: u32) -> bool {
        if self.now.empty < u64::from(slots) {
            return false;
        }
        let outlasts = self.problem.kinds.list()[kind].outlasts;
        let (begin, mut missing) = (self.holds.len(), slots);
        for (node, of) in self.problem.nodes.iter().enumerate() {
            let is_empty = of.slots > 0 && self.now.free[node] == of.slots;
            if is_empty && (!outlasts || self.now.spare[node] == of.slots) {
                self.holds.push(Hold { kind, node, leads: self.holds.len() == begin });
                missing = missing.saturating_sub(of.slots);
                if missing == 0 {
                    break;
                }
            }
        }
        if missing > 0 {
            self.holds.truncate(begin);
            return false;
        }
        for at in begin..self.holds.len() {
            let node = self.holds[at].node;
            self.take(node, self.problem.nodes[node].slots, outlasts);
        }
        self.counts[kind] += 1;
        true
    }

    fn take(&mut self, node: usize, slots: u32, outlasts: bool) {
        let State { free, spare, levels, empty, stranded, overdrawn } = &mut self.now;
        let before = free[node];
        let after = before - slots;
        if before == self.problem.nodes[node].slots {
            *empty -= u64::from(before);
            *stranded += u64::from(after);
        } else {
            *stranded -= u64::from(slots);
        }
        free[node] = after;
        levels.shift(node, before, after);
        if outlasts {
            *overdrawn += u64::from(slots.saturating_sub(spare[node]));
            spare[node] = spare[node].saturating_sub(slots);
        }
        spare[node] = spare[node].min(after);
    }

    /// Empties again the nodes whose jobs are worth less than what they strand.
    fn drop_unworthy(&mut self) {
        let price = self.problem.stranded_price();
        if price <= 0.0 || self.now.stranded == 0 {
            return;
        }
        let least = self.least_worth();
        for node in 0..self.problem.nodes.len() {
            let (slots, left) = (self.problem.nodes[node].slots, self.now.free[node]);
            let was_empty = self.problem.nodes[node].free == slots;
            let stranded = price * f64::from(left);
            // Most nodes are seen to be worth it by this alone.
            let may_be = was_empty && left > 0 && left < slots && least * f64::from(slots - left) < stranded;
            if may_be && self.is_unworthy(node, stranded) {
                self.empty_again(node);
            }
        }
    }

    /// What a slot of a job that starts is worth at least.
    fn least_worth(&self) -> f64 {
        let kinds = self.problem.kinds.list().iter().zip(&self.counts).filter(|(_, placed)| **placed > 0);
        let worth = kinds
            .map(|(kind, placed)| kind.next_worth(*placed as usize - 1).unwrap_or(0) as f64 / f64::from(kind.slots));
        worth.fold(f64::INFINITY, f64::min)
    }

    /// Whether what starts on a node is worth less than this. With it the least worthy jobs of its kinds go: the others
    /// take their places.
    fn is_unworthy(&self, node: usize, price: f64) -> bool {
        let here = || self.holds.iter().enumerate().filter(|(_, hold)| hold.node == node);
        let worth = here().map(|(at, hold)| {
            let later = here().filter(|(other, later)| *other > at && later.kind == hold.kind).count();
            let of = &self.problem.kinds.list()[hold.kind];
            of.next_worth(self.counts[hold.kind] as usize - 1 - later).unwrap_or(0)
        });
        (worth.sum::<i64>() as f64) < price
    }

    fn empty_again(&mut self, node: usize) {
        let State { free, levels, empty, stranded, .. } = &mut self.now;
        let slots = self.problem.nodes[node].slots;
        levels.shift(node, free[node], slots);
        *stranded -= u64::from(free[node]);
        *empty += u64::from(slots);
        free[node] = slots;
        for hold in self.holds.iter().filter(|hold| hold.node == node) {
            self.counts[hold.kind] -= 1;
        }
        self.holds.retain(|hold| hold.node != node);
    }

    /// What the plan is worth, in thousandths.
    fn score(&self) -> f64 {
        let kinds = self.problem.kinds.list().iter().zip(&self.counts);
        let value: i64 = kinds.filter_map(|(kind, placed)| kind.worth.get(*placed as usize)).sum();
        let stranded = self.problem.stranded_price() * self.now.stranded as f64;
        value as f64 - stranded - self.problem.head.slot_price * self.now.overdrawn as f64
    }

    /// Urgent jobs that wait in this plan.
    pub(super) fn waiting_urgent(&self) -> impl Iterator<Item = u32> {
        let kinds = self.problem.kinds.list().iter().zip(&self.counts);
        let waiting = kinds.flat_map(|(kind, placed)| kind.jobs.iter().skip(*placed as usize));
        waiting.copied().filter(|job| self.problem.jobs[*job as usize].is_urgent)
    }

    /// The plan of the last order.
    pub(super) fn plan(&self) -> Plan {
        let mut nodes = vec![Vec::new(); self.problem.jobs.len()];
        self.assigned(|job, node| nodes[job as usize].push(u32::try_from(node).unwrap_or(u32::MAX)));
        Plan { nodes }
    }

    /// The jobs that the last order places, as they are placed.
    pub(super) fn placed(&self) -> Vec<u32> {
        let mut jobs = Vec::with_capacity(self.holds.len());
        self.assigned(|job, _| jobs.push(job));
        jobs.dedup();
        jobs
    }

    /// Tells the job and the node of each hold.
    fn assigned(&self, mut tell: impl FnMut(u32, usize)) {
        let mut next = vec![0_usize; self.counts.len()];
        let mut job = 0;
        for Hold { kind, node, leads } in &self.holds {
            if *leads {
                job = self.problem.kinds.list()[*kind].jobs[next[*kind]];
                next[*kind] += 1;
            }
            tell(job, *node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Head, Job, Node};
    use super::*;

    fn problem(free: &[u32], jobs: &[(u32, u32)]) -> Problem {
        let nodes = free.iter().map(|free| Node { slots: 8, free: *free, spare: *free }).collect();
        let jobs = jobs.iter().map(|(slots, weight)| Job {
            slots: *slots,
            weight: *weight,
            is_urgent: *weight > 800,
            outlasts: false,
        });
        Problem::new(nodes, jobs.collect(), 0.25).unwrap()
    }

    fn packed(problem: &Problem, order: &[u32]) -> (f64, Vec<Vec<u32>>) {
        let mut packer = Packer::new(problem);
        let score = packer.pack(order);
        let plan = packer.plan();
        assert!((problem.objective(&plan).unwrap() - score / 1000.0).abs() < 1e-9);
        (score, plan.nodes)
    }

    #[test]
    fn jobs_go_to_the_tightest_node_and_what_doesnt_fit_waits() {
        let problem = problem(&[8, 3, 5], &[(3, 500), (5, 400), (6, 300), (6, 200)]);
        let (score, nodes) = packed(&problem, &[0, 1, 2, 3]);
        assert_eq!(nodes, [vec![1], vec![2], vec![0], vec![]]);
        assert_eq!(score, 1500.0 + 2000.0 + 1800.0 - 500.0);
        assert_eq!(packed(&problem, &[2, 2, 1, 0]).1, nodes);
    }

    #[test]
    fn a_gang_takes_entirely_empty_nodes_or_none() {
        let problem = problem(&[7, 8, 8], &[(16, 500), (1, 400)]);
        assert_eq!(packed(&problem, &[0, 1]).1, [vec![1, 2], vec![0]]);
        let problem = self::problem(&[8, 8], &[(16, 500), (1, 1900)]);
        assert_eq!(packed(&problem, &[1, 0]).1, [vec![], vec![0]]);
    }

    #[test]
    fn of_a_kind_the_worthiest_are_placed_whatever_the_order() {
        let problem = problem(&[4], &[(2, 100), (2, 900), (2, 300)]);
        assert_eq!(packed(&problem, &[0, 1, 2]).1, [vec![], vec![0], vec![0]]);
    }

    #[test]
    fn a_node_is_left_empty_when_its_jobs_are_worth_less_than_what_they_strand() {
        let one = problem(&[8, 8], &[(1, 500), (8, 100)]);
        assert_eq!(packed(&one, &[0, 1]), (800.0, vec![vec![], vec![1]]));
        // The worthier job keeps the place that strands nothing.
        let two = problem(&[8, 1], &[(1, 900), (1, 100)]);
        assert_eq!(packed(&two, &[0, 1]).1, [vec![1], vec![]]);
    }

    #[test]
    fn a_long_job_leaves_the_reserved_head_its_slots_or_pays_for_them() {
        let node = |spare| Node { slots: 8, free: 8, spare };
        let job = |slots, outlasts| Job { slots, weight: 500, is_urgent: false, outlasts };
        let jobs = vec![job(4, true), job(4, true), job(8, false)];
        let nodes = vec![node(0), node(4)];
        let packed = |slot_price| {
            let problem = Problem::new(nodes.clone(), jobs.clone(), 0.0).unwrap().beside(Head { slot_price });
            let mut packer = Packer::new(&problem);
            (packer.pack(&[0, 1, 2]), packer.plan().nodes)
        };
        assert_eq!(packed(1e6), (6000.0, vec![vec![1], vec![], vec![0]]));
        assert_eq!(packed(400.0), (2000.0 + 2000.0 + 4000.0 - 1600.0, vec![vec![1], vec![1], vec![0]]));
    }

    #[test]
    fn urgent_jobs_that_wait_are_named() {
        let problem = problem(&[4], &[(4, 900), (4, 950), (4, 100)]);
        let mut packer = Packer::new(&problem);
        packer.pack(&[2, 1, 0]);
        assert_eq!(packer.waiting_urgent().collect::<Vec<_>>(), [0]);
    }
}
