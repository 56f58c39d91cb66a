//! The pipeline as a whole, on the samples in `events/`.

mod backlog;
mod cycle;
mod events;
mod messages;
#[cfg(unix)]
mod scripts;
