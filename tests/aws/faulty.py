"""Faults on the way: throttles, errors, resets, replies that are lost after the call took effect, functions that are ended.

Each check sends a wave of jobs into faults and lets it run for a while. A call whose outcome nobody knows is settled only
when it can't act any more, a function's time-out and the parameter SettlementSeconds later; so the last check waits for
all that is left of all waves.
"""

import collections
import os
import random
import time

from checks import check
from deployed import request, state
from stack import until

LONG = bool(os.environ.get("OSPREY_LONG"))
# Jobs of the wave of lost replies; the promised figure in the long run.
JOBS = 500 if LONG else 60
# How often functions are ended.
ENDED = 40 if LONG else 20
# How long a wave is watched before it is left to the last check, seconds.
PATIENCE = 240 if LONG else 60
# How long at most until all is settled, seconds. It says only how soon a failure is told.
SETTLED = 900
# Waves at most until every fault that is wanted was there; chance decides which call meets one.
WAVES_MAX = 6
LOST = {"response": {"abort_bytes": 0}}
WAVES = []


def rule(service, operation, fault, probability):
    """A fault of one operation, or of all of a service's with `None`."""
    which = {"operation": operation} if operation else {}
    return {"service": service, **which, "probability": probability, **fault}


class Wave:
    """Jobs of one name, sent at once."""

    def __init__(self, stack, name, count):
        self.name, self.count, self.left, self.dead = name, count, set(), set(stack.listing("DEAD"))
        for number in range(count):
            job, body = request(f"{name}-{number}")
            stack.send(body)
            self.left.add(job)
        WAVES.append(self)

    def done(self, stack):
        for job in list(self.left):
            if state(stack, job) == "succeeded":
                self.left.discard(job)
        return not self.left

    def drain(self, stack, seconds):
        """Waits until all have succeeded, or the time is over."""
        end = time.monotonic() + seconds
        while not self.done(stack) and time.monotonic() < end:
            stack.watch()
            time.sleep(1)
        print(f"{self.count - len(self.left)} of {self.count} ended within {seconds - max(0, end - time.monotonic()):.0f} s")

    def check(self, stack):
        """All have succeeded, each as one job of AWS Batch, and nothing died."""
        told = {job: stack.item(f"JOB#{job}") for job in list(self.left)[:3]}
        assert not self.left, f"{len(self.left)} of {self.count} jobs of {self.name} did not end: {told}"
        of_batch = stack.batch_jobs(f"{self.name}-")
        assert len(of_batch) == self.count, f"{self.count} jobs of {self.name} made {len(of_batch)} jobs of AWS Batch"
        dead = [stack.item(letter) for letter in set(stack.listing("DEAD")) - self.dead]
        assert not dead, f"dead letters came with {self.name}: {dead}"


@check("with replies to SubmitJob lost in 30 % of calls, each job is one job of AWS Batch")
def lost_submissions(stack):
    stack.faults(stack.batch_proxy, [rule("batch", "SubmitJob", LOST, 0.3)])
    try:
        wave = Wave(stack, "lost", JOBS)
        wave.drain(stack, SETTLED)
        fired = [one for one in stack.fired(stack.batch_proxy) if one["operation"] == "SubmitJob"]
        print(f"{len(fired)} replies were lost")
        assert len(fired) >= JOBS // 10, f"only {len(fired)} replies were lost"
    finally:
        stack.faults(stack.batch_proxy, [])
    wave.check(stack)


@check("throttles, errors and resets of SubmitJob")
def faulty_submissions(stack):
    throttle = {"error": {"code": "TooManyRequestsException", "status": 429}}
    error = {"error": {"code": "ServerException", "status": 500}}
    rules = [rule("batch", "SubmitJob", fault, 0.15) for fault in (throttle, error, {"reset": True})]
    stack.faults(stack.batch_proxy, rules)
    try:
        Wave(stack, "faulty", JOBS // 2).drain(stack, PATIENCE)
    finally:
        stack.faults(stack.batch_proxy, [])


@check("faults of the table and the queues")
def faulty_store(stack):
    throttle = {"error": {"code": "ProvisionedThroughputExceededException", "status": 400}}
    error = {"error": {"code": "InternalServerError", "status": 500}}
    wanted = {"PutItem", "TransactWriteItems", "GetItem"}
    rules = [
        rule("dynamodb", "PutItem", LOST, 0.1),
        rule("dynamodb", "TransactWriteItems", LOST, 0.1),
        rule("dynamodb", None, throttle, 0.05),
        rule("dynamodb", None, error, 0.03),
        rule("sqs", "SendMessage", LOST, 0.2),
        rule("dynamodb", None, {"reset": True}, 0.02),
    ]
    with stack.short_visibility():
        stack.faults(stack.aws_proxy, rules)
        try:
            fired = collections.Counter()
            for number in range(WAVES_MAX):
                Wave(stack, f"store-{number}", JOBS // 2).drain(stack, PATIENCE)
                fired = collections.Counter(one["operation"] for one in stack.fired(stack.aws_proxy))
                if wanted <= set(fired):
                    break
            print(f"faults that were brought in: {dict(fired)}")
            assert wanted <= set(fired), fired
        finally:
            stack.faults(stack.aws_proxy, [])


@check("functions that are ended in the middle of a message")
def killed(stack):
    chance, ended = random.Random(5), []
    with stack.short_visibility():
        # Calls that take a while, so that it is mostly a message in whose middle a function is.
        stack.faults(stack.aws_proxy, [rule("dynamodb", None, {"latency": 100}, 1)])
        try:
            waves = []
            while len(ended) < ENDED and len(waves) < WAVES_MAX:
                # A machine that is fast enough has done a wave before enough functions were ended.
                waves.append(Wave(stack, f"killed-{len(waves)}", JOBS // 2))
                while len(ended) < ENDED and not waves[-1].done(stack):
                    name = chance.choice(["submit", "requeue"])
                    if stack.end_function(name, chance):
                        ended.append(name)
                    time.sleep(0.2)
        finally:
            stack.faults(stack.aws_proxy, [])
        for wave in waves:
            wave.drain(stack, PATIENCE // 2)
    print(f"{ended.count('submit')} times submit was ended, {ended.count('requeue')} times requeue")
    assert len(ended) == ENDED, ended


@check("a function that stands still for a while loses nothing")
def stopped(stack):
    stack.enable("osprey-requeue", False)
    job, body = request("unheard")
    stack.send(body)
    until(lambda: [one for one in stack.batch_jobs("unheard") if one["status"] == "SUCCEEDED"])
    assert state(stack, job) in ("submitted", "claimed"), state(stack, job)
    stack.enable("osprey-requeue", True)
    until(lambda: state(stack, job) == "succeeded")
    assert len(stack.batch_jobs("unheard")) == 1


@check("whatever was cut off is settled: each job ran once, none is lost, none is dead")
def settled(stack):
    with stack.short_visibility():
        end = time.monotonic() + SETTLED
        for wave in WAVES:
            wave.drain(stack, max(1, end - time.monotonic()))
    for wave in WAVES:
        wave.check(stack)


