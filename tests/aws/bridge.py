"""What stands between the emulator and the local Batch, on loopback.

The emulator gives its functions credentials of its own making, and the local Batch takes no key but that of its state
directory: calls to it are signed again. The other way, each event of the local Batch is put on the emulator's event bus,
under a source of its own since AWS's can't be put by anybody else. And it answers for ECS, of which the emulator has no
container instances: the nodes of the local Batch, with what its jobs take of them.
"""

import json
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

SOURCE = "osprey.test.batch"
REGION = "us-east-1"
# Headers that belong to one connection or to the signature that is replaced.
DROPPED = {"host", "connection", "content-length", "authorization", "x-amz-date", "x-amz-security-token", "transfer-encoding"}


def instance(arn, units, gpus, tasks):
    """A container instance of eight GPUs, so many of which are taken."""

    def resources(gpus):
        return [
            {"name": "CPU", "type": "INTEGER", "integerValue": units},
            {"name": "GPU", "type": "STRINGSET", "stringSetValue": [f"GPU-{number}" for number in range(gpus)]},
        ]

    return {
        "containerInstanceArn": arn, "status": "ACTIVE", "agentConnected": True, "runningTasksCount": tasks,
        "pendingTasksCount": 0, "registeredResources": resources(8), "remainingResources": resources(8 - gpus),
    }  # fmt: skip


class Bridge:
    """Serves both ways until it is closed; `batch` and `events` are set once both sides are up."""

    def __init__(self):
        self.batch_endpoint = None
        self.credentials = None
        self.events = None
        # A client of the local Batch, and how many nodes each of its environments has.
        self.batch = None
        self.nodes = {}
        # Whether events are taken and forgotten.
        self.drop_events = False
        # SubmitJob calls that reached the local Batch, by time, and calls by operation.
        self.submitted_at = []
        self.calls = {}
        # At most so many SubmitJob calls in a second, as AWS allows an account; none while 0.
        self.submit_limit = 0
        self.throttled = 0
        self._lock = threading.Lock()
        bridge = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                bridge.answer(self)

            do_GET = do_POST
            do_DELETE = do_POST

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, call):
        body = call.rfile.read(int(call.headers.get("content-length") or 0))
        target = call.headers.get("x-amz-target", "")
        if target.startswith("AmazonEC2ContainerService"):
            status, answer = 200, json.dumps(self.ecs(target.rsplit(".", 1)[1], json.loads(body))).encode()
        elif call.path == "/events":
            status, answer = self.event(json.loads(body)), b""
        else:
            status, answer = self.forward(call.command, call.path, call.headers, body)
        call.send_response(status)
        call.send_header("content-type", "application/json")
        call.send_header("content-length", str(len(answer)))
        call.end_headers()
        call.wfile.write(answer)

    def event(self, event):
        """Puts an event of the local Batch on the bus; asks to come again until there is one."""
        if self.drop_events:
            return 200
        if self.events is None:
            return 503
        entry = {
            "Source": SOURCE,
            "DetailType": event["detail-type"],
            "Detail": json.dumps(event["detail"]),
            "Resources": event.get("resources", []),
        }
        answer = self.events.put_events(Entries=[entry])
        return 200 if answer["FailedEntryCount"] == 0 else 503

    def ecs(self, operation, asked):
        """The two calls that look at container instances."""
        instances = self.instances(asked["cluster"].rsplit("/AWSBatch-", 1)[1])
        if operation == "ListContainerInstances":
            return {"containerInstanceArns": sorted(instances)}
        assert operation == "DescribeContainerInstances", operation
        return {"containerInstances": [instances[arn] for arn in asked["containerInstances"] if arn in instances], "failures": []}

    def instances(self, environment):
        """The nodes of an environment as ECS tells of instances, by their ARNs. One without jobs has an ARN of our making."""
        (told,) = self.batch.describe_compute_environments(computeEnvironments=[environment])["computeEnvironments"]
        taken = {}
        for queue in self.batch.describe_job_queues()["jobQueues"]:
            if any(order["computeEnvironment"] == told["computeEnvironmentArn"] for order in queue["computeEnvironmentOrder"]):
                for arn, gpus in self.running(queue["jobQueueName"]):
                    taken.setdefault(arn, []).append(gpus)
        count = self.nodes[environment]
        for number in range(count - len(taken)):
            taken[f"{told['ecsClusterArn'].replace(':cluster/', ':container-instance/')}/idle-{number}"] = []
        units = told["computeResources"]["maxvCpus"] // count * 1024
        return {arn: instance(arn, units, sum(gpus), len(gpus)) for arn, gpus in taken.items()}

    def running(self, queue):
        """Where jobs of a queue run, and on how many GPUs."""
        for status in ["STARTING", "RUNNING"]:
            ids = [one["jobId"] for one in self.batch.list_jobs(jobQueue=queue, jobStatus=status)["jobSummaryList"]]
            for job in self.batch.describe_jobs(jobs=ids[:100])["jobs"] if ids else []:
                needs = {one["type"]: int(one["value"]) for one in job["container"].get("resourceRequirements", [])}
                if arn := job["container"].get("containerInstanceArn"):
                    yield arn, needs.get("GPU", 0)

    def forward(self, verb, path, headers, body):
        operation = path.rsplit("/", 1)[-1]
        with self._lock:
            self.calls[operation] = self.calls.get(operation, 0) + 1
            if operation == "submitjob" and self.is_over_limit():
                self.throttled += 1
                return 429, b'{"__type":"TooManyRequestsException","message":"Too Many Requests"}'
        kept = {name: value for name, value in headers.items() if name.lower() not in DROPPED}
        request = AWSRequest(verb, self.batch_endpoint + path, data=body, headers=kept)
        SigV4Auth(self.credentials, "batch", REGION).add_auth(request)
        call = urllib.request.Request(request.url, data=body, headers=dict(request.headers), method=verb)
        try:
            with urllib.request.urlopen(call, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def is_over_limit(self):
        """Counts a SubmitJob call, unless it is one too many for the last second."""
        now = time.monotonic()
        recent = [at for at in self.submitted_at[-200:] if at > now - 1]
        if self.submit_limit and len(recent) >= self.submit_limit:
            return True
        self.submitted_at.append(now)
        return False

    def connect(self, batch_endpoint, key, secret):
        self.batch_endpoint = batch_endpoint
        self.credentials = Credentials(key, secret)
