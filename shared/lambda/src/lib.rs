//! Glue between the Lambda runtime and the handlers: events in, partial batch responses out, wiring from the
//! environment.
//!
//! A function's `main.rs` calls [`run_queue`] or [`run_schedule`] and nothing else. Configuration is read once, and
//! all its problems are told at once.

mod config;
mod event;
mod run;
mod world;

pub use config::{Config, ConfigProblems};
pub use event::{Arrived, batch_response, source_queue};
pub use run::{run_queue, run_schedule};
pub use world::{Unconnected, connect};
