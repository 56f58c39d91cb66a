"""Events in EventBridge's shape, as the queue that was named with --event-target gets them."""

import json

from batch_table import ids
from harness import ACCOUNT, ENDPOINT, REGION, arn, check, sqs

URL = f"{ENDPOINT}/{ACCOUNT}/state-changes"


def drained():
    events = []
    while messages := sqs.receive_message(QueueUrl=URL, MaxNumberOfMessages=10).get("Messages"):
        events += [json.loads(message["Body"]) for message in messages]
        for message in messages:
            sqs.delete_message(QueueUrl=URL, ReceiptHandle=message["ReceiptHandle"])
    return events


@check("events of a job come to their target in EventBridge's shape")
def shaped():
    own = [event for event in drained() if event["detail"]["jobId"] == ids["short"]]
    states = [event["detail"]["status"] for event in own]
    assert sorted(states) == sorted(["PENDING", "RUNNABLE", "STARTING", "RUNNING", "SUCCEEDED"][5 - len(states):]), states
    for event in own:
        assert (event["detail-type"], event["source"], event["version"]) == ("Batch Job State Change", "aws.batch", "0"), event
        assert (event["account"], event["region"]) == (ACCOUNT, REGION), event
        assert event["resources"] == [arn(f"job/{ids['short']}")], event
        assert event["detail"]["tags"]["resourceArn"] == arn(f"job/{ids['short']}"), event
