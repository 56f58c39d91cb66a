//! Placement: plans against known optima, against exact plans of made-up instances, and the command.
//!
//! What a plan is worth is recomputed by [`checker`], from the formula and from the file, and not by the code under test.

mod checker;
mod command;
mod given;
mod made;

type Checked = Result<(), Box<dyn std::error::Error>>;

/// Seeds of each instance.
const SEEDS: u64 = 20;
/// The least share of the exact objective that a search has to find.
const SHARE: f64 = 0.999;
