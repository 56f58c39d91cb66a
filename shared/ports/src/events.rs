//! Telling other systems.

use crate::CallError;

/// Most entries of one call; EventBridge's limit.
pub const PUT_EVENTS_MAX: usize = 10;

/// An event of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingEvent {
    /// What kind, such as `Osprey Job State Change`.
    pub detail_type: &'static str,
    /// A JSON object.
    pub detail: String,
}

/// Puts events on the event bus (`events:PutEvents`).
pub trait PutEvents {
    /// Puts up to [`PUT_EVENTS_MAX`] events. All are there, or the call failed; then some may be there all the same.
    fn put_events(&self, events: &[OutgoingEvent]) -> impl Future<Output = Result<(), CallError>> + Send;
}
