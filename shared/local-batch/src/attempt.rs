//! The row of an attempt: one run of a job's command on devices of one node.

use rusqlite::{Connection, Row, named_params, params};

/// Where an attempt is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AttemptState {
    /// Its devices are taken; its command may or may not run yet.
    #[default]
    Starting,
    /// Its command was seen running.
    Running,
    /// It is over and its devices are free.
    Ended,
}

impl AttemptState {
    fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Ended => "ended",
        }
    }
}

/// Why somebody of ours wants an attempt to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopCause {
    /// TerminateJob.
    Terminated,
    /// The attempt ran longer than its timeout.
    TimedOut,
    /// Its Spot host is reclaimed.
    HostLost,
    /// It used more memory than it asked for.
    Memory,
    /// The main node of its job has ended.
    MainEnded,
}

impl StopCause {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Terminated => "terminated",
            Self::TimedOut => "timed-out",
            Self::HostLost => "host-lost",
            Self::Memory => "memory",
            Self::MainEnded => "main-ended",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        let all = [Self::Terminated, Self::TimedOut, Self::HostLost, Self::Memory, Self::MainEnded];
        all.into_iter().find(|cause| cause.as_str() == word)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct AttemptRow {
    pub job: i64,
    pub number: i64,
    pub job_id: String,
    /// Marks every process of this attempt, through its environment.
    pub token: String,
    pub state: AttemptState,
    pub environment: String,
    pub node: i64,
    /// Device numbers, comma-separated, as in `CUDA_VISIBLE_DEVICES`.
    pub devices: String,
    pub gpus: i64,
    pub vcpus_milli: i64,
    pub memory_mib: i64,
    pub instance_id: String,
    pub task_id: String,
    pub placed_at: i64,
    pub started_at: Option<i64>,
    pub stopped_at: Option<i64>,
    /// Longest run, counted from its start.
    pub timeout_ms: Option<i64>,
    pub exit_code: Option<i64>,
    pub reason: Option<String>,
    pub status_reason: Option<String>,
    pub stop_cause: Option<StopCause>,
    pub stop_reason: Option<String>,
    /// When SIGTERM was sent.
    pub term_at: Option<i64>,
    /// When SIGKILL is due.
    pub kill_at: Option<i64>,
    /// When the host of this attempt is to be reclaimed.
    pub reclaim_at: Option<i64>,
    /// The job, the main node of its own, that has to run before this attempt is launched.
    pub waits_for: Option<i64>,
}

const COLUMNS: &str = "job, number, job_id, token, state, environment, node, devices, gpus, vcpus_milli, memory_mib,
    instance_id, task_id, placed_at, started_at, stopped_at, exit_code, reason, status_reason, stop_cause, stop_reason,
    term_at, kill_at, reclaim_at, timeout_ms, waits_for";

impl AttemptRow {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let state = match row.get_ref(4)?.as_str()? {
            "running" => AttemptState::Running,
            "ended" => AttemptState::Ended,
            _ => AttemptState::Starting,
        };
        Ok(Self {
            job: row.get(0)?,
            number: row.get(1)?,
            job_id: row.get(2)?,
            token: row.get(3)?,
            state,
            environment: row.get(5)?,
            node: row.get(6)?,
            devices: row.get(7)?,
            gpus: row.get(8)?,
            vcpus_milli: row.get(9)?,
            memory_mib: row.get(10)?,
            instance_id: row.get(11)?,
            task_id: row.get(12)?,
            placed_at: row.get(13)?,
            started_at: row.get(14)?,
            stopped_at: row.get(15)?,
            exit_code: row.get(16)?,
            reason: row.get(17)?,
            status_reason: row.get(18)?,
            stop_cause: row.get::<_, Option<String>>(19)?.as_deref().and_then(StopCause::parse),
            stop_reason: row.get(20)?,
            term_at: row.get(21)?,
            kill_at: row.get(22)?,
            reclaim_at: row.get(23)?,
            timeout_ms: row.get(24)?,
            waits_for: row.get(25)?,
        })
    }

    fn select(db: &Connection, rest: &str, parameters: impl rusqlite::Params) -> rusqlite::Result<Vec<Self>> {
        let mut statement = db.prepare_cached(&format!("SELECT {COLUMNS} FROM attempt {rest}"))?;
        statement.query_map(parameters, Self::from_row)?.collect()
    }

    /// Every attempt that holds devices, in the order they were placed.
    pub fn live(db: &Connection) -> rusqlite::Result<Vec<Self>> {
        Self::select(db, "WHERE state != 'ended' ORDER BY placed_at, job, number", [])
    }

    /// Live attempts on one node.
    pub fn live_on(db: &Connection, environment: &str, node: i64) -> rusqlite::Result<Vec<Self>> {
        Self::select(db, "WHERE state != 'ended' AND environment = ?1 AND node = ?2", params![environment, node])
    }

    /// Live attempts of one share of a queue.
    pub fn live_of_share(db: &Connection, queue: &str, share: &str) -> rusqlite::Result<Vec<Self>> {
        Self::select(
            db,
            "WHERE state != 'ended' AND job IN (SELECT seq FROM job WHERE queue = ?1 AND share = ?2
                AND status IN ('STARTING', 'RUNNING'))",
            params![queue, share],
        )
    }

    /// All attempts of a job, oldest first.
    pub fn of_job(db: &Connection, job: i64) -> rusqlite::Result<Vec<Self>> {
        Self::select(db, "WHERE job = ?1 ORDER BY number", params![job])
    }

    /// The newest attempt of a job that hasn't ended.
    pub fn live_of_job(db: &Connection, job: i64) -> rusqlite::Result<Option<Self>> {
        Ok(Self::select(db, "WHERE job = ?1 AND state != 'ended'", params![job])?.pop())
    }

    pub fn insert(&self, db: &Connection) -> rusqlite::Result<()> {
        db.prepare_cached(
            "INSERT INTO attempt (job, number, job_id, token, state, environment, node, devices, gpus, vcpus_milli,
                memory_mib, instance_id, task_id, placed_at, timeout_ms, waits_for)
             VALUES (:job, :number, :job_id, :token, :state, :environment, :node, :devices, :gpus, :vcpus,
                :memory, :instance, :task, :placed, :timeout, :waits_for)",
        )?
        .execute(named_params! {
            ":job": self.job, ":number": self.number, ":job_id": self.job_id, ":token": self.token,
            ":state": self.state.as_str(), ":environment": self.environment, ":node": self.node,
            ":devices": self.devices, ":gpus": self.gpus, ":vcpus": self.vcpus_milli, ":memory": self.memory_mib,
            ":instance": self.instance_id, ":task": self.task_id, ":placed": self.placed_at,
            ":timeout": self.timeout_ms, ":waits_for": self.waits_for,
        })?;
        Ok(())
    }

    /// Writes everything that may change.
    pub fn save(&self, db: &Connection) -> rusqlite::Result<()> {
        db.prepare_cached(
            "UPDATE attempt SET state = :state, started_at = :started, stopped_at = :stopped, exit_code = :exit,
                reason = :reason, status_reason = :status_reason, stop_cause = :cause, stop_reason = :stop_reason,
                term_at = :term, kill_at = :kill, reclaim_at = :reclaim
             WHERE job = :job AND number = :number",
        )?
        .execute(named_params! {
            ":job": self.job, ":number": self.number, ":state": self.state.as_str(), ":started": self.started_at,
            ":stopped": self.stopped_at, ":exit": self.exit_code, ":reason": self.reason,
            ":status_reason": self.status_reason, ":cause": self.stop_cause.map(StopCause::as_str),
            ":stop_reason": self.stop_reason, ":term": self.term_at, ":kill": self.kill_at,
            ":reclaim": self.reclaim_at,
        })?;
        Ok(())
    }

    /// Whether it runs a node of a multi-node job, which has its host to itself.
    pub fn is_of_gang(&self) -> bool {
        self.job_id.contains('#')
    }

    /// Its devices.
    pub fn device_numbers(&self) -> impl Iterator<Item = i64> {
        self.devices.split(',').filter_map(|device| device.parse().ok())
    }

    /// Name of the log stream, which is also the path of the log file inside `batch/jobs`, without its suffix.
    pub fn log_stream(&self) -> String {
        format!("{}/{}", self.job_id, self.number)
    }
}
