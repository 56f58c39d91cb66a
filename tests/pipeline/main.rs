//! The pipeline as a whole, on the samples in `events/`.

mod backlog;
mod bad_input;
#[expect(clippy::unwrap_used, reason = "helpers of tests, which fail with them")]
mod cycle;
#[expect(clippy::unwrap_used, reason = "helpers of tests, which fail with them")]
mod estimates;
mod events;
#[expect(clippy::unwrap_used, reason = "helpers of tests, which fail with them")]
mod evict;
mod messages;
#[expect(clippy::unwrap_used, reason = "helpers of tests, which fail with them")]
mod order;
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests, which fail with them")]
mod place;
#[cfg(unix)]
mod scripts;
mod waits;
#[expect(clippy::expect_used, reason = "helpers of tests, which fail with them")]
mod wasted;
#[expect(clippy::unwrap_used, reason = "helpers of tests, which fail with them")]
mod world;
