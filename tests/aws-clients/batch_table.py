"""Batch's operations, each well and badly, seen through boto3. A name is `Operation: what`."""

import urllib.request

from harness import ENDPOINT, arn, bad, batch, check, client, good, loose_batch, until

REFUSED = batch.exceptions.ClientException
FAIR, FIFO = "clients-fair", "clients-fifo"
SMALL = [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "256"}]
ids = {}


def keep(name):
    def want(answer):
        ids[name] = answer["jobId"]
        return answer["jobArn"] == arn(f"job/{answer['jobId']}") and answer["jobName"]

    return want


def submit(client=batch, **change):
    request = {"jobName": "a", "jobQueue": FAIR, "jobDefinition": "shell", "shareIdentifier": "TeamA",
               "schedulingPriorityOverride": 5, **change}
    return client.submit_job(**{key: value for key, value in request.items() if value is not None})


# Compute environments.

RESOURCES = {"type": "EC2", "minvCpus": 0, "maxvCpus": 8, "instanceTypes": ["g5.xlarge"], "subnets": ["subnet-1"],
             "securityGroupIds": ["sg-1"], "instanceRole": "ecsInstanceRole", "allocationStrategy": "BEST_FIT_PROGRESSIVE"}
good("CreateComputeEnvironment: a managed one",
     lambda: batch.create_compute_environment(computeEnvironmentName="clients", type="MANAGED",
                                              computeResources=RESOURCES, tags={"a": "1"}, serviceRole="role"),
     lambda r: r["computeEnvironmentArn"] == arn("compute-environment/clients"))
bad("CreateComputeEnvironment: a name that is taken",
    lambda: batch.create_compute_environment(computeEnvironmentName="clients", type="MANAGED", computeResources=RESOURCES),
    "ClientException", "Object already exists", kind=REFUSED)
bad("CreateComputeEnvironment: Fargate",
    lambda: batch.create_compute_environment(computeEnvironmentName="x", type="MANAGED",
                                             computeResources={"type": "FARGATE", "maxvCpus": 4, "subnets": []}),
    "ClientException", "does not offer compute environments of type FARGATE", kind=REFUSED)
bad("CreateComputeEnvironment: a name with a space",
    lambda: batch.create_compute_environment(computeEnvironmentName="a b", type="MANAGED", computeResources=RESOURCES),
    "ClientException", "Compute environment name")
bad("CreateComputeEnvironment: without a type",
    lambda: loose_batch.create_compute_environment(computeEnvironmentName="x"), "ClientException", "type must be specified.")
good("DescribeComputeEnvironments: by name",
     lambda: batch.describe_compute_environments(computeEnvironments=["clients"]),
     lambda r: [e["computeResources"] for e in r["computeEnvironments"]] == [{**RESOURCES, "desiredvCpus": 0}]
     and r["computeEnvironments"][0]["status"] == "VALID" and r["computeEnvironments"][0]["serviceRole"] == "role")
good("DescribeComputeEnvironments: an unknown one is left out",
     lambda: batch.describe_compute_environments(computeEnvironments=["none"]), lambda r: r["computeEnvironments"] == [])
good("DescribeComputeEnvironments: those of the pipeline too",
     lambda: batch.describe_compute_environments(),
     lambda r: {"osprey-local", "osprey-local-spot", "clients"} <= {e["computeEnvironmentName"] for e in r["computeEnvironments"]})
good("UpdateComputeEnvironment: other numbers and security groups",
     lambda: batch.update_compute_environment(computeEnvironment=arn("compute-environment/clients"),
                                              computeResources={"maxvCpus": 16, "securityGroupIds": ["sg-2"]}),
     lambda r: r["computeEnvironmentName"] == "clients")
good("DescribeComputeEnvironments: after the update",
     lambda: batch.describe_compute_environments(computeEnvironments=[arn("compute-environment/clients")]),
     lambda r: r["computeEnvironments"][0]["computeResources"] == {**RESOURCES, "maxvCpus": 16, "securityGroupIds": ["sg-2"], "desiredvCpus": 0})
bad("UpdateComputeEnvironment: an unknown one",
    lambda: batch.update_compute_environment(computeEnvironment="none", state="DISABLED"),
    "ClientException", "none does not exist", kind=REFUSED)
bad("UpdateComputeEnvironment: a state that is none",
    lambda: batch.update_compute_environment(computeEnvironment="clients", state="ASLEEP"),
    "ClientException", "state must be one of [ENABLED, DISABLED], got ASLEEP")

# Scheduling policies.

SHARES = {"shareDecaySeconds": 600, "computeReservation": 1,
          "shareDistribution": [{"shareIdentifier": "TeamA", "weightFactor": 0.5}, {"shareIdentifier": "TeamB*", "weightFactor": 2.0}]}
good("CreateSchedulingPolicy: fair share",
     lambda: batch.create_scheduling_policy(name="clients", fairsharePolicy=SHARES, tags={"a": "1"}),
     lambda r: r["arn"] == arn("scheduling-policy/clients"))
bad("CreateSchedulingPolicy: a weight out of range",
    lambda: batch.create_scheduling_policy(name="x", fairsharePolicy={"shareDistribution": [{"shareIdentifier": "a", "weightFactor": 1000.0}]}),
    "ClientException", "weightFactor must be between 0.0001 and 999.9999", kind=REFUSED)
bad("CreateSchedulingPolicy: shares that overlap",
    lambda: batch.create_scheduling_policy(name="x", fairsharePolicy={"shareDistribution": [{"shareIdentifier": "a*"}, {"shareIdentifier": "ab"}]}),
    "ClientException", "must not overlap")
bad("CreateSchedulingPolicy: quota shares",
    lambda: batch.create_scheduling_policy(name="x", quotaSharePolicy={"idleResourceAssignmentStrategy": "FIFO"}),
    "ClientException", "does not offer quota share policies")
good("DescribeSchedulingPolicies: by ARN",
     lambda: batch.describe_scheduling_policies(arns=[arn("scheduling-policy/clients"), arn("scheduling-policy/none")]),
     lambda r: [(p["fairsharePolicy"], p["tags"]) for p in r["schedulingPolicies"]] == [(SHARES, {"a": "1"})])
bad("DescribeSchedulingPolicies: without ARNs", lambda: loose_batch.describe_scheduling_policies(),
    "ClientException", "arns must be specified.")
good("ListSchedulingPolicies: in pages",
     lambda: batch.list_scheduling_policies(maxResults=1),
     lambda r: len(r["schedulingPolicies"]) == 1 and r["nextToken"])
bad("ListSchedulingPolicies: a token that is none", lambda: batch.list_scheduling_policies(nextToken="x"),
    "ClientException", "nextToken is invalid")
good("UpdateSchedulingPolicy: another decay",
     lambda: batch.update_scheduling_policy(arn=arn("scheduling-policy/clients"), fairsharePolicy={**SHARES, "shareDecaySeconds": 0}))
bad("UpdateSchedulingPolicy: an unknown one", lambda: batch.update_scheduling_policy(arn=arn("scheduling-policy/none")),
    "ClientException", "does not exist", kind=REFUSED)

# Job queues.

ORDER = [{"order": 1, "computeEnvironment": "clients"}]
LIMIT = [{"reason": "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY", "state": "RUNNABLE", "maxTimeSeconds": 600, "action": "CANCEL"}]
good("CreateJobQueue: with shares",
     lambda: batch.create_job_queue(jobQueueName=FAIR, priority=10, computeEnvironmentOrder=ORDER, tags={"a": "1"},
                                    schedulingPolicyArn=arn("scheduling-policy/clients"), jobStateTimeLimitActions=LIMIT),
     lambda r: r["jobQueueArn"] == arn(f"job-queue/{FAIR}"))
good("CreateJobQueue: first in, first out",
     lambda: batch.create_job_queue(jobQueueName=FIFO, state="ENABLED", priority=1, computeEnvironmentOrder=ORDER))
bad("CreateJobQueue: a name that is taken",
    lambda: batch.create_job_queue(jobQueueName=FIFO, priority=1, computeEnvironmentOrder=ORDER),
    "ClientException", "Object already exists", kind=REFUSED)
bad("CreateJobQueue: an unknown environment",
    lambda: batch.create_job_queue(jobQueueName="x", priority=1, computeEnvironmentOrder=[{"order": 1, "computeEnvironment": "none"}]),
    "ClientException", "Compute environment none does not exist")
bad("CreateJobQueue: no environment",
    lambda: batch.create_job_queue(jobQueueName="x", priority=1, computeEnvironmentOrder=[]),
    "ClientException", "must have 1 to 3 compute environments")
bad("CreateJobQueue: a time limit that is too short",
    lambda: batch.create_job_queue(jobQueueName="x", priority=1, computeEnvironmentOrder=ORDER, jobStateTimeLimitActions=[{**LIMIT[0], "maxTimeSeconds": 10}]),
    "ClientException", "maxTimeSeconds must be between 600 and 86400")
bad("CreateJobQueue: a service environment",
    lambda: batch.create_job_queue(jobQueueName="x", priority=1, jobQueueType="SAGEMAKER_TRAINING"),
    "ClientException", "does not offer service environments")
good("DescribeJobQueues: by name and ARN",
     lambda: batch.describe_job_queues(jobQueues=[FIFO, arn(f"job-queue/{FAIR}")]),
     lambda r: [(q["jobQueueName"], q["priority"], q["status"], q.get("schedulingPolicyArn"), q["jobStateTimeLimitActions"]) for q in r["jobQueues"]]
     == [(FAIR, 10, "VALID", arn("scheduling-policy/clients"), LIMIT), (FIFO, 1, "VALID", None, [])])


@check("DescribeJobQueues: boto3's paginator sees each once")
def every_queue_once():
    pages = batch.get_paginator("describe_job_queues").paginate(PaginationConfig={"PageSize": 2})
    names = [queue["jobQueueName"] for page in pages for queue in page["jobQueues"]]
    assert len(names) == len(set(names)) >= 7, names


good("UpdateJobQueue: another priority", lambda: batch.update_job_queue(jobQueue=FAIR, priority=11, jobStateTimeLimitActions=[]),
     lambda r: r["jobQueueName"] == FAIR)
bad("UpdateJobQueue: an unknown one", lambda: batch.update_job_queue(jobQueue="none", priority=1),
    "ClientException", "none does not exist", kind=REFUSED)
bad("UpdateJobQueue: a policy for a FIFO queue",
    lambda: batch.update_job_queue(jobQueue=FIFO, schedulingPolicyArn=arn("scheduling-policy/clients")), "ClientException", "FIFO")

# Job definitions.

PROPERTIES = {"image": "busybox", "command": ["sh", "-c", "Ref::script"], "resourceRequirements": SMALL,
              "environment": [{"name": "A", "value": "1"}], "ulimits": [{"name": "nofile", "hardLimit": 9, "softLimit": 9}]}
good("RegisterJobDefinition: a container",
     lambda: batch.register_job_definition(jobDefinitionName="shell", type="container", containerProperties=PROPERTIES,
                                           parameters={"script": "true"}, tags={"a": "1"}, platformCapabilities=["EC2"]),
     lambda r: (r["revision"], r["jobDefinitionArn"]) == (1, arn("job-definition/shell:1")))
good("RegisterJobDefinition: another revision",
     lambda: batch.register_job_definition(jobDefinitionName="shell", type="container", containerProperties=PROPERTIES,
                                           parameters={"script": "true"}, timeout={"attemptDurationSeconds": 600}),
     lambda r: r["revision"] == 2)
good("RegisterJobDefinition: one to take out of use",
     lambda: batch.register_job_definition(jobDefinitionName="old", type="container", containerProperties=PROPERTIES))
bad("RegisterJobDefinition: a name with a colon",
    lambda: batch.register_job_definition(jobDefinitionName="a:b", type="container", containerProperties=PROPERTIES),
    "ClientException", "Job definition name should match valid pattern", kind=REFUSED)
bad("RegisterJobDefinition: a type that is none",
    lambda: batch.register_job_definition(jobDefinitionName="x", type="pod", containerProperties=PROPERTIES),
    "ClientException", "type must be one of [container, multinode], got pod")
bad("RegisterJobDefinition: without a container",
    lambda: batch.register_job_definition(jobDefinitionName="x", type="container"), "ClientException", "Exactly one of")
bad("RegisterJobDefinition: half a GPU",
    lambda: batch.register_job_definition(jobDefinitionName="x", type="container",
                                          containerProperties={**PROPERTIES, "resourceRequirements": [*SMALL, {"type": "GPU", "value": "0.5"}]}),
    "ClientException", "Invalid GPU value: 0.5")
bad("RegisterJobDefinition: 24 KiB",
    lambda: batch.register_job_definition(jobDefinitionName="x", type="container", containerProperties={**PROPERTIES, "command": ["x" * 25_000]}),
    "ClientException", "less than 24 KiB")
good("DescribeJobDefinitions: by name and status",
     lambda: batch.describe_job_definitions(jobDefinitionName="shell", status="ACTIVE"),
     lambda r: [d["revision"] for d in r["jobDefinitions"]] == [2, 1] and r["jobDefinitions"][1]["containerProperties"] == PROPERTIES)
good("DescribeJobDefinitions: by ARN with revision",
     lambda: batch.describe_job_definitions(jobDefinitions=[arn("job-definition/shell:1"), "none:1"]),
     lambda r: [d["tags"] for d in r["jobDefinitions"]] == [{"a": "1"}])
good("DeregisterJobDefinition: a revision", lambda: batch.deregister_job_definition(jobDefinition="old:1"))
good("DescribeJobDefinitions: one that is out of use",
     lambda: batch.describe_job_definitions(jobDefinitions=["old:1"]), lambda r: r["jobDefinitions"][0]["status"] == "INACTIVE")
bad("DeregisterJobDefinition: without a revision", lambda: batch.deregister_job_definition(jobDefinition="shell"),
    "ClientException", "must have a revision", kind=REFUSED)

# Jobs.

good("SubmitJob: a short one", lambda: submit(jobName="short", tags={"team": "vision"}, parameters={"script": "echo hello"}), keep("short"))
good("SubmitJob: a long one", lambda: submit(jobName="Long-1", parameters={"script": "sleep 600"}, shareIdentifier="TeamB1"), keep("long"))
good("SubmitJob: an array", lambda: submit(jobName="array", arrayProperties={"size": 3}), keep("array"))
good("SubmitJob: one that waits for another",
     lambda: submit(jobName="after", dependsOn=[{"jobId": ids["long"]}]), keep("after"))
good("SubmitJob: to a FIFO queue",
     lambda: submit(jobName="fifo", jobQueue=arn(f"job-queue/{FIFO}"), shareIdentifier=None, schedulingPriorityOverride=None), keep("fifo"))
good("SubmitJob: one that will not fit",
     lambda: submit(jobName="large", jobQueue=FIFO, shareIdentifier=None, schedulingPriorityOverride=None,
                    containerOverrides={"resourceRequirements": [{"type": "GPU", "value": "9"}]}), keep("large"))
for what, change, message in [
    ("an unknown queue", {"jobQueue": "none"}, "JobQueue none not found."),
    ("an unknown definition", {"jobDefinition": "none"}, "JobDefinition none not found."),
    ("a definition out of use", {"jobDefinition": "old:1"}, "JobDefinition old:1 not found."),
    ("no share for a fair-share queue", {"shareIdentifier": None}, "shareIdentifier must be specified."),
    ("no priority for a fair-share queue", {"schedulingPriorityOverride": None},
     "Either schedulingPriority in job definition or schedulingPriorityOverride should be specified."),
    ("a priority over 9999", {"schedulingPriorityOverride": 10_000}, "between 0 and 9999"),
    ("a share with a hyphen", {"shareIdentifier": "team-a"}, "alphanumeric"),
    ("a share for a FIFO queue", {"jobQueue": FIFO}, "shareIdentifier must not be specified"),
    ("a name that starts with a hyphen", {"jobName": "-a"}, "Job name should match valid pattern"),
    ("an array of one", {"arrayProperties": {"size": 1}}, "Array size must be between 2 and 10000"),
    ("21 dependencies", {"dependsOn": [{"jobId": "a"}] * 21}, "at most 20"),
    ("an unknown dependency", {"dependsOn": [{"jobId": "none"}]}, "none"),
    ("a variable that Batch keeps for itself", {"containerOverrides": {"environment": [{"name": "AWS_BATCH_X", "value": "1"}]}}, "AWS_BATCH"),
    ("11 attempts", {"retryStrategy": {"attempts": 11}}, "between 1 and 10"),
    ("a pattern with parentheses", {"retryStrategy": {"attempts": 2, "evaluateOnExit": [{"onReason": "(x)", "action": "RETRY"}]}}, "onReason"),
    ("a timeout of a second", {"timeout": {"attemptDurationSeconds": 1}}, "at least 60 seconds"),
    ("31 KiB", {"parameters": {"x": "y" * 31_000}}, "Job size must be less than 30 KiB"),
    ("51 tags", {"tags": {str(n): "" for n in range(51)}}, "at most 50"),
]:
    bad(f"SubmitJob: {what}", lambda change=change: submit(**change), "ClientException", message, kind=REFUSED)
bad("SubmitJob: without a name", lambda: submit(loose_batch, jobName=None), "ClientException", "jobName must be specified.")
bad("SubmitJob: a number as name", lambda: submit(loose_batch, jobName=7), "SerializationException", "NUMBER_VALUE can not be converted to a String")
bad("SubmitJob: a text as size", lambda: submit(loose_batch, arrayProperties={"size": "3"}), "SerializationException", "STRING_VALUE can not be converted to an Integer")
bad("SubmitJob: a number as tag", lambda: submit(loose_batch, tags={"a": 7}), "SerializationException", "NUMBER_VALUE")
bad("SubmitJob: a list as name", lambda: submit(loose_batch, jobName=["a"]), "SerializationException", "Start of list found where not expected")
good("DescribeJobs: with share, priority and tags",
     lambda: batch.describe_jobs(jobs=[ids["short"], "unknown", arn(f"job/{ids['long']}")]),
     lambda r: [(j["jobName"], j["shareIdentifier"], j["schedulingPriority"], j["tags"]) for j in r["jobs"]]
     == [("short", "TeamA", 5, {"team": "vision"}), ("Long-1", "TeamB1", 5, {})])
good("DescribeJobs: an array shows how its children do",
     lambda: batch.describe_jobs(jobs=[ids["array"]]),
     lambda r: sum(r["jobs"][0]["arrayProperties"]["statusSummary"].values()) == 3 and r["jobs"][0]["arrayProperties"]["size"] == 3)
good("DescribeJobs: every flag", lambda: batch.describe_jobs(jobs=[ids["long"]]),
     lambda r: (r["jobs"][0]["isCancelled"], r["jobs"][0]["isTerminated"]) == (False, False)
     and r["jobs"][0]["retryStrategy"]["attempts"] == 1 and r["jobs"][0]["jobDefinition"] == arn("job-definition/shell:2"))
bad("DescribeJobs: 101 ids", lambda: batch.describe_jobs(jobs=[str(n) for n in range(101)]), "ClientException", "at most 100", kind=REFUSED)
bad("DescribeJobs: without ids", lambda: loose_batch.describe_jobs(), "ClientException", "jobs must be specified.")


@check("DescribeJobs: a job that has ended, with its attempt")
def ended():
    job = until(lambda: next((j for j in batch.describe_jobs(jobs=[ids["short"]])["jobs"] if j["status"] == "SUCCEEDED"), None))
    assert job["attempts"][0]["container"]["exitCode"] == job["container"]["exitCode"] == 0, job
    assert job["createdAt"] <= job["startedAt"] <= job["stoppedAt"], job
    assert job["container"]["command"] == PROPERTIES["command"] and job["container"]["ulimits"] == PROPERTIES["ulimits"], job["container"]
    assert job["statusReason"] == "Essential container in task exited", job


@check("ListJobs: running ones are the default")
def running():
    def rows():
        return [j for j in batch.list_jobs(jobQueue=FAIR)["jobSummaryList"] if j["jobId"] == ids["long"]]

    (row,) = until(rows)
    assert row["capacityUsage"] == [{"capacityUnit": "VCPU", "quantity": 1.0}], row
    assert (row["status"], row["shareIdentifier"], row["jobDefinition"]) == ("RUNNING", "TeamB1", arn("job-definition/shell:2")), row


def names(answer):
    return [job["jobName"] for job in answer["jobSummaryList"]]


good("ListJobs: by status", lambda: batch.list_jobs(jobQueue=FAIR, jobStatus="PENDING"), lambda r: "after" in names(r))
for what, name, values, want in [
    ("a name in any letter case", "JOB_NAME", ["LONG-1"], ["Long-1"]),
    ("the beginning of a name", "JOB_NAME", ["sho*"], ["short"]),
    ("two names", "JOB_NAME", ["short", "array"], ["array", "short"]),
    ("a definition", "JOB_DEFINITION", ["shell:2"], ["after", "array", "Long-1", "short"]),
    ("another revision", "JOB_DEFINITION", ["shell:1"], []),
    ("a time that has passed", "AFTER_CREATED_AT", ["1"], ["after", "array", "Long-1", "short"]),
    ("a time long ago", "BEFORE_CREATED_AT", ["1"], []),
]:
    good(f"ListJobs: filtered by {what}",
         lambda name=name, values=values: batch.list_jobs(jobQueue=FAIR, filters=[{"name": name, "values": values}]),
         lambda r, want=want: names(r) == want)
good("ListJobs: filtered by share", lambda: batch.list_jobs(jobQueue=FAIR, jobStatus="RUNNING", filters=[{"name": "SHARE_IDENTIFIER", "values": ["TeamB*"]}]),
     lambda r: names(r) == ["Long-1"])
good("ListJobs: children of an array",
     lambda: batch.list_jobs(arrayJobId=ids["array"], jobStatus=until(lambda: batch.describe_jobs(jobs=[f"{ids['array']}:2"])["jobs"])[0]["status"]),
     lambda r: all(j["jobId"].startswith(ids["array"] + ":") and "index" in j["arrayProperties"] for j in r["jobSummaryList"]))


@check("ListJobs: boto3's paginator sees each once")
def every_job_once():
    pages = batch.get_paginator("list_jobs").paginate(
        jobQueue=FAIR, filters=[{"name": "AFTER_CREATED_AT", "values": ["1"]}], PaginationConfig={"PageSize": 2})
    assert [name for page in pages for name in names(page)] == ["after", "array", "Long-1", "short"]


bad("ListJobs: neither queue nor array", lambda: batch.list_jobs(), "ClientException", "Exactly one of", kind=REFUSED)
bad("ListJobs: both", lambda: batch.list_jobs(jobQueue=FAIR, arrayJobId="x"), "ClientException", "Exactly one of")
bad("ListJobs: an unknown queue", lambda: batch.list_jobs(jobQueue="none"), "ClientException", "none")
bad("ListJobs: two filters", lambda: batch.list_jobs(jobQueue=FAIR, filters=[{"name": "JOB_NAME", "values": ["a"]}] * 2), "ClientException", "filters")
bad("ListJobs: a filter that is none", lambda: batch.list_jobs(jobQueue=FAIR, filters=[{"name": "COLOUR", "values": ["a"]}]), "ClientException", "COLOUR")
bad("ListJobs: a status that is none", lambda: batch.list_jobs(jobQueue=FAIR, jobStatus="ASLEEP"), "ClientException", "ASLEEP")
bad("ListJobs: a token that is none", lambda: batch.list_jobs(jobQueue=FAIR, nextToken="x"), "ClientException", "nextToken is invalid")
good("GetJobQueueSnapshot: who is next",
     lambda: batch.get_job_queue_snapshot(jobQueue=FIFO),
     lambda r: until(lambda: batch.get_job_queue_snapshot(jobQueue=FIFO)["frontOfQueue"]["jobs"])[0]["jobArn"] == arn(f"job/{ids['large']}")
     and "fairshareUtilization" not in r["queueUtilization"])
good("GetJobQueueSnapshot: what shares use",
     lambda: batch.get_job_queue_snapshot(jobQueue=FAIR),
     lambda r: r["queueUtilization"]["fairshareUtilization"]["topCapacityUtilization"][0]
     == {"shareIdentifier": "TeamB1", "capacityUsage": [{"capacityUnit": "VCPU", "quantity": 1.0}]})
bad("GetJobQueueSnapshot: an unknown queue", lambda: batch.get_job_queue_snapshot(jobQueue="none"), "ClientException", "none", kind=REFUSED)
good("CancelJob: one that waits", lambda: batch.cancel_job(jobId=ids["large"], reason="too large"))


@check("CancelJob: its reason is seen")
def cancelled():
    (job,) = batch.describe_jobs(jobs=[ids["large"]])["jobs"]
    assert (job["status"], job["statusReason"], job["isCancelled"], job["attempts"]) == ("FAILED", "too large", True, []), job


good("CancelJob: one that runs is left alone", lambda: batch.cancel_job(jobId=ids["long"], reason="r"),
     lambda r: batch.describe_jobs(jobs=[ids["long"]])["jobs"][0]["status"] == "RUNNING")
bad("CancelJob: without a reason", lambda: loose_batch.cancel_job(jobId=ids["long"]), "ClientException", "reason must be specified.")
bad("CancelJob: an unknown job", lambda: batch.cancel_job(jobId="none", reason="r"), "ClientException", "none", kind=REFUSED)
good("CancelJobs: an unknown job counts as done", lambda: batch.cancel_jobs(jobs=["none"], reason="r"),
     lambda r: (r["successful"], r["errors"]) == (["none"], []))
bad("CancelJobs: 51 jobs", lambda: batch.cancel_jobs(jobs=[str(n) for n in range(51)], reason="r"), "ClientException", "1 to 50", kind=REFUSED)
bad("TerminateJob: a reason of 1025 characters", lambda: batch.terminate_job(jobId=ids["long"], reason="r" * 1025), "ClientException", "1024", kind=REFUSED)
good("TerminateJob: one that runs", lambda: batch.terminate_job(jobId=ids["long"], reason="enough"))


@check("TerminateJob: its reason is seen, and what waited for it fails")
def terminated():
    job = until(lambda: next((j for j in batch.describe_jobs(jobs=[ids["long"]])["jobs"] if j["status"] == "FAILED"), None))
    assert (job["statusReason"], job["isTerminated"]) == ("enough", True), job
    after = until(lambda: next((j for j in batch.describe_jobs(jobs=[ids["after"]])["jobs"] if j["status"] == "FAILED"), None))
    assert after["statusReason"] == "Dependent Job failed", after


good("TerminateJobs: several", lambda: batch.terminate_jobs(jobs=[ids["fifo"], "none"], reason="r"),
     lambda r: r["successful"] == [ids["fifo"], "none"])

# Tags.

QUEUE_ARN = arn(f"job-queue/{FAIR}")
good("TagResource: a queue", lambda: batch.tag_resource(resourceArn=QUEUE_ARN, tags={"b c": "2", "a": "3"}))
good("ListTagsForResource: a queue", lambda: batch.list_tags_for_resource(resourceArn=QUEUE_ARN), lambda r: r["tags"] == {"a": "3", "b c": "2"})
good("UntagResource: two keys", lambda: batch.untag_resource(resourceArn=QUEUE_ARN, tagKeys=["b c", "none"]),
     lambda r: batch.list_tags_for_resource(resourceArn=QUEUE_ARN)["tags"] == {"a": "3"})
good("TagResource: a job", lambda: batch.tag_resource(resourceArn=arn(f"job/{ids['short']}"), tags={"x": "y"}),
     lambda r: batch.describe_jobs(jobs=[ids["short"]])["jobs"][0]["tags"] == {"team": "vision", "x": "y"})
good("ListTagsForResource: a policy", lambda: batch.list_tags_for_resource(resourceArn=arn("scheduling-policy/clients")), lambda r: r["tags"] == {"a": "1"})
bad("TagResource: a child of an array", lambda: batch.tag_resource(resourceArn=arn(f"job/{ids['array']}:0"), tags={"x": "y"}), "ClientException", "child", kind=REFUSED)
bad("ListTagsForResource: nothing of that ARN", lambda: batch.list_tags_for_resource(resourceArn=arn("job/none")), "ClientException", "does not exist")
bad("UntagResource: no ARN", lambda: batch.untag_resource(resourceArn="none", tagKeys=["a"]), "ClientException", "not a valid resource ARN")

# What every call shares.

bad("DeleteJobQueue: not offered", lambda: batch.delete_job_queue(jobQueue=FIFO), "ClientException", "does not offer DeleteJobQueue", kind=REFUSED)
bad("ListJobs: an unknown key", lambda: client("batch", aws_access_key_id="AKIAIOSFODNN7EXAMPLE").list_jobs(jobQueue=FAIR),
    "UnrecognizedClientException", "The security token included in the request is invalid.", status=403)
bad("ListJobs: a wrong secret", lambda: client("batch", aws_secret_access_key="wrong").list_jobs(jobQueue=FAIR),
    "InvalidSignatureException", "The request signature we calculated does not match", status=403)
bad("ListJobs: a session token", lambda: client("batch", aws_session_token="token").list_jobs(jobQueue=FAIR),
    "UnrecognizedClientException", status=403)
bad("ListJobs: another region", lambda: client("batch", region_name="eu-west-1").list_jobs(jobQueue=FAIR),
    "InvalidSignatureException", "valid region", status=403)


@check("a request without a signature")
def unsigned():
    request = urllib.request.Request(f"{ENDPOINT}/v1/listjobs", data=b"{}", method="POST")
    try:
        urllib.request.urlopen(request, timeout=10)
    except urllib.error.HTTPError as error:
        assert (error.code, error.headers["x-amzn-errortype"]) == (403, "MissingAuthenticationTokenException")
        return
    raise AssertionError("it was answered")
