//! The simulator against what published simulators and independent programs said of the same traces.

mod batch_alone;
mod command;
mod evictions;
mod golden;
mod production;
mod traces;
