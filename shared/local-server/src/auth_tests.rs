//! Calls that are signed well, and every way to sign them badly.

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

use super::*;

const TIME: &str = "20261129T120000Z";

fn key() -> Credentials {
    Credentials { key_id: "OSPREYAAAAAAAAAAAAAA".to_owned(), secret: "secret".to_owned() }
}

fn now() -> Timestamp {
    "2026-11-29T12:01:00Z".parse().unwrap()
}

fn set(call: &mut Call, name: &str, value: &str) {
    call.headers.insert(HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap());
}

/// A call signed for a scope with a secret.
fn signed(scope: &str, secret: &str) -> Call {
    let body = hyper::body::Bytes::from_static(b"{}");
    let mut call = Call {
        method: "POST".into(),
        path: "/v1/listjobs".into(),
        query: String::new(),
        headers: HeaderMap::new(),
        body,
    };
    set(&mut call, "host", "127.0.0.1:9324");
    set(&mut call, "x-amz-date", TIME);
    let words: Vec<&str> = scope.split('/').collect();
    let scope = Scope { day: words[0], region: words[1], service: words[2] };
    let headers = signed_headers(&call, &["host", "x-amz-date"]).unwrap();
    let payload = sign::sha256(&call.body);
    let signable = Signable { method: "POST", path: &call.path, query: "", headers, payload };
    let text = sign::string_to_sign(TIME, &scope, &sign::canonical_request(&signable));
    let signature = sign::signature(secret, &scope, &text);
    let header = format!(
        "{ALGORITHM} Credential={}/{}/aws4_request, SignedHeaders=host;x-amz-date, Signature={signature}",
        key().key_id,
        words.join("/")
    );
    set(&mut call, "authorization", &header);
    call
}

fn check(call: &Call) -> Result<(), Failure> {
    check_head(call, &key(), now()).and_then(|()| check_whole(call, &key()))
}

fn refusal(call: &Call) -> String {
    check(call).unwrap_err().to_string()
}

#[test]
fn a_call_that_is_signed_well_passes() {
    assert_eq!(check(&signed("20261129/us-east-1/batch", "secret")), Ok(()));
}

#[test]
fn a_wrong_secret_body_path_or_header_shows() {
    let well = signed("20261129/us-east-1/batch", "secret");
    let with_path = Call { path: "/v1/submitjob".into(), ..well.clone() };
    let with_body = Call { body: "{ }".into(), ..well.clone() };
    let with_query = Call { query: "a=b".into(), ..well.clone() };
    let mut with_host = well.clone();
    set(&mut with_host, "host", "localhost:9324");
    let mut with_hash = well.clone();
    set(&mut with_hash, "x-amz-content-sha256", "UNSIGNED-PAYLOAD");
    for call in
        [&signed("20261129/us-east-1/batch", "other"), &with_path, &with_body, &with_query, &with_host, &with_hash]
    {
        assert!(
            refusal(call).starts_with("InvalidSignatureException: The request signature we calculated"),
            "{call:?}"
        );
    }
}

#[test]
fn an_unknown_key_and_a_session_token_are_not_recognized() {
    let want = "UnrecognizedClientException: The security token included in the request is invalid.";
    let mut call = signed("20261129/us-east-1/batch", "secret");
    let header = call.header("authorization").unwrap();
    set(&mut call, "authorization", &header.replace("OSPREYA", "AKIAAAA"));
    assert_eq!(refusal(&call), want);
    let mut call = signed("20261129/us-east-1/batch", "secret");
    set(&mut call, "x-amz-security-token", "token");
    assert_eq!(refusal(&call), want);
}

#[test]
fn a_signature_is_for_one_region_service_and_time() {
    let cases = [
        ("20261129/eu-west-1/batch", "InvalidSignatureException: Credential should be scoped to a valid region"),
        (
            "20261129/us-east-1/sqs",
            "InvalidSignatureException: Credential should be scoped to correct service: 'batch'.",
        ),
        ("20261128/us-east-1/batch", "InvalidSignatureException: Date in Credential scope does not match YYYYMMDD"),
    ];
    for (scope, want) in cases {
        assert!(refusal(&signed(scope, "secret")).starts_with(want), "{scope}");
    }
    let call = signed("20261129/us-east-1/batch", "secret");
    let at = |now: &str| check_head(&call, &key(), now.parse().unwrap()).map_err(|error| error.message);
    assert_eq!(at("2026-11-29T12:05:00Z"), Ok(()));
    assert_eq!(at("2026-11-29T11:55:00Z"), Ok(()));
    let expired =
        "Signature expired: 20261129T120000Z is now earlier than 20261129T120001Z (20261129T120501Z - 5 min.)";
    assert_eq!(at("2026-11-29T12:05:01Z"), Err(expired.to_owned()));
    let early =
        "Signature not yet current: 20261129T120000Z is still later than 20261129T115959Z (20261129T115459Z + 5 min.)";
    assert_eq!(at("2026-11-29T11:54:59Z"), Err(early.to_owned()));
}

#[test]
fn a_header_that_is_missing_or_half_is_told() {
    let mut call = signed("20261129/us-east-1/batch", "secret");
    let header = call.header("authorization").unwrap();
    for half in ["Basic x", ALGORITHM, header.split(", Signature").next().unwrap()] {
        set(&mut call, "authorization", half);
        assert!(refusal(&call).starts_with("IncompleteSignatureException: "), "{half}");
    }
    call.headers.remove("authorization");
    assert_eq!(refusal(&call), "MissingAuthenticationTokenException: Missing Authentication Token");
    set(&mut call, "x-amz-target", "AmazonSQS.ListQueues");
    assert_eq!(refusal(&call), "MissingAuthenticationTokenException: Request is missing Authentication Token");
}

#[test]
fn a_target_that_is_not_signed_is_refused() {
    let mut call = signed("20261129/us-east-1/sqs", "secret");
    set(&mut call, "x-amz-target", "AmazonSQS.ListQueues");
    assert!(refusal(&call).starts_with("InvalidSignatureException: 'Host', 'X-Amz-Date' and 'X-Amz-Target'"));
}
