//! `submit`: a message of the submission queue becomes a recorded job, and a recorded job becomes a Batch job.
//!
//! The flow of one message: parse → load → derive and admit → record → acknowledge → claim → SubmitJob → record. A
//! message is done as soon as it is recorded; everything after that is picked up by `watch` if it breaks off. What the
//! function decides is decided in [`osprey_policy`]; what it doesn't do: wait, order, preempt.

mod action;
mod authority;
mod configure;
mod door;
mod handle;
mod intake;
mod order;
mod wake;

pub use action::preview;
pub use handle::{Ports, handle};
pub use order::preview_order;
