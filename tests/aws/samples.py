"""`cargo lambda watch` serves the functions, and `cargo lambda invoke` hands each sample of events/ to its own."""

import glob
import json
import os
import subprocess
import zipfile

from checks import check
from servers import answers, free_port
from stack import FUNCTIONS, until

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
    functions = {"osprey-events": "requeue", "osprey-submissions": "submit", "osprey-internal": "submit", "osprey-wake": "schedule"}
    return functions.get(queue, "dead-letter"), sample


def start(stack, name, address):
    """Starts a function as it was deployed, with its own environment, on the runtime interface of `cargo lambda watch`."""
    function = stack.lambdas.get_function_configuration(FunctionName=f"osprey-{name}")
    folder = os.path.join(stack.work, "samples", name)
    with zipfile.ZipFile(os.path.join(stack.folder, "target", "lambda", name, "bootstrap.zip")) as file:
        bootstrap = file.extract("bootstrap", folder)
    os.chmod(bootstrap, 0o755)
    environment = {
        **stack.environment,
        "AWS_ENDPOINT_URL_BATCH": stack.batch_proxy,
        "AWS_ENDPOINT_URL_ECS": stack.bridge.endpoint,
        "AWS_ACCESS_KEY_ID": "000000000000",
        **function["Environment"]["Variables"],
        "AWS_LAMBDA_RUNTIME_API": f"http://{address}/.rt/{name}",
        "AWS_LAMBDA_FUNCTION_NAME": f"osprey-{name}",
        "AWS_LAMBDA_FUNCTION_VERSION": "1",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256",
        "AWS_LAMBDA_FUNCTION_TIMEOUT": "60",
    }
    return stack.programs.start(f"sample-{name}", [bootstrap], environment)


@check("each sample of events/ is taken by its function under cargo lambda")
def samples(stack):
    port = str(free_port())
    command = ["cargo", "lambda", "watch", "--only-lambda-apis", "--invoke-address", "127.0.0.1", "--invoke-port", port]
    watch = stack.programs.start("watch", command, cwd=stack.root)
    until(lambda: answers(int(port)))
    started = [start(stack, name, f"127.0.0.1:{port}") for name in FUNCTIONS]
    try:
        paths = sorted(glob.glob(os.path.join(stack.root, "events", "*.json")))
        assert len(paths) > 40, paths
        for path in paths:
            name, event = invocation(path)
            file = os.path.join(stack.work, "sample.json")
            with open(file, "w", encoding="utf-8") as out:
                json.dump(event, out)
            done = subprocess.run(
                ["cargo", "lambda", "invoke", name, "--data-file", file, "-A", "127.0.0.1", "-P", port],
                capture_output=True, text=True, timeout=300, env=stack.environment, cwd=stack.root,
            )  # fmt: skip
            assert done.returncode == 0, f"{os.path.basename(path)}: {done.stdout}{done.stderr}"
            if name != "watch":
                answer = json.loads(done.stdout)
                assert answer["batchItemFailures"] == [], f"{os.path.basename(path)}: {answer}"
    finally:
        for process in [*started, watch]:
            stack.programs.end(process)
