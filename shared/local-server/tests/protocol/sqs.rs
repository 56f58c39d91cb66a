//! SQS's calls.

use std::time::{Duration, Instant};

use osprey_local::queues::operating_system_user;
use serde_json::{Value, json};

use crate::bench::Bench;

/// A queue of one's own, and its URL.
fn queue(bench: &Bench, name: &str, attributes: &Value) -> String {
    let answer = bench.sqs("CreateQueue", &json!({"QueueName": name, "Attributes": attributes})).unwrap();
    answer["QueueUrl"].as_str().unwrap().to_owned()
}

fn receive(bench: &Bench, url: &str, more: &Value) -> Vec<Value> {
    let mut body = json!({"QueueUrl": url, "MaxNumberOfMessages": 10});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    bench.sqs("ReceiveMessage", &body).unwrap()["Messages"].as_array().cloned().unwrap_or_default()
}

#[test]
fn a_message_comes_back_with_its_sum_its_sender_and_its_attributes() {
    let bench = Bench::new();
    let url = queue(&bench, "mine", &json!({}));
    let attributes = json!({"kind": {"DataType": "String", "StringValue": "x"}, "raw": {"DataType": "Binary", "BinaryValue": "AAEC"}});
    let sent = bench
        .sqs(
            "SendMessage",
            &json!({"QueueUrl": url, "MessageBody": "hello", "MessageAttributes": attributes, "MessageGroupId": "g"}),
        )
        .unwrap();
    assert_eq!(sent["MD5OfMessageBody"], json!("5d41402abc4b2a76b9719d911017c592"));
    let ask = json!({"MessageSystemAttributeNames": ["All"], "MessageAttributeNames": ["All"]});
    let [message] = receive(&bench, &url, &ask).try_into().unwrap();
    assert_eq!((&message["MessageId"], &message["Body"]), (&sent["MessageId"], &json!("hello")));
    assert_eq!(message["MD5OfBody"], sent["MD5OfMessageBody"]);
    assert_eq!(message["MD5OfMessageAttributes"], sent["MD5OfMessageAttributes"]);
    assert_eq!(message["MessageAttributes"], attributes);
    let system = &message["Attributes"];
    assert_eq!(system["SenderId"], json!(operating_system_user()));
    assert_eq!((&system["ApproximateReceiveCount"], &system["MessageGroupId"]), (&json!("1"), &json!("g")));
    assert_eq!(receive(&bench, &url, &json!({})), Vec::<Value>::new());
    let receipt = &message["ReceiptHandle"];
    assert_eq!(bench.sqs("DeleteMessage", &json!({"QueueUrl": url, "ReceiptHandle": receipt})), Ok(json!({})));
    let gone = bench
        .sqs("ChangeMessageVisibility", &json!({"QueueUrl": url, "ReceiptHandle": receipt, "VisibilityTimeout": 0}));
    assert!(gone.unwrap_err().starts_with("400 InvalidParameterValueException: Value "));
}

#[test]
fn a_message_sent_to_the_submissions_waits_for_the_pipeline() {
    let bench = Bench::new();
    let url = bench.sqs("GetQueueUrl", &json!({"QueueName": "osprey-submissions"})).unwrap()["QueueUrl"].clone();
    bench.sqs("SendMessage", &json!({"QueueUrl": url, "MessageBody": "{}"})).unwrap();
    let received = bench.world.queues().receive(osprey_ports::QueueKind::Submissions, 1, 30).unwrap();
    assert_eq!(
        (received[0].message.body.as_str(), received[0].message.sender.principal.clone()),
        ("{}", operating_system_user())
    );
}

#[test]
fn what_a_queue_would_not_take_is_refused_in_its_words() {
    let bench = Bench::new();
    let url = queue(&bench, "mine", &json!({}));
    let refused = |operation: &str, more: Value| {
        let mut body = json!({"QueueUrl": url});
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        bench.sqs(operation, &body).unwrap_err()
    };
    let cases = [
        (
            "SendMessage",
            json!({}),
            "400 MissingRequiredParameterException: The request must contain the parameter MessageBody.",
        ),
        (
            "SendMessage",
            json!({"MessageBody": ""}),
            "400 MissingRequiredParameterException: The request must contain the parameter MessageBody.",
        ),
        (
            "SendMessage",
            json!({"MessageBody": "x", "DelaySeconds": 901}),
            "400 InvalidParameterValueException: Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.",
        ),
        (
            "SendMessage",
            json!({"MessageBody": "x".repeat(1_048_577)}),
            "400 InvalidParameterValueException: One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes.",
        ),
        (
            "ReceiveMessage",
            json!({"MaxNumberOfMessages": 11}),
            "400 InvalidParameterValueException: Value 11 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided.",
        ),
        (
            "DeleteMessage",
            json!({"ReceiptHandle": "x"}),
            "400 ReceiptHandleIsInvalid: The input receipt handle \"x\" is not a valid receipt handle.",
        ),
        (
            "GetQueueAttributes",
            json!({"AttributeNames": ["Colour"]}),
            "400 InvalidAttributeName: Unknown Attribute Colour.",
        ),
        ("TagQueue", json!({}), "400 UnsupportedOperation: The local queues do not offer TagQueue"),
    ];
    for (operation, more, want) in cases {
        assert_eq!(refused(operation, more), want);
    }
    let illegal = refused("SendMessage", json!({"MessageBody": "\u{1}"}));
    assert!(illegal.starts_with("400 InvalidMessageContents: Invalid characters found."));
    let missing = bench.sqs("ReceiveMessage", &json!({"QueueUrl": "http://127.0.0.1/000000000000/none"}));
    assert_eq!(missing, Err("400 QueueDoesNotExist: The specified queue does not exist.".to_owned()));
    let unknown = bench.call("POST", "/", "", Some("AmazonSQS.Nothing"), b"{}");
    assert_eq!((unknown.status, unknown.header("x-amzn-query-error")), (400, Some("InvalidAction;Sender")));
}

#[test]
fn several_messages_are_sent_and_deleted_in_one_call() {
    let bench = Bench::new();
    let url = queue(&bench, "mine", &json!({}));
    let entries = json!([{"Id": "a", "MessageBody": "1"}, {"Id": "b", "MessageBody": "2", "DelaySeconds": 901}]);
    let answer = bench.sqs("SendMessageBatch", &json!({"QueueUrl": url, "Entries": entries})).unwrap();
    assert_eq!((&answer["Successful"][0]["Id"], &answer["Failed"][0]["Id"]), (&json!("a"), &json!("b")));
    assert_eq!(
        (&answer["Failed"][0]["Code"], &answer["Failed"][0]["SenderFault"]),
        (&json!("InvalidParameterValue"), &json!(true))
    );
    let [message] = receive(&bench, &url, &json!({})).try_into().unwrap();
    let entries = json!([{"Id": "a", "ReceiptHandle": message["ReceiptHandle"]}, {"Id": "b", "ReceiptHandle": "x"}]);
    let answer = bench.sqs("DeleteMessageBatch", &json!({"QueueUrl": url, "Entries": entries})).unwrap();
    assert_eq!(
        (&answer["Successful"], &answer["Failed"][0]["Code"]),
        (&json!([{"Id": "a"}]), &json!("ReceiptHandleIsInvalid"))
    );
    let refused =
        |entries: Value| bench.sqs("SendMessageBatch", &json!({"QueueUrl": url, "Entries": entries})).unwrap_err();
    assert!(
        refused(json!([]))
            .starts_with("400 EmptyBatchRequest: There should be at least one SendMessageBatchRequestEntry")
    );
    let twice = json!([{"Id": "a", "MessageBody": "1"}, {"Id": "a", "MessageBody": "2"}]);
    assert_eq!(refused(twice), "400 BatchEntryIdsNotDistinct: Id a repeated.");
    let eleven: Vec<Value> = (0..11).map(|n| json!({"Id": n.to_string(), "MessageBody": "1"})).collect();
    assert_eq!(
        refused(json!(eleven)),
        "400 TooManyEntriesInBatchRequest: Maximum number of entries per request are 10. You have sent 11."
    );
}

#[test]
fn a_message_that_is_received_too_often_is_redriven_from_the_dead_letters() {
    let bench = Bench::new();
    let dead = queue(&bench, "dead", &json!({}));
    let policy = "{\"deadLetterTargetArn\":\"arn:aws:sqs:us-east-1:000000000000:dead\",\"maxReceiveCount\":1}";
    let url = queue(&bench, "mine", &json!({"RedrivePolicy": policy, "VisibilityTimeout": "0"}));
    bench.sqs("SendMessage", &json!({"QueueUrl": url, "MessageBody": "poison"})).unwrap();
    assert_eq!(receive(&bench, &url, &json!({})).len(), 1);
    assert_eq!(receive(&bench, &url, &json!({})).len(), 0);
    let ask = json!({"AttributeNames": ["All"], "VisibilityTimeout": 0});
    let [message] = receive(&bench, &dead, &ask).try_into().unwrap();
    assert_eq!(message["Attributes"]["DeadLetterQueueSourceArn"], json!("arn:aws:sqs:us-east-1:000000000000:mine"));
    let sources = bench.sqs("ListDeadLetterSourceQueues", &json!({"QueueUrl": dead})).unwrap();
    assert_eq!(sources, json!({"queueUrls": [url]}));
    let source = json!({"SourceArn": "arn:aws:sqs:us-east-1:000000000000:dead"});
    assert!(bench.sqs("StartMessageMoveTask", &source).unwrap()["TaskHandle"].is_string());
    let tasks = bench.sqs("ListMessageMoveTasks", &source).unwrap();
    assert_eq!(
        (&tasks["Results"][0]["Status"], &tasks["Results"][0]["ApproximateNumberOfMessagesMoved"]),
        (&json!("COMPLETED"), &json!(1))
    );
    assert_eq!(receive(&bench, &url, &json!({})).len(), 1);
    let other = json!({"SourceArn": "arn:aws:sqs:us-east-1:000000000000:mine"});
    let want = "400 InvalidParameterValueException: Source queue must be configured as a Dead Letter Queue.";
    assert_eq!(bench.sqs("StartMessageMoveTask", &other), Err(want.to_owned()));
}

#[test]
fn attributes_are_those_of_sqs() {
    let bench = Bench::new();
    let url = queue(&bench, "mine", &json!({"DelaySeconds": "5"}));
    bench.sqs("SetQueueAttributes", &json!({"QueueUrl": url, "Attributes": {"VisibilityTimeout": "7"}})).unwrap();
    bench.sqs("SendMessage", &json!({"QueueUrl": url, "MessageBody": "1"})).unwrap();
    let answer = bench.sqs("GetQueueAttributes", &json!({"QueueUrl": url, "AttributeNames": ["All"]})).unwrap();
    let attributes = &answer["Attributes"];
    for (name, want) in [
        ("ApproximateNumberOfMessages", "0"),
        ("ApproximateNumberOfMessagesDelayed", "1"),
        ("DelaySeconds", "5"),
        ("VisibilityTimeout", "7"),
        ("MaximumMessageSize", "1048576"),
        ("MessageRetentionPeriod", "345600"),
        ("QueueArn", "arn:aws:sqs:us-east-1:000000000000:mine"),
    ] {
        assert_eq!(attributes[name], json!(want), "{name}");
    }
    let again =
        bench.sqs("CreateQueue", &json!({"QueueName": "mine", "Attributes": {"DelaySeconds": "6"}})).unwrap_err();
    assert_eq!(
        again,
        "400 QueueNameExists: A queue already exists with the same name and a different value for attribute DelaySeconds"
    );
    bench.sqs("PurgeQueue", &json!({"QueueUrl": url})).unwrap();
    assert!(bench.sqs("PurgeQueue", &json!({"QueueUrl": url})).unwrap_err().starts_with("400 PurgeQueueInProgress"));
    bench.sqs("DeleteQueue", &json!({"QueueUrl": url})).unwrap();
    assert!(bench.sqs("PurgeQueue", &json!({"QueueUrl": url})).unwrap_err().starts_with("400 QueueDoesNotExist"));
}

#[test]
fn whoever_waits_for_a_message_gets_it_when_it_comes() {
    let bench = Bench::new();
    let url = queue(&bench, "mine", &json!({}));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| receive(&bench, &url, &json!({"WaitTimeSeconds": 20})).len());
        std::thread::sleep(Duration::from_millis(300));
        bench.sqs("SendMessage", &json!({"QueueUrl": url, "MessageBody": "1"})).unwrap();
        assert_eq!(waiting.join().unwrap(), 1);
    });
}

#[test]
fn a_server_that_stops_keeps_nobody_waiting() {
    let mut bench = Bench::new();
    let url = queue(&bench, "mine", &json!({}));
    let body = json!({"QueueUrl": url, "WaitTimeSeconds": 20}).to_string();
    let head = bench.head("POST", "/", "", Some("AmazonSQS.ReceiveMessage"), body.as_bytes());
    let mut stream = std::net::TcpStream::connect(bench.address).unwrap();
    std::io::Write::write_all(&mut stream, format!("{head}{body}").as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let began = Instant::now();
    bench.stop();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}
