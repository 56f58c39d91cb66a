//! Time.

use jiff::Timestamp;

/// Tells the time. Decisions take the time as an argument; this is for whoever calls them.
pub trait Clock {
    /// The time now.
    fn now(&self) -> Timestamp;
}
