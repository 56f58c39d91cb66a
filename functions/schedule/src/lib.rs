//! `schedule`: a wake-up of a pool becomes a scheduling cycle, and a cycle starts jobs.
//!
//! A cycle is a recipe of siblings: [`load`] reads the pool consistently, [`snapshot`] and [`rules`] make of it what
//! [`osprey_scheduler::decide`] takes, [`confirm`] asks Batch about those who would go, [`evict`] and [`act`] do what the plan
//! says under the plan's guard ([`osprey_pipeline::guard`]). [`why`] asks the same decision about one job and acts on nothing,
//! and [`outlook`] asks it about what could be otherwise and what is to come.
//!
//! Wake-ups come together: one that was due before the pool's last look is answered by that look.

pub mod act;
pub mod confirm;
pub mod cycle;
pub mod evict;
mod handle;
pub mod load;
pub mod outlook;
pub mod rules;
pub mod search;
pub mod snapshot;
pub mod why;

pub use handle::handle;

use osprey_pipeline::dispatch;
use osprey_ports::{DescribeJobs, ObserveCapacity};

/// What the function calls.
pub trait Ports: dispatch::Ports + ObserveCapacity + DescribeJobs {}

impl<P: dispatch::Ports + ObserveCapacity + DescribeJobs> Ports for P {}
