//! The request goes out with every member that the API knows.

use jiff::{SignedDuration, Timestamp};
use osprey_aws::SubmitTokens;
use osprey_aws::batch::AwsBatch;
use osprey_ports::{SubmitCall, SubmitJob};
use serde_json::Value;

use crate::stub::{Reply, Stub};
use crate::support::{clients, run};

/// Puts a value where the published skeleton has none, so that nothing is empty.
fn filled(value: &Value) -> Value {
    match value {
        Value::Object(object) => object.iter().map(|(name, member)| (name.clone(), filled(member))).collect(),
        Value::Array(list) => list.iter().map(filled).collect(),
        Value::String(text) if text.is_empty() => Value::from("x"),
        Value::Number(_) => Value::from(7),
        other => other.clone(),
    }
}

#[test]
fn every_member_of_the_published_skeleton_arrives() {
    let skeleton: Value =
        serde_json::from_str(include_str!("../../../model/testdata/submit-job-skeleton.json")).unwrap();
    let sent = filled(&skeleton);
    let request = serde_json::from_value(sent.clone()).unwrap();
    let queue = r#"{"jobQueues":[{"jobQueueName":"x","schedulingPolicyArn":"arn:aws:batch:::scheduling-policy/p"}]}"#;
    let stub = Stub::new(vec![Reply::ok(queue), Reply::ok(r#"{"jobId":"b-1"}"#)]);
    let not_after = Timestamp::now() + SignedDuration::from_secs(60);
    run(async {
        let clients = clients(&stub.endpoint, "k", "s").await;
        AwsBatch::new(&clients, SubmitTokens::unlimited()).submit_job(&SubmitCall { request, not_after }).await
    })
    .unwrap();
    let bodies = stub.bodies();
    let arrived: Value = serde_json::from_str(&bodies[1]).unwrap();
    assert_eq!(arrived, sent);
    assert_eq!(bodies.len(), 2, "the queue is asked after once, and the job is submitted once");
}

#[test]
fn a_fifo_queue_gets_neither_share_nor_priority() {
    let stub = Stub::new(vec![Reply::ok(r#"{"jobQueues":[{"jobQueueName":"q"}]}"#), Reply::ok(r#"{"jobId":"b-1"}"#)]);
    let text =
        r#"{"jobName":"a","jobQueue":"q","jobDefinition":"d","shareIdentifier":"s","schedulingPriorityOverride":5}"#;
    let call = SubmitCall {
        request: serde_json::from_str(text).unwrap(),
        not_after: Timestamp::now() + SignedDuration::from_secs(60),
    };
    run(async {
        let clients = clients(&stub.endpoint, "k", "s").await;
        AwsBatch::new(&clients, SubmitTokens::unlimited()).submit_job(&call).await
    })
    .unwrap();
    assert_eq!(stub.bodies()[1], r#"{"jobName":"a","jobQueue":"q","jobDefinition":"d"}"#);
}
