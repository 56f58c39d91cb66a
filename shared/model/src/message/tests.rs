//! What is refused, with its exact sentence; and that what is taken loses nothing.

use super::*;

const SKELETON: &str = include_str!("../../testdata/submit-job-skeleton.json");

fn submitted(body: &str) -> SubmitJobRequest {
    match parse(body) {
        Ok(Message::Submit(request)) => *request,
        other => panic!("{other:?}"),
    }
}

fn refused(body: &str) -> String {
    let rejection = parse(body).unwrap_err();
    assert!(!rejection.malformed, "{rejection}");
    rejection.to_string()
}

fn malformed(body: &str) -> String {
    let rejection = parse(body).unwrap_err();
    assert!(rejection.malformed, "{rejection}");
    rejection.to_string()
}

/// A job with one more member.
fn job(member: &str) -> String {
    format!(r#"{{"jobName":"a","jobDefinition":"b",{member}}}"#)
}

#[test]
fn the_published_skeleton_is_accepted_and_comes_back_without_loss() {
    let request = submitted(SKELETON);
    let before: Value = serde_json::from_str(SKELETON).unwrap();
    assert_eq!(serde_json::to_value(&request).unwrap(), before);
    assert_eq!(submitted(&serde_json::to_string(&request).unwrap()), request);
}

#[test]
fn the_smallest_request_has_a_name_and_a_definition() {
    let request = submitted(r#"{"jobName":"a","jobDefinition":"b"}"#);
    assert_eq!(serde_json::to_string(&request).unwrap(), r#"{"jobName":"a","jobDefinition":"b"}"#);
}

#[test]
fn null_is_absent_as_in_the_api() {
    assert_eq!(submitted(&job(r#""tags":null"#)).tags, None);
    assert_eq!(refused(r#"{"jobName":null,"jobDefinition":"b"}"#), "`jobName` is missing (MissingMember)");
}

#[test]
fn what_is_no_object_is_malformed() {
    for (sentence, body, want) in [
        ("nothing", "", "the body is not JSON: it is empty (NotJson)"),
        (
            "half an object",
            r#"{"jobName":"#,
            "the body is not JSON: it ends where a value should follow, at character 11 (NotJson)",
        ),
        ("text", "run my job", "the body is not JSON: a value is wanted, at character 1 (NotJson)"),
        ("two bodies", "{} {}", "the body is not JSON: something follows the end, at character 4 (NotJson)"),
        ("a list", "[]", "the body must be a JSON object; a list was given (NotAnObject)"),
        ("a number", "7", "the body must be a JSON object; a number was given (NotAnObject)"),
        ("a text", r#""job""#, "the body must be a JSON object; a text was given (NotAnObject)"),
        ("null", "null", "the body must be a JSON object; null was given (NotAnObject)"),
        ("a flag", "true", "the body must be a JSON object; true or false was given (NotAnObject)"),
        (
            "a number out of range",
            r#"{"a":1e999}"#,
            "the body is not JSON: a number is out of range, at character 10 (NotJson)",
        ),
        (
            "a raw line break inside a text",
            "{\"jobName\":\"a\nb\"}",
            "the body is not JSON: a text holds a line end or control character, at line 2, character 1 (NotJson)",
        ),
        (
            "a raw control character",
            "{\"jobName\":\"a\u{1}\"}",
            "the body holds the character U+0001 at byte 13, which a queue cannot carry; write it as \\u0001 inside a JSON text (NotText)",
        ),
    ] {
        assert_eq!(malformed(body), want, "{sentence}");
    }
}

#[test]
fn nesting_beyond_the_reader_is_malformed() {
    let body = job(&format!(r#""x":{}{}"#, "[".repeat(5_000), "]".repeat(5_000)));
    assert_eq!(malformed(&body), "the body is not JSON: it is nested too deeply, at character 166 (NotJson)");
}

#[test]
fn bytes_that_are_no_text_are_malformed() {
    let rejection = parse_bytes(b"{\"jobName\":\"\xff\"}").unwrap_err();
    assert!(rejection.malformed);
    assert_eq!(
        rejection.to_string(),
        "the body is not UTF-8: byte 12 begins no character; send JSON as UTF-8 (NotText)"
    );
    assert_eq!(parse_bytes(SKELETON.as_bytes()), parse(SKELETON));
}

#[test]
fn a_body_above_a_mebibyte_is_refused_and_one_at_it_is_read() {
    let frame = job(r#""x":"""#).len();
    let at = job(&format!(r#""x":"{}""#, "a".repeat(MESSAGE_BYTES_MAX - frame)));
    assert_eq!(at.len(), MESSAGE_BYTES_MAX);
    assert_eq!(parse(&at).unwrap_err().code, ReasonCode::UnknownMember);
    assert_eq!(
        refused(&format!("{at} ")),
        "a message takes at most 1048576 bytes; 1048577 were given (RequestTooLarge)"
    );
}

#[test]
fn every_fault_of_shape_names_its_path() {
    for (sentence, member, want) in [
        (
            "an unknown member near a known one",
            r#""containerOverrides":{"enviroment":[]}"#,
            "`containerOverrides.enviroment` is not a member of a `SubmitJob` request; did you mean `containerOverrides.environment`? (UnknownMember)",
        ),
        (
            "another letter case",
            r#""JobQueue":"q""#,
            "`JobQueue` is not a member of a `SubmitJob` request; did you mean `jobQueue`? (UnknownMember)",
        ),
        (
            "a member at the wrong level",
            r#""environment":[]"#,
            "`environment` is not a member of a `SubmitJob` request; did you mean `containerOverrides.environment`? (UnknownMember)",
        ),
        (
            "a member like nothing known",
            r#""arrayProperties":{"colour":1}"#,
            "`arrayProperties.colour` is not a member of a `SubmitJob` request; known here: `size` (UnknownMember)",
        ),
        (
            "a number where Batch wants text",
            r#""containerOverrides":{"resourceRequirements":[{"value":8,"type":"GPU"}]}"#,
            "`containerOverrides.resourceRequirements[0].value` must be text such as \"8\"; the number 8 was given (WrongType)",
        ),
        (
            "text where Batch wants a number",
            r#""arrayProperties":{"size":"10"}"#,
            "`arrayProperties.size` must be a whole number such as 10; the text `10` was given (WrongType)",
        ),
        (
            "a fraction",
            r#""timeout":{"attemptDurationSeconds":1.5}"#,
            "`timeout.attemptDurationSeconds` must be a whole number such as 3600; the number 1.5 was given (WrongType)",
        ),
        (
            "a number beyond 64 bits",
            r#""timeout":{"attemptDurationSeconds":18446744073709551615}"#,
            "`timeout.attemptDurationSeconds` must be a whole number such as 3600; the number 18446744073709551615 was given (WrongType)",
        ),
        (
            "a command as one text",
            r#""containerOverrides":{"command":"python3 train.py"}"#,
            "`containerOverrides.command` must be a list, each element text such as \"python3\"; the text `python3 train.py` was given (WrongType)",
        ),
        (
            "a flag as text",
            r#""propagateTags":"yes""#,
            "`propagateTags` must be true or false; the text `yes` was given (WrongType)",
        ),
        (
            "a tag as a number",
            r#""tags":{"retries":3}"#,
            "`tags.retries` must be text; the number 3 was given (WrongType)",
        ),
        (
            "tags as a list",
            r#""tags":["team"]"#,
            "`tags` must be an object whose values are texts; a list was given (WrongType)",
        ),
        (
            "an object as null in a list",
            r#""dependsOn":[null]"#,
            "`dependsOn[0]` must be an object; null was given (WrongType)",
        ),
        (
            "a missing member of a member",
            r#""retryStrategy":{"evaluateOnExit":[{"onExitCode":"1"}]}"#,
            "`retryStrategy.evaluateOnExit[0].action` is missing (MissingMember)",
        ),
        (
            "a tag given twice",
            r#""tags":{"team":"a","team":"b"}"#,
            "`tags.team` is given twice; keep one (DuplicateMember)",
        ),
        (
            "a null character",
            r#""containerOverrides":{"command":["a\u0000b"]}"#,
            "`containerOverrides.command[0]` holds the null character, which neither a command nor a variable nor a tag can carry; take it out (InvalidText)",
        ),
    ] {
        assert_eq!(refused(&job(member)), want, "{sentence}");
    }
}

#[test]
fn all_faults_are_told_at_once() {
    let body = r#"{"jobname":"a","tags":{"n":1},"timeout":{"attemptDurationSeconds":"4h"}}"#;
    assert_eq!(
        refused(body),
        "`jobname` is not a member of a `SubmitJob` request; did you mean `jobName`?; \
         `tags.n` must be text; the number 1 was given; \
         `timeout.attemptDurationSeconds` must be a whole number such as 3600; the text `4h` was given; \
         `jobName` is missing; `jobDefinition` is missing (UnknownMember)"
    );
}

#[test]
fn faults_beyond_the_limit_are_counted() {
    let members: Vec<String> = (0..shape::FAULTS_MAX + 3).map(|n| format!(r#""x{n}":0"#)).collect();
    let message = refused(&job(&members.join(",")));
    assert_eq!(message.matches("is not a member").count(), shape::FAULTS_MAX);
    assert!(message.ends_with("; and 3 more (UnknownMember)"), "{message}");
}

#[test]
fn line_breaks_and_tabs_belong_into_commands() {
    let body = job(r#""containerOverrides":{"command":["sh","-c","a\n\tb"]}"#);
    let request = submitted(&body);
    assert_eq!(request.container_overrides.unwrap().command.unwrap()[2], "a\n\tb");
}

const ID: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";

#[test]
fn actions_go_in_and_out() {
    for body in [
        r#"{"action":"CancelJob","jobId":"ID","reason":"too dear"}"#,
        r#"{"action":"RequeueJob","jobId":"ID"}"#,
        r#"{"action":"RequeueJob","jobId":"ID","reason":"node was bad"}"#,
        r#"{"action":"HoldJob","jobId":"ID","reason":"wait for data"}"#,
        r#"{"action":"ReleaseJob","jobId":"ID"}"#,
        r#"{"action":"PreemptJob","jobId":"ID","reason":"the demo is at ten"}"#,
        r#"{"action":"ReportCheckpoint","jobId":"ID","uri":"s3://b/step-500","progress":40}"#,
        r#"{"action":"ReportCheckpoint","jobId":"ID","uri":"s3://b/step-500"}"#,
        r#"{"action":"SetMode","pool":"main","mode":"held","preemption":false}"#,
        r#"{"action":"TopJob","jobId":"6ba7b810-9dad-41d1-80b4-00c04fd430c8"}"#,
        r#"{"action":"ReportPriority","jobId":"6ba7b810-9dad-41d1-80b4-00c04fd430c8","points":-50,"reason":"r"}"#,
        r#"{"action":"DrainPool","pool":"main","tier":"spare","reason":"r"}"#,
        r#"{"action":"ResumePool","pool":"main"}"#,
        r#"{"action":"Reserve","pool":"main","team":"search","gpus":8,"until":"2030-01-31T18:00:00Z"}"#,
        r#"{"action":"Reserve","pool":"main","team":"search","gpus":0}"#,
        r#"{"action":"SetMode","pool":"main","preemption":true}"#,
        r#"{"action":"RedriveDeadLetter","deadLetterId":"dl-7"}"#,
        r#"{"action":"DiscardDeadLetter","deadLetterId":"dl-7","reason":"known"}"#,
    ] {
        let body = body.replace("ID\"", &format!("{ID}\""));
        match parse(&body) {
            Ok(Message::Action(action)) => assert_eq!(serde_json::to_string(&action).unwrap(), body),
            other => panic!("{body}: {other:?}"),
        }
    }
}

#[test]
fn actions_that_say_something_wrong_are_refused() {
    for (body, want) in [
        (
            r#"{"action":"CanselJob","jobId":""}"#,
            "there is no action `CanselJob`; did you mean `CancelJob`? (UnknownAction)",
        ),
        (
            r#"{"action":"Explode"}"#,
            "there is no action `Explode`; known are `CancelJob`, `RequeueJob`, `HoldJob`, `ReleaseJob`, `PreemptJob`, `ReportCheckpoint`, `TopJob`, `ReportPriority`, `DrainPool`, `ResumePool`, `Reserve`, `ApplyPolicy`, `SetMode`, `RedriveDeadLetter` or `DiscardDeadLetter` (UnknownAction)",
        ),
        (r#"{"action":"CancelJob","reason":"x"}"#, "`jobId` is missing (MissingMember)"),
        (
            r#"{"action":"SetMode","pool":"main"}"#,
            "`SetMode` sets nothing; give it `mode`, `preemption` or both (MissingMember)",
        ),
        (
            r#"{"action":"ReportCheckpoint","jobId":"6ba7b810-9dad-41d1-80b4-00c04fd430c8","uri":" "}"#,
            "`uri` must be the address of a checkpoint, such as \"s3://bucket/run/step-500\" (InvalidText)",
        ),
        (
            r#"{"action":"ReportCheckpoint","jobId":"6ba7b810-9dad-41d1-80b4-00c04fd430c8","uri":"s3://b","progress":101}"#,
            "`progress` is 101 where 0 to 100 percent are allowed (WrongType)",
        ),
        (
            r#"{"action":"ReportPriority","jobId":"6ba7b810-9dad-41d1-80b4-00c04fd430c8","points":10000}"#,
            "`points` is 10000 where -9999 to 9999 are allowed (WrongType)",
        ),
        (
            r#"{"action":"Reserve","pool":"main","team":"search","gpus":-1}"#,
            "`gpus` is -1 where 0 to 1000000 are allowed; 0 ends what was kept (WrongType)",
        ),
        (
            r#"{"action":"Reserve","pool":"main","team":"search","gpus":8}"#,
            "`Reserve` needs `until`, the time at which it ends, such as \"2030-01-31T18:00:00Z\" (MissingMember)",
        ),
        (
            r#"{"action":"Reserve","pool":"main","team":"search","gpus":8,"until":"tomorrow"}"#,
            "`until` is `tomorrow` where a time such as \"2030-01-31T18:00:00Z\" is wanted (InvalidText)",
        ),
        (
            r#"{"action":"Reserve","pool":"main","team":" ","gpus":0}"#,
            "`team` must be the name of a team, of at most 256 bytes (InvalidText)",
        ),
        (
            r#"{"action":"HoldJob","jobId":"job-1"}"#,
            "`jobId` must be a UUID such as `6ba7b810-9dad-41d1-80b4-00c04fd430c8`; `job-1` was given (InvalidJobId)",
        ),
        (
            r#"{"action":"ReleaseJob","jobID":"x"}"#,
            "`jobID` is not a member of this action; did you mean `jobId`?; `jobId` is missing (UnknownMember)",
        ),
        (
            r#"{"action":"RedriveDeadLetter","deadLetterId":7}"#,
            "`deadLetterId` must be text such as \"dl-1\"; the number 7 was given (WrongType)",
        ),
    ] {
        assert_eq!(refused(body), want);
    }
    assert!(refused(r#"{"action":7}"#).starts_with("there is no action `7`; known are"));
}

#[test]
fn a_reason_longer_than_batch_takes_is_refused_at_the_door() {
    let body = |chars: usize| {
        let reason = "a".repeat(chars);
        format!(r#"{{"action":"CancelJob","jobId":"6ba7b810-9dad-41d1-80b4-00c04fd430c8","reason":"{reason}"}}"#)
    };
    assert!(parse(&body(1024)).is_ok());
    let rejection = parse(&body(1025)).unwrap_err();
    assert_eq!(rejection.message, "`reason` has 1025 characters where 1024 are allowed; shorten it");
    assert!(!rejection.malformed);
}
