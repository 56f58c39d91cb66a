"""SQS's operations, each well and badly, seen through boto3. A name is `Operation: what`."""

import hashlib
import json

from harness import ACCOUNT, ENDPOINT, REGION, bad, check, client, good, loose_sqs, sqs, until

GONE = sqs.exceptions.QueueDoesNotExist
NONE = f"{ENDPOINT}/{ACCOUNT}/none"
MINE, DEAD = f"{ENDPOINT}/{ACCOUNT}/mine", f"{ENDPOINT}/{ACCOUNT}/dead"
MINE_ARN, DEAD_ARN = f"arn:aws:sqs:{REGION}:{ACCOUNT}:mine", f"arn:aws:sqs:{REGION}:{ACCOUNT}:dead"
REDRIVE = json.dumps({"deadLetterTargetArn": DEAD_ARN, "maxReceiveCount": 2})
kept = {}


def receive(url=MINE, **more):
    return sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, **more).get("Messages", [])


good("CreateQueue: one for dead letters", lambda: sqs.create_queue(QueueName="dead"), lambda r: r["QueueUrl"] == DEAD)
good("CreateQueue: one with attributes",
     lambda: sqs.create_queue(QueueName="mine", Attributes={"VisibilityTimeout": "60", "RedrivePolicy": REDRIVE}),
     lambda r: r["QueueUrl"] == MINE)
good("CreateQueue: the same again", lambda: sqs.create_queue(QueueName="mine", Attributes={"VisibilityTimeout": "60"}))
bad("CreateQueue: with another value", lambda: sqs.create_queue(QueueName="mine", Attributes={"VisibilityTimeout": "61"}),
    "QueueAlreadyExists", "different value for attribute VisibilityTimeout", kind=sqs.exceptions.QueueNameExists)
bad("CreateQueue: a name with a space", lambda: sqs.create_queue(QueueName="a b"), "InvalidParameterValue", "alphanumeric")
bad("CreateQueue: FIFO", lambda: sqs.create_queue(QueueName="a.fifo", Attributes={"FifoQueue": "true"}),
    "AWS.SimpleQueueService.UnsupportedOperation", "FIFO", kind=sqs.exceptions.UnsupportedOperation)
bad("CreateQueue: an attribute that is none", lambda: sqs.create_queue(QueueName="x", Attributes={"Colour": "red"}),
    "InvalidAttributeName", "Unknown Attribute Colour.", kind=sqs.exceptions.InvalidAttributeName)
bad("CreateQueue: a value out of range", lambda: sqs.create_queue(QueueName="x", Attributes={"DelaySeconds": "901"}),
    "InvalidAttributeValue", "DelaySeconds", kind=sqs.exceptions.InvalidAttributeValue)
bad("CreateQueue: dead letters that are nowhere",
    lambda: sqs.create_queue(QueueName="x", Attributes={"RedrivePolicy": REDRIVE.replace(":dead", ":nowhere")}),
    "InvalidParameterValue", "Dead letter target does not exist.")
good("GetQueueUrl: the submissions", lambda: sqs.get_queue_url(QueueName="osprey-submissions"),
     lambda r: r["QueueUrl"] == f"{ENDPOINT}/{ACCOUNT}/osprey-submissions")
bad("GetQueueUrl: an unknown queue", lambda: sqs.get_queue_url(QueueName="none"),
    "AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.", kind=GONE)
good("ListQueues: by prefix", lambda: sqs.list_queues(QueueNamePrefix="osprey-"), lambda r: len(r["QueueUrls"]) == 8)


@check("ListQueues: boto3's paginator sees each once")
def every_queue_once():
    urls = [url for page in sqs.get_paginator("list_queues").paginate(PaginationConfig={"PageSize": 3}) for url in page["QueueUrls"]]
    assert len(urls) == len(set(urls)) and {MINE, DEAD} <= set(urls), urls


good("GetQueueAttributes: all", lambda: sqs.get_queue_attributes(QueueUrl=MINE, AttributeNames=["All"]),
     lambda r: (r["Attributes"]["QueueArn"], r["Attributes"]["VisibilityTimeout"], r["Attributes"]["RedrivePolicy"]) == (MINE_ARN, "60", REDRIVE))
good("GetQueueAttributes: the submissions have dead letters",
     lambda: sqs.get_queue_attributes(QueueUrl=f"{ENDPOINT}/{ACCOUNT}/osprey-submissions", AttributeNames=["RedrivePolicy"]),
     lambda r: json.loads(r["Attributes"]["RedrivePolicy"])["maxReceiveCount"] == 5)
bad("GetQueueAttributes: an unknown queue", lambda: sqs.get_queue_attributes(QueueUrl=NONE, AttributeNames=["All"]),
    "AWS.SimpleQueueService.NonExistentQueue", kind=GONE)
bad("GetQueueAttributes: an attribute that is none", lambda: sqs.get_queue_attributes(QueueUrl=MINE, AttributeNames=["Colour"]),
    "InvalidAttributeName", kind=sqs.exceptions.InvalidAttributeName)
good("SetQueueAttributes: another time-out", lambda: sqs.set_queue_attributes(QueueUrl=MINE, Attributes={"VisibilityTimeout": "120"}))
bad("SetQueueAttributes: a queue of the pipeline",
    lambda: sqs.set_queue_attributes(QueueUrl=f"{ENDPOINT}/{ACCOUNT}/osprey-submissions", Attributes={"DelaySeconds": "1"}),
    "AWS.SimpleQueueService.UnsupportedOperation")

ATTRIBUTES = {"kind": {"DataType": "String", "StringValue": "x"}, "raw": {"DataType": "Binary", "BinaryValue": b"\x00\x01\x02"},
              "size": {"DataType": "Number.int", "StringValue": "42"}}


def sent(answer):
    kept["sent"] = answer
    return answer["MD5OfMessageBody"] == hashlib.md5("héllo".encode()).hexdigest()


good("SendMessage: with attributes",
     lambda: sqs.send_message(QueueUrl=MINE, MessageBody="héllo", MessageAttributes=ATTRIBUTES, MessageGroupId="team"), sent)


@check("ReceiveMessage: as it was sent")
def received():
    (message,) = receive(MessageAttributeNames=["All"], AttributeNames=["All"])
    kept["received"] = message
    sent = kept["sent"]
    assert message["Body"] == "héllo" and message["MessageId"] == sent["MessageId"], message
    assert message["MD5OfBody"] == sent["MD5OfMessageBody"] and message["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    assert message["MessageAttributes"] == ATTRIBUTES, message
    system = message["Attributes"]
    assert system["ApproximateReceiveCount"] == "1" and system["MessageGroupId"] == "team" and ":" in system["SenderId"], system


good("ReceiveMessage: hidden while in flight", lambda: sqs.receive_message(QueueUrl=MINE), lambda r: "Messages" not in r)
good("ChangeMessageVisibility: shown at once",
     lambda: sqs.change_message_visibility(QueueUrl=MINE, ReceiptHandle=kept["received"]["ReceiptHandle"], VisibilityTimeout=0))
bad("ChangeMessageVisibility: not in flight any more",
    lambda: sqs.change_message_visibility(QueueUrl=MINE, ReceiptHandle=kept["received"]["ReceiptHandle"], VisibilityTimeout=1),
    "AWS.SimpleQueueService.MessageNotInflight", kind=sqs.exceptions.MessageNotInflight)
bad("ChangeMessageVisibility: over twelve hours",
    lambda: sqs.change_message_visibility(QueueUrl=MINE, ReceiptHandle=kept["received"]["ReceiptHandle"], VisibilityTimeout=43_201),
    "InvalidParameterValue", "43201")


@check("DeleteMessage: a stale receipt deletes nothing, the newest does")
def deleted():
    (message,) = receive()
    sqs.delete_message(QueueUrl=MINE, ReceiptHandle=kept["received"]["ReceiptHandle"])
    counts = sqs.get_queue_attributes(QueueUrl=MINE, AttributeNames=["ApproximateNumberOfMessagesNotVisible"])["Attributes"]
    assert counts == {"ApproximateNumberOfMessagesNotVisible": "1"}, counts
    sqs.delete_message(QueueUrl=MINE, ReceiptHandle=message["ReceiptHandle"])
    assert sqs.get_queue_attributes(QueueUrl=MINE, AttributeNames=["ApproximateNumberOfMessagesNotVisible"])["Attributes"] == {"ApproximateNumberOfMessagesNotVisible": "0"}


bad("DeleteMessage: no receipt", lambda: sqs.delete_message(QueueUrl=MINE, ReceiptHandle="x"), "ReceiptHandleIsInvalid",
    'The input receipt handle "x" is not a valid receipt handle.', kind=sqs.exceptions.ReceiptHandleIsInvalid)
for what, more, code, message in [
    ("without a text", {"MessageBody": ""}, "MissingParameter", "MessageBody"),
    ("a character that no queue takes", {"MessageBody": "\x01"}, "InvalidMessageContents", "Invalid characters found"),
    ("over 1 MiB", {"MessageBody": "x" * 1_048_577}, "InvalidParameterValue", "Message must be shorter than 1048576 bytes."),
    ("a delay over 15 minutes", {"MessageBody": "x", "DelaySeconds": 901}, "InvalidParameterValue", "DelaySeconds must be >= 0 and <= 900."),
    ("a deduplication id", {"MessageBody": "x", "MessageDeduplicationId": "x"}, "InvalidParameterValue", "MessageDeduplicationId"),
    ("an attribute without a value", {"MessageBody": "x", "MessageAttributes": {"a": {"DataType": "String"}}}, "InvalidParameterValue", "'a'"),
    ("an attribute of no type", {"MessageBody": "x", "MessageAttributes": {"a": {"DataType": "Colour", "StringValue": "x"}}}, "InvalidParameterValue", "type"),
    ("11 attributes", {"MessageBody": "x", "MessageAttributes": {str(n): {"DataType": "String", "StringValue": "x"} for n in range(11)}}, "InvalidParameterValue", "[10]"),
]:
    bad(f"SendMessage: {what}", lambda more=more: sqs.send_message(QueueUrl=MINE, **more), code, message)
bad("SendMessage: to an unknown queue", lambda: sqs.send_message(QueueUrl=NONE, MessageBody="x"), "AWS.SimpleQueueService.NonExistentQueue", kind=GONE)
bad("SendMessage: a number as text", lambda: loose_sqs.send_message(QueueUrl=MINE, MessageBody=7), "Serialization", "NUMBER_VALUE")
bad("SendMessage: without a queue", lambda: loose_sqs.send_message(MessageBody="x"), "MissingParameter", "QueueUrl")
bad("ReceiveMessage: eleven messages", lambda: sqs.receive_message(QueueUrl=MINE, MaxNumberOfMessages=11), "InvalidParameterValue", "Must be between 1 and 10")
bad("ReceiveMessage: a wait of 21 seconds", lambda: sqs.receive_message(QueueUrl=MINE, WaitTimeSeconds=21), "InvalidParameterValue", "<= 20")
bad("ReceiveMessage: from an unknown queue", lambda: sqs.receive_message(QueueUrl=NONE), "AWS.SimpleQueueService.NonExistentQueue", kind=GONE)


def entries(*bodies, **more):
    return [{"Id": str(n), "MessageBody": body, **more} for n, body in enumerate(bodies)]


good("SendMessageBatch: one of three fails",
     lambda: sqs.send_message_batch(QueueUrl=MINE, Entries=entries("a", "b") + [{"Id": "late", "MessageBody": "c", "DelaySeconds": 901}]),
     lambda r: ([e["Id"] for e in r["Successful"]], [(e["Id"], e["Code"], e["SenderFault"]) for e in r["Failed"]])
     == (["0", "1"], [("late", "InvalidParameterValue", True)]))
for what, given, code, kind in [
    ("no entry", [], "EmptyBatchRequest", sqs.exceptions.EmptyBatchRequest),
    ("eleven entries", entries(*"abcdefghijk"), "TooManyEntriesInBatchRequest", sqs.exceptions.TooManyEntriesInBatchRequest),
    ("an id twice", entries("a") * 2, "BatchEntryIdsNotDistinct", sqs.exceptions.BatchEntryIdsNotDistinct),
    ("an id with a space", [{"Id": "a b", "MessageBody": "x"}], "InvalidBatchEntryId", sqs.exceptions.InvalidBatchEntryId),
    ("over 1 MiB", entries("x" * 600_000, "y" * 600_000), "BatchRequestTooLong", sqs.exceptions.BatchRequestTooLong),
]:
    bad(f"SendMessageBatch: {what}", lambda given=given: sqs.send_message_batch(QueueUrl=MINE, Entries=given),
        f"AWS.SimpleQueueService.{code}", kind=kind)


@check("ChangeMessageVisibilityBatch and DeleteMessageBatch: for each message")
def in_batches():
    messages = receive()
    assert sorted(m["Body"] for m in messages) == ["a", "b"], messages
    handles = [{"Id": str(n), "ReceiptHandle": m["ReceiptHandle"]} for n, m in enumerate(messages)] + [{"Id": "no", "ReceiptHandle": "x"}]
    answer = sqs.change_message_visibility_batch(QueueUrl=MINE, Entries=[{**h, "VisibilityTimeout": 300} for h in handles])
    assert ([e["Id"] for e in answer["Successful"]], [e["Code"] for e in answer["Failed"]]) == (["0", "1"], ["ReceiptHandleIsInvalid"]), answer
    answer = sqs.delete_message_batch(QueueUrl=MINE, Entries=handles)
    assert ([e["Id"] for e in answer["Successful"]], [e["Code"] for e in answer["Failed"]]) == (["0", "1"], ["ReceiptHandleIsInvalid"]), answer


@check("StartMessageMoveTask: from the dead letters back")
def redriven():
    sqs.send_message(QueueUrl=MINE, MessageBody="poison")
    for _ in range(2):
        assert receive(VisibilityTimeout=0), "it was to be received twice"
    assert receive() == []
    answer = sqs.get_queue_attributes(QueueUrl=DEAD, AttributeNames=["ApproximateNumberOfMessages"])
    assert answer["Attributes"] == {"ApproximateNumberOfMessages": "1"}, answer
    assert sqs.list_dead_letter_source_queues(QueueUrl=DEAD)["queueUrls"] == [MINE]
    assert sqs.start_message_move_task(SourceArn=DEAD_ARN)["TaskHandle"]
    (task,) = sqs.list_message_move_tasks(SourceArn=DEAD_ARN)["Results"]
    assert (task["Status"], task["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 1), task
    (message,) = until(receive)
    assert message["Body"] == "poison", message
    sqs.delete_message(QueueUrl=MINE, ReceiptHandle=message["ReceiptHandle"])


bad("StartMessageMoveTask: from a queue that is for no dead letters", lambda: sqs.start_message_move_task(SourceArn=MINE_ARN),
    "InvalidParameterValue", "Source queue must be configured as a Dead Letter Queue.")
bad("StartMessageMoveTask: from nowhere", lambda: sqs.start_message_move_task(SourceArn=MINE_ARN + "x"),
    "ResourceNotFoundException", "SourceArn", status=404, kind=sqs.exceptions.ResourceNotFoundException)
bad("ListMessageMoveTasks: eleven", lambda: sqs.list_message_move_tasks(SourceArn=DEAD_ARN, MaxResults=11), "InvalidParameterValue", "between 1 and 10")
bad("CancelMessageMoveTask: there is none under way", lambda: sqs.cancel_message_move_task(TaskHandle="x"),
    "ResourceNotFoundException", kind=sqs.exceptions.ResourceNotFoundException)
good("PurgeQueue: once", lambda: sqs.purge_queue(QueueUrl=MINE))
bad("PurgeQueue: and again", lambda: sqs.purge_queue(QueueUrl=MINE), "AWS.SimpleQueueService.PurgeQueueInProgress",
    kind=sqs.exceptions.PurgeQueueInProgress)
bad("TagQueue: not offered", lambda: sqs.tag_queue(QueueUrl=MINE, Tags={"a": "b"}), "AWS.SimpleQueueService.UnsupportedOperation")
bad("DeleteQueue: one of the pipeline", lambda: sqs.delete_queue(QueueUrl=f"{ENDPOINT}/{ACCOUNT}/osprey-events"),
    "AWS.SimpleQueueService.UnsupportedOperation", kind=sqs.exceptions.UnsupportedOperation)
bad("ListQueues: an unknown key", lambda: client("sqs", aws_access_key_id="AKIAIOSFODNN7EXAMPLE").list_queues(),
    "InvalidClientTokenId", "The security token included in the request is invalid.", status=403)
bad("ListQueues: a wrong secret", lambda: client("sqs", aws_secret_access_key="wrong").list_queues(),
    "SignatureDoesNotMatch", "The request signature we calculated does not match", status=403)
