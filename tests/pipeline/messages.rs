//! Every sample message of the queues is read as what it is, and so is every line of the sample backlog.

use osprey_model::event::BatchEvent;
use osprey_model::message::{Action, Message, parse};
use osprey_model::reason::ReasonCode;
use serde_json::Value;

type Checked = Result<(), Box<dyn std::error::Error>>;

fn read(name: &str) -> Result<String, Box<dyn std::error::Error>> {
    Ok(std::fs::read_to_string(osprey_tests::root().join("events").join(name))?)
}

/// The records of a Lambda event of SQS.
fn records(name: &str) -> Result<Vec<Value>, Box<dyn std::error::Error>> {
    let event: Value = serde_json::from_str(&read(name)?)?;
    Ok(event.get("Records").and_then(Value::as_array).ok_or(format!("{name} has no records"))?.clone())
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn bodies(name: &str) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    Ok(records(name)?.iter().map(|record| text(record, "/body").to_owned()).collect())
}

/// What a body is: `submit`, `action`, or the code of why it is neither, with `!` when it is malformed.
fn kind(body: &str) -> String {
    match parse(body) {
        Ok(Message::Submit(_)) => "submit".to_owned(),
        Ok(Message::Action(_)) => "action".to_owned(),
        Err(rejection) if rejection.malformed => format!("{:?}!", rejection.code),
        Err(rejection) => format!("{:?}", rejection.code),
    }
}

#[test]
fn submissions_are_read_one_by_one() -> Checked {
    for (name, want) in [
        ("sqs-submit-job.json", &["submit"][..]),
        ("sqs-submit-job-without-id.json", &["submit"]),
        ("sqs-submit-job-poison.json", &["submit", "NotJson!", "submit"]),
        ("sqs-submit-job-unknown-member.json", &["UnknownMember"]),
        ("sqs-dead-letter.json", &["NotJson!"]),
    ] {
        let found: Vec<String> = bodies(name)?.iter().map(|body| kind(body)).collect();
        assert_eq!(found, want, "{name}");
    }
    Ok(())
}

#[test]
fn actions_are_read() -> Checked {
    for (name, want) in [
        ("sqs-cancel-job.json", "CancelJob"),
        ("sqs-requeue-job.json", "RequeueJob"),
        ("sqs-hold-job.json", "HoldJob"),
        ("sqs-release-job.json", "ReleaseJob"),
    ] {
        for body in bodies(name)? {
            let action = parse(&body).map_err(|rejection| format!("{name}: {rejection}"))?;
            let found = match action {
                Message::Action(Action::CancelJob { .. }) => "CancelJob",
                Message::Action(Action::RequeueJob { .. }) => "RequeueJob",
                Message::Action(Action::HoldJob { .. }) => "HoldJob",
                Message::Action(Action::ReleaseJob { .. }) => "ReleaseJob",
                _ => "something else",
            };
            assert_eq!(found, want, "{name}");
        }
    }
    Ok(())
}

#[test]
fn the_internal_queue_refers_and_asserts_nothing() -> Checked {
    for body in bodies("sqs-internal-dispatch.json")? {
        let body: Value = serde_json::from_str(&body)?;
        assert_eq!(text(&body, "/internal"), "dispatch");
        assert_eq!(body.as_object().map(|members| members.len()), Some(2));
    }
    Ok(())
}

#[test]
fn an_event_comes_as_the_body_of_a_message() -> Checked {
    for (name, original) in [
        ("sqs-batch-event.json", "batch-failed-spot-ec2.json"),
        ("sqs-dead-letter-event.json", "batch-failed-exit-1.json"),
    ] {
        let original: BatchEvent = serde_json::from_str(&read(original)?)?;
        for body in bodies(name)? {
            assert_eq!(serde_json::from_str::<BatchEvent>(&body)?, original, "{name}");
        }
    }
    Ok(())
}

#[test]
fn dead_letters_say_where_they_come_from() -> Checked {
    for (name, source) in
        [("sqs-dead-letter.json", "osprey-submissions"), ("sqs-dead-letter-event.json", "osprey-events")]
    {
        for record in records(name)? {
            let from = text(&record, "/attributes/DeadLetterQueueSourceArn");
            assert!(from.ends_with(&format!(":{source}")), "{name}: {from}");
            assert_eq!(text(&record, "/eventSourceARN"), format!("{from}-dead"), "{name}");
        }
    }
    Ok(())
}

#[test]
fn the_schedule_says_nothing_but_the_time() -> Checked {
    let event: Value = serde_json::from_str(&read("scheduler-watch.json")?)?;
    assert_eq!((text(&event, "/source"), text(&event, "/detail")), ("aws.scheduler", "{}"));
    text(&event, "/time").parse::<jiff::Timestamp>()?;
    Ok(())
}

#[test]
fn lines_of_the_backlog_are_requests_but_for_the_cut_off_and_the_misspelt_one() -> Checked {
    let backlog = read("backlog.jsonl")?;
    let mut others: Vec<String> = backlog.lines().map(kind).filter(|kind| kind != "submit").collect();
    others.sort();
    let names = [ReasonCode::InvalidJobName, ReasonCode::UnknownMember].map(|code| format!("{code:?}"));
    assert!(others == ["NotJson!", "UnknownMember"] || others == [&names[0], "NotJson!", &names[1]], "{others:?}");
    Ok(())
}
