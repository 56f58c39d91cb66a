//! A cluster that lives: pools of several kinds, nodes that start up and are taken back, jobs that fail.

use osprey_model::pool::CapacityType;

use crate::pool::Shape;

/// Everything that happens to a cluster beside its jobs. Times are milliseconds since the first submission.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The pools; their nodes are numbered through, pool after pool.
    pub pools: Vec<PoolSpec>,
    /// Changes of the number of nodes, in any order.
    pub changes: Vec<Change>,
    /// Chance that a run of a job fails, at a moment of it that is as likely as any other.
    pub failure_chance: f64,
    /// How often a job may fail and lose its host.
    pub budgets: Budgets,
    /// Seed of everything that happens.
    pub seed: u64,
}

/// One pool.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolSpec {
    /// Its name.
    pub name: String,
    /// Nodes at the start.
    pub nodes: u32,
    /// GPUs of each.
    pub gpus_per_node: u32,
    /// What its capacity can do to a job.
    pub capacity: CapacityType,
    /// Mean time between two reclaims of one node, exponentially distributed; `None` for nodes that stay.
    pub reclaim_mean_ms: Option<u64>,
    /// How long a reclaimed node is away.
    pub away_ms: u64,
    /// How long a node takes to start up.
    pub start_up_ms: u64,
    /// Nodes that are provisioned at the start.
    pub warm: u32,
    /// How long an idle node stays provisioned; `None` for one that always stays.
    pub scale_down_ms: Option<u64>,
}

/// A planned change of a pool. What runs on a node that goes runs to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// When.
    pub at_ms: u64,
    /// The pool, by its place.
    pub pool: usize,
    /// Nodes from then on.
    pub nodes: u32,
}

/// What a job may go through before it is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Failures after which it may run again.
    pub failures_max: u32,
    /// Lost hosts after which it may run again.
    pub host_losses_max: u32,
    /// Lost hosts after which a production strategy sends it to On-Demand capacity.
    pub on_demand_after: u32,
    /// The first pause after a failure or a lost host under a production strategy, doubled each time.
    pub back_off_ms: u64,
    /// The longest such pause.
    pub back_off_max_ms: u64,
}

impl PoolSpec {
    /// Nodes that stay.
    #[must_use]
    pub fn on_demand(name: &str, nodes: u32, gpus_per_node: u32) -> Self {
        Self {
            name: name.to_owned(),
            nodes,
            gpus_per_node,
            capacity: CapacityType::OnDemand,
            reclaim_mean_ms: None,
            away_ms: 0,
            start_up_ms: 0,
            warm: nodes,
            scale_down_ms: None,
        }
    }
}

impl Budgets {
    /// The pause after the last of so many failures or lost hosts.
    #[must_use]
    pub fn pause_ms(&self, times: u32) -> u64 {
        let doubled = 1_u64.checked_shl(times.saturating_sub(1)).unwrap_or(u64::MAX);
        self.back_off_ms.saturating_mul(doubled).min(self.back_off_max_ms)
    }
}

impl Scenario {
    /// Most nodes that a pool ever has.
    #[must_use]
    pub fn nodes_max(&self, pool: usize) -> u32 {
        let changed = self.changes.iter().filter(|change| change.pool == pool).map(|change| change.nodes);
        changed.chain(self.pools.get(pool).map(|pool| pool.nodes)).max().unwrap_or(0)
    }

    /// The pools as shapes of nodes.
    #[must_use]
    pub fn shapes(&self) -> Vec<Shape> {
        let shape = |(index, pool): (usize, &PoolSpec)| Shape {
            nodes: self.nodes_max(index),
            gpus_per_node: pool.gpus_per_node,
            takes_gangs: pool.capacity == CapacityType::OnDemand,
            start_up_ms: pool.start_up_ms,
        };
        self.pools.iter().enumerate().map(shape).collect()
    }

    /// GPUs of a node, for each node that there can ever be.
    #[must_use]
    pub fn nodes(&self) -> Vec<u32> {
        let shapes = self.shapes();
        shapes.iter().flat_map(|shape| (0..shape.nodes).map(|_| shape.gpus_per_node)).collect()
    }

    /// Whether a pool could ever hold a job of this many GPUs: on one node, or on whole nodes that aren't Spot, since
    /// Batch runs no job of several nodes on Spot.
    #[must_use]
    pub fn could_hold(&self, pool: usize, gpus: u32) -> bool {
        let Some(spec) = self.pools.get(pool).filter(|spec| spec.gpus_per_node > 0) else { return false };
        let nodes = gpus.div_ceil(spec.gpus_per_node);
        nodes <= self.nodes_max(pool) && (nodes <= 1 || spec.capacity == CapacityType::OnDemand)
    }

    /// Whether any pool could ever hold a job of this many GPUs.
    #[must_use]
    pub fn could_run(&self, gpus: u32) -> bool {
        (0..self.pools.len()).any(|pool| self.could_hold(pool, gpus))
    }

    /// The first pool of these kinds, in their order, that could hold a job.
    #[must_use]
    pub fn pool_for(&self, gpus: u32, kinds: &[CapacityType]) -> Option<u16> {
        let of_kind = |kind: &CapacityType| {
            let is_it =
                |(index, pool): &(u16, &PoolSpec)| pool.capacity == *kind && self.could_hold(usize::from(*index), gpus);
            (0_u16..).zip(&self.pools).find(is_it).map(|(index, _)| index)
        };
        kinds.iter().find_map(of_kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_are_chosen_by_kind_and_by_what_they_could_hold() {
        let spot = PoolSpec { capacity: CapacityType::Spot, ..PoolSpec::on_demand("spot", 4, 8) };
        let pools = vec![spot, PoolSpec::on_demand("small", 2, 4), PoolSpec::on_demand("large", 2, 8)];
        let changes = vec![Change { at_ms: 5, pool: 2, nodes: 3 }];
        let budgets = Budgets {
            failures_max: 3,
            host_losses_max: 10,
            on_demand_after: 2,
            back_off_ms: 5_000,
            back_off_max_ms: 15_000,
        };
        let scenario = Scenario { pools, changes, failure_chance: 0.0, budgets, seed: 1 };
        use CapacityType::{OnDemand, Spot};
        for (gpus, kinds, want) in [
            (4, &[Spot, OnDemand][..], Some(0)),
            (4, &[OnDemand], Some(1)),
            (8, &[OnDemand], Some(1)),
            (9, &[Spot, OnDemand], Some(2)),
            (24, &[OnDemand], Some(2)),
            (25, &[OnDemand], None),
            (16, &[Spot], None),
        ] {
            assert_eq!(scenario.pool_for(gpus, kinds), want, "{gpus} {kinds:?}");
        }
        assert_eq!([1, 2, 3, 99].map(|times| budgets.pause_ms(times)), [5_000, 10_000, 15_000, 15_000]);
        assert_eq!(scenario.nodes().len(), 9);
    }
}
