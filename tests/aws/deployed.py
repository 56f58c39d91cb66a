"""What `sam deploy` made, and that a job goes through it."""

import itertools
import json
import uuid

from checks import check
from stack import STACK, until


def request(name, command=("true",), **tags):
    """A job and its id."""
    job = str(uuid.uuid4())
    tags = {"osprey:job-id": job, "team": "search", "environment": "production", "workload": "inference", **tags}
    resources = [{"type": "GPU", "value": "1"}, {"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "512"}]
    overrides = {"command": list(command), "resourceRequirements": resources}
    return job, {"jobName": name, "jobDefinition": "shell", "containerOverrides": overrides, "tags": tags}


def state(stack, job):
    return (stack.item(f"JOB#{job}") or {}).get("state")


def ended(stack, job):
    """The state that the job ends in."""
    finals = {"succeeded", "failed", "refused", "dead"}
    return until(lambda: (now := state(stack, job)) in finals and now)


@check("the stack has its queues, its table and its functions", functions=False)
def resources(stack):
    urls = stack.sqs.list_queues()["QueueUrls"]
    names = {url.rsplit("/", 1)[1] for url in urls}
    for queue in ["submissions", "internal", "events", "wake"]:
        assert {f"osprey-{queue}", f"osprey-{queue}-dead"} <= names, names
    url = next(url for url in urls if url.endswith("/osprey-submissions"))
    attributes = stack.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert json.loads(attributes["RedrivePolicy"])["maxReceiveCount"] in (5, "5"), attributes
    table = stack.dynamodb.describe_table(TableName="osprey")["Table"]
    assert {index["IndexName"] for index in table["GlobalSecondaryIndexes"]} == {"due", "listing", "running"}
    functions = {function["FunctionName"]: function for function in stack.lambdas.list_functions()["Functions"]}
    for name in ["submit", "schedule", "requeue", "dead-letter", "watch"]:
        function = functions[f"osprey-{name}"]
        assert (function["Runtime"], int(function["Timeout"])) == ("provided.al2023", 60), function
    roles = {function["Role"] for function in functions.values()}
    assert len(roles) == len(functions), "a role is shared"


@check("the dashboard and every alarm are there", functions=False)
def observability(stack):
    body = stack.cloudwatch.get_dashboard(DashboardName="osprey")["DashboardBody"]
    assert json.loads(body)["widgets"], "an empty dashboard"
    alarms = stack.cloudwatch.describe_alarms()["MetricAlarms"]
    assert len(alarms) >= 15 and all(alarm["AlarmActions"] == [stack.outputs["TopicArn"]] for alarm in alarms), alarms


@check("watch is called every minute", functions=False)
def schedule(stack):
    schedule = stack.scheduler.get_schedule(Name="osprey-watch")
    assert (schedule["ScheduleExpression"], schedule["State"]) == ("rate(1 minute)", "ENABLED"), schedule


@check("a message becomes a job with its derived priority, in its tier's queue")
def first_job(stack):
    job, body = request("first")
    stack.run(
        "aws", "sqs", "send-message", "--queue-url", stack.outputs["SubmissionsQueueUrl"],
        "--message-body", json.dumps(body), "--endpoint-url", stack.emulator,
    )  # fmt: skip
    (summary,) = until(lambda: stack.batch_jobs("first"))
    detail = stack.batch.describe_jobs(jobs=[summary["jobId"]])["jobs"][0]
    assert detail["jobQueue"].endswith("/osprey-local-critical"), detail["jobQueue"]
    assert (detail["schedulingPriority"], detail["shareIdentifier"]) == (1200, "critical"), detail
    assert detail["tags"]["osprey:job-id"] == job, detail["tags"]
    environment = {one["name"]: one["value"] for one in detail["container"]["environment"]}
    assert (environment["OSPREY_JOB_ID"], environment["OSPREY_ATTEMPT"]) == (job, "1"), environment
    assert ended(stack, job) == "succeeded"
    record = stack.item(f"JOB#{job}")
    assert (record["priority"], record["tier"], record["attempt"]) == (1200, "critical", 1), record


@check("the events of the local Batch come by the rule", functions=False)
def rule(stack):
    (rule,) = [rule for rule in stack.events.list_rules()["Rules"] if rule["Name"] == "osprey-batch-events"]
    (target,) = stack.events.list_targets_by_rule(Rule=rule["Name"])["Targets"]
    assert target["Arn"].endswith(":osprey-events") and target["DeadLetterConfig"]["Arn"].endswith(":osprey-events-dead"), target


@check("the same job twice is one job")
def duplicate(stack):
    job, body = request("twice")
    for _ in range(2):
        stack.send(body)
    assert ended(stack, job) == "succeeded"
    until(lambda: any(key.startswith("DUPLICATE#") for key in stack.partition(f"JOB#{job}")))
    assert len(stack.batch_jobs("twice")) == 1


@check("a job costs one SubmitJob, and few calls besides")
def calls(stack):
    count = 20

    def run():
        jobs = []
        for number in range(count):
            job, body = request(f"counted-{number}")
            stack.send(body)
            jobs.append(job)
        for job in jobs:
            assert ended(stack, job) == "succeeded"

    spent = {name: number / count for name, number in stack.counted(run).items()}
    print("calls a job, from message to end:", spent)
    assert spent["batch:submitjob"] == 1, spent


@check("a lost Spot host costs no priority, and the job comes back after a back-off")
def spot(stack):
    once = 'test "$OSPREY_ATTEMPT" -gt 1 && exit 0; sleep 60'
    tags = {"preemptible": "true", "checkpoint-interval": "5m", "osprey:local-reclaim-after": "1s", "environment": "dev"}
    job, body = request("reclaimed", ("sh", "-c", once), **tags)
    stack.send(body)

    def came_back():
        """The job, queued again after its first attempt."""
        record = stack.item(f"JOB#{job}") or {}
        return record.get("state") == "queued" and record["attempt"] == 1 and record["last_end"] and record

    record = until(came_back)
    assert record["not_before"] > record["updated_at"], record
    until(lambda: stack.watch() or state(stack, job) == "succeeded", every=1)
    attempts = stack.partition(f"JOB#{job}")
    assert sum(key.startswith("ATTEMPT#") for key in attempts) == 2, attempts.keys()
    assert len(stack.batch_jobs("reclaimed")) == 2


@check("other systems hear what becomes of a job")
def told_others(stack):
    queue = stack.sqs.create_queue(QueueName="others")["QueueUrl"]
    arn = stack.sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    pattern = {"source": ["osprey"], "detail-type": ["Osprey Job State Change"]}
    stack.events.put_rule(Name="others", EventPattern=json.dumps(pattern))
    stack.events.put_targets(Rule="others", Targets=[{"Id": "1", "Arn": arn}])
    job, body = request("heard-of")
    stack.send(body)
    heard = {}

    def told():
        for message in stack.sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=1).get("Messages", []):
            detail = json.loads(message["Body"])["detail"]
            if detail["jobId"] == job:
                heard[detail["state"]] = detail
            stack.sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
        return heard.get("succeeded")

    detail = until(told)
    assert (detail["jobName"], detail["priority"], detail["attempt"], detail["end"]) == ("heard-of", 1200, 1, None), detail
    assert detail["batchJobId"] == stack.batch_jobs("heard-of")[0]["jobId"], detail
    until(lambda: not any(job in key for key in stack.partition("OUTBOX")))


@check("a body that is no JSON becomes a dead letter, and somebody is told")
def poison(stack):
    queue = stack.sqs.create_queue(QueueName="told")["QueueUrl"]
    arn = stack.sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    stack.sns.subscribe(TopicArn=stack.outputs["TopicArn"], Protocol="sqs", Endpoint=arn)
    message = stack.send('{"jobName":"cut o')
    letter = until(lambda: stack.letter(message))
    assert letter["code"] == "NotJson", letter

    def told():
        """What somebody was told of this letter; others may have come before."""
        stack.watch()
        heard = stack.sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=1).get("Messages", [])
        notices = [json.loads(one["Body"]) for one in heard]
        return [notice for notice in notices if letter["id"] in notice["Message"]]

    notice = until(told)[0]
    assert "NotJson" in notice["Subject"] and len(notice["Subject"]) <= 100, notice
    assert "it ends inside a text" in notice["Message"], notice


@check("a message that fails too often becomes a dead letter by way of its queue")
def too_often(stack):
    # As if submit had failed with it: dead-letter judges what comes by the dead-letter queue.
    url = stack.outputs["SubmissionsQueueUrl"] + "-dead"
    message = stack.sqs.send_message(QueueUrl=url, MessageBody='["no", "object"]')["MessageId"]
    until(lambda: stack.letter(message))


@check("every metric line names the stack, in CloudWatch's embedded format")
def metrics(stack):
    _, body = request("measured")
    stack.send(body)
    stack.watch()
    # Logs come when they come. These two have something to tell of any job, requeue only of one that comes back.
    until(lambda: all(map(metric_lines(stack).get, ["submit", "watch"])))
    for line in itertools.chain(*metric_lines(stack).values()):
        emitted = json.loads(line[line.index("{") :])
        assert emitted["Stack"] == STACK and emitted["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "Osprey", line


def metric_lines(stack):
    """Lines with metrics of the functions that emit them, by function."""
    lines = {}
    for function in ["submit", "requeue", "watch"]:
        pages = stack.logs.get_paginator("filter_log_events").paginate(logGroupName=f"/aws/lambda/osprey-{function}")
        messages = (event["message"] for page in pages for event in page["events"])
        lines[function] = [message for message in messages if '"CloudWatchMetrics"' in message]
    return lines
