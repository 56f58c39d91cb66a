//! What a job deserves: the policy file, and derivation from it, as pure functions.
//!
//! Nothing here reads a clock, the environment or a file: text and facts come in as arguments, and equal arguments
//! give equal results, in equal order.

pub mod key;
pub mod requeue;
pub mod rules;
