"""Very many jobs at once against AWS's 50 calls a second. OSPREY_BURST says how many."""

import json
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from checks import check
from deployed import request
from stack import pools, until

COUNT = int(os.environ.get("OSPREY_BURST", "2000"))
# The same with so few tokens that every job waits for one, whatever the speed of the functions on this machine.
FEW, FEW_A_SECOND = 200, 2
# AWS's limit for an account.
LIMIT = 50
# How long no job may be submitted until a burst is given up, seconds.
STILL = 600
# One job in so many is urgent.
URGENT = 20


def drafts(name, count):
    """Bodies of jobs, urgent ones among many that aren't, with their ids."""
    for number in range(count):
        is_urgent = number % URGENT == URGENT - 1
        tags = {} if is_urgent else {"environment": "dev", "workload": "training"}
        job, body = request(f"{name}-{number}", **tags)
        yield job, is_urgent, json.dumps(body)


def send(stack, some):
    entries = [{"Id": str(number), "MessageBody": body} for number, (_, _, body) in enumerate(some)]
    answer = stack.sqs.send_message_batch(QueueUrl=stack.outputs["SubmissionsQueueUrl"], Entries=entries)
    assert not answer.get("Failed"), answer


def submitted(stack, name):
    """When AWS Batch got each job, by its name."""
    found = {}
    for pool in pools(4):
        for queue in pool["queues"].values():
            pages = stack.batch.get_paginator("list_jobs").paginate(
                jobQueue=queue, filters=[{"name": "JOB_NAME", "values": [f"{name}-*"]}]
            )  # fmt: skip
            for page in pages:
                for one in page["jobSummaryList"]:
                    assert one["jobName"] not in found, f"{one['jobName']} is two jobs of AWS Batch"
                    found[one["jobName"]] = one["createdAt"] / 1000
    return found


def run(stack, name, count):
    """Sends so many jobs at once, and waits until AWS Batch has all; how long each was on its way, urgent ones and others."""
    dead, before = len(stack.listing("DEAD")), len(stack.bridge.submitted_at)
    stack.bridge.submit_limit, stack.bridge.throttled = LIMIT, 0
    # What becomes of the jobs afterwards is another check's; here their events would only keep the emulator busy.
    stack.bridge.drop_events = True
    jobs = list(drafts(name, count))
    began = time.time()
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda at: send(stack, jobs[at : at + 10]), range(0, count, 10)))
        sent = time.time() - began
        last, moved = before, time.monotonic()
        while (now := len(stack.bridge.submitted_at)) - before < count:
            if now > last:
                last, moved = now, time.monotonic()
            assert time.monotonic() < moved + STILL, f"{now - before} of {count} were submitted, and then none for {STILL} s"
            stack.watch()
            time.sleep(2)
        took = time.time() - began
        # A call too many would come soon.
        time.sleep(10)
        at = submitted(stack, name)
    finally:
        stack.bridge.submit_limit, stack.bridge.drop_events = 0, False
    assert len(at) == count, f"{count} jobs made {len(at)} jobs of AWS Batch"
    assert len(stack.listing("DEAD")) == dead, "a burst made dead letters"
    waits = {kind: [at[f"{name}-{n}"] - began for n, job in enumerate(jobs) if job[1] is kind] for kind in (True, False)}
    urgent, others = (statistics.median(waits[kind]) for kind in (True, False))
    share = stack.bridge.throttled / count
    print(
        f"{count} jobs sent in {sent:.0f} s and submitted in {took:.0f} s ({count / took:.1f} a second), {share:.2%} of the calls "
        f"throttled; median time to AWS Batch: urgent {urgent:.0f} s, others {others:.0f} s"
    )
    assert share < 0.01, f"{share:.2%} of the calls were throttled"
    until(lambda: all(stack.item(f"JOB#{job}")["state"] == "submitted" for job, _, _ in jobs[:: max(1, count // 200)]))
    return urgent, others


@check("a burst against 50 calls a second: all recorded, none dead, none twice", is_long=True)
def burst(stack):
    run(stack, "burst", COUNT)


@check("jobs that wait for tokens leave by their priority", is_long=True)
def order(stack):
    with stack.submit_rate(FEW_A_SECOND):
        urgent, others = run(stack, "few", FEW)
    assert urgent < others / 2, f"urgent ones waited {urgent:.0f} s, others {others:.0f} s"
