"""Jobs through the whole pipeline: sent to the submission queue by AWS's clients, watched with both command lines."""

import json
import os
import tempfile
import uuid

from harness import ACCOUNT, ENDPOINT, STATE, aws, batch, check, osprey, sqs, until

SUBMISSIONS = f"{ENDPOINT}/{ACCOUNT}/osprey-submissions"
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TRAIN = os.path.join(ROOT, "events", "scripts", "train.sh")
JOB = os.path.join(ROOT, "tests", "interrupted", "job.sh")


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
    filters = ["--filters", "name=JOB_NAME,values=inference"]
    listed = aws("batch", "list-jobs", "--job-queue", "osprey-local-critical", *filters)["jobSummaryList"]
    assert [one["shareIdentifier"] for one in listed if one["jobId"] == row["jobId"]] == ["critical"], listed
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


@check("two jobs that run at once never see the same GPU")
def devices():
    with tempfile.TemporaryDirectory() as folder:
        ledger = os.path.join(folder, "ledger")
        jobs = [request(f"gpu-{n}", [JOB, ledger, f"gpu-{n}", "0.1", "0"]) for n in range(60)]
        entries = [{"Id": str(n), "MessageBody": body} for n, (_, body) in enumerate(jobs)]
        for start in range(0, len(entries), 10):
            assert "Failed" not in sqs.send_message_batch(QueueUrl=SUBMISSIONS, Entries=entries[start:start + 10])
        until(lambda: os.path.exists(ledger) and open(ledger).read().count("done ") == len(jobs))
        lines = [line.split() for line in open(ledger)]
    assert len(lines) == 2 * len(jobs), f"{len(lines)} lines: a job ran twice"
    holders, most = {}, 0
    for what, name, _, *seen in lines:
        (device,) = seen
        if what == "start":
            assert device not in holders, f"{name} and {holders[device]} both see device {device}"
            holders[device] = name
            most = max(most, len(holders))
        else:
            assert holders.pop(device) == name
    assert most >= 3, f"at most {most} ran at once"


@check("a job on two nodes, sent by the AWS CLI, starts on both or on none and ends in one place")
def on_two_nodes():
    needs = [{"type": "GPU", "value": "2"}, {"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "256"}]
    container = {"image": "busybox", "command": ["true"], "resourceRequirements": needs}
    aws("batch", "register-job-definition", "--job-definition-name", "pair", "--type", "multinode", "--node-properties", json.dumps(
        {"numNodes": 2, "mainNode": 0, "nodeRangeProperties": [{"targetNodes": "0:1", "container": container}]}))
    tell = "echo node $AWS_BATCH_JOB_NODE_INDEX of $AWS_BATCH_JOB_NUM_NODES, main $AWS_BATCH_JOB_MAIN_NODE_INDEX"
    job, go = str(uuid.uuid4()), os.path.join(STATE, f"go-{uuid.uuid4()}")
    script = f"{tell}; while [ ! -e {go} ]; do sleep 0.05; done"
    ranges = [{"targetNodes": "0:1", "containerOverrides": {"command": ["sh", "-c", script]}}]
    body = {"jobName": "pair", "jobDefinition": "pair", "nodeOverrides": {"nodePropertyOverrides": ranges}, "tags": {"osprey:job-id": job}}
    aws("sqs", "send-message", "--queue-url", SUBMISSIONS, "--message-body", json.dumps(body))
    row = running(job)
    nodes = until(lambda: len(n := batch.list_jobs(multiNodeJobId=row["jobId"])["jobSummaryList"]) == 2 and n)
    open(go, "w").close()
    assert osprey("wait", job).returncode == 0
    record = described(job)
    assert (record["state"], [a["end_class"] for a in record["attempts"]], record["gpus"]) == ("succeeded", ["succeeded"], 4), record
    assert osprey("logs", job).stdout == "node 0 of 2, main 0\n"
    assert {one["jobId"] for one in nodes} == {f"{row['jobId']}#0", f"{row['jobId']}#1"}, nodes
    ended = [n for status in ("SUCCEEDED", "FAILED") for n in batch.list_jobs(multiNodeJobId=row["jobId"], jobStatus=status)["jobSummaryList"]]
    assert len(ended) == 2, ended


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
