//! One message at a time: a panic or a failure of one is its own.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A step that panicked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it panicked: {0}")]
pub struct Panicked(pub String);

/// Runs a future and turns its panic into an error. Records are changed only by whole conditional writes, so a step
/// that was cut off leaves nothing half done.
///
/// The future is put into a box at once: it is some kilobytes large, and whoever awaits it would be as large again.
pub fn guard<F: Future>(future: F) -> Guard<F> {
    Guard { inner: Box::pin(future) }
}

/// A future whose panic is an error.
#[derive(Debug)]
pub struct Guard<F> {
    inner: Pin<Box<F>>,
}

impl<F: Future> Future for Guard<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let inner = self.inner.as_mut();
        match catch_unwind(AssertUnwindSafe(|| inner.poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(Panicked(text(&*panic)))),
        }
    }
}

fn text(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        return (*text).to_owned();
    }
    panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "no text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now<F: Future>(future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        match future.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("not ready"),
        }
    }

    #[test]
    fn a_panic_becomes_an_error_with_its_text() {
        assert_eq!(now(guard(async { panic!("ouch {}", 1) })), Err::<(), _>(Panicked("ouch 1".to_owned())));
        assert_eq!(now(guard(async { 7 })), Ok(7));
    }
}
