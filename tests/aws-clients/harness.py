"""Clients of the server under test, and the checks that a table is made of."""

import json
import os
import subprocess
import time

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

STATE = os.environ["STATE"]
OSPREY = os.environ["OSPREY"]
ACCOUNT = "000000000000"
REGION = "us-east-1"


def sourced():
    """The environment after sourcing aws.env, as a shell sees it."""
    command = f'. "{STATE}/aws.env" && env -0'
    text = subprocess.run(["sh", "-c", command], check=True, capture_output=True, text=True).stdout
    return dict(line.split("=", 1) for line in text.split("\0") if line)


ENV = sourced()
ENDPOINT = ENV["AWS_ENDPOINT_URL"]


def client(service, **more):
    """A client with nothing but what aws.env says; `loose` lets wrong requests out."""
    config = Config(retries={"total_max_attempts": 1}, parameter_validation=not more.pop("loose", False))
    options = {
        "region_name": ENV["AWS_REGION"],
        "endpoint_url": ENDPOINT,
        "aws_access_key_id": ENV["AWS_ACCESS_KEY_ID"],
        "aws_secret_access_key": ENV["AWS_SECRET_ACCESS_KEY"],
        "config": config,
    }
    return boto3.client(service, **{**options, **more})


batch, sqs = client("batch"), client("sqs")
loose_batch, loose_sqs = client("batch", loose=True), client("sqs", loose=True)


def arn(what):
    return f"arn:aws:batch:{REGION}:{ACCOUNT}:{what}"


def osprey(*arguments, check=True):
    """Runs the command line on the server's state; answers its exit code and output."""
    done = subprocess.run([OSPREY, *arguments, "--local", STATE], capture_output=True, text=True, timeout=120)
    if check:
        assert done.returncode == 0, done.stderr or done.stdout
    return done


def aws(*arguments, check=True):
    """Runs the AWS CLI after sourcing aws.env; answers its JSON."""
    command = ["aws", *arguments]
    if arguments[0] == "sqs":
        # Version 1 of the CLI knows an address of its own for SQS in some regions and takes no other but this.
        command += ["--endpoint-url", ENDPOINT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=ENV)
    if not check:
        return done
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout.strip() else {}


def until(what, seconds=60):
    """Asks again until the answer is true."""
    end = time.monotonic() + seconds
    while True:
        answer = what()
        if answer:
            return answer
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


CHECKS = []


def check(name):
    """Adds a function to the checks."""

    def add(function):
        CHECKS.append((name, function))
        return function

    return add


def good(name, call, want=lambda answer: True):
    """A call that succeeds, and what has to hold of its answer."""

    def run():
        answer = call()
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200, answer
        assert answer["ResponseMetadata"]["RequestId"], "no request id"
        held = want(answer)
        assert held is None or held, {key: value for key, value in answer.items() if key != "ResponseMetadata"}

    CHECKS.append((name, run))


def bad(name, call, code, message="", status=400, kind=None):
    """A call that fails: the code, a part of the sentence, the status, and the exception that boto3 makes of it."""

    def run():
        try:
            answer = call()
        except ClientError as error:
            got = error.response
            told = (got["Error"]["Code"], got["ResponseMetadata"]["HTTPStatusCode"])
            assert told == (code, status), f"{told}: {got['Error']['Message']}"
            assert message in got["Error"]["Message"], got["Error"]["Message"]
            assert kind is None or isinstance(error, kind), type(error)
            return
        raise AssertionError(f"it succeeded: {answer}")

    CHECKS.append((name, run))
