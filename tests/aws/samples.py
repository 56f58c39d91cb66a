"""`cargo lambda watch` serves the functions, and `cargo lambda invoke` hands each sample of events/ to its own."""

import glob
import json
import os
import subprocess

from checks import check
from servers import free_port

WATCH = "scheduler-watch.json"


def message(body, queue):
    """An event as SQS brings it, in the shape of the samples."""
    record = {
        "messageId": "7b0e0c5e-2f40-4a8e-9f0b-5a6d3c1e0000",
        "receiptHandle": "receipt",
        "body": body,
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1796029301000", "SenderId": "AIDATEST"},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:{queue}",
        "awsRegion": "us-east-1",
    }
    return {"Records": [record]}


def invocation(path):
    """Which function gets a sample, and what."""
    name = os.path.basename(path)
    with open(path, encoding="utf-8") as file:
        sample = json.load(file)
    if name == WATCH:
        return "watch", sample
    if name.startswith("batch-"):
        return "requeue", message(json.dumps(sample), "osprey-events")
    queue = sample["Records"][0]["eventSourceARN"].rsplit(":", 1)[1]
    return {"osprey-events": "requeue", "osprey-submissions": "submit", "osprey-internal": "submit"}.get(queue, "dead-letter"), sample


@check("each sample of events/ is taken by its function under cargo lambda")
def samples(stack):
    function = stack.lambdas.get_function_configuration(FunctionName="osprey-watch")
    environment = {**stack.environment, "AWS_ENDPOINT_URL_BATCH": stack.batch_proxy, **function["Environment"]["Variables"]}
    environment["AWS_LAMBDA_FUNCTION_TIMEOUT"] = "60"
    port = str(free_port())
    command = ["cargo", "lambda", "watch", "--ignore-changes", "--invoke-address", "127.0.0.1", "--invoke-port", port]
    log = open(os.path.join(stack.work, "watch.log"), "ab")
    served = subprocess.Popen(
        command, stdout=log, stderr=log, env=environment, cwd=stack.root, start_new_session=True
    )  # fmt: skip
    stack.programs.running.append(("watch", served))
    paths = sorted(glob.glob(os.path.join(stack.root, "events", "*.json")))
    assert len(paths) > 40, paths
    for path in paths:
        name, event = invocation(path)
        file = os.path.join(stack.work, "sample.json")
        with open(file, "w", encoding="utf-8") as out:
            json.dump(event, out)
        done = subprocess.run(
            ["cargo", "lambda", "invoke", name, "--data-file", file, "-A", "127.0.0.1", "-P", port],
            capture_output=True, text=True, timeout=900, env=environment, cwd=stack.root,
        )  # fmt: skip
        assert done.returncode == 0, f"{os.path.basename(path)}: {done.stdout}{done.stderr}"
        if name != "watch":
            answer = json.loads(done.stdout)
            assert answer["batchItemFailures"] == [], f"{os.path.basename(path)}: {answer}"
