//! The scheduling decision of one pool: [`decide`] takes a [`Snapshot`], [`Rules`] and a time, and gives a [`Plan`].
//!
//! Every start of a plan fits beside what runs and beside the other starts; every job that doesn't start has a typed
//! reason. Acting on the plan is somebody else's business: nothing here reads a clock or calls anybody, and equal
//! arguments give equal plans, because every order is total and ends in the job's id.
//!
//! `decide.rs` is the recipe: its steps are files named by what they decide. Strategies are siblings in
//! [`rules::Strategy`]; `strategy/` has one module for each way of walking down the queue. `docs/scheduling.md` shows how
//! a number becomes an order. [`placement`] looks for a better choice of jobs and nodes than one walk finds; its chance is
//! made of a seed.

pub mod change;
mod decide;
mod demand;
mod eligible;
pub mod forecast;
mod headroom;
mod landing;
pub mod lending;
pub mod order;
pub mod placement;
pub mod plan;
mod preempt;
pub mod priority;
pub mod quota;
pub mod reason;
mod reserve;
mod room;
pub mod rules;
pub mod snapshot;
mod strategy;

pub use decide::decide;
pub use plan::Plan;
pub use reason::WaitReason;
pub use rules::{Rules, Strategy};
pub use snapshot::Snapshot;
