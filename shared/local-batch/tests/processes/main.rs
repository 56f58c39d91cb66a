//! The local Batch with real processes.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy.toml allows them in test functions, and these modules are nothing else"
)]

mod support;

mod arrays;
mod ends;
mod events;
mod multinode;
mod restarts;
mod spot;
mod stops;
mod throughput;
