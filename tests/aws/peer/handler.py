"""What one would write without Osprey: a handler on boto3 that derives a number and calls SubmitJob. For comparison.

It does far less: no record before the call, no claim, no settlement, no admission.
"""

import json
import os

import boto3

batch = boto3.client("batch")
table = boto3.resource("dynamodb").Table(os.environ["OSPREY_TABLE"])


def priority(tags, gpus):
    number = 1000 if "production" in (tags.get("environment"), tags.get("team")) else 500
    number += 200 if tags.get("workload") == "inference" else 0
    number -= 50 if gpus > 4 else 0
    return 0 if tags.get("preemptible") == "true" else number


def handle(event):
    failed = []
    for record in event["Records"]:
        try:
            body = json.loads(record["body"])
            tags, overrides = body.get("tags", {}), body.get("containerOverrides", {})
            wanted = overrides.get("resourceRequirements", [])
            number = priority(tags, sum(int(one["value"]) for one in wanted if one["type"] == "GPU"))
            answer = batch.submit_job(
                jobName=body["jobName"],
                jobQueue="osprey-local-critical",
                jobDefinition=body["jobDefinition"],
                shareIdentifier="critical",
                schedulingPriorityOverride=number,
                containerOverrides=overrides,
                tags={**tags, "priority": str(number)},
            )
            table.put_item(Item={"pk": record["messageId"], "sk": "STATE", "job": answer["jobId"], "priority": number})
        except Exception:  # noqa: BLE001 - the message comes again
            failed.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failed}
