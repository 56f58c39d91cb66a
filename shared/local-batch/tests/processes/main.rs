//! The local Batch with real processes.

mod support;

mod arrays;
mod ends;
mod events;
mod restarts;
mod spot;
mod stops;
mod throughput;
