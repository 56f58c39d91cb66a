"""Jobs through the whole pipeline: sent to the submission queue by AWS's clients, watched with both command lines."""

import json
import os
import uuid

from harness import ACCOUNT, ENDPOINT, aws, batch, check, osprey, sqs, until

SUBMISSIONS = f"{ENDPOINT}/{ACCOUNT}/osprey-submissions"
TRAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "events", "scripts", "train.sh")


def request(name, command, **more):
    """A job message with an id of its own."""
    tags = {"osprey:job-id": str(uuid.uuid4()), **more.pop("tags", {})}
    requirements = [{"type": "GPU", "value": "1"}, {"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "512"}]
    overrides = {"command": command, "resourceRequirements": requirements}
    return tags["osprey:job-id"], json.dumps({"jobName": name, "jobDefinition": "any", "containerOverrides": overrides, "tags": tags, **more})


def described(job):
    done = osprey("describe", job, "--output", "json", check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def running(job):
    """The Batch job of a job's newest attempt, once it runs."""
    record = until(lambda: (r := described(job)) and r["state"] == "running" and r)
    name = record["name"]
    queues = [q["jobQueueName"] for q in batch.describe_job_queues()["jobQueues"] if q["jobQueueName"].startswith("osprey-")]
    rows = [row for queue in queues for row in batch.list_jobs(jobQueue=queue)["jobSummaryList"] if row["jobName"] == name]
    return rows[0] if rows else until(lambda: running(job))


@check("a message sent by the AWS CLI becomes a job with its derived priority")
def sent_by_cli():
    job, body = request("inference", ["sh", "-c", "echo served; sleep 3"], tags={"environment": "production", "workload": "inference"})
    aws("sqs", "send-message", "--queue-url", SUBMISSIONS, "--message-body", body)
    row = running(job)
    assert row["shareIdentifier"] == "critical", row
    listed = aws("batch", "list-jobs", "--job-queue", "osprey-local-critical")["jobSummaryList"]
    assert row["jobId"] in [one["jobId"] for one in listed], listed
    (seen,) = aws("batch", "describe-jobs", "--jobs", row["jobId"])["jobs"]
    assert (seen["schedulingPriority"], seen["jobQueue"].rsplit("/")[-1]) == (1200, "osprey-local-critical"), seen
    assert osprey("wait", job).returncode == 0
    assert osprey("logs", job).stdout == "served\n"
    assert osprey("logs", "-f", job[:13], "--attempt", "1").stdout == "served\n"


@check("a message sent by boto3 that no job can be made of is a dead letter")
def dead_letter():
    sent = sqs.send_message(QueueUrl=SUBMISSIONS, MessageBody='{"jobName":')
    letters = until(lambda: [l for l in json.loads(osprey("dead-letters", "list", "--output", "json").stdout) if l])
    assert letters, sent


@check("a job that is refused makes `wait` end with 3")
def refused():
    job, body = request("large", ["true"])
    body = json.dumps({**json.loads(body), "arrayProperties": {"size": 1}})
    sqs.send_message(QueueUrl=SUBMISSIONS, MessageBody=body)
    until(lambda: described(job))
    assert osprey("wait", job, check=False).returncode == 3


@check("a checkpointing job that the AWS CLI terminates stops, and resumes when a person requeues it")
def terminated():
    job, body = request("terminated", [TRAIN, "60", "0.1"], tags={"workload": "training", "checkpoint-interval": "1m", "max-duration": "10m"})
    sqs.send_message(QueueUrl=SUBMISSIONS, MessageBody=body)
    row = running(job)
    aws("batch", "terminate-job", "--job-id", row["jobId"], "--reason", "stopped by hand")
    assert osprey("wait", job, check=False).returncode == 1
    record = described(job)
    assert (record["state"], len(record["attempts"])) == ("failed", 1), record
    assert record["attempts"][0]["reason"] == "stopped by hand", record["attempts"]
    osprey("requeue", job)
    until(lambda: described(job)["state"] != "failed")
    assert osprey("wait", job).returncode == 0
    text = osprey("logs", job).stdout
    assert "told to stop: saved step" in text and "resumes after step" in text and "trained 60 steps" in text, text


@check("a checkpointing job whose Spot host is reclaimed comes back by itself")
def reclaimed():
    tags = {"workload": "training", "preemptible": "true", "checkpoint-interval": "1m", "max-duration": "10m",
            "osprey:local-reclaim-after": "10s"}
    job, body = request("reclaimed", [TRAIN, "40", "0.1"], tags=tags)
    sqs.send_message(QueueUrl=SUBMISSIONS, MessageBody=body)
    assert osprey("wait", until(lambda: described(job))["id"]).returncode == 0
    record = described(job)
    ends = [attempt["end_class"] for attempt in record["attempts"]]
    assert ends[0] == "host_lost" and ends[-1] == "succeeded", record["attempts"]
    text = osprey("logs", job).stdout
    assert "==> attempt 1 <==" in text and "resumes after step" in text and "trained 40 steps" in text, text
