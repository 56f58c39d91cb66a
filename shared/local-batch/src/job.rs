//! The row of a job: what changes of it, and how it is read and written.

use osprey_model::event::BatchStatus;
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use serde_json::{Map, Value};

/// A job, an array's parent, a child of an array, a multi-node job, or a node of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobRow {
    pub seq: i64,
    pub id: String,
    pub spec: i64,
    pub parent: Option<String>,
    pub index: Option<i64>,
    pub size: Option<i64>,
    pub name: String,
    pub definition: String,
    pub queue: String,
    pub status: BatchStatus,
    pub status_reason: Option<String>,
    pub created_at: i64,
    pub started_at: Option<i64>,
    pub stopped_at: Option<i64>,
    pub share: Option<String>,
    pub priority: Option<i64>,
    /// Place in the queue before the order of submission: retries get a lower one than all that wait.
    pub rank: i64,
    pub gpus: i64,
    pub vcpus_milli: i64,
    pub memory_mib: i64,
    pub timeout_ms: Option<i64>,
    pub attempts_allowed: i64,
    pub attempts_made: i64,
    pub cancelled: bool,
    pub terminated: bool,
    /// Dependencies that haven't ended yet.
    pub unresolved: i64,
    /// Children that haven't ended yet.
    pub open_children: i64,
    /// State changes so far; with the submission number it seeds the choices made for each event.
    pub transitions: i64,
    /// Set when the job is accepted but will fail as soon as it could run, and why.
    pub doomed: Option<String>,
    /// Virtual milliseconds after which a Spot host of this job is reclaimed; cleared when it has been used.
    pub reclaim_after_ms: Option<i64>,
    /// How many nodes it, or the job it is a node of, has; `None` for any other job.
    pub nodes: Option<i64>,
    /// Index of the main node among them.
    pub main_node: Option<i64>,
    /// Its own index when it is a node.
    pub node: Option<i64>,
    /// What its nodes need, for the scheduler; only of the job as a whole.
    pub node_needs: Option<String>,
}

const COLUMNS: &str = "seq, id, spec, parent, idx, size, name, definition, queue, status, status_reason, created_at,
    started_at, stopped_at, share, priority, rank, gpus, vcpus_milli, memory_mib, timeout_ms, attempts_allowed,
    attempts_made, cancelled, terminated, unresolved, open_children, transitions, doomed, reclaim_after_ms,
    nodes, main_node, node, node_needs";

/// Reads the word of the API; an unknown word counts as the first state.
pub(crate) fn status_of(word: &str) -> BatchStatus {
    all_statuses().into_iter().find(|status| status.as_str() == word).unwrap_or_default()
}

/// All states, in the order a job passes them.
pub(crate) const fn all_statuses() -> [BatchStatus; 7] {
    use BatchStatus as S;
    [S::Submitted, S::Pending, S::Runnable, S::Starting, S::Running, S::Succeeded, S::Failed]
}

impl JobRow {
    pub fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get(0)?,
            id: row.get(1)?,
            spec: row.get(2)?,
            parent: row.get(3)?,
            index: row.get(4)?,
            size: row.get(5)?,
            name: row.get(6)?,
            definition: row.get(7)?,
            queue: row.get(8)?,
            status: status_of(row.get_ref(9)?.as_str()?),
            status_reason: row.get(10)?,
            created_at: row.get(11)?,
            started_at: row.get(12)?,
            stopped_at: row.get(13)?,
            share: row.get(14)?,
            priority: row.get(15)?,
            rank: row.get(16)?,
            gpus: row.get(17)?,
            vcpus_milli: row.get(18)?,
            memory_mib: row.get(19)?,
            timeout_ms: row.get(20)?,
            attempts_allowed: row.get(21)?,
            attempts_made: row.get(22)?,
            cancelled: row.get(23)?,
            terminated: row.get(24)?,
            unresolved: row.get(25)?,
            open_children: row.get(26)?,
            transitions: row.get(27)?,
            doomed: row.get(28)?,
            reclaim_after_ms: row.get(29)?,
            nodes: row.get(30)?,
            main_node: row.get(31)?,
            node: row.get(32)?,
            node_needs: row.get(33)?,
        })
    }

    /// Whether it was cancelled or terminated; while it waits for dependencies, `doomed` holds the caller's reason.
    pub fn is_to_end(&self) -> bool {
        self.cancelled || self.terminated
    }

    /// Whether it is a multi-node job, as a whole.
    pub fn is_gang(&self) -> bool {
        self.nodes.is_some() && self.node.is_none()
    }

    /// Whether it is the node that decides how its job ends.
    pub fn is_main_node(&self) -> bool {
        self.node.is_some() && self.node == self.main_node
    }

    /// Selects the jobs of a condition, such as `WHERE parent = ?1 ORDER BY seq`.
    pub fn select(db: &Connection, rest: &str, parameters: impl rusqlite::Params) -> rusqlite::Result<Vec<Self>> {
        let mut statement = db.prepare_cached(&format!("SELECT {COLUMNS} FROM job {rest}"))?;
        statement.query_map(parameters, Self::from_row)?.collect()
    }

    pub fn by_id(db: &Connection, id: &str) -> rusqlite::Result<Option<Self>> {
        let mut statement = db.prepare_cached(&format!("SELECT {COLUMNS} FROM job WHERE id = ?1"))?;
        statement.query_row(params![id], Self::from_row).optional()
    }

    pub fn by_seq(db: &Connection, seq: i64) -> rusqlite::Result<Option<Self>> {
        let mut statement = db.prepare_cached(&format!("SELECT {COLUMNS} FROM job WHERE seq = ?1"))?;
        statement.query_row(params![seq], Self::from_row).optional()
    }

    /// Inserts the row and learns its number.
    pub fn insert(&mut self, db: &Connection) -> rusqlite::Result<()> {
        db.prepare_cached(
            "INSERT INTO job (id, spec, parent, idx, size, name, name_lower, definition, queue, status, created_at,
                share, priority, gpus, vcpus_milli, memory_mib, timeout_ms, attempts_allowed, unresolved,
                open_children, doomed, reclaim_after_ms, nodes, main_node, node, node_needs)
             VALUES (:id, :spec, :parent, :idx, :size, :name, :lower, :definition, :queue, :status, :created_at,
                :share, :priority, :gpus, :vcpus, :memory, :timeout, :allowed, :unresolved,
                :children, :doomed, :reclaim, :nodes, :main_node, :node, :node_needs)",
        )?
        .execute(named_params! {
            ":id": self.id, ":spec": self.spec, ":parent": self.parent, ":idx": self.index, ":size": self.size,
            ":name": self.name, ":lower": self.name.to_lowercase(), ":definition": self.definition,
            ":queue": self.queue, ":status": self.status.as_str(), ":created_at": self.created_at,
            ":share": self.share, ":priority": self.priority, ":gpus": self.gpus, ":vcpus": self.vcpus_milli,
            ":memory": self.memory_mib, ":timeout": self.timeout_ms, ":allowed": self.attempts_allowed,
            ":unresolved": self.unresolved, ":children": self.open_children, ":doomed": self.doomed,
            ":reclaim": self.reclaim_after_ms, ":nodes": self.nodes, ":main_node": self.main_node,
            ":node": self.node, ":node_needs": self.node_needs,
        })?;
        self.seq = db.last_insert_rowid();
        Ok(())
    }

    /// Writes everything that may change.
    pub fn save(&self, db: &Connection) -> rusqlite::Result<()> {
        db.prepare_cached(
            "UPDATE job SET status = :status, status_reason = :reason, started_at = :started, stopped_at = :stopped,
                rank = :rank, attempts_made = :made, cancelled = :cancelled, terminated = :terminated,
                unresolved = :unresolved, open_children = :children, transitions = :transitions,
                reclaim_after_ms = :reclaim, doomed = :doomed
             WHERE seq = :seq",
        )?
        .execute(named_params! {
            ":seq": self.seq, ":status": self.status.as_str(), ":reason": self.status_reason,
            ":started": self.started_at, ":stopped": self.stopped_at, ":rank": self.rank,
            ":made": self.attempts_made, ":cancelled": self.cancelled, ":terminated": self.terminated,
            ":unresolved": self.unresolved, ":children": self.open_children, ":transitions": self.transitions,
            ":reclaim": self.reclaim_after_ms, ":doomed": self.doomed,
        })?;
        Ok(())
    }
}

/// The unchanging part of a submission, as JSON in the shape of DescribeJobs; of a node, with the node's own container.
pub(crate) fn spec_detail(db: &Connection, job: &JobRow) -> rusqlite::Result<Map<String, Value>> {
    let text: String =
        db.prepare_cached("SELECT detail FROM spec WHERE id = ?1")?.query_row(params![job.spec], |row| row.get(0))?;
    // Only this crate writes the column, so a parse failure can only mean a damaged file: show what is left.
    let mut detail: Map<String, Value> = serde_json::from_str(&text).unwrap_or_default();
    if let Some(node) = job.node {
        let properties = detail.shift_remove("nodeProperties").unwrap_or_default();
        detail.insert("container".to_owned(), crate::multinode::container_of(&properties, node));
    }
    Ok(detail)
}
