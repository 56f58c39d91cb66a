//! A Batch on this machine: queues, compute environments, and container jobs, single, in arrays or on several nodes at
//! once, that run as real processes on GPU slots.
//!
//! What it decides: what Batch decides. It validates requests, keeps every field, orders each queue, places jobs on
//! nodes, starts and stops their processes, and says every state change as an event. What it doesn't decide: which
//! jobs ought to run; it knows nothing of whoever submits them.
//!
//! What starts next is decided by pure functions over plain structs, in [`schedule`], with [`share`] for the fair
//! shares; a simulator can be held against them.
//!
//! Start with [`LocalBatch`], the calls; then [`Engine`], which makes things happen; then [`supervise`], the process
//! that stands between the engine and each command so that neither a crash nor `kill -9` of the engine costs a job.
//!
//! Everything lives in one folder: `batch.db` (SQLite) is the truth, `batch/jobs/ID/ATTEMPT.*` are the files of an
//! attempt. Every mutation is one transaction, and an event is written in the transaction of its transition. Any
//! number of processes may call; one of them, the holder of `batch/engine.lock`, runs the engine, and `batch/bell` is how
//! the others wake it.
//!
//! Linux only: it reads `/proc` to tell a process from a later one with the same id, and to measure memory.

pub mod arn;
mod attempt;
mod batch;
mod bell;
mod change;
pub mod clock;
mod conclude;
pub mod definition;
pub mod dependency;
pub mod detail;
mod ending;
pub mod engine;
pub mod environment;
pub mod error;
pub mod event;
pub mod files;
mod gang;
pub mod head;
mod job;
mod launch;
pub mod list;
mod memory;
pub mod multinode;
pub mod node;
mod observe;
pub mod options;
mod placement;
pub mod process;
pub mod queue;
pub mod requirement;
pub mod retry;
pub mod scaling;
pub mod schedule;
pub mod share;
pub mod snapshot;
pub mod spot;
mod stop;
pub mod store;
mod submit;
pub mod supervise;
pub mod tag;
mod transition;
pub mod validate;

pub use batch::LocalBatch;
pub use clock::{Clock, ScaledClock, SystemClock};
pub use definition::RegisteredDefinition;
pub use engine::Engine;
pub use environment::{
    ComputeEnvironment, ComputeEnvironmentRequest, ComputeEnvironmentUpdate, EnvironmentKind, State,
};
pub use error::{BatchError, EngineError, ErrorCode, OpenError};
pub use event::PendingEvent;
pub use head::JobStateTimeLimit;
pub use list::{JobList, ListFilter, ListJobsRequest};
pub use node::ComputeNode;
pub use options::{EventOptions, Options};
pub use queue::{
    ComputeEnvironmentOrder, FairShare, JobQueue, JobQueueRequest, JobQueueUpdate, SchedulingPolicy, ShareWeight,
};
pub use scaling::Scaling;
pub use snapshot::QueueSnapshot;
pub use submit::SubmittedJob;
pub use tag::Tags;
