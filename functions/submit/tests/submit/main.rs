//! What a submission costs: calls, requests and units of the table, counted on the embedded store.

// Marked as tests, so that helpers may unwrap as tests may.
#[cfg(test)]
mod authority;
mod cost;
#[cfg(test)]
mod counting;
