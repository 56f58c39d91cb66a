"""A pool that holds its jobs: a cycle starts what fits, by what ECS says of the instances, and the rest waits with Osprey."""

import contextlib

from checks import check
from deployed import ended, request, state
from stack import until

# Three nodes of eight GPUs are in the pool.
NODES = 3


@contextlib.contextmanager
def mode(stack, name):
    """The pool in another mode, and back."""
    stack.send({"action": "SetMode", "pool": "local", "mode": name})
    try:
        yield
    finally:
        stack.send({"action": "SetMode", "pool": "local", "mode": "direct"})


def whole_node(name, seconds):
    """A job that takes a node for a while."""
    job, body = request(name, ("sleep", str(seconds)))
    body["containerOverrides"]["resourceRequirements"][0]["value"] = "8"
    return job, body


@check("a pool on AWS holds its jobs, and starts as many as fit")
def held(stack):
    with mode(stack, "held"):
        # A function reads what is in force once a minute at most; a job that stands in a line shows that it has.
        first, body = request("held-first")
        stack.send(body)
        assert ended(stack, first) == "succeeded"

        def is_held():
            job, body = request("held-probe")
            stack.send(body)
            assert ended(stack, job) == "succeeded"
            return (stack.item("POOLS", "local") or {}).get("plan")

        until(is_held, every=5)
        jobs = []
        for number in range(NODES + 2):
            job, body = whole_node(f"whole-{number}", 20)
            stack.send(body)
            jobs.append(job)
        until(lambda: len(stack.batch_jobs("whole-")) == NODES)
        # The pool is full, so no cycle starts another one while these run.
        waiting = [job for job in jobs if state(stack, job) == "queued"]
        assert len(waiting) == 2, [state(stack, job) for job in jobs]
        for job in jobs:
            assert ended(stack, job) == "succeeded"
    assert len(stack.batch_jobs("whole-")) == len(jobs)
