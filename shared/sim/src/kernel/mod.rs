//! What every simulation is made of: an event queue, which is the clock, and chance made of a seed.

pub mod events;
pub mod random;

pub use events::EventQueue;
pub use random::fork;
