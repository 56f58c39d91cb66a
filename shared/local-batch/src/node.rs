//! Nodes: their devices, numbered so that none is on two nodes, and the instances that come and go on them.

use rusqlite::params;
use serde::Serialize;

use crate::attempt::AttemptRow;
use crate::batch::LocalBatch;
use crate::change::Change;
use crate::error::BatchError;
use crate::schedule::NodeState;
use crate::spot;

/// A node as it is: what a person at the machine sees, and what ECS would list as a container instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComputeNode {
    /// Its environment.
    pub compute_environment_name: String,
    /// Its index in the environment, from 0.
    pub index: u32,
    /// Id of its present instance.
    pub instance_id: String,
    /// ARN of that instance, as attempts name it.
    pub container_instance_arn: String,
    /// Whether it takes jobs: enabled, up, not being reclaimed, not beyond the environment's size.
    pub open: bool,
    /// Whether it takes no jobs yet, and will for those that want it: its instance starts up, or can be had.
    pub coming: bool,
    /// Whether it is being reclaimed.
    pub draining: bool,
    /// Numbers of its devices.
    pub devices: Vec<i64>,
    /// Numbers of those that no attempt holds.
    pub free_devices: Vec<i64>,
    /// Ids of the jobs that run or start on it, by the time they were placed.
    pub jobs: Vec<String>,
}

/// A node, with what the scheduler needs of its environment.
#[derive(Clone, Debug)]
pub(crate) struct NodeRow {
    pub environment: String,
    pub index: i64,
    pub first_device: i64,
    pub gpus: i64,
    pub instance_id: String,
    pub generation: i64,
    pub ready_at: i64,
    pub reclaim_at: Option<i64>,
    pub draining: bool,
    pub retired: bool,
    pub vcpus_milli: i64,
    pub memory_mib: i64,
    pub enabled: bool,
    pub spot: bool,
    /// Whether it has an instance.
    pub up: bool,
    pub idle_since: Option<i64>,
    pub scale_down_ms: i64,
    /// Nodes of its environment that are always up; `None` when all are.
    pub min_nodes: Option<i64>,
    /// Instances that its environment can get; `None` for any number.
    pub obtainable: Option<i64>,
}

impl NodeRow {
    /// What it can do for a job now.
    pub fn state(&self, now_ms: i64) -> NodeState {
        if !self.enabled || self.draining || self.retired {
            NodeState::Closed
        } else if !self.up {
            if self.is_obtainable() { NodeState::Down } else { NodeState::Unobtainable }
        } else if self.ready_at > now_ms {
            NodeState::Starting
        } else {
            NodeState::Open
        }
    }

    /// Whether an instance can be had for it.
    pub fn is_obtainable(&self) -> bool {
        self.obtainable.is_none_or(|instances| self.index < instances)
    }

    /// Whether it may be without an instance when nobody wants it.
    pub fn may_stop(&self) -> bool {
        self.min_nodes.is_some_and(|min| self.index >= min)
    }

    /// Whether its instance comes or goes with the jobs: it may stop, or it has none.
    pub fn may_scale(&self) -> bool {
        self.may_stop() || !self.up
    }
}

impl LocalBatch {
    /// All nodes, by environment and index. Batch has no such call; ECS has.
    ///
    /// # Errors
    /// Failures of the store.
    pub fn describe_nodes(&self) -> Result<Vec<ComputeNode>, BatchError> {
        self.view(|change| {
            let live = AttemptRow::live(change.db)?;
            Ok(change.nodes()?.iter().map(|node| change.node_view(node, &live)).collect())
        })
    }
}

impl Change<'_> {
    pub fn add_nodes(&self, name: &str, range: std::ops::Range<u32>, gpus: u32) -> Result<(), BatchError> {
        let mut blocks = self.device_blocks()?;
        let mut insert = self.db.prepare_cached(
            "INSERT INTO node (environment, idx, first_device, gpus, instance_id, generation, ready_at)
             VALUES (?1, ?2, ?3, ?4, '', 0, 0)",
        )?;
        for index in range.clone() {
            let first = take_block(&mut blocks, i64::from(gpus));
            insert.execute(params![name, index, first, gpus])?;
        }
        let is_new =
            |node: &NodeRow| node.environment == name && u32::try_from(node.index).is_ok_and(|i| range.contains(&i));
        for node in self.nodes()?.iter().filter(|node| is_new(node)) {
            self.replace_instance(node)?;
        }
        Ok(())
    }

    /// First device and number of devices of each node that has any, ascending.
    fn device_blocks(&self) -> rusqlite::Result<Vec<(i64, i64)>> {
        let mut statement =
            self.db.prepare_cached("SELECT first_device, gpus FROM node WHERE gpus > 0 ORDER BY first_device")?;
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    }

    /// Gives a node a new instance that takes jobs after the start-up delay.
    pub fn replace_instance(&self, node: &NodeRow) -> rusqlite::Result<()> {
        let (environment, index) = (&node.environment, node.index);
        let generation = node.generation + 1;
        let ready_at = self.now_ms.saturating_add(self.options.start_up_delay_ms);
        let lifetime = node.spot.then(|| spot::lifetime_ms(self.options, environment, index, generation)).flatten();
        self.db
            .prepare_cached(
                "UPDATE node SET instance_id = ?3, generation = ?4, ready_at = ?5, reclaim_at = ?6, draining = 0,
                    up = 1, idle_since = NULL
                 WHERE environment = ?1 AND idx = ?2",
            )?
            .execute(params![
                environment,
                index,
                spot::new_instance_id(),
                generation,
                ready_at,
                lifetime.map(|ms| ready_at.saturating_add(ms))
            ])?;
        Ok(())
    }

    fn node_view(&self, node: &NodeRow, live: &[AttemptRow]) -> ComputeNode {
        let on_it = || live.iter().filter(|a| a.environment == node.environment && a.node == node.index);
        let taken: Vec<i64> = on_it().flat_map(AttemptRow::device_numbers).collect();
        let devices: Vec<i64> = (node.first_device..node.first_device + node.gpus).collect();
        ComputeNode {
            compute_environment_name: node.environment.clone(),
            index: u32::try_from(node.index).unwrap_or(0),
            instance_id: node.instance_id.clone(),
            container_instance_arn: self.arns().container_instance(&node.environment, &node.instance_id),
            open: node.state(self.now_ms) == NodeState::Open,
            coming: matches!(node.state(self.now_ms), NodeState::Starting | NodeState::Down),
            draining: node.draining,
            free_devices: devices.iter().copied().filter(|device| !taken.contains(device)).collect(),
            devices,
            jobs: on_it().map(|attempt| attempt.job_id.clone()).collect(),
        }
    }

    /// When the next node that is starting up will take jobs.
    pub fn next_node_ready_at(&self) -> rusqlite::Result<Option<i64>> {
        self.db
            .prepare_cached("SELECT min(ready_at) FROM node WHERE ready_at > ?1 AND up = 1")?
            .query_row(params![self.now_ms], |row| row.get(0))
    }

    /// All nodes, in the order environments are named and nodes are numbered.
    pub fn nodes(&self) -> rusqlite::Result<Vec<NodeRow>> {
        let mut statement = self.db.prepare_cached(
            "SELECT n.environment, n.idx, n.first_device, n.gpus, n.instance_id, n.generation, n.ready_at,
                n.reclaim_at, n.draining, n.retired, e.vcpus_milli, e.memory_mib, e.state = 'ENABLED', e.kind = 'SPOT',
                n.up, n.idle_since, e.scale_down_ms, e.min_nodes, e.obtainable
             FROM node n JOIN compute_environment e ON e.name = n.environment ORDER BY n.environment, n.idx",
        )?;
        let rows = statement.query_map([], |row| {
            Ok(NodeRow {
                environment: row.get(0)?,
                index: row.get(1)?,
                first_device: row.get(2)?,
                gpus: row.get(3)?,
                instance_id: row.get(4)?,
                generation: row.get(5)?,
                ready_at: row.get(6)?,
                reclaim_at: row.get(7)?,
                draining: row.get(8)?,
                retired: row.get(9)?,
                vcpus_milli: row.get(10)?,
                memory_mib: row.get(11)?,
                enabled: row.get(12)?,
                spot: row.get(13)?,
                up: row.get(14)?,
                idle_since: row.get(15)?,
                scale_down_ms: row.get(16)?,
                min_nodes: row.get(17)?,
                obtainable: row.get(18)?,
            })
        })?;
        rows.collect()
    }
}

/// Takes the lowest device number from which `gpus` numbers in a row belong to no block, and makes it a block.
fn take_block(blocks: &mut Vec<(i64, i64)>, gpus: i64) -> i64 {
    let mut first = 0;
    let mut position = blocks.len();
    for (n, (start, size)) in blocks.iter().enumerate() {
        if start - first >= gpus {
            position = n;
            break;
        }
        first = first.max(start + size);
    }
    if gpus > 0 {
        blocks.insert(position, (first, gpus));
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_fill_the_lowest_gap_that_is_wide_enough() {
        let mut blocks = vec![(0, 4), (6, 2), (12, 4)];
        assert_eq!(take_block(&mut blocks, 4), 8);
        assert_eq!(take_block(&mut blocks, 2), 4);
        assert_eq!(take_block(&mut blocks, 1), 16);
        assert_eq!(take_block(&mut blocks, 0), 0);
        assert_eq!(blocks, [(0, 4), (4, 2), (6, 2), (8, 4), (12, 4), (16, 1)]);
    }
}
