//! The server over a socket: what AWS's clients send, and what nobody should.

// Marked as tests, so that helpers may unwrap as tests may.
#[cfg(test)]
mod batch;
#[cfg(test)]
mod bench;
#[cfg(test)]
mod events;
#[cfg(test)]
mod http;
#[cfg(test)]
mod sqs;
