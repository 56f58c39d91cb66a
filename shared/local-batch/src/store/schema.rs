//! The tables. `PRAGMA user_version` holds the schema's version; a file of a newer version is refused, not touched.

/// The version this code writes and knows.
pub const SCHEMA_VERSION: i64 = 2;

/// Everything of version 1. Times are virtual milliseconds since 1970 unless a name says otherwise.
pub const SCHEMA: &str = "
CREATE TABLE compute_environment (
    name TEXT PRIMARY KEY, kind TEXT NOT NULL, state TEXT NOT NULL,
    nodes INTEGER NOT NULL, gpus INTEGER NOT NULL, vcpus_milli INTEGER NOT NULL, memory_mib INTEGER NOT NULL,
    tags TEXT NOT NULL
) STRICT;

-- One row a node. `first_device` is global: no two nodes of the whole state directory share a device number.
CREATE TABLE node (
    environment TEXT NOT NULL REFERENCES compute_environment(name), idx INTEGER NOT NULL,
    first_device INTEGER NOT NULL, gpus INTEGER NOT NULL,
    instance_id TEXT NOT NULL, generation INTEGER NOT NULL, ready_at INTEGER NOT NULL,
    reclaim_at INTEGER, draining INTEGER NOT NULL DEFAULT 0, retired INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (environment, idx)
) STRICT;

CREATE TABLE scheduling_policy (name TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;

CREATE TABLE job_queue (
    name TEXT PRIMARY KEY, state TEXT NOT NULL, priority INTEGER NOT NULL, policy TEXT, tags TEXT NOT NULL
) STRICT;

CREATE TABLE queue_environment (
    queue TEXT NOT NULL REFERENCES job_queue(name), ord INTEGER NOT NULL, environment TEXT NOT NULL,
    PRIMARY KEY (queue, ord)
) STRICT;

CREATE TABLE job_definition (
    name TEXT NOT NULL, revision INTEGER NOT NULL, active INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (name, revision)
) STRICT;

-- What never changes of a submission; an array and its children share one row.
CREATE TABLE spec (id INTEGER PRIMARY KEY, request TEXT NOT NULL, detail TEXT NOT NULL) STRICT;

CREATE TABLE job (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, spec INTEGER NOT NULL REFERENCES spec(id),
    parent TEXT, idx INTEGER, size INTEGER,
    name TEXT NOT NULL, name_lower TEXT NOT NULL, definition TEXT NOT NULL, queue TEXT NOT NULL,
    status TEXT NOT NULL, status_reason TEXT,
    created_at INTEGER NOT NULL, started_at INTEGER, stopped_at INTEGER,
    share TEXT, priority INTEGER,
    rank INTEGER NOT NULL DEFAULT 0,
    gpus INTEGER NOT NULL, vcpus_milli INTEGER NOT NULL, memory_mib INTEGER NOT NULL,
    timeout_ms INTEGER, attempts_allowed INTEGER NOT NULL, attempts_made INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0, terminated INTEGER NOT NULL DEFAULT 0,
    unresolved INTEGER NOT NULL DEFAULT 0, open_children INTEGER NOT NULL DEFAULT 0,
    transitions INTEGER NOT NULL DEFAULT 0,
    doomed TEXT, reclaim_after_ms INTEGER
) STRICT;
CREATE INDEX job_by_queue ON job(queue, status, rank, seq);
CREATE INDEX job_by_share ON job(queue, status, share, priority DESC, rank, seq);
CREATE INDEX job_by_name ON job(queue, name_lower, seq);
CREATE INDEX job_by_parent ON job(parent, status, seq) WHERE parent IS NOT NULL;
CREATE INDEX job_submitted ON job(seq) WHERE status = 'SUBMITTED' AND parent IS NULL;

-- Only dependencies that weren't settled at submission; `open` until the upstream job ends.
CREATE TABLE dependency (
    job INTEGER NOT NULL REFERENCES job(seq), upstream TEXT NOT NULL, open INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (job, upstream)
) STRICT;
CREATE INDEX dependency_by_upstream ON dependency(upstream) WHERE open = 1;

CREATE TABLE attempt (
    job INTEGER NOT NULL REFERENCES job(seq), number INTEGER NOT NULL, job_id TEXT NOT NULL, token TEXT NOT NULL,
    state TEXT NOT NULL, environment TEXT NOT NULL, node INTEGER NOT NULL, devices TEXT NOT NULL,
    gpus INTEGER NOT NULL, vcpus_milli INTEGER NOT NULL, memory_mib INTEGER NOT NULL,
    instance_id TEXT NOT NULL, task_id TEXT NOT NULL,
    placed_at INTEGER NOT NULL, started_at INTEGER, stopped_at INTEGER,
    exit_code INTEGER, reason TEXT, status_reason TEXT,
    timeout_ms INTEGER, stop_cause TEXT, stop_reason TEXT, term_at INTEGER, kill_at INTEGER,
    reclaim_at INTEGER,
    PRIMARY KEY (job, number)
) STRICT;
CREATE INDEX attempt_live ON attempt(environment, node) WHERE state != 'ended';

-- vCPU milliseconds used by a share, as they were at `as_of`; decays from there.
CREATE TABLE share_usage (
    queue TEXT NOT NULL, share TEXT NOT NULL, vcpu_ms REAL NOT NULL, as_of INTEGER NOT NULL,
    PRIMARY KEY (queue, share)
) STRICT;

-- The outbox. A row stays until it is acknowledged.
CREATE TABLE event (id INTEGER PRIMARY KEY AUTOINCREMENT, due_at INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
CREATE INDEX event_due ON event(due_at, id);
";

/// What version 2 adds: multi-node jobs, time limits of a queue's head, and environments that scale.
pub const SCHEMA_2: &str = "
-- A multi-node job has `nodes`, `main_node` and `node_needs` (JSON: one `[nodes, gpus, vcpus_milli, memory_mib]` a
-- run of alike nodes); each of its nodes is a job of its own with `node`, its index.
ALTER TABLE job ADD COLUMN nodes INTEGER;
ALTER TABLE job ADD COLUMN main_node INTEGER;
ALTER TABLE job ADD COLUMN node_needs TEXT;
ALTER TABLE job ADD COLUMN node INTEGER;

-- The job whose attempt must run before this one is launched: a node's main node.
ALTER TABLE attempt ADD COLUMN waits_for INTEGER;

-- Nodes from `min_nodes` on have an instance only while they are wanted; NULL when all always have one. `obtainable`
-- is how many instances can be had at all.
ALTER TABLE compute_environment ADD COLUMN min_nodes INTEGER;
ALTER TABLE compute_environment ADD COLUMN scale_down_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE compute_environment ADD COLUMN obtainable INTEGER;
ALTER TABLE node ADD COLUMN up INTEGER NOT NULL DEFAULT 1;
ALTER TABLE node ADD COLUMN idle_since INTEGER;

ALTER TABLE job_queue ADD COLUMN time_limits TEXT NOT NULL DEFAULT '[]';

-- The blocked head of a queue, why it is blocked, and since when it is both.
CREATE TABLE queue_head (
    queue TEXT PRIMARY KEY, job INTEGER NOT NULL, reason TEXT NOT NULL, since INTEGER NOT NULL
) STRICT;
";
