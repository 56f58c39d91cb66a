"""A pool that holds its jobs: a cycle starts what fits, by what ECS says of the instances, and the rest waits with Osprey."""

import contextlib
import json
import os
import time

from checks import check
from cli import ok
from deployed import ended, request, state
from stack import until

# Three nodes of eight GPUs are in the pool.
NODES = 3
# How long a process of a function goes on with the modes that it has read, and a little more, seconds.
KNOWN = 65
# How long a full pool is watched, seconds: long enough for a wake-up of each kind.
WATCHED = 10


@contextlib.contextmanager
def mode(stack, name):
    """The pool in another mode, known to every process of the functions, and back."""

    def has(name):
        return (stack.item("CONFIG", "MODE#local") or {}).get("mode") == name

    stack.send({"action": "SetMode", "pool": "local", "mode": name})
    until(lambda: has(name))
    time.sleep(KNOWN)
    try:
        yield
    finally:
        stack.send({"action": "SetMode", "pool": "local", "mode": "direct"})
        until(lambda: has("direct"))


def whole_node(name, gate):
    """A job that takes a node until a file is there."""
    job, body = request(name, ("sh", "-c", 'until test -e "$0"; do sleep 0.2; done', gate))
    body["containerOverrides"]["resourceRequirements"][0]["value"] = "8"
    return job, body


def asked_why(stack, job, gate):
    """What the command line says of a job in line, and of one that would be sent."""
    (told,) = ok(stack, "why", job)
    assert told["reason"]["code"] == "NoRoom" and "job_ends" in [one["change"] for one in told["changes"]], told
    assert told["eta_seconds"] is not None, told
    (dry,) = ok(stack, "submit-job", "--cli-input-json", json.dumps(whole_node("dry", gate)[1]), "--dry-run")
    assert dry["pending"]["verdict"] == "waits", dry
    (pools,) = ok(stack, "queue")
    assert [pool["mode"] for pool in pools if pool["pool"] == "local"] == ["held"], pools


@check("a pool on AWS holds its jobs, and starts as many as fit")
def held(stack):
    gate = os.path.join(stack.work, "gate")
    with mode(stack, "held"):
        jobs = []
        for number in range(NODES + 2):
            job, body = whole_node(f"whole-{number}", gate)
            stack.send(body)
            jobs.append(job)

        def states():
            return sorted(str(state(stack, job)) for job in jobs)

        try:
            until(lambda: len(stack.batch_jobs("whole-")) >= NODES)
            until(lambda: states().count("queued") == 2)
            asked_why(stack, next(job for job in jobs if state(stack, job) == "queued"), gate)
            # The pool is full, so no cycle starts another one while these run.
            end = time.monotonic() + WATCHED
            while time.monotonic() < end:
                stack.watch()
                assert len(stack.batch_jobs("whole-")) == NODES, states()
                time.sleep(1)
        finally:
            with open(gate, "w"):
                pass
        for job in jobs:
            assert ended(stack, job) == "succeeded"
    assert (stack.item("POOLS", "local") or {}).get("plan"), "no cycle has planned"
    assert len(stack.batch_jobs("whole-")) == len(jobs)
