//! The embedded store, queues and clock, from outside.
