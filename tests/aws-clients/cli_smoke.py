"""The AWS CLI with nothing but aws.env sourced."""

import json

from batch_table import FAIR, ids
from harness import ACCOUNT, ENDPOINT, aws, check


@check("the CLI lists queues and jobs")
def lists():
    queues = aws("batch", "describe-job-queues", "--query", "jobQueues[].jobQueueName")
    assert {"osprey-local-critical", "osprey-local-preemptible", FAIR} <= set(queues), queues
    rows = aws("batch", "list-jobs", "--job-queue", FAIR, "--filters", "name=JOB_NAME,values=short")["jobSummaryList"]
    assert [row["jobId"] for row in rows] == [ids["short"]], rows


@check("the CLI submits, describes and terminates")
def submits():
    job = aws("batch", "submit-job", "--job-name", "by-cli", "--job-queue", FAIR, "--job-definition", "shell", "--share-identifier",
              "TeamA", "--scheduling-priority-override", "9", "--parameters", "script=sleep 600", "--tags", "team=nlp")
    (seen,) = aws("batch", "describe-jobs", "--jobs", job["jobId"])["jobs"]
    assert (seen["schedulingPriority"], seen["shareIdentifier"], seen["tags"]) == (9, "TeamA", {"team": "nlp"}), seen
    aws("batch", "terminate-job", "--job-id", job["jobId"], "--reason", "done")


@check("the CLI says an error as AWS does")
def fails():
    done = aws("batch", "describe-jobs", "--jobs", *[str(n) for n in range(101)], check=False)
    assert done.returncode != 0 and "An error occurred (ClientException) when calling the DescribeJobs operation" in done.stderr, done.stderr


@check("the CLI sends, receives and deletes a message")
def messages():
    url = aws("sqs", "create-queue", "--queue-name", "by-cli")["QueueUrl"]
    sent = aws("sqs", "send-message", "--queue-url", url, "--message-body", "hello")
    (got,) = aws("sqs", "receive-message", "--queue-url", url)["Messages"]
    assert (got["MessageId"], got["Body"]) == (sent["MessageId"], "hello"), got
    aws("sqs", "delete-message", "--queue-url", url, "--receipt-handle", got["ReceiptHandle"])
    attributes = aws("sqs", "get-queue-attributes", "--queue-url", url, "--attribute-names", "All")["Attributes"]
    assert attributes["ApproximateNumberOfMessages"] == attributes["ApproximateNumberOfMessagesNotVisible"] == "0", attributes
    aws("sqs", "delete-queue", "--queue-url", url)


@check("the CLI's queue URL is the one that is printed")
def url():
    got = aws("sqs", "get-queue-url", "--queue-name", "osprey-submissions")
    assert got == {"QueueUrl": f"{ENDPOINT}/{ACCOUNT}/osprey-submissions"}, json.dumps(got)
