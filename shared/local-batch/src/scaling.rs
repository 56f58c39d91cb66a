//! Environments that scale: nodes that have an instance only while jobs want them.
//!
//! An environment has all its nodes up unless it is told otherwise. One that scales keeps the first `min_nodes` up;
//! any other is started when a job could take it, needs the start-up delay of the settings, and stops when it has
//! been idle for the scale-down delay.

use rusqlite::{OptionalExtension, params};

use crate::arn::name_of;
use crate::attempt::AttemptRow;
use crate::batch::LocalBatch;
use crate::change::Change;
use crate::environment::ComputeEnvironment;
use crate::error::BatchError;
use crate::node::NodeRow;

/// How an environment scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scaling {
    /// Nodes that are always up; 0 to scale from nothing.
    pub min_nodes: u32,
    /// Virtual milliseconds after which an idle node is stopped.
    pub scale_down_delay_ms: i64,
}

impl Default for Scaling {
    /// From zero, and a minute's patience.
    fn default() -> Self {
        Self { min_nodes: 0, scale_down_delay_ms: 60_000 }
    }
}

impl LocalBatch {
    /// Makes an environment scale, or with `None` keeps all its nodes up again. Idle nodes beyond the least number
    /// stop at once.
    ///
    /// # Errors
    /// A ClientException when it is unknown or has fewer nodes than are to be up.
    pub fn set_scaling(&self, name_or_arn: &str, scaling: Option<Scaling>) -> Result<(), BatchError> {
        self.change(|change| {
            let known = change.known_environment(name_or_arn)?;
            let name = known.compute_environment_name.as_str();
            if let Some(scaling) = scaling.filter(|scaling| scaling.min_nodes > known.nodes) {
                let message = format!("{name} has {} nodes, fewer than {}", known.nodes, scaling.min_nodes);
                return Err(BatchError::client(message));
            }
            change.db.execute(
                "UPDATE compute_environment SET min_nodes = ?2, scale_down_ms = ?3 WHERE name = ?1",
                params![
                    name,
                    scaling.map(|scaling| scaling.min_nodes),
                    scaling.map_or(0, |scaling| scaling.scale_down_delay_ms.max(0))
                ],
            )?;
            Ok(change.settle_nodes(name)?)
        })
    }

    /// Lets an environment get at most so many instances, as when a cloud has no more of them; `None` for no limit.
    /// Instances that are there stay.
    ///
    /// # Errors
    /// A ClientException when it is unknown.
    pub fn limit_capacity(&self, name_or_arn: &str, instances: Option<u32>) -> Result<(), BatchError> {
        self.change(|change| {
            let known = change.known_environment(name_or_arn)?;
            change.db.execute(
                "UPDATE compute_environment SET obtainable = ?2 WHERE name = ?1",
                params![known.compute_environment_name, instances],
            )?;
            Ok(())
        })
    }
}

impl Change<'_> {
    fn known_environment(&self, name_or_arn: &str) -> Result<ComputeEnvironment, BatchError> {
        let known = self.environment(name_of(name_or_arn))?;
        known.ok_or_else(|| BatchError::client(format!("{name_or_arn} does not exist")))
    }

    /// Starts the nodes that are always to be up and stops idle ones that needn't be.
    pub fn settle_nodes(&self, environment: &str) -> rusqlite::Result<()> {
        for node in self.nodes()?.iter().filter(|node| node.environment == environment) {
            let idle = || Ok::<_, rusqlite::Error>(AttemptRow::live_on(self.db, environment, node.index)?.is_empty());
            if node.may_scale() && node.up && idle()? {
                self.stop_node(node)?;
            } else if !node.may_stop() && !node.up && !node.retired && node.is_obtainable() {
                self.replace_instance(node)?;
            }
        }
        Ok(())
    }

    /// Starts the nodes that are wanted and stops those that have been idle for long enough. Answers whether a node
    /// takes jobs at once.
    pub fn scale(&self, rows: &[NodeRow], live: &[AttemptRow], wanted: &[usize]) -> Result<bool, BatchError> {
        let mut ready = false;
        for (position, node) in rows.iter().enumerate().filter(|(_, node)| node.may_scale()) {
            let is_wanted = wanted.contains(&position);
            if !node.up {
                if is_wanted && node.is_obtainable() {
                    self.replace_instance(node)?;
                    ready |= self.options.start_up_delay_ms <= 0;
                }
                continue;
            }
            let busy = live.iter().any(|a| a.environment == node.environment && a.node == node.index);
            self.note_idleness(node, busy || is_wanted || node.ready_at > self.now_ms)?;
        }
        Ok(ready)
    }

    fn note_idleness(&self, node: &NodeRow, in_use: bool) -> rusqlite::Result<()> {
        match node.idle_since {
            None if in_use => Ok(()),
            None if node.scale_down_ms == 0 => self.stop_node(node),
            None => self.set_idle_since(node, Some(self.now_ms)),
            Some(_) if in_use => self.set_idle_since(node, None),
            Some(since) if since.saturating_add(node.scale_down_ms) <= self.now_ms => self.stop_node(node),
            Some(_) => Ok(()),
        }
    }

    fn set_idle_since(&self, node: &NodeRow, since: Option<i64>) -> rusqlite::Result<()> {
        self.db
            .prepare_cached("UPDATE node SET idle_since = ?3 WHERE environment = ?1 AND idx = ?2")?
            .execute(params![node.environment, node.index, since])?;
        Ok(())
    }

    /// Takes a node's instance away.
    pub fn stop_node(&self, node: &NodeRow) -> rusqlite::Result<()> {
        self.db
            .prepare_cached(
                "UPDATE node SET up = 0, draining = 0, reclaim_at = NULL, idle_since = NULL
                 WHERE environment = ?1 AND idx = ?2",
            )?
            .execute(params![node.environment, node.index])?;
        Ok(())
    }

    /// When the next idle node is to stop.
    pub fn next_stop_at(&self) -> rusqlite::Result<Option<i64>> {
        self.db
            .prepare_cached(
                "SELECT n.idle_since + e.scale_down_ms AS at FROM node n
                 JOIN compute_environment e ON e.name = n.environment
                 WHERE n.up = 1 AND n.idle_since IS NOT NULL ORDER BY at LIMIT 1",
            )?
            .query_row([], |row| row.get(0))
            .optional()
    }
}

#[cfg(test)]
#[path = "scaling_tests.rs"]
mod tests;
