//! The function on the embedded store: what a submission costs, and what a sender may claim and do.

// Marked as tests, so that helpers may unwrap as tests may.
#[cfg(test)]
mod authority;
#[cfg(test)]
mod cost;
#[cfg(test)]
mod counting;
