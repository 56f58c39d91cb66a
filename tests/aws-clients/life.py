"""Servers that can't start, and one that dies and is started again."""

import json
import os
import signal
import sqlite3
import stat
import subprocess
import tempfile

import boto3

from harness import ENDPOINT, OSPREY, STATE, check, until
from pipeline import request


def served(state, *more):
    """Starts a server of its own; answers the process and what it said."""
    command = [OSPREY, "local", "serve", "--output", "json", "--state", state, "--port", "0", "--nodes", "1", *more]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    line = server.stdout.readline()
    assert line, f"it ended with {server.wait(timeout=10)}"
    return server, json.loads(line)


def keys(said):
    """The key that a server's `aws.env` says."""
    lines = open(said["env"]).read().splitlines()
    found = dict(line[7:].split("=", 1) for line in lines if line.startswith("export "))
    return found["AWS_ACCESS_KEY_ID"], found["AWS_SECRET_ACCESS_KEY"]


def ended(server):
    """Stops a server as Ctrl-C does."""
    server.send_signal(signal.SIGINT)
    assert server.wait(timeout=30) == 0


def refused(*arguments):
    """A server that doesn't start: its exit code and its sentence."""
    done = subprocess.run([OSPREY, "local", "serve", *arguments], capture_output=True, text=True, timeout=30)
    assert done.stdout == "", done.stdout
    return done.returncode, done.stderr.splitlines()[0]


@check("a port in use is one sentence")
def port_in_use():
    port = ENDPOINT.rsplit(":", 1)[1]
    with tempfile.TemporaryDirectory() as folder:
        state = os.path.join(folder, "state")
        assert refused("--port", port, "--state", state) == (1, f"error: port {port} of 127.0.0.1 is in use")
        assert not os.path.exists(state), "nothing was to be made"


@check("a state directory is served once")
def served_once():
    code, sentence = refused("--port", "0", "--state", STATE)
    assert code == 1 and "runs a pipeline in the state directory" in sentence, sentence


@check("a state directory that others may write to is refused")
def open_to_others():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        code, sentence = refused("--port", "0", "--state", folder)
        assert code == 1 and sentence.endswith(f"`chmod o-w {folder}` closes it"), sentence


@check("the key is in files that only their owner can read")
def private():
    for name in ["aws.env", "aws.secret"]:
        mode = stat.S_IMODE(os.stat(os.path.join(STATE, name)).st_mode)
        assert mode == 0o600, f"{name} has mode {mode:o}"
    assert stat.S_IMODE(os.stat(STATE).st_mode) == 0o700


@check("a server that is killed leaves its jobs running, and the next one finds them")
def killed():
    with tempfile.TemporaryDirectory() as folder:
        state = os.path.join(folder, "state")
        server, said = served(state)
        key = keys(said)
        session = boto3.Session(*key, region_name="us-east-1")
        job, body = request("survivor", ["sh", "-c", "sleep 3; echo survived"])
        url = f"{said['endpoint']}/000000000000/osprey-submissions"
        session.client("sqs", endpoint_url=said["endpoint"]).send_message(QueueUrl=url, MessageBody=body)

        def osprey(*arguments):
            return subprocess.run([OSPREY, *arguments, "--local", state], capture_output=True, text=True, timeout=60)

        until(lambda: '"state":"running"' in osprey("describe", job, "--output", "json").stdout)
        server.send_signal(signal.SIGKILL)
        server.wait(timeout=10)
        server, again = served(state)
        try:
            assert keys(again) == key, "the key is to stay"
            waited = osprey("wait", job)
            assert waited.returncode == 0, waited
            record = json.loads(osprey("describe", job, "--output", "json").stdout)
            assert [attempt["end_class"] for attempt in record["attempts"]] == ["succeeded"], record["attempts"]
            assert osprey("logs", job).stdout == "survived\n"
        finally:
            ended(server)


@check("a state directory of a newer version is refused in one sentence, and left as it is")
def newer():
    for name, change, sentence in [
        ("osprey.db", "UPDATE meta SET value = 99 WHERE name = 'schema_version'", "has schema version 99"),
        ("batch.db", "PRAGMA user_version = 99", "schema 99"),
    ]:
        with tempfile.TemporaryDirectory() as folder:
            state = os.path.join(folder, "state")
            ended(served(state)[0])
            database = sqlite3.connect(os.path.join(state, name))
            with database:
                database.execute(change)
            database.close()
            code, told = refused("--port", "0", "--state", state)
            assert code == 1 and name in told and sentence in told, told
            looked = subprocess.run([OSPREY, "jobs", "--local", state], capture_output=True, text=True, timeout=30)
            assert looked.returncode == 1 and sentence in looked.stderr, looked


@check("events that never come are made up for")
def lost_events():
    with tempfile.TemporaryDirectory() as folder:
        state = os.path.join(folder, "state")
        server, said = served(state, "--speed", "60", "--event-loss", "1")
        try:
            sqs = boto3.Session(*keys(said), region_name="us-east-1").client("sqs", endpoint_url=said["endpoint"])
            job, body = request("unheard", ["sh", "-c", "echo heard"])
            sqs.send_message(QueueUrl=f"{said['endpoint']}/000000000000/osprey-submissions", MessageBody=body)
            until(lambda: subprocess.run([OSPREY, "describe", job, "--local", state], capture_output=True).returncode == 0)
            waited = subprocess.run([OSPREY, "wait", job, "--local", state], capture_output=True, text=True, timeout=60)
            assert waited.returncode == 0, waited
        finally:
            ended(server)
