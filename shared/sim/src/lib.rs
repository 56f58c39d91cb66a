//! The simulator: what would have happened to these jobs, on this cluster, under this strategy.
//!
//! Start with [`workload::Workload`] (jobs, from [`trace`] or [`synthetic`]) and [`cluster::Cluster`]; then
//! [`replay::run`] replays them under a [`strategy::Reference`] and gives a [`schedule::Schedule`], which
//! [`metrics`] sums up. The rules of time are the same everywhere: at one instant all completions, then all
//! submissions, then one scheduling pass.
//!
//! Nothing here reads a clock, a file or the environment. Time is a number of milliseconds, text comes in as an
//! argument, and chance is a generator made of a seed and a label ([`kernel::random`]): equal arguments give equal
//! results, to the byte.

pub mod advice;
pub mod backlog;
pub mod cluster;
pub mod decided;
pub mod estimates;
pub mod intake;
pub mod kernel;
pub mod machine;
pub mod metrics;
pub mod pool;
pub mod replay;
pub mod scenario;
pub mod schedule;
pub mod series;
pub mod strategy;
pub mod synthetic;
pub mod teams;
pub mod trace;
pub mod workload;
pub mod world;
