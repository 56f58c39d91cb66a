//! One scheduling cycle against the store: read what is free and who waits, decide, and write the attempts.

use std::collections::BTreeMap;

use osprey_model::event::BatchStatus;
use rusqlite::{Row, named_params};

use crate::arn::name_of;
use crate::attempt::AttemptRow;
use crate::change::Change;
use crate::error::BatchError;
use crate::job::JobRow;
use crate::multinode::needs_of;
use crate::node::NodeRow;
use crate::queue::{FairShare, JobQueue};
use crate::requirement::Need;
use crate::schedule::{self, Candidate, Cycle, Demand, Node, Placement, Queue, Share};
use crate::share::{reserved_vcpus_milli, weight};

/// Most jobs of one share that one cycle looks at; when their turn is over, another cycle follows at once.
const WINDOW: usize = 64;

/// The queues that have runnable jobs, and their names.
struct Queues {
    names: Vec<String>,
    views: Vec<Queue>,
}

impl Change<'_> {
    /// Admits, cancels heads whose time is up, places, and scales. Answers whether another cycle should follow at
    /// once, and otherwise when there is something to do that no change calls for.
    pub fn cycle(&self) -> Result<(bool, Option<i64>), BatchError> {
        let admitted = self.admit_submitted()?;
        let expired = self.enforce_time_limits()?;
        let live = AttemptRow::live(self.db)?;
        let more = self.place_runnable(&live)? || admitted || expired;
        let due = [self.next_node_ready_at()?, self.next_stop_at()?, self.next_time_limit()?];
        Ok((more, due.into_iter().flatten().min()))
    }

    /// Starts what can start. Answers whether another cycle should follow at once.
    fn place_runnable(&self, live: &[AttemptRow]) -> Result<bool, BatchError> {
        let rows = self.nodes()?;
        let queues = self.waiting_queues(&rows)?;
        let scales = rows.iter().any(NodeRow::may_scale);
        if queues.views.is_empty() {
            self.note_heads(&BTreeMap::new())?;
            return if scales { self.scale(&rows, live, &[]) } else { Ok(false) };
        }
        let mut nodes = self.node_views(&rows, live);
        let cycle = schedule::cycle(&mut nodes, &queues.views);
        for placement in &cycle.placements {
            self.start(placement, &rows)?;
        }
        if cycle.more {
            return Ok(true);
        }
        self.note_heads(&heads(&cycle, &queues))?;
        if !scales {
            return Ok(false);
        }
        if !cycle.placements.is_empty() {
            return Ok(true);
        }
        self.scale(&rows, live, &schedule::wanted(nodes, &queues.views))
    }

    fn waiting_queues(&self, rows: &[NodeRow]) -> Result<Queues, BatchError> {
        let mut queues = Queues { names: Vec::new(), views: Vec::new() };
        for queue in self.queues()? {
            let view = self.queue_view(&queue, rows, WINDOW)?;
            if !view.shares.is_empty() {
                queues.names.push(queue.job_queue_name);
                queues.views.push(view);
            }
        }
        Ok(queues)
    }

    fn node_views(&self, rows: &[NodeRow], live: &[AttemptRow]) -> Vec<Node> {
        let names = environment_names(rows);
        let mut on_node: BTreeMap<(&str, i64), Vec<&AttemptRow>> = BTreeMap::new();
        for attempt in live {
            on_node.entry((&attempt.environment, attempt.node)).or_default().push(attempt);
        }
        let held = |row: &NodeRow| on_node.get(&(row.environment.as_str(), row.index)).cloned().unwrap_or_default();
        rows.iter().map(|row| self.node(row, &names, &held(row))).collect()
    }

    fn node(&self, row: &NodeRow, names: &[&str], held: &[&AttemptRow]) -> Node {
        let total = Need { gpus: row.gpus, vcpus_milli: row.vcpus_milli, memory_mib: row.memory_mib };
        let mut node = Node {
            environment: names.iter().position(|name| *name == row.environment).unwrap_or(usize::MAX),
            index: row.index,
            state: row.state(self.now_ms),
            retired: row.retired,
            spot: row.spot,
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
        if held.iter().any(|attempt| attempt.is_of_gang()) {
            node.use_up();
        }
        node
    }

    /// A queue with at most `window` jobs of each share. A disabled queue takes no new jobs, but those that it has
    /// still run.
    pub fn queue_view(&self, queue: &JobQueue, rows: &[NodeRow], window: usize) -> Result<Queue, BatchError> {
        let name = queue.job_queue_name.as_str();
        let known = environment_names(rows);
        let order = queue.compute_environment_order.iter().map(|entry| name_of(&entry.compute_environment));
        let order: Vec<&str> = order.collect();
        let environments = order.iter().filter_map(|name| known.iter().position(|known| known == name)).collect();
        let Some(policy) = &queue.scheduling_policy_arn else {
            let share = self.share_view(name, None, window)?;
            let shares = if share.jobs.is_empty() { Vec::new() } else { vec![share] };
            return Ok(Queue { environments, shares, vcpus_left_milli: None });
        };
        let policy = self.policy(name_of(policy))?.unwrap_or_default();
        let shares = self.shares(name, &policy, window)?;
        let in_queue = rows.iter().filter(|row| !row.retired && order.contains(&row.environment.as_str()));
        let vcpus_left_milli = match shares.is_empty() {
            true => None,
            false => self.vcpus_left(name, &policy, in_queue.map(|row| row.vcpus_milli).sum())?,
        };
        Ok(Queue { environments, shares, vcpus_left_milli })
    }

    /// What a queue may still take of its environments when some of it is kept for shares to come.
    fn vcpus_left(&self, queue: &str, policy: &FairShare, max_milli: i64) -> rusqlite::Result<Option<i64>> {
        if policy.compute_reservation == 0 {
            return Ok(None);
        }
        let reserved = reserved_vcpus_milli(max_milli, policy, self.active_shares(queue, policy)?);
        Ok(Some(max_milli - reserved - self.vcpus_in_use(queue)?))
    }

    fn shares(&self, queue: &str, policy: &FairShare, window: usize) -> rusqlite::Result<Vec<Share>> {
        let view = |id: String| {
            let jobs = self.share_view(queue, Some(&id), window)?;
            Ok(Share { usage: self.share_usage(queue, &id, policy)?, weight: weight(policy, &id), id, ..jobs })
        };
        self.shares_in(queue, BatchStatus::Runnable)?.into_iter().map(view).collect()
    }

    fn share_view(&self, queue: &str, share: Option<&str>, window: usize) -> rusqlite::Result<Share> {
        let order = if share.is_some() { "priority DESC, rank, seq" } else { "rank, seq" };
        let mut statement = self.db.prepare_cached(&format!(
            "SELECT seq, gpus, vcpus_milli, memory_mib, node_needs FROM job
             WHERE queue = :queue AND status = 'RUNNABLE' AND share IS :share ORDER BY {order} LIMIT :limit"
        ))?;
        let limit = i64::try_from(window).unwrap_or(i64::MAX).saturating_add(1);
        let rows =
            statement.query_map(named_params! { ":queue": queue, ":share": share, ":limit": limit }, candidate)?;
        let mut jobs = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        let more = jobs.len() > window;
        jobs.truncate(window);
        Ok(Share { weight: 1.0, jobs, more, ..Share::default() })
    }

    /// Writes what takes devices; it is launched once this is committed.
    fn start(&self, placement: &Placement, rows: &[NodeRow]) -> rusqlite::Result<()> {
        let Some(mut job) = JobRow::by_seq(self.db, placement.job)? else { return Ok(()) };
        let seat = |seat: &schedule::Seat| Some((rows.get(seat.node)?, seat.devices.clone()));
        let seats: Vec<(&NodeRow, Vec<i64>)> = placement.seats.iter().filter_map(seat).collect();
        if job.is_gang() {
            return self.start_gang(job, &seats);
        }
        let Some((host, devices)) = seats.first() else { return Ok(()) };
        job.attempts_made += 1;
        self.attempt_on(&job, host, devices).insert(self.db)?;
        self.enter(&mut job, BatchStatus::Starting)
    }

    /// The attempt of a job on a host.
    pub fn attempt_on(&self, job: &JobRow, host: &NodeRow, devices: &[i64]) -> AttemptRow {
        let devices: Vec<String> = devices.iter().map(i64::to_string).collect();
        AttemptRow {
            job: job.seq,
            number: job.attempts_made,
            job_id: job.id.clone(),
            token: uuid::Uuid::new_v4().simple().to_string(),
            environment: host.environment.clone(),
            node: host.index,
            devices: devices.join(","),
            gpus: job.gpus,
            vcpus_milli: job.vcpus_milli,
            memory_mib: job.memory_mib,
            instance_id: host.instance_id.clone(),
            task_id: uuid::Uuid::new_v4().simple().to_string(),
            placed_at: self.now_ms,
            timeout_ms: job.timeout_ms,
            ..AttemptRow::default()
        }
    }
}

/// The blocked heads that wait for more than their turn, by queue.
fn heads(cycle: &Cycle, queues: &Queues) -> BTreeMap<String, (i64, &'static str)> {
    let head = |blocked: &schedule::Blocked| {
        Some((queues.names.get(blocked.queue)?.clone(), (blocked.job, crate::head::reason(blocked.wait)?)))
    };
    cycle.blocked.iter().filter_map(head).collect()
}

fn candidate(row: &Row<'_>) -> rusqlite::Result<Candidate> {
    let need = Need { gpus: row.get(1)?, vcpus_milli: row.get(2)?, memory_mib: row.get(3)? };
    let nodes: Option<String> = row.get(4)?;
    let demand = nodes.map_or(Demand::One(need), |nodes| Demand::Gang(needs_of(&nodes)));
    Ok(Candidate { job: row.get(0)?, demand })
}

fn environment_names(rows: &[NodeRow]) -> Vec<&str> {
    let mut names: Vec<&str> = rows.iter().map(|row| row.environment.as_str()).collect();
    names.dedup();
    names
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
