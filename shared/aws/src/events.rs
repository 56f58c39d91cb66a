//! EventBridge.

use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use osprey_ports::{CallError, OutgoingEvent, PutEvents};

use crate::fault::{Fault, by_code};

/// The source of our events.
pub const SOURCE: &str = "osprey";

/// The event bus that our events go to.
#[derive(Clone, Debug)]
pub struct EventBus {
    client: Client,
    name: Option<String>,
}

impl EventBus {
    /// The bus of this name or ARN; without one the account's default bus.
    #[must_use]
    pub fn new(client: Client, name: Option<String>) -> Self {
        Self { client, name }
    }

    fn entry(&self, event: &OutgoingEvent) -> PutEventsRequestEntry {
        PutEventsRequestEntry::builder()
            .source(SOURCE)
            .detail_type(event.detail_type)
            .detail(&event.detail)
            .set_event_bus_name(self.name.clone())
            .build()
    }
}

impl PutEvents for EventBus {
    async fn put_events(&self, events: &[OutgoingEvent]) -> Result<(), CallError> {
        let entries = events.iter().map(|event| self.entry(event)).collect();
        let answer = self.client.put_events().set_entries(Some(entries)).send().await;
        let answer = answer.map_err(|error| CallError::from(Fault::of("events:PutEvents", &error)))?;
        // Each entry has a fate of its own; the first that failed speaks for the call.
        let failed = answer.entries().iter().find_map(|entry| {
            let code = entry.error_code()?;
            Some(by_code("events:PutEvents", code, entry.error_message().unwrap_or_default()))
        });
        failed.map_or(Ok(()), |fault| Err(fault.into()))
    }
}
