//! One scheduling cycle against the store: read what is free and who waits, decide, and write the attempts.

use std::collections::BTreeMap;

use osprey_model::event::BatchStatus;
use rusqlite::params;

use crate::arn::name_of;
use crate::attempt::AttemptRow;
use crate::change::Change;
use crate::error::BatchError;
use crate::job::JobRow;
use crate::node::NodeRow;
use crate::queue::{FairShare, JobQueue};
use crate::requirement::Need;
use crate::schedule::{self, Candidate, Node, Queue, Share};
use crate::share::weight;

/// Most jobs of one share that one cycle looks at; when all of them start, another cycle follows at once.
const WINDOW: usize = 32;

impl Change<'_> {
    /// Runs a cycle. Answers whether another one should follow at once.
    pub fn place_runnable(&self, live: &[AttemptRow]) -> Result<bool, BatchError> {
        let rows = self.nodes()?;
        let names = environment_names(&rows);
        let mut on_node: BTreeMap<(&str, i64), Vec<&AttemptRow>> = BTreeMap::new();
        for attempt in live {
            on_node.entry((&attempt.environment, attempt.node)).or_default().push(attempt);
        }
        let held = |row: &NodeRow| on_node.get(&(row.environment.as_str(), row.index)).cloned().unwrap_or_default();
        let mut nodes: Vec<Node> = rows.iter().map(|row| self.node(row, &names, &held(row))).collect();
        let mut queues = Vec::new();
        for queue in self.queues()? {
            let view = self.queue_view(&queue, &names)?;
            if !view.shares.is_empty() {
                queues.push(view);
            }
        }
        if queues.is_empty() {
            return Ok(false);
        }
        let full: Vec<bool> = queues.iter().flat_map(|q| &q.shares).map(|s| s.jobs.len() == WINDOW).collect();
        let cycle = schedule::cycle(&mut nodes, &mut queues);
        for placement in &cycle.placements {
            if let Some(node) = rows.get(placement.node) {
                self.start(placement.job, node, &placement.devices)?;
            }
        }
        for blocked in &cycle.blocked {
            self.explain(blocked)?;
        }
        // A share whose whole window has started may have more that can.
        let started = queues.iter().flat_map(|q| &q.shares).map(|share| share.jobs.is_empty());
        Ok(full.into_iter().zip(started).any(|(full, started)| full && started))
    }

    fn node(&self, row: &NodeRow, names: &[String], held: &[&AttemptRow]) -> Node {
        let total = Need { gpus: row.gpus, vcpus_milli: row.vcpus_milli, memory_mib: row.memory_mib };
        let mut node = Node {
            environment: names.iter().position(|name| *name == row.environment).unwrap_or(usize::MAX),
            index: row.index,
            open: row.is_open(self.now_ms),
            retired: row.retired,
            free_devices: (row.first_device..row.first_device + row.gpus).collect(),
            free: total,
            total,
        };
        for attempt in held {
            node.free.vcpus_milli -= attempt.vcpus_milli;
            node.free.memory_mib -= attempt.memory_mib;
            let taken: Vec<i64> = attempt.device_numbers().collect();
            node.free_devices.retain(|device| !taken.contains(device));
        }
        node
    }

    /// A disabled queue takes no new jobs, but those that it has still run.
    fn queue_view(&self, queue: &JobQueue, names: &[String]) -> Result<Queue, BatchError> {
        let position = |name: &str| names.iter().position(|known| known == name);
        let order = queue.compute_environment_order.iter();
        let environments = order.filter_map(|entry| position(name_of(&entry.compute_environment))).collect();
        let shares = match &queue.scheduling_policy_arn {
            None => self.fifo(&queue.job_queue_name)?,
            Some(policy) => {
                let policy = self.policy(name_of(policy))?.unwrap_or_default();
                self.shares(&queue.job_queue_name, &policy)?
            }
        };
        Ok(Queue { environments, shares })
    }

    fn fifo(&self, queue: &str) -> rusqlite::Result<Vec<Share>> {
        let jobs = self.candidates(queue, None, "rank, seq")?;
        Ok(if jobs.is_empty() { Vec::new() } else { vec![Share { jobs, weight: 1.0, ..Share::default() }] })
    }

    fn shares(&self, queue: &str, policy: &FairShare) -> rusqlite::Result<Vec<Share>> {
        let mut statement = self
            .db
            .prepare_cached("SELECT DISTINCT share FROM job WHERE queue = ?1 AND status = 'RUNNABLE' ORDER BY share")?;
        let ids = statement.query_map(params![queue], |row| row.get::<_, Option<String>>(0))?;
        let ids: Vec<String> = ids.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().flatten().collect();
        let view = |id: String| {
            Ok(Share {
                usage: self.share_usage(queue, &id, policy)?,
                weight: weight(policy, &id),
                jobs: self.candidates(queue, Some(&id), "priority DESC, rank, seq")?,
                id,
            })
        };
        ids.into_iter().map(view).collect()
    }

    fn candidates(&self, queue: &str, share: Option<&str>, order: &str) -> rusqlite::Result<Vec<Candidate>> {
        let mut statement = self.db.prepare_cached(&format!(
            "SELECT seq, gpus, vcpus_milli, memory_mib FROM job
             WHERE queue = ?1 AND status = 'RUNNABLE' AND share IS ?2 ORDER BY {order} LIMIT {WINDOW}"
        ))?;
        let rows = statement.query_map(params![queue, share], |row| {
            let need = Need { gpus: row.get(1)?, vcpus_milli: row.get(2)?, memory_mib: row.get(3)? };
            Ok(Candidate { job: row.get(0)?, need })
        })?;
        rows.collect()
    }

    /// Writes an attempt that takes devices of a node; it is launched once this is committed.
    fn start(&self, seq: i64, node: &NodeRow, devices: &[i64]) -> rusqlite::Result<()> {
        let Some(mut job) = JobRow::by_seq(self.db, seq)? else { return Ok(()) };
        job.attempts_made += 1;
        let devices: Vec<String> = devices.iter().map(i64::to_string).collect();
        let attempt = AttemptRow {
            job: job.seq,
            number: job.attempts_made,
            job_id: job.id.clone(),
            token: uuid::Uuid::new_v4().simple().to_string(),
            environment: node.environment.clone(),
            node: node.index,
            devices: devices.join(","),
            gpus: job.gpus,
            vcpus_milli: job.vcpus_milli,
            memory_mib: job.memory_mib,
            instance_id: node.instance_id.clone(),
            task_id: uuid::Uuid::new_v4().simple().to_string(),
            placed_at: self.now_ms,
            timeout_ms: job.timeout_ms,
            ..AttemptRow::default()
        };
        attempt.insert(self.db)?;
        self.enter(&mut job, BatchStatus::Starting)
    }

    /// Says why the head of a queue waits, when it waits for ever; it is no transition and makes no event.
    fn explain(&self, blocked: &schedule::Blocked) -> rusqlite::Result<()> {
        let reason = blocked.never_fits.then_some(
            "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - The job requires more resources than any node of the compute \
             environments of its job queue has.",
        );
        self.db
            .prepare_cached("UPDATE job SET status_reason = ?2 WHERE seq = ?1 AND status_reason IS NOT ?2")?
            .execute(params![blocked.job, reason])?;
        Ok(())
    }
}

fn environment_names(rows: &[NodeRow]) -> Vec<String> {
    let mut names: Vec<String> = rows.iter().map(|row| row.environment.clone()).collect();
    names.dedup();
    names
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
