//! Nodes: their devices, numbered so that none is on two nodes, and the instances that come and go on them.

use rusqlite::params;
use serde::Serialize;

use crate::attempt::AttemptRow;
use crate::batch::LocalBatch;
use crate::change::Change;
use crate::error::BatchError;
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
    /// Whether it takes jobs: enabled, started up, not being reclaimed, not beyond the environment's size.
    pub open: bool,
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
}

impl NodeRow {
    /// Whether it takes jobs now.
    pub fn is_open(&self, now_ms: i64) -> bool {
        self.enabled && !self.draining && !self.retired && self.ready_at <= now_ms
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
        for index in range {
            let first = self.free_device_block(gpus)?;
            self.db.execute(
                "INSERT INTO node (environment, idx, first_device, gpus, instance_id, generation, ready_at)
                 VALUES (?1, ?2, ?3, ?4, '', 0, 0)",
                params![name, index, first, gpus],
            )?;
            self.replace_instance(name, i64::from(index))?;
        }
        Ok(())
    }

    /// The lowest device number from which `gpus` numbers in a row belong to no node.
    fn free_device_block(&self, gpus: u32) -> rusqlite::Result<i64> {
        let mut statement =
            self.db.prepare_cached("SELECT first_device, gpus FROM node WHERE gpus > 0 ORDER BY first_device")?;
        let taken = statement.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
        let mut next = 0;
        for block in taken {
            let (first, size) = block?;
            if first - next >= i64::from(gpus) {
                break;
            }
            next = next.max(first + size);
        }
        Ok(next)
    }

    /// Gives a node a new instance that takes jobs after the start-up delay.
    pub fn replace_instance(&self, environment: &str, index: i64) -> rusqlite::Result<()> {
        let Some(node) = self.nodes()?.into_iter().find(|n| n.environment == environment && n.index == index) else {
            return Ok(());
        };
        let generation = node.generation + 1;
        let ready_at = self.now_ms.saturating_add(self.options.start_up_delay_ms);
        let lifetime = node.spot.then(|| spot::lifetime_ms(self.options, environment, index, generation)).flatten();
        self.db
            .prepare_cached(
                "UPDATE node SET instance_id = ?3, generation = ?4, ready_at = ?5, reclaim_at = ?6, draining = 0
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
            open: node.is_open(self.now_ms),
            draining: node.draining,
            free_devices: devices.iter().copied().filter(|device| !taken.contains(device)).collect(),
            devices,
            jobs: on_it().map(|attempt| attempt.job_id.clone()).collect(),
        }
    }

    /// When the next node that is starting up will take jobs.
    pub fn next_node_ready_at(&self) -> rusqlite::Result<Option<i64>> {
        self.db
            .prepare_cached("SELECT min(ready_at) FROM node WHERE ready_at > ?1")?
            .query_row(params![self.now_ms], |row| row.get(0))
    }

    /// All nodes, in the order environments are named and nodes are numbered.
    pub fn nodes(&self) -> rusqlite::Result<Vec<NodeRow>> {
        let mut statement = self.db.prepare_cached(
            "SELECT n.environment, n.idx, n.first_device, n.gpus, n.instance_id, n.generation, n.ready_at,
                n.reclaim_at, n.draining, n.retired, e.vcpus_milli, e.memory_mib, e.state = 'ENABLED', e.kind = 'SPOT'
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
            })
        })?;
        rows.collect()
    }
}
