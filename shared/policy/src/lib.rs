//! What a job deserves: the policy file, derivation from it, and what follows an end, as pure functions.
//!
//! Start with [`Policy`]: text becomes a policy by [`Policy::load`], which finds every mistake at once, and facts become
//! a number, a tier and an account by [`Policy::derive`], which never fails.
//!
//! Nothing here reads a clock, the environment or a file: text and facts come in as arguments, and equal arguments
//! give equal results, in equal order.

pub mod admission;
pub mod case;
mod derivation;
mod document;
#[cfg(test)]
mod documentation_tests;
mod door;
pub mod estimate;
mod expr;
pub mod feedback;
mod file;
pub mod identity;
pub mod key;
mod lint;
pub mod outline;
mod place;
pub mod policy;
pub mod problem;
mod reach;
pub mod requeue;
pub mod rule;
pub mod rules;
pub mod schema;
pub mod share;
pub mod waits;

pub use case::TestOutcome;
pub use file::POLICY_BYTES_MAX;
pub use policy::{DEFAULT, Loaded, Policy};
pub use problem::{PolicyError, PolicyErrorCode, Warning};
