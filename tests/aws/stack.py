"""The stack under test: the template as it is, the functions' real zips, on an emulator; Batch by the local Batch.

    functions ──▶ proxy ──▶ emulator (SQS, DynamoDB, SNS, EventBridge, Lambda, CloudFormation, CloudWatch)
        └───────▶ proxy ──▶ bridge ──▶ local Batch ──events──▶ bridge ──▶ emulator's event bus

The proxies let everything through until a check asks them for faults.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
import zipfile

import boto3
from botocore.config import Config

from bridge import REGION, SOURCE, Bridge
from servers import Programs, free_port, without_ours

STACK = "osprey"
FUNCTIONS = ["submit", "schedule", "requeue", "dead-letter", "watch"]
# How long a call whose answer was lost may still act, seconds.
SETTLEMENT = 10
# How long the emulator may still ask a queue whose mapping was disabled, seconds.
POLLED = 3
TIERS = ["critical", "production", "experimental", "preemptible"]


def pools(nodes):
    """What the local Batch has, as the functions are told it."""
    shape = {"mode": "direct", "gpus_per_node": 8, "vcpus_per_node": None, "memory_mib_per_node": None, "fair_share": True}
    queues = {tier: f"osprey-local-{tier}" for tier in TIERS}
    spot = {"preemptible": "osprey-local-spot-preemptible"}
    return [
        {"name": "local", "capacity": "on-demand", "nodes_max": nodes - 1, "queues": queues, **shape},
        {"name": "local-spot", "capacity": "spot", "nodes_max": 1, "queues": spot, **shape},
    ]


class Stack:
    """Started and deployed by `up`, ended by `close`."""

    def __init__(self, work, root, osprey, bin_dir, sam):
        self.root, self.osprey, self.sam, self.work = root, osprey, sam, work
        self.programs = Programs(work, bin_dir)
        self.bridge = Bridge()

    def close(self):
        self.programs.close()
        self.bridge.close()

    def up(self, nodes=4):
        local, key, secret = self.programs.local_batch(
            self.osprey, f"{self.bridge.endpoint}/events", "--nodes", str(nodes), "--spot-nodes", "1"
        )
        self.bridge.connect(local, key, secret)
        self.batch_proxy = self.programs.proxy("batch-proxy", self.bridge.endpoint)
        port = free_port()
        self.aws_proxy = self.programs.proxy("aws-proxy", f"http://127.0.0.1:{port}")
        functions = {
            # What the emulator hands on to the functions: everything through the proxies.
            "AWS_ENDPOINT_URL": self.aws_proxy,
            "AWS_ENDPOINT_URL_BATCH": self.batch_proxy,
            "AWS_ENDPOINT_URL_ECS": self.bridge.endpoint,
            "MINISTACK_HOST": "127.0.0.1",
            "AWS_DEFAULT_REGION": REGION,
        }
        self.emulator, self.emulator_pid = self.programs.emulator(port, functions)
        self.environment = {
            **without_ours(os.environ),
            "AWS_ENDPOINT_URL": self.emulator,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "SAM_CLI_TELEMETRY": "0",
        }
        for service in ["sqs", "dynamodb", "lambda", "cloudwatch", "sns", "cloudformation", "logs", "scheduler", "events"]:
            setattr(self, service.replace("lambda", "lambdas"), self.client(service, self.emulator, "test", "test"))
        self.batch = self.client("batch", local, key, secret)
        self.bridge.events, self.bridge.batch = self.events, self.batch
        for one in self.batch.describe_compute_environments()["computeEnvironments"]:
            self.bridge.nodes[one["computeEnvironmentName"]] = 1 if one["computeResources"]["type"] == "SPOT" else nodes - 1

    def client(self, service, endpoint, key, secret, tries=5):
        config = Config(retries={"total_max_attempts": tries}, max_pool_connections=50)
        return boto3.client(
            service, endpoint_url=endpoint, region_name=REGION, aws_access_key_id=key, aws_secret_access_key=secret, config=config
        )

    def run(self, *command, timeout=900):
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=self.environment, cwd=self.root)
        assert done.returncode == 0, f"{' '.join(command[:3])}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def with_programs(self, program):
        """A folder with the template and a zip of each function's program, which `program` gives as bytes."""
        folder = os.path.join(self.work, "template")
        for name in FUNCTIONS:
            os.makedirs(os.path.join(folder, "target", "lambda", name))
            with zipfile.ZipFile(os.path.join(folder, "target", "lambda", name, "bootstrap.zip"), "w") as file:
                bootstrap = zipfile.ZipInfo("bootstrap")
                bootstrap.external_attr = 0o755 << 16
                file.writestr(bootstrap, program(name))
        shutil.copy(os.path.join(self.root, "template.yaml"), folder)
        return folder

    def without_functions(self):
        """Programs that end at once."""
        return self.with_programs(lambda name: f"#!/bin/sh\n# {name}\nexit 1\n".encode())

    def with_debug_builds(self):
        """What `cargo build` made, without symbols, which would be most of it."""

        def stripped(name):
            out = os.path.join(self.work, name)
            subprocess.run(["strip", "-o", out, os.path.join(os.environ["FUNCTIONS_DIR"], name)], check=True)
            with open(out, "rb") as file:
                return file.read()

        return self.with_programs(stripped)

    def deploy(self, folder, **parameters):
        """`sam build` and `sam deploy` of the folder's template, as docs/deploying.md says."""
        self.folder = folder
        build = os.path.join(self.work, "sam")
        self.run(self.sam, "build", "--template-file", os.path.join(folder, "template.yaml"), "--build-dir", build)
        given = {"PoolsJson": json.dumps(pools(4), separators=(",", ":")), "BatchEventSource": SOURCE}
        # The emulator has no alarms that calculate.
        given = {**given, "AlarmsWithExpressions": "no", **parameters}
        # A proxy cuts an answer off after the call took effect: no signature waits anywhere to be used later.
        given = {"SettlementSeconds": SETTLEMENT, **given}
        # As a shell would quote it: SAM takes a value with quotes in it only inside quotes.
        overrides = [f"{name}={json.dumps(str(value))}" for name, value in given.items()]
        self.run(
            self.sam, "deploy", "--template-file", os.path.join(build, "template.yaml"), "--no-confirm-changeset",
            "--config-file", os.path.join(self.root, "samconfig.toml"), "--parameter-overrides", *overrides,
        )  # fmt: skip
        answer = self.cloudformation.describe_stacks(StackName=STACK)["Stacks"][0]
        assert answer["StackStatus"] in ("CREATE_COMPLETE", "UPDATE_COMPLETE"), answer["StackStatus"]
        self.outputs = {output["OutputKey"]: output["OutputValue"] for output in answer["Outputs"]}
        # The emulator keeps a number that came by `!Ref` as the text it was, and then can't compare it.
        for mapping in self.mappings():
            limit = int(mapping["ScalingConfig"]["MaximumConcurrency"])
            self.lambdas.update_event_source_mapping(UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": limit})

    def mappings(self, function=None):
        more = {"FunctionName": function} if function else {}
        return self.lambdas.list_event_source_mappings(**more)["EventSourceMappings"]

    def enable(self, function, enabled):
        for mapping in self.mappings(function):
            self.lambdas.update_event_source_mapping(UUID=mapping["UUID"], Enabled=enabled)
        if not enabled:
            # Whoever was asking the queue when it was told takes one more batch.
            time.sleep(POLLED)

    @contextlib.contextmanager
    def submit_rate(self, rate):
        """So many calls of SubmitJob a second of all functions together, in place of the deployed parameter."""
        before = {}
        for name in ["submit", "schedule", "requeue", "watch"]:
            function = f"osprey-{name}"
            variables = self.lambdas.get_function_configuration(FunctionName=function)["Environment"]["Variables"]
            before[function] = variables
            changed = {**variables, "OSPREY_SUBMIT_RATE": str(rate)}
            self.lambdas.update_function_configuration(FunctionName=function, Environment={"Variables": changed})
        try:
            yield
        finally:
            for function, variables in before.items():
                self.lambdas.update_function_configuration(FunctionName=function, Environment={"Variables": variables})

    @contextlib.contextmanager
    def short_visibility(self, seconds=15):
        """Messages that failed come again soon, and not after the six minutes of the template."""
        urls = [url for url in self.sqs.list_queues()["QueueUrls"] if "/osprey-" in url]
        for url in urls:
            self.sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": str(seconds)})
        try:
            yield
        finally:
            for url in urls:
                self.sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "360"})

    def end_function(self, name, chance):
        """Ends one process of a function by force, whatever it does; `False` when none runs."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                # Only what the emulator has started.
                if os.getsid(int(pid)) != self.emulator_pid:
                    continue
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if f"AWS_LAMBDA_FUNCTION_NAME=osprey-{name}\0".encode() in file.read():
                        found.append(int(pid))
            except (OSError, ValueError):
                continue
        if found:
            os.kill(chance.choice(found), signal.SIGKILL)
        return bool(found)

    # ---- what is asked of it

    def send(self, body):
        """Sends one message to the submission queue; answers its id."""
        text = body if isinstance(body, str) else json.dumps(body)
        return self.sqs.send_message(QueueUrl=self.outputs["SubmissionsQueueUrl"], MessageBody=text)["MessageId"]

    def watch(self):
        """A round of `watch` now, beside those of the schedule."""
        answer = self.lambdas.invoke(FunctionName="osprey-watch", Payload=b"{}")
        assert "FunctionError" not in answer, answer["Payload"].read()

    def letter(self, message):
        """The dead letter of a message, by the message's id; `None` while there is none."""
        letters = (self.item(partition) for partition in self.listing("DEAD"))
        return next((letter for letter in letters if letter["kind"].get("message", {}).get("message") == message), None)

    def item(self, partition, sort="STATE"):
        key = {"pk": {"S": partition}, "sk": {"S": sort}}
        item = self.dynamodb.get_item(TableName=self.outputs["Table"], Key=key, ConsistentRead=True).get("Item")
        return json.loads(item["body"]["S"]) if item else None

    def partition(self, partition):
        """Bodies of a partition, by sort key."""
        answer = self.dynamodb.query(
            TableName=self.outputs["Table"],
            KeyConditionExpression="pk = :p",
            ExpressionAttributeValues={":p": {"S": partition}},
            ConsistentRead=True,
        )
        return {item["sk"]["S"]: json.loads(item["body"]["S"]) for item in answer["Items"] if "body" in item}

    def listing(self, kind):
        """Partitions of all jobs (`JOBS`) or dead letters (`DEAD`)."""
        found, more = [], {}
        while True:
            answer = self.dynamodb.query(
                TableName=self.outputs["Table"],
                IndexName="listing",
                KeyConditionExpression="listing_pk = :p",
                ExpressionAttributeValues={":p": {"S": kind}},
                **more,
            )
            found += [item["pk"]["S"] for item in answer["Items"]]
            if "LastEvaluatedKey" not in answer:
                return found
            more = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def batch_jobs(self, name):
        """Jobs of the local Batch whose names begin so, from every queue."""
        found = []
        for pool in pools(4):
            for queue in pool["queues"].values():
                pages = self.batch.get_paginator("list_jobs")
                filters = [{"name": "JOB_NAME", "values": [f"{name}*"]}]
                for page in pages.paginate(jobQueue=queue, filters=filters):
                    found += page["jobSummaryList"]
        return found

    def faults(self, proxy, rules):
        """Faults from now on, of which `fired` tells; none with an empty list."""
        if rules:
            self.forget_fired(proxy)
        request = urllib.request.Request(
            f"{proxy}/_microburst/rules", data=json.dumps(rules).encode(), method="POST", headers={"content-type": "application/json"}
        )
        urllib.request.urlopen(request, timeout=10).read()

    def counted(self, run):
        """Runs something; answers the functions' calls meanwhile, by service and operation."""
        before = dict(self.bridge.calls)
        # A fault that does nothing, so that every call is written down.
        self.faults(self.aws_proxy, [{"service": "*", "latency": 0}])
        run()
        calls = {f"batch:{name}": number - before.get(name, 0) for name, number in self.bridge.calls.items()}
        for one in self.fired(self.aws_proxy):
            key = f"{one['service']}:{one['operation']}"
            calls[key] = calls.get(key, 0) + 1
        self.faults(self.aws_proxy, [])
        return {name: number for name, number in sorted(calls.items()) if number}

    def forget_fired(self, proxy):
        forget = urllib.request.Request(f"{proxy}/_microburst/fired", method="DELETE")
        urllib.request.urlopen(forget, timeout=10).read()

    def fired(self, proxy):
        """Faults that were brought in since rules were last given."""
        with urllib.request.urlopen(f"{proxy}/_microburst/fired?limit=100000", timeout=10) as answer:
            return json.loads(answer.read())


# How long something is waited for, seconds. It says only how soon a failure is told, so a slow machine has its time.
PATIENCE = 240


def until(what, every=0.2):
    """Asks again until the answer is true; answers it."""
    end = time.monotonic() + PATIENCE
    while True:
        answer = what()
        if answer:
            return answer
        assert time.monotonic() < end, f"it did not happen within {PATIENCE} s; asked last: {answer!r}"
        time.sleep(every)
