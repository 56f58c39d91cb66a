//! What a submission's outcome is taken for, and that each is one request.

use jiff::{SignedDuration, Timestamp};
use osprey_aws::batch::AwsBatch;
use osprey_aws::{Clients, SubmitTokens};
use osprey_model::id::BatchJobId;
use osprey_model::request::SubmitJobRequest;
use osprey_ports::{CallError, DescribeJobs, SubmitCall, SubmitError, SubmitJob, TerminateJob};

use crate::stub::{Reply, Stub};
use crate::support::{clients, run};

/// Batch at `endpoint`, with a token for every call.
async fn batch(endpoint: &str) -> AwsBatch {
    let clients: Clients = clients(endpoint, "k", "s").await;
    AwsBatch::new(&clients, SubmitTokens::unlimited())
}

fn call(seconds_left: i64) -> SubmitCall {
    let request = SubmitJobRequest {
        job_name: "a".into(),
        job_queue: Some("q".into()),
        job_definition: "d".into(),
        ..Default::default()
    };
    SubmitCall { request, not_after: Timestamp::now() + SignedDuration::from_secs(seconds_left) }
}

fn submit(reply: Reply) -> (Result<BatchJobId, SubmitError>, u32) {
    let stub = Stub::new(vec![reply]);
    let outcome = run(async { batch(&stub.endpoint).await.submit_job(&call(60)).await });
    (outcome, stub.asked())
}

#[test]
fn a_submission_that_is_answered_gives_the_job() {
    let (outcome, asked) = submit(Reply::ok(r#"{"jobArn":"arn","jobId":"b-1","jobName":"a"}"#));
    assert_eq!((outcome, asked), (Ok(BatchJobId::new("b-1")), 1));
}

#[test]
fn each_outcome_is_told_for_what_it_is_and_never_repeated() {
    let cases = [
        (Reply::error(429, "TooManyRequestsException", "slow down"), "Throttled"),
        (Reply::error(400, "ClientException", "JobQueue q not found."), "Refused(\"JobQueue q not found.\")"),
        (
            Reply::error(403, "AccessDeniedException", "x is not authorized to perform: batch:TagResource on y"),
            "Refused(\"the role lacks `batch:TagResource`",
        ),
        (Reply::error(403, "ExpiredTokenException", "expired"), "NotSent(\"expired (HTTP 403, ExpiredTokenException)"),
        (Reply::error(403, "InvalidSignatureException", "Signature expired"), "NotSent(\"Signature expired"),
        (Reply::error(500, "ServerException", "oops"), "Unknown(\"oops (HTTP 500, ServerException)"),
        (Reply::error(503, "ServiceUnavailable", ""), "Unknown("),
        (Reply::error(500, "AuthorizerConfigurationException", "x"), "Unknown("),
        (Reply::ok("no json"), "Unknown("),
        (Reply::ok("{}"), "Unknown("),
        (Reply::HangUp, "Unknown("),
        (Reply::HangUpAtOnce, "Unknown("),
        (Reply::HalfAnAnswer, "Unknown("),
        (Reply::Silence, "Unknown("),
    ];
    for (reply, want) in cases {
        let (outcome, asked) = submit(reply.clone());
        let told = format!("{:?}", outcome.unwrap_err());
        assert!(told.starts_with(want), "{reply:?}: {told}, want {want}");
        assert_eq!(asked, 1, "{reply:?} was asked more than once");
    }
}

#[test]
fn what_was_never_sent_is_not_in_doubt() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let outcome = run(async { batch(&format!("http://{closed}")).await.submit_job(&call(60)).await });
    assert!(matches!(outcome, Err(SubmitError::NotSent(_))), "no connection: {outcome:?}");
    let stub = Stub::new(vec![Reply::ok(r#"{"jobId":"b"}"#)]);
    let outcome = run(async { batch(&stub.endpoint).await.submit_job(&call(-1)).await });
    let Err(SubmitError::NotSent(why)) = outcome else { panic!("too late: {outcome:?}") };
    assert!(why.contains("and the claim holds until"), "{why}");
    assert_eq!(stub.asked(), 0, "nothing was sent");
}

#[test]
fn a_call_that_may_be_repeated_is_and_a_denied_one_names_its_action() {
    let busy = Reply::error(429, "TooManyRequestsException", "slow down");
    let stub = Stub::new(vec![busy, Reply::HangUp, Reply::ok(r#"{"jobs":[{"jobId":"b-1","status":"RUNNING"}]}"#)]);
    let seen = run(async { batch(&stub.endpoint).await.describe_jobs(&["b-1".into()]).await }).unwrap();
    assert_eq!((seen[0].job_id.as_str(), stub.asked()), ("b-1", 3));
    let stub = Stub::new(vec![Reply::error(403, "AccessDeniedException", "")]);
    let denied = run(async { batch(&stub.endpoint).await.terminate_job(&"b-1".into(), "r").await });
    assert_eq!(denied, Err(CallError::Denied("the role lacks `batch:TerminateJob`".to_owned())));
    assert_eq!(stub.asked(), 1, "to ask again doesn't help");
}
