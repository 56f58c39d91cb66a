//! `osprey watch`: the live view.
//!
//! ```text
//! reader (a thread) ── readings ──▶ State ── view(state, area) ──▶ Buffer ──▶ the terminal
//!        ▲                            ▲ │
//!        └── wish: what to read ──────│─┘
//!                         keys ───────┘
//! ```
//!
//! [`state::State`] is changed by events alone, and [`view::draw`] is a function of it and of an area, so what is shown
//! can be tested without a terminal. Reading never holds up drawing, and drawing never reads.

pub mod feed;
pub mod keys;
pub mod look;
pub mod reader;
pub mod rows;
pub mod state;
pub mod terminal;
pub mod view;

#[cfg(test)]
mod scene;
#[cfg(test)]
mod view_tests;
