//! The pipeline as a whole, on the samples in `events/`.

mod events;
mod messages;
#[cfg(unix)]
mod scripts;
