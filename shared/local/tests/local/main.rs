//! The embedded store, queues and clock, from outside.

// Marked as tests, so that helpers may unwrap as tests may.
#[cfg(test)]
mod contention;
#[cfg(test)]
mod ledger;
#[cfg(test)]
mod named;
#[cfg(test)]
mod notices;
#[cfg(test)]
mod queues;
#[cfg(test)]
mod scratch;
#[cfg(test)]
mod state_dir;
#[cfg(test)]
mod store;
#[cfg(test)]
mod store_model;
#[cfg(test)]
mod world;
