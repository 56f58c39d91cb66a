//! spot
