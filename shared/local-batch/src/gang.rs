//! Multi-node jobs in the store: their nodes start together, and their main node speaks for them.
//!
//! Each node is a job of its own, `ID#INDEX`, written when the whole is placed for the first time; its attempts carry
//! the number of the whole's attempt. The main node is launched first and the others once it runs. When the main node
//! has ended the others are stopped, and when the last of them is gone the whole ends as the main node did, or runs
//! again. Another node that fails or loses its host is told to nobody, as on AWS.

use osprey_model::event::BatchStatus;
use rusqlite::params;

use crate::attempt::{AttemptRow, StopCause};
use crate::change::Change;
use crate::dependency::Ended;
use crate::ending::End;
use crate::job::JobRow;
use crate::node::NodeRow;

/// Id of a node of a multi-node job.
pub(crate) fn node_id(job_id: &str, node: i64) -> String {
    format!("{job_id}#{node}")
}

impl Change<'_> {
    /// Writes an attempt for each node of a job, on the hosts and devices given in the order of the nodes.
    pub fn start_gang(&self, mut whole: JobRow, seats: &[(&NodeRow, Vec<i64>)]) -> rusqlite::Result<()> {
        whole.attempts_made += 1;
        let needs = crate::multinode::needs_of(whole.node_needs.as_deref().unwrap_or_default());
        let main = whole.main_node.unwrap_or_default();
        let mut nodes = self.nodes_of(&whole)?;
        if nodes.is_empty() {
            nodes = (0..).zip(&needs).map(|(index, need)| node_row(&whole, index, *need)).collect();
            nodes.iter_mut().try_for_each(|node| node.insert(self.db))?;
        }
        let main_seq = nodes.iter().find(|node| node.node == Some(main)).map(|node| node.seq);
        self.enter(&mut whole, BatchStatus::Starting)?;
        for (mut node, (host, devices)) in nodes.into_iter().zip(seats) {
            node.attempts_made = whole.attempts_made;
            (node.started_at, node.stopped_at) = (None, None);
            let is_main = node.is_main_node();
            let mut attempt = self.attempt_on(&node, host, devices);
            // The time-out is the whole job's, which ends with its main node.
            attempt.timeout_ms = whole.timeout_ms.filter(|_| is_main);
            attempt.waits_for = main_seq.filter(|_| !is_main);
            attempt.insert(self.db)?;
            self.enter(&mut node, BatchStatus::Starting)?;
        }
        Ok(())
    }

    /// The nodes of a job, by index.
    pub fn nodes_of(&self, whole: &JobRow) -> rusqlite::Result<Vec<JobRow>> {
        JobRow::select(self.db, "WHERE parent = ?1 AND node IS NOT NULL ORDER BY node", params![whole.id])
    }

    /// The main node of a job, once it has been placed.
    pub fn main_node(&self, whole: &JobRow) -> rusqlite::Result<Option<JobRow>> {
        whole.main_node.map_or(Ok(None), |main| JobRow::by_id(self.db, &node_id(&whole.id, main)))
    }

    fn whole_of(&self, node: &JobRow) -> rusqlite::Result<Option<JobRow>> {
        node.parent.as_deref().map_or(Ok(None), |parent| JobRow::by_id(self.db, parent))
    }

    /// The whole runs when its main node does.
    pub fn main_node_runs(&self, main: &JobRow) -> rusqlite::Result<()> {
        let Some(mut whole) = self.whole_of(main)? else { return Ok(()) };
        whole.started_at = main.started_at;
        whole.stopped_at = None;
        self.enter(&mut whole, BatchStatus::Running)
    }

    /// Ends a node, stops the others when it was the main one, and ends the whole when it was the last.
    pub fn node_ended(
        &self,
        mut node: JobRow,
        attempt: &AttemptRow,
        end: End,
        ended: &mut Ended,
    ) -> rusqlite::Result<()> {
        node.stopped_at = attempt.stopped_at;
        let status = if end.success { BatchStatus::Succeeded } else { BatchStatus::Failed };
        self.finish(&mut node, status, Some(end.status_reason))?;
        let Some(whole) = self.whole_of(&node)? else { return Ok(()) };
        let live = self.live_nodes(&whole)?;
        if node.is_main_node() {
            live.iter().try_for_each(|job| self.ask_to_stop(*job, StopCause::MainEnded, ""))?;
        }
        if !live.is_empty() {
            return Ok(());
        }
        let Some(main) = self.main_node(&whole)? else { return Ok(()) };
        let Some(last) = AttemptRow::of_job(self.db, main.seq)?.pop() else { return Ok(()) };
        let stopped_at = last.stopped_at.unwrap_or(self.now_ms);
        self.after_attempt(whole, stopped_at, end_of_main(&main, last), ended)
    }

    /// Asks all nodes that still run to stop.
    pub fn stop_nodes(&self, whole: &JobRow, reason: &str) -> rusqlite::Result<()> {
        let live = self.live_nodes(whole)?;
        live.iter().try_for_each(|job| self.ask_to_stop(*job, StopCause::Terminated, reason))
    }

    /// Nodes with an attempt that hasn't ended.
    fn live_nodes(&self, whole: &JobRow) -> rusqlite::Result<Vec<i64>> {
        let mut statement = self.db.prepare_cached(
            "SELECT a.job FROM attempt a JOIN job j ON j.seq = a.job WHERE j.parent = ?1 AND a.state != 'ended'",
        )?;
        statement.query_map(params![whole.id], |row| row.get(0))?.collect()
    }
}

/// A node carries on the row of its job in everything but id, index and needs.
fn node_row(whole: &JobRow, index: i64, need: crate::requirement::Need) -> JobRow {
    JobRow {
        id: node_id(&whole.id, index),
        parent: Some(whole.id.clone()),
        node: Some(index),
        node_needs: None,
        gpus: need.gpus,
        vcpus_milli: need.vcpus_milli,
        memory_mib: need.memory_mib,
        status: BatchStatus::Starting,
        status_reason: None,
        unresolved: 0,
        transitions: 0,
        ..whole.clone()
    }
}

/// How the main node's last attempt ended, read back from what was written of it.
fn end_of_main(main: &JobRow, last: AttemptRow) -> End {
    let final_stop = matches!(last.stop_cause, Some(StopCause::Terminated | StopCause::TimedOut));
    End {
        success: main.status == BatchStatus::Succeeded,
        retryable: !(final_stop && last.term_at.is_some()),
        exit_code: last.exit_code,
        reason: last.reason,
        status_reason: last.status_reason.unwrap_or_default(),
    }
}
