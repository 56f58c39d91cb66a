//! The adapters against real HTTP: the project's local Batch and queues, a stub for faults, and an emulator of
//! DynamoDB where there is one.

// Marked as tests, so that helpers may unwrap as tests may.
#[cfg(test)]
mod capacity;
#[cfg(test)]
mod dynamodb;
#[cfg(test)]
mod events;
#[cfg(test)]
mod local;
#[cfg(test)]
mod outcomes;
#[cfg(test)]
mod shape;
#[cfg(test)]
mod stub;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tokens;
