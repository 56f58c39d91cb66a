//! Requests that are no calls, too large, too many, or not signed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::bench::{Bench, QUEUE, read};

#[test]
fn nothing_is_answered_without_a_signature() {
    let bench = Bench::new();
    let plain = |target: &str| {
        let text = format!(
            "POST /v1/listjobs HTTP/1.1\r\nhost: x\r\n{target}content-length: 2\r\nconnection: close\r\n\r\n{{}}"
        );
        bench.raw(text.as_bytes())
    };
    assert_eq!(plain("").error(), "403 MissingAuthenticationTokenException: Missing Authentication Token");
    let sqs = plain("x-amz-target: AmazonSQS.ListQueues\r\n");
    assert_eq!(sqs.error(), "403 MissingAuthenticationTokenException: Request is missing Authentication Token");
    assert_eq!(sqs.header("x-amzn-query-error"), Some("MissingAuthenticationToken;Sender"));
}

#[test]
fn a_signature_is_for_one_body() {
    let bench = Bench::new();
    let head = bench.head("POST", "/v1/listjobs", "", None, b"{}");
    let answer = bench.raw(format!("{head}[]").as_bytes());
    assert!(answer.error().starts_with("403 InvalidSignatureException: The request signature we calculated"));
}

#[test]
fn unknown_paths_and_verbs_are_refused_as_batchs_front_does() {
    let bench = Bench::new();
    for (method, path) in [("POST", "/v1/nothing"), ("GET", "/v1/listjobs"), ("POST", "/"), ("PATCH", "/v1/tags/x")] {
        let answer = bench.call(method, path, "", None, b"{}");
        let want = "403 MissingAuthenticationTokenException: Missing Authentication Token";
        assert_eq!(answer.error(), want, "{method} {path}");
    }
    let want = "400 ClientException: The local Batch does not offer SubmitServiceJob";
    assert_eq!(bench.batch("submitservicejob", &json!({})), Err(want.to_owned()));
}

#[test]
fn bodies_that_are_no_requests_are_told() {
    let bench = Bench::new();
    for (body, want) in [
        (&b"{\"jobQueue\":"[..], "The request is not valid JSON"),
        (b"\xff\xfe", "The request is not valid JSON"),
        (b"[]", "Start of list found where not expected"),
        (b"7", "NUMBER_VALUE can not be converted to a structure"),
        (b"{\"jobQueue\":7}", "NUMBER_VALUE can not be converted to a String"),
        (b"{\"maxResults\":\"7\"}", "STRING_VALUE can not be converted to an Integer"),
    ] {
        let answer = bench.call("POST", "/v1/listjobs", "", None, body);
        assert_eq!(answer.error(), format!("400 SerializationException: {want}"));
    }
    let deep = "[".repeat(100_000);
    let answer = bench.call("POST", "/v1/listjobs", "", None, deep.as_bytes());
    assert_eq!(answer.error(), "400 SerializationException: The request is not valid JSON");
}

#[test]
fn members_that_no_model_knows_are_ignored() {
    let bench = Bench::new();
    let body = json!({"jobQueue": QUEUE, "nothing": 1, "jobStatus": null});
    assert_eq!(bench.batch("listjobs", &body), Ok(json!({"jobSummaryList": []})));
}

#[test]
fn a_body_that_is_too_large_is_refused_before_it_is_read() {
    let bench = Bench::new();
    let head = bench.head("POST", "/v1/listjobs", "", None, b"");
    let larger = head.replace("content-length: 0", &format!("content-length: {}", 10 * 1024 * 1024 + 1));
    let answer = bench.raw(larger.as_bytes());
    assert_eq!(answer.error(), "413 RequestEntityTooLargeException: Request must be smaller than 10485760 bytes.");
    assert_eq!(answer.header("connection"), Some("close"));
}

#[test]
fn a_body_that_turns_out_too_large_is_refused() {
    let bench = Bench::new();
    let head =
        bench.head("POST", "/v1/listjobs", "", None, b"").replace("content-length: 0", "transfer-encoding: chunked");
    let mut bytes = head.into_bytes();
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..11 {
        bytes.extend(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend(&chunk);
        bytes.extend(b"\r\n");
    }
    let mut stream = TcpStream::connect(bench.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let _ = stream.write_all(&bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    // A reset may overtake the answer, since the rest of the body is never read.
    if !answer.is_empty() {
        assert_eq!(read(&answer).status, 413);
    }
    assert_eq!(bench.batch("listjobs", &json!({"jobQueue": QUEUE})), Ok(json!({"jobSummaryList": []})));
}

#[test]
fn an_unknown_key_is_refused_before_its_body_is_read() {
    let bench = Bench::new();
    let head = bench.head("POST", "/v1/listjobs", "", None, b"").replace("Credential=OSPREY", "Credential=AKIAXX");
    let waiting = head.replace("content-length: 0", "content-length: 1000");
    let began = Instant::now();
    let answer = bench.raw(waiting.as_bytes());
    assert_eq!(
        answer.error(),
        "403 UnrecognizedClientException: The security token included in the request is invalid."
    );
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn what_is_no_http_is_closed() {
    let bench = Bench::new();
    for bytes in [&b"\x16\x03\x01\x02\x00"[..], b"HELLO\r\n\r\n", b"POST / HTTP/1.1\r\nbad header\r\n\r\n"] {
        let answer = bench.raw(bytes);
        assert!(answer.status == 400 || answer.head.is_empty(), "{answer:?}");
    }
    let long = format!("POST /{} HTTP/1.1\r\nhost: x\r\n\r\n", "x".repeat(200_000));
    let status = bench.raw(long.as_bytes()).status;
    assert!([0, 400, 414, 431].contains(&status), "{status}");
}

#[test]
fn several_calls_go_through_one_connection() {
    let bench = Bench::new();
    let head = bench.head("POST", "/v1/describejobqueues", "", None, b"{}").replace("connection: close\r\n", "");
    let last = bench.head("POST", "/v1/describejobqueues", "", None, b"{}");
    let bytes = format!("{head}{{}}{head}{{}}{last}{{}}");
    let mut stream = TcpStream::connect(bench.address).unwrap();
    stream.write_all(bytes.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 3, "{answer}");
}

#[test]
fn more_connections_than_are_served_wait_their_turn() {
    let bench = Bench::new();
    let idle: Vec<TcpStream> = (0..300).filter_map(|_| TcpStream::connect(bench.address).ok()).collect();
    std::thread::sleep(Duration::from_millis(200));
    drop(idle);
    assert_eq!(bench.batch("listjobs", &json!({"jobQueue": QUEUE})), Ok(json!({"jobSummaryList": []})));
}

#[test]
fn connections_that_ask_nothing_keep_nobody_out_for_long() {
    let bench = Bench::new();
    let mut idle: Vec<TcpStream> = (0..300).filter_map(|_| TcpStream::connect(bench.address).ok()).collect();
    for stream in &mut idle {
        stream.write_all(b"POST /v1/li").unwrap();
    }
    // The answer comes while all of them are still held at this end.
    let began = std::time::Instant::now();
    assert_eq!(bench.batch("listjobs", &json!({"jobQueue": QUEUE})), Ok(json!({"jobSummaryList": []})));
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    drop(idle);
}

#[test]
fn every_answer_has_a_number_of_its_own() {
    let bench = Bench::new();
    let ids: Vec<String> = (0..2)
        .map(|_| {
            let answer = bench.call("POST", "/v1/listjobs", "", None, b"{}");
            answer.header("x-amzn-requestid").unwrap().to_owned()
        })
        .collect();
    assert!(uuid::Uuid::try_parse(&ids[0]).is_ok());
    assert_ne!(ids[0], ids[1]);
}
