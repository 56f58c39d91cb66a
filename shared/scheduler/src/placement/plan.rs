//! A plan, and what it is worth by the published formula.

use std::fmt;

use super::problem::Problem;

/// Where each job goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Nodes of each job, by the places of both; none for a job that waits.
    pub nodes: Vec<Vec<u32>>,
}

/// Why a plan can't be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Infeasible {
    /// It has more or fewer jobs than the problem.
    Length,
    /// A job on a node that isn't there, or is named twice.
    Node(usize),
    /// A job that needs one node has several, or one that needs empty nodes has too few or too many.
    Spread(usize),
    /// A job that needs empty nodes shares one.
    Shared(usize),
    /// More slots taken than the node has free.
    Full(u32),
}

impl fmt::Display for Infeasible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length => f.write_str("the plan has other jobs than the problem"),
            Self::Node(job) => write!(f, "job {job} is on a node that isn't there, or twice on one"),
            Self::Spread(job) => write!(f, "job {job} has the wrong number of nodes"),
            Self::Shared(job) => write!(f, "job {job} needs entirely empty nodes"),
            Self::Full(node) => write!(f, "node {node} has less free than the plan takes"),
        }
    }
}

impl Plan {
    /// Jobs that start.
    #[must_use]
    pub fn placed(&self) -> usize {
        self.nodes.iter().filter(|nodes| !nodes.is_empty()).count()
    }
}

impl Problem {
    /// What a plan is worth: Σ priority / 1000 × slots over the jobs that start, minus alpha × the slots left free on
    /// partly used nodes. A delay of the reserved head is no part of it.
    ///
    /// # Errors
    /// When the plan can't be carried out.
    pub fn objective(&self, plan: &Plan) -> Result<f64, Infeasible> {
        let left = self.left(plan)?;
        let started = self.jobs.iter().zip(&plan.nodes).filter(|(_, nodes)| !nodes.is_empty());
        let value: i64 = started.map(|(job, _)| job.value()).sum();
        let partly = self.nodes.iter().zip(&left).filter(|(node, left)| **left < node.slots);
        let stranded: u64 = partly.map(|(_, left)| u64::from(*left)).sum();
        Ok(value as f64 / 1000.0 - self.alpha() * stranded as f64)
    }

    /// Free slots of each node once the plan is carried out.
    fn left(&self, plan: &Plan) -> Result<Vec<u32>, Infeasible> {
        if plan.nodes.len() != self.jobs.len() {
            return Err(Infeasible::Length);
        }
        let mut left: Vec<u32> = self.nodes.iter().map(|node| node.free).collect();
        for (place, (job, nodes)) in self.jobs.iter().zip(&plan.nodes).enumerate() {
            if job.slots > self.node_slots_max && !nodes.is_empty() {
                self.take_whole(place, nodes, &mut left)?;
            } else if let [node, rest @ ..] = nodes.as_slice() {
                if !rest.is_empty() {
                    return Err(Infeasible::Spread(place));
                }
                let free = at(&mut left, *node).ok_or(Infeasible::Node(place))?;
                *free = free.checked_sub(job.slots).ok_or(Infeasible::Full(*node))?;
            }
        }
        Ok(left)
    }

    /// Takes entirely empty nodes for a job that needs more than any node has: as many as it needs, and none more.
    fn take_whole(&self, place: usize, nodes: &[u32], left: &mut [u32]) -> Result<(), Infeasible> {
        let needed = self.jobs.get(place).map_or(0, |job| u64::from(job.slots));
        let mut taken = 0;
        for node in nodes {
            if taken >= needed {
                return Err(Infeasible::Spread(place));
            }
            let free = at(left, *node).ok_or(Infeasible::Node(place))?;
            let slots = usize::try_from(*node).ok().and_then(|node| self.nodes.get(node)).map_or(0, |node| node.slots);
            if *free != slots || slots == 0 {
                return Err(Infeasible::Shared(place));
            }
            taken += u64::from(slots);
            *free = 0;
        }
        if taken < needed { Err(Infeasible::Spread(place)) } else { Ok(()) }
    }
}

fn at(left: &mut [u32], node: u32) -> Option<&mut u32> {
    usize::try_from(node).ok().and_then(|node| left.get_mut(node))
}

#[cfg(test)]
mod tests {
    use super::super::{Job, Node};
    use super::*;

    fn problem() -> Problem {
        let node = |free| Node { slots: 8, free, spare: free };
        let job = |slots, weight| Job { slots, weight, is_urgent: false, outlasts: false };
        let jobs = vec![job(4, 500), job(16, 100), job(3, 1000)];
        Problem::new(vec![node(5), node(8), node(8)], jobs, 0.25).unwrap()
    }

    fn plan(nodes: [&[u32]; 3]) -> Plan {
        Plan { nodes: nodes.iter().map(|nodes| nodes.to_vec()).collect() }
    }

    #[test]
    fn a_plan_is_worth_what_it_starts_less_what_it_strands() {
        let worth = |nodes| problem().objective(&plan(nodes)).unwrap();
        // Five slots of the first node are stranded from the start.
        assert_eq!(worth([&[], &[], &[]]), -1.25);
        assert_eq!(worth([&[0], &[1, 2], &[]]), 2.0 + 1.6 - 0.25);
        assert_eq!(worth([&[1], &[], &[1]]), 2.0 + 3.0 - 0.25 * 6.0);
    }

    #[test]
    fn a_plan_that_cant_be_carried_out_is_told() {
        let told = |nodes| problem().objective(&plan(nodes)).unwrap_err();
        assert_eq!(told([&[0], &[], &[0]]), Infeasible::Full(0));
        assert_eq!(told([&[9], &[], &[]]), Infeasible::Node(0));
        assert_eq!(told([&[1, 2], &[], &[]]), Infeasible::Spread(0));
        assert_eq!(told([&[], &[1], &[]]), Infeasible::Spread(1));
        assert_eq!(told([&[], &[0, 1], &[]]), Infeasible::Shared(1));
        assert_eq!(told([&[], &[1, 1], &[]]), Infeasible::Shared(1));
        assert_eq!(problem().objective(&Plan::default()), Err(Infeasible::Length));
    }
}
