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
# AWS's limit for an account.
LIMIT = 50
# At so many a second it is the tokens that jobs wait for; SubmitRate is 40.
TOKENS_HELD = 36
# One job in so many is urgent.
URGENT = 20


def drafts():
    """Bodies of jobs, urgent ones among many that aren't, with their ids."""
    for number in range(COUNT):
        is_urgent = number % URGENT == URGENT - 1
        tags = {} if is_urgent else {"environment": "dev", "workload": "training"}
        job, body = request(f"burst-{number}", **tags)
        yield job, is_urgent, json.dumps(body)


def send(stack, some):
    entries = [{"Id": str(number), "MessageBody": body} for number, (_, _, body) in enumerate(some)]
    answer = stack.sqs.send_message_batch(QueueUrl=stack.outputs["SubmissionsQueueUrl"], Entries=entries)
    assert not answer.get("Failed"), answer


def submitted(stack):
    """When AWS Batch got each job, by its name."""
    found = {}
    for pool in pools(4):
        for queue in pool["queues"].values():
            pages = stack.batch.get_paginator("list_jobs").paginate(
                jobQueue=queue, filters=[{"name": "JOB_NAME", "values": ["burst-*"]}]
            )  # fmt: skip
            for page in pages:
                for one in page["jobSummaryList"]:
                    assert one["jobName"] not in found, f"{one['jobName']} is two jobs of AWS Batch"
                    found[one["jobName"]] = one["createdAt"] / 1000
    return found


@check("a burst against 50 calls a second: all recorded, none dead, the urgent first", is_long=True)
def burst(stack):
    dead, before = len(stack.listing("DEAD")), len(stack.bridge.submitted_at)
    stack.bridge.submit_limit, stack.bridge.throttled = LIMIT, 0
    # What becomes of the jobs afterwards is another check's; here their events would only keep the emulator busy.
    stack.bridge.drop_events = True
    jobs = list(drafts())
    began = time.time()
    try:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda at: send(stack, jobs[at : at + 10]), range(0, COUNT, 10)))
        sent = time.time() - began
        # It says only how soon a failure is told, so a slow machine has its time.
        end = time.monotonic() + 900 + COUNT / 4
        while len(stack.bridge.submitted_at) - before < COUNT:
            assert time.monotonic() < end, f"{len(stack.bridge.submitted_at) - before} of {COUNT} were submitted in time"
            stack.watch()
            time.sleep(2)
        took = time.time() - began
        # A call too many would come soon.
        time.sleep(10)
        at = submitted(stack)
    finally:
        stack.bridge.submit_limit, stack.bridge.drop_events = 0, False
    assert len(at) == COUNT, f"{COUNT} jobs made {len(at)} jobs of AWS Batch"
    assert len(stack.listing("DEAD")) == dead, "a burst made dead letters"
    waits = {kind: [at[f"burst-{n}"] - began for n, job in enumerate(jobs) if job[1] is kind] for kind in (True, False)}
    urgent, others = (statistics.median(waits[kind]) for kind in (True, False))
    share = stack.bridge.throttled / COUNT
    print(
        f"{COUNT} jobs sent in {sent:.0f} s and submitted in {took:.0f} s ({COUNT / took:.1f} a second), {share:.2%} of the calls "
        f"throttled; median time to AWS Batch: urgent {urgent:.0f} s, others {others:.0f} s"
    )
    assert share < 0.01, f"{share:.2%} of the calls were throttled"
    # Jobs come in the order of their priority where they wait for tokens; functions slower than those leave no line.
    if COUNT / took >= TOKENS_HELD:
        assert urgent < others, "the urgent did not come first"
    else:
        print(f"the order isn't shown: fewer than {TOKENS_HELD} a second were submitted, so nobody waited for a token")
    until(lambda: all(stack.item(f"JOB#{job}")["state"] == "submitted" for job, _, _ in jobs[:: max(1, COUNT // 200)]))
