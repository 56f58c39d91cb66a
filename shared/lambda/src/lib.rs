//! Glue between the Lambda runtime and the handlers: events in, partial batch responses out, wiring from the
//! environment, the policy in force from the table, numbers for CloudWatch.
//!
//! A function's `main.rs` says what it is and calls [`run_queue`] or [`run_schedule`]. Configuration is read once, and
//! all its problems are told at once; clients are built once.

mod config;
mod event;
mod live;
pub mod metrics;
mod observe;
mod run;

pub use config::{Config, ConfigProblems, Function, queue_variable};
pub use event::{Arrived, batch_response, source_queue};
pub use live::{FairShare, InForce, Live};
pub use observe::Counts;
pub use osprey_aws::World;
pub use run::{run_queue, run_schedule};
