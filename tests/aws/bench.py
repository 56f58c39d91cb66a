"""Two functions behind a Lambda runtime API and stubs of AWS on loopback: Osprey's `submit`, and the peer on boto3.

Answers in the stubs are canned, so what is timed is the function alone: starting, marshalling, signing, parsing.
"""

import json
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STARTS = 21
MESSAGES = 10
INVOCATIONS = 100
DEFINITION = {
    "jobDefinitionName": "shell", "jobDefinitionArn": "arn:aws:batch:us-east-1:123456789012:job-definition/shell:1", "revision": 1,
    "type": "container", "status": "ACTIVE", "containerProperties": {"image": "shell", "command": ["true"], "resourceRequirements": [
        {"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "512"}]},
}  # fmt: skip
POOLS = [{"name": "local", "mode": "direct", "capacity": "on-demand", "gpus_per_node": 8, "nodes_max": None, "vcpus_per_node": None,
          "memory_mib_per_node": None, "fair_share": True, "queues": {"critical": "osprey-local-critical"}}]  # fmt: skip


class Runtime:
    """One invocation after the other for one process, and stubs for whatever it calls."""

    def __init__(self):
        self.events, self.answers, self.calls, self.items = queue.Queue(), queue.Queue(), {}, {}
        runtime = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # An answer leaves in one piece and at once: else what is timed is TCP's patience.
            disable_nagle_algorithm = True
            wbufsize = -1

            def log_message(self, *_):
                pass

            def reply(self, body, headers=()):
                data = json.dumps(body).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                for name, value in headers:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)
                self.wfile.flush()

            def do_GET(self):
                event = runtime.events.get()
                deadline = str(int(time.time() * 1000) + 60000)
                arn = "arn:aws:lambda:us-east-1:123456789012:function:osprey-submit"
                self.reply(event, [
                    ("Lambda-Runtime-Aws-Request-Id", str(uuid.uuid4())), ("Lambda-Runtime-Deadline-Ms", deadline),
                    ("Lambda-Runtime-Invoked-Function-Arn", arn)])  # fmt: skip

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                if "/runtime/" in self.path:
                    self.reply({})
                    runtime.answers.put((time.perf_counter(), self.path, body))
                    return
                self.reply(runtime.stub(self.path, self.headers.get("x-amz-target", ""), body))

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        # A process that is ended leaves its connections open; that is no news.
        self.server.handle_error = lambda *_: None
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stub(self, path, target, body):
        name = target.rsplit(".", 1)[-1] or path.rsplit("/", 1)[-1]
        self.calls[name] = self.calls.get(name, 0) + 1
        if name == "submitjob":
            return {"jobId": str(uuid.uuid4()), "jobName": "x", "jobArn": "arn:aws:batch:us-east-1:123456789012:job/x"}
        if name == "describejobdefinitions":
            return {"jobDefinitions": [DEFINITION]}
        if name == "describejobqueues":
            # A queue that isn't there would be asked for again and again.
            arn = "arn:aws:batch:us-east-1:123456789012:scheduling-policy/critical"
            names = json.loads(body)["jobQueues"]
            return {"jobQueues": [{"jobQueueName": queue, "state": "ENABLED", "schedulingPolicyArn": arn} for queue in names]}
        if name == "GetItem":
            return {}
        if name == "Query":
            return {"Items": [], "Count": 0, "ScannedCount": 0}
        if name == "UpdateItem" and b":cost" in body:
            # Tokens for as many calls as are asked for: slots of this moment.
            return {"Attributes": {"n_until": {"N": str(time.time_ns() // 1000)}}}
        return {"MessageId": str(uuid.uuid4())} if name == "SendMessage" else {}


def event(count):
    tags = {"team": "search", "environment": "production", "workload": "inference"}
    resources = [{"type": "GPU", "value": "1"}, {"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "512"}]
    records = []
    for number in range(count):
        body = {"jobName": f"bench-{number}", "jobDefinition": "shell", "tags": tags,
                "containerOverrides": {"command": ["true"], "resourceRequirements": resources}}  # fmt: skip
        records.append({
            "messageId": str(uuid.uuid4()), "receiptHandle": "r", "body": json.dumps(body), "messageAttributes": {},
            "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": str(int(time.time() * 1000)), "SenderId": "AIDATEST"},
            "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:osprey-submissions", "awsRegion": "us-east-1",
        })  # fmt: skip
    return {"Records": records}


def environment(runtime):
    endpoint = f"http://{runtime.address}"
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "OSPREY_"))},
        "AWS_LAMBDA_RUNTIME_API": runtime.address, "AWS_LAMBDA_FUNCTION_NAME": "osprey-submit", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256",
        "AWS_LAMBDA_FUNCTION_VERSION": "1", "AWS_LAMBDA_FUNCTION_TIMEOUT": "60", "AWS_LAMBDA_LOG_STREAM_NAME": "s", "AWS_LAMBDA_LOG_GROUP_NAME": "g",
        "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_ENDPOINT_URL": endpoint, "AWS_EC2_METADATA_DISABLED": "true", "PYTHONDONTWRITEBYTECODE": "1",
        "OSPREY_TABLE": "osprey", "OSPREY_POOLS": json.dumps(POOLS), "OSPREY_INTERNAL_QUEUE_URL": f"{endpoint}/123456789012/osprey-internal",
        "OSPREY_WAKE_QUEUE_URL": f"{endpoint}/123456789012/osprey-wake",
        "OSPREY_SUBMIT_RATE": "50", "OSPREY_LOG": "warn",
    }  # fmt: skip


def status(process, field):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field))


def once(runtime, command, count):
    """Starts a function and waits for its first answer: milliseconds, those of them on a processor, and MiB."""
    runtime.events.put(event(count))
    began = time.perf_counter()
    process = subprocess.Popen(command, env=environment(runtime), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        at, path, body = runtime.answers.get(timeout=60)
        assert path.endswith("/response"), f"{path}: {body.decode()}"
        return (at - began) * 1000, on_processor(process) * 1000, status(process, "VmHWM") / 1024
    finally:
        process.kill()
        process.wait()
        runtime.server.shutdown()
        runtime.server.server_close()


def on_processor(process):
    """Seconds that all its threads have spent on a processor: what other work on the machine changes least."""
    spent = 0
    for task in os.listdir(f"/proc/{process.pid}/task"):
        with open(f"/proc/{process.pid}/task/{task}/schedstat", encoding="ascii") as file:
            spent += int(file.read().split()[0])
    return spent / 1e9


def busy(name, command):
    """SubmitJob calls for each second of the function's own CPU time, from the second invocation on."""
    runtime = Runtime()
    process = subprocess.Popen(command, env=environment(runtime), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def invoke():
        runtime.events.put(event(MESSAGES))
        _, path, body = runtime.answers.get(timeout=60)
        assert path.endswith("/response") and json.loads(body)["batchItemFailures"] == [], f"{path}: {body.decode()}"

    try:
        invoke()
        before, runtime.calls = on_processor(process), {}
        for _ in range(INVOCATIONS):
            invoke()
        spent, jobs = on_processor(process) - before, INVOCATIONS * MESSAGES
        assert runtime.calls["submitjob"] == jobs, runtime.calls
        each = {call: round(number / jobs, 2) for call, number in sorted(runtime.calls.items())}
        print(f"{name:28} {jobs / spent:8.0f} a CPU-second {spent / jobs * 1e6:8.0f} µs a job; calls a job: {each}")
        return jobs / spent
    finally:
        process.kill()
        process.wait()
        runtime.server.shutdown()
        runtime.server.server_close()


def spawned(name, command, count):
    found = [once(Runtime(), command, count) for _ in range(STARTS)]
    took, spent, memory = (statistics.median(one[index] for one in found) for index in (0, 1, 2))
    print(f"{name:28} {took:8.1f} ms {spent:8.1f} ms on a processor {memory:8.1f} MiB")
    return took, spent


def main():
    lambda_dir = sys.argv[1]
    here = os.path.dirname(os.path.abspath(__file__))
    peer = [sys.executable, os.path.join(here, "peer", "bootstrap.py")]
    with tempfile.TemporaryDirectory() as work:
        with zipfile.ZipFile(os.path.join(lambda_dir, "submit", "bootstrap.zip")) as file:
            submit = file.extract("bootstrap", work)
        os.chmod(submit, 0o755)
        for name in ["submit", "schedule", "requeue", "dead-letter", "watch"]:
            size = os.path.getsize(os.path.join(lambda_dir, name, "bootstrap.zip"))
            print(f"{name:28} {size / 1e6:8.2f} MB zipped")
        print(f"\nspawn to first answer, median of {STARTS}, and the most memory until then")
        for count, what in [(0, "no message"), (1, "one message")]:
            ours, theirs = spawned(f"submit, {what}", [submit], count), spawned(f"peer, {what}", peer, count)
            print(f"{'':28} {theirs[0] / ours[0]:8.1f} times {theirs[1] / ours[1]:11.1f} times")
        print(f"\nSubmitJob calls, {INVOCATIONS} invocations of {MESSAGES} messages")
        ours = busy("submit", [submit])
        for name, program in [("peer, SubmitJob and PutItem", "bootstrap.py"), ("peer, the calls of submit", "same_calls.py")]:
            theirs = busy(name, [sys.executable, os.path.join(here, "peer", program)])
            print(f"{'':28} {ours / theirs:8.1f} times")


main()
