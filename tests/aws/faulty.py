"""Faults on the way: throttles, errors, resets, and replies that are lost after the call took effect."""

import os

from checks import check
from deployed import request, state
from stack import until

LONG = bool(os.environ.get("OSPREY_LONG"))
# Jobs of one run with faults; the figure in the long run.
JOBS = 500 if LONG else 60
LOST = {"response": {"abort_bytes": 0}}


def rule(service, operation, fault, probability):
    return {"service": service, "operation": operation, "probability": probability, **fault}


def all_end(stack, name, count, seconds):
    """Sends so many jobs and waits until each has succeeded; asserts that AWS Batch had each once."""
    jobs = []
    for number in range(count):
        job, body = request(f"{name}-{number}")
        jobs.append(job)
        stack.send(body)
    left = set(jobs)

    def done():
        stack.watch()
        for job in list(left):
            if state(stack, job) == "succeeded":
                left.discard(job)
        return not left

    try:
        until(done, seconds, every=2)
    except AssertionError:
        told = {job: stack.item(f"JOB#{job}") for job in list(left)[:3]}
        raise AssertionError(f"{len(left)} of {count} jobs did not end: {told}") from None
    of_batch = stack.batch_jobs(f"{name}-")
    assert len(of_batch) == count, f"{count} jobs made {len(of_batch)} jobs of AWS Batch"


@check("with replies to SubmitJob lost in 30 % of calls, each job is one job of AWS Batch")
def lost_submissions(stack):
    stack.faults(stack.batch_proxy, [rule("batch", "SubmitJob", LOST, 0.3)])
    try:
        all_end(stack, "lost", JOBS, 900 if LONG else 240)
        fired = [one for one in stack.fired(stack.batch_proxy) if one["operation"] == "SubmitJob"]
        assert len(fired) >= JOBS // 10, f"only {len(fired)} replies were lost"
    finally:
        stack.faults(stack.batch_proxy, [])


@check("throttles, errors and resets of SubmitJob make no second job and no dead letter")
def faulty_submissions(stack):
    dead = len(stack.listing("DEAD"))
    throttle = {"error": {"code": "TooManyRequestsException", "status": 429}}
    error = {"error": {"code": "ServerException", "status": 500}}
    rules = [rule("batch", "SubmitJob", fault, 0.15) for fault in (throttle, error, {"reset": True})]
    stack.faults(stack.batch_proxy, rules)
    try:
        all_end(stack, "faulty", JOBS // 2, 900 if LONG else 240)
    finally:
        stack.faults(stack.batch_proxy, [])
    assert len(stack.listing("DEAD")) == dead, "a fault in passing made a dead letter"


@check("faults of the table and the queues lose nothing and double nothing")
def faulty_store(stack):
    throttle = {"error": {"code": "ProvisionedThroughputExceededException", "status": 400}}
    error = {"error": {"code": "InternalServerError", "status": 500}}
    rules = [
        rule("dynamodb", "PutItem", LOST, 0.1),
        rule("dynamodb", "TransactWriteItems", LOST, 0.1),
        rule("dynamodb", "*", throttle, 0.05),
        rule("dynamodb", "*", error, 0.03),
        rule("sqs", "SendMessage", LOST, 0.2),
        rule("dynamodb", "*", {"reset": True}, 0.02),
    ]
    stack.faults(stack.aws_proxy, rules)
    try:
        all_end(stack, "store", JOBS // 2, 900 if LONG else 300)
    finally:
        stack.faults(stack.aws_proxy, [])


@check("a function that stands still for a while loses nothing")
def stopped(stack):
    stack.enable("osprey-requeue", False)
    job, body = request("unheard")
    stack.send(body)
    until(lambda: [one for one in stack.batch_jobs("unheard") if one["status"] == "SUCCEEDED"], 60)
    assert state(stack, job) in ("submitted", "claimed"), state(stack, job)
    stack.enable("osprey-requeue", True)
    until(lambda: state(stack, job) == "succeeded", 60)
    assert len(stack.batch_jobs("unheard")) == 1


@check("a burst against 50 calls a second is recorded, submitted in full, and none is dead", is_long=True)
def burst(stack):
    dead = len(stack.listing("DEAD"))
    stack.bridge.submit_limit = 50
    try:
        all_end(stack, "burst", 2000, 1200)
    finally:
        stack.bridge.submit_limit = 0
    assert len(stack.listing("DEAD")) == dead, "a throttle made a dead letter"
    share = stack.bridge.throttled / 2000
    assert share < 0.01, f"{share:.2%} of the calls were throttled"
