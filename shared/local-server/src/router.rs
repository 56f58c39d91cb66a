//! From a call to its answer.

use jiff::Timestamp;

use crate::failure::{Failure, Protocol};
use crate::http::{Call, Reply};
use crate::service::Service;
use crate::{auth, batch, sqs};

/// Checks a call before its body is read.
///
/// # Errors
/// The refusal.
pub fn admit(service: &Service, call: &Call) -> Result<(), Failure> {
    auth::check_head(call, service.credentials(), Timestamp::now())
}

/// Answers a call; blocks for as long as the store, or a call that waits for messages, needs.
#[must_use]
pub fn answer(service: &Service, call: &Call) -> Reply {
    let protocol = call.protocol();
    let outcome = auth::check_whole(call, service.credentials()).and_then(|()| match protocol {
        Protocol::Batch => batch::answer(service, call),
        Protocol::Sqs => sqs::answer(service, call),
    });
    if let Err(failure) = &outcome {
        tracing::debug!(path = call.path, %failure, "A call failed.");
    }
    Reply::of(protocol, outcome)
}
