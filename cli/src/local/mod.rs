//! The pipeline on this machine: the real handlers on the embedded store and the local Batch.
//!
//! [`run`] is a run from its start to its end; [`crate::joined`] is how every other command reaches the state of one.

pub mod account;
pub mod board;
pub mod cluster;
pub mod engine;
pub mod ingest;
pub mod lines;
pub mod patience;
pub mod pipeline;
pub mod place;
pub mod progress;
pub mod run;
pub mod signal;

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Runs a future to its end. Everything local is done at the first poll, so there is nothing to wait for in between.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::yield_now();
    }
}
