//! Exactly once: a small part of what the `chaos` command runs by the thousand, with the seeds that found faults.

mod breakages;
mod regressions;
mod seeds;
mod staged;
