"""The command line on a stack: what a person types, and what they are told when there is no stack, no key, no region."""

import json
import os
import subprocess

from checks import check
from deployed import ended, request
from stack import REGION, STACK, until


def osprey(stack, *arguments, **environment):
    """Runs a command with JSON answers; its exit code, its answers, and its error."""
    base = {name: value for name, value in stack.environment.items() if not name.startswith("AWS_PROFILE")}
    env = {**base, "AWS_ENDPOINT_URL_BATCH": stack.batch_proxy, "HOME": stack.work, **environment}
    env = {name: value for name, value in env.items() if value is not None}
    done = subprocess.run(
        [stack.osprey, *arguments, "--output", "json"], capture_output=True, text=True, timeout=300, env=env, cwd=stack.work
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    errors = [json.loads(line) for line in done.stderr.splitlines() if line.startswith('{"error"')]
    return done.returncode, answers, errors[0]["error"] if errors else done.stderr


def ok(stack, *arguments):
    code, answers, error = osprey(stack, *arguments, "--stack", STACK)
    assert code == 0, f"{arguments}: {code} {error}"
    return answers


@check("a job is submitted, waited for, listed and described by the name of the stack")
def life(stack):
    job, body = request("by-cli")
    (sent,) = ok(stack, "submit-job", "--cli-input-json", json.dumps(body))
    assert sent == {"jobId": job, "jobName": "by-cli"}, sent
    # Until it is recorded, there is no such job to wait for.
    until(lambda: stack.item(f"JOB#{job}"))
    (waited,) = ok(stack, "wait", job)
    assert waited["state"] == "succeeded", waited
    (listed,) = ok(stack, "jobs", "--state", "succeeded", "--limit", "100")
    assert "by-cli" in [one["name"] for one in listed], listed
    for way in (job, "by-cli"):
        (record,) = ok(stack, "describe", way)
        assert (record["id"], record["tier"], len(record["attempts"])) == (job, "critical", 1), record
    code, _, error = osprey(stack, "logs", job, "--stack", STACK)
    assert (code, error["code"]) == (1, "NotAvailable") and "/aws/batch/job" in error["message"] + error["help"], error
    lines = ok(stack, "export")
    assert job in [line["id"] for line in lines], lines[:2]


@check("a job is held, released and cancelled by messages, and the outcome is told")
def actions(stack):
    job, body = request("by-hand", ("sleep", "300"))
    ok(stack, "submit-job", "--cli-input-json", json.dumps(body))
    until(lambda: (stack.item(f"JOB#{job}") or {}).get("state") in ("submitted", "running"))
    (asked,) = ok(stack, "cancel", job, "--reason", "superseded")
    assert asked["refusal"] is None and asked["done"], asked
    until(lambda: stack.item(f"JOB#{job}")["state"] == "failed")
    code, (asked,), _ = osprey(stack, "hold", job, "--stack", STACK)
    assert (code, asked["refusal"]["code"]) == (3, "WrongState"), asked
    (told,) = ok(stack, "why", job)
    assert told["reason"]["code"] == "Cancelled" and "by" in [fact["about"] for fact in told["facts"]], told
    (moments,) = ok(stack, "history", job)
    assert "asked" in [moment["what"] for moment in moments["moments"]], moments
    ok(stack, "lineage", job)
    code, (asked,), _ = osprey(stack, "preempt", job, "--dry-run", "--stack", STACK)
    assert (code, asked["refusal"]["code"]) == (3, "WrongState"), asked


@check("priorities come from the policy, the pools and the history of the stack")
def priorities(stack):
    _, body = request("preview")
    path = os.path.join(stack.work, "job.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(body, file)
    (answer,) = ok(stack, "priority", path)
    assert (answer["admitted"], answer["priority"], answer["pool"]) == (True, 1200, "local"), answer
    # Whoever asks is judged as the queue would name them, or as somebody else.
    policy = os.path.join(stack.work, "policy.toml")
    with open(os.path.join(stack.root, "shared", "policy", "policies", "default.toml"), encoding="utf-8") as file:
        text = file.read()
    caller = stack.client("sts", stack.emulator, "test", "test").get_caller_identity()["UserId"].split(":")[0]
    with open(policy, "w", encoding="utf-8") as file:
        file.write(f'{text}\n[[identity]]\nname = "me"\nwho = ["{caller}"]\ntier_at_most = "experimental"\n')
    (mine,) = ok(stack, "priority", path, "--policy", policy)
    (theirs,) = ok(stack, "priority", path, "--policy", policy, "--sender", "AIDASOMEBODYELSE")
    assert (mine["tier"], theirs["tier"]) == ("experimental", "critical"), (mine, theirs)
    # By the names alone: the pools aren't known then.
    code, _, error = osprey(stack, "priority", path, "--table", stack.outputs["Table"])
    assert (code, error["code"]) == (2, "Usage"), error


@check("by the names of table and queue, without the stack")
def names(stack):
    place = ["--table", stack.outputs["Table"]]
    code, _, error = osprey(stack, "submit-job", "--cli-input-json", json.dumps(request("nowhere")[1]), *place)
    assert (code, error["message"]) == (2, "which queue to send to isn't said"), error
    place += ["--queue-url", stack.outputs["SubmissionsQueueUrl"], "--region", REGION, "--endpoint-url", stack.emulator]
    job, body = request("by-names")
    assert osprey(stack, "submit-job", "--cli-input-json", json.dumps(body), *place, AWS_ENDPOINT_URL=None)[0] == 0
    until(lambda: stack.item(f"JOB#{job}"))
    code, (listed,), error = osprey(stack, "jobs", "--table", stack.outputs["Table"])
    assert code == 0 and job in [one["id"] for one in listed], error
    # Its calls aren't another check's.
    assert ended(stack, job) == "succeeded"


@check("dead letters of the stack are listed, shown and closed")
def dead_letters(stack):
    message = stack.send('{"jobName":"cut off by hand')
    letter = until(lambda: stack.letter(message))["id"]
    (listed,) = ok(stack, "dead-letters", "list")
    assert [one["code"] for one in listed if one["id"] == letter] == ["NotJson"], listed
    (shown,) = ok(stack, "dead-letters", "show", letter)
    assert "cut off by hand" in shown["body"], shown
    (asked,) = ok(stack, "dead-letters", "discard", letter, "--reason", "a test")
    assert asked["refusal"] is None, asked


@check("whoever can't reach the stack is told why, and what to do", functions=False)
def obstacles(stack):
    no_keys = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}
    no_region = {"AWS_REGION": None, "AWS_DEFAULT_REGION": None}
    cases = [
        (["--stack", "none"], {}, "there is no stack `none` in us-east-1", "list-stacks"),
        (["--table", "none"], {}, "there is no table `none` in us-east-1", "--stack"),
        (["--stack", STACK], no_keys, "no AWS credentials were found", "--profile"),
        (["--stack", STACK, "--profile", "nobody"], no_keys, "no AWS credentials were found", "--profile"),
        (["--stack", STACK], no_region, "no AWS region is set", "--region"),
        (["--stack", STACK, "--endpoint-url", "http://127.0.0.1:9"], {}, "AWS can't be asked", "--endpoint-url"),
    ]
    for place, environment, message, advice in cases:
        code, _, error = osprey(stack, "jobs", *place, **environment)
        assert code == 1 and error["code"] == "AwsUnreachable", (place, code, error)
        assert message in error["message"] and advice in error["help"], (place, error)
    expired = {"error": {"code": "ExpiredTokenException", "message": "The security token included in the request is expired", "status": 400}}
    denied = {"error": {"code": "AccessDeniedException", "message": "User: x is not authorized to perform: dynamodb:GetItem", "status": 400}}
    for fault, message in [(expired, "the AWS credentials have expired"), (denied, "the role lacks `dynamodb:GetItem`")]:
        stack.faults(stack.aws_proxy, [{"service": "dynamodb", **fault}])
        try:
            code, _, error = osprey(stack, "jobs", "--table", "osprey", AWS_ENDPOINT_URL=stack.aws_proxy)
        finally:
            stack.faults(stack.aws_proxy, [])
        assert code == 1 and message in error["message"], (fault, code, error)
