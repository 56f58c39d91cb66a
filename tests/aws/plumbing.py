"""The harness itself: calls go through the proxies to the local Batch, its events come back by the rule, faults are faults."""

import json
import time

from botocore.exceptions import BotoCoreError, ClientError

from checks import check
from stack import until

RESOURCES = [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "512"}]


def by_proxy(stack):
    """A client as a function has it: the emulator's credentials, the proxy's address, and no try again."""
    return stack.client("batch", stack.batch_proxy, "000000000000", "test", tries=1)


def submit(client, name):
    return client.submit_job(
        jobName=name, jobQueue="osprey-local-production", jobDefinition="shell", shareIdentifier="production",
        schedulingPriorityOverride=7, containerOverrides={"command": ["true"], "resourceRequirements": RESOURCES},
        tags={"team": "search"},
    )  # fmt: skip


@check("a call reaches the local Batch, and its events come by the rule to the event queue", functions=False)
def there_and_back(stack):
    stack.enable("osprey-requeue", False)
    try:
        job = submit(by_proxy(stack), "plumbing")["jobId"]
        detail = stack.batch.describe_jobs(jobs=[job])["jobs"][0]
        assert detail["schedulingPriority"] == 7 and detail["tags"]["team"] == "search", detail
        seen = set()

        def succeeded():
            answer = stack.sqs.receive_message(QueueUrl=stack.outputs["EventsQueueUrl"], MaxNumberOfMessages=10, WaitTimeSeconds=1)
            for message in answer.get("Messages", []):
                event = json.loads(message["Body"])
                assert event["detail-type"] == "Batch Job State Change", event
                seen.add((event["detail"]["jobId"], event["detail"]["status"]))
            return (job, "SUCCEEDED") in seen

        until(succeeded)
    finally:
        stack.enable("osprey-requeue", True)


@check("a lost reply is lost after the call took effect", functions=False)
def lost_reply(stack):
    stack.faults(stack.batch_proxy, [{"service": "batch", "operation": "SubmitJob", "response": {"abort_bytes": 0}}])
    try:
        submit(by_proxy(stack), "lost-reply")
        raise AssertionError("the reply came")
    except BotoCoreError:
        pass
    finally:
        stack.faults(stack.batch_proxy, [])
    until(lambda: len(stack.batch_jobs("lost-reply")) == 1)
    assert "SubmitJob" in [one["operation"] for one in stack.fired(stack.batch_proxy)]


@check("a throttled call is AWS's own 429", functions=False)
def throttled(stack):
    error = {"code": "TooManyRequestsException", "status": 429}
    stack.faults(stack.batch_proxy, [{"service": "batch", "operation": "SubmitJob", "error": error}])
    try:
        submit(by_proxy(stack), "throttled")
        raise AssertionError("it was let through")
    except ClientError as refused:
        told = refused.response["Error"]["Code"], refused.response["ResponseMetadata"]["HTTPStatusCode"]
        assert told == ("TooManyRequestsException", 429), told
    finally:
        stack.faults(stack.batch_proxy, [])
    assert not stack.batch_jobs("throttled")


@check("an account's limit is kept by the bridge", functions=False)
def limited(stack):
    stack.bridge.submit_limit = 5
    client, refused = by_proxy(stack), 0
    began = time.monotonic()
    try:
        for number in range(12):
            try:
                submit(client, f"limited-{number}")
            except ClientError:
                refused += 1
    finally:
        stack.bridge.submit_limit = 0
    assert refused >= 1 or time.monotonic() - began > 2, "12 calls passed where 5 a second may"
    assert len(stack.batch_jobs("limited-")) == 12 - refused


@check("a lost reply of the table and the queues is lost after the effect", functions=False)
def lost_writes(stack):
    lost = {"response": {"abort_bytes": 0}}
    stack.faults(stack.aws_proxy, [
        {"service": "dynamodb", "operation": "PutItem", **lost},
        {"service": "dynamodb", "operation": "TransactWriteItems", **lost},
        {"service": "sqs", "operation": "SendMessage", **lost},
    ])  # fmt: skip
    table = stack.client("dynamodb", stack.aws_proxy, "test", "test", tries=1)
    queues = stack.client("sqs", stack.aws_proxy, "test", "test", tries=1)
    url = stack.sqs.create_queue(QueueName="plumbing")["QueueUrl"]
    put = {"TableName": "osprey", "Item": {"pk": {"S": "PLUMBING"}, "sk": {"S": "PUT"}, "body": {"S": "{}"}}}
    both = {**put, "Item": {**put["Item"], "sk": {"S": "BOTH"}}}
    calls = [
        lambda: table.put_item(**put),
        lambda: table.transact_write_items(TransactItems=[{"Put": both}]),
        lambda: queues.send_message(QueueUrl=url, MessageBody="x"),
    ]
    try:
        for call in calls:
            try:
                call()
                raise AssertionError("the reply came")
            except BotoCoreError:
                pass
    finally:
        stack.faults(stack.aws_proxy, [])
    assert set(stack.partition("PLUMBING")) == {"PUT", "BOTH"}
    assert until(lambda: stack.sqs.receive_message(QueueUrl=url, WaitTimeSeconds=1).get("Messages"))
