//! Events are put whole, and each entry's own fate is looked at.

use osprey_aws::events::EventBus;
use osprey_ports::{CallError, OutgoingEvent, PutEvents};
use serde_json::{Value, json};

use crate::stub::{Reply, Stub};
use crate::support::{clients, run};

fn put(reply: Reply, bus: Option<&str>) -> (Result<(), CallError>, Vec<String>) {
    let stub = Stub::new(vec![reply]);
    let events = [1, 2].map(|version| OutgoingEvent {
        detail_type: "Osprey Job State Change",
        detail: json!({"jobId": "j", "version": version}).to_string(),
    });
    let outcome = run(async {
        let client = clients(&stub.endpoint, "k", "s").await.events;
        EventBus::new(client, bus.map(str::to_owned)).put_events(&events).await
    });
    (outcome, stub.bodies())
}

#[test]
fn every_event_names_its_source_its_kind_and_the_bus() {
    let (outcome, bodies) =
        put(Reply::ok(r#"{"FailedEntryCount":0,"Entries":[{"EventId":"1"},{"EventId":"2"}]}"#), Some("jobs"));
    assert_eq!((outcome, bodies.len()), (Ok(()), 1));
    let body: Value = serde_json::from_str(&bodies[0]).unwrap();
    let entries = body["Entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    for entry in entries {
        assert_eq!(entry["Source"], "osprey");
        assert_eq!(entry["DetailType"], "Osprey Job State Change");
        assert_eq!(entry["EventBusName"], "jobs");
    }
}

#[test]
fn an_entry_that_failed_fails_the_call_though_the_answer_is_200() {
    let half =
        r#"{"FailedEntryCount":1,"Entries":[{"EventId":"1"},{"ErrorCode":"InternalFailure","ErrorMessage":"oops"}]}"#;
    let (outcome, bodies) = put(Reply::ok(half), None);
    let told = outcome.unwrap_err().to_string();
    assert!(told.contains("oops") && told.contains("InternalFailure"), "{told}");
    assert_eq!(bodies.len(), 1);
}

#[test]
fn a_denied_call_names_the_action_that_is_missing() {
    let denied = Reply::error(400, "AccessDeniedException", "x is not authorized to perform: events:PutEvents on y");
    let told = put(denied, None).0.unwrap_err().to_string();
    assert!(told.contains("the role lacks `events:PutEvents`"), "{told}");
}
