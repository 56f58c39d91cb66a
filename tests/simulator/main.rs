//! The simulator against what published simulators and independent programs said of the same traces.

mod golden;
mod production;
mod traces;
