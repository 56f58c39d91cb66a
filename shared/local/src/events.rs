//! Our own events, in EventBridge's shape.

use osprey_ports::OutgoingEvent;
use serde_json::{Value, json};

/// Who sends them.
pub(crate) const SENDER: &str = "events:osprey";
/// The source of our events.
const SOURCE: &str = "osprey";

/// An event as a target of EventBridge gets it.
pub(crate) fn text(event: &OutgoingEvent, time: &str) -> String {
    let detail: Value = serde_json::from_str(&event.detail).unwrap_or_default();
    json!({
        "version": "0",
        "id": uuid::Uuid::new_v4().to_string(),
        "detail-type": event.detail_type,
        "source": SOURCE,
        "account": "000000000000",
        "time": time,
        "region": "local",
        "resources": [],
        "detail": detail,
    })
    .to_string()
}
