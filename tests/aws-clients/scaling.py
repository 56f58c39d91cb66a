"""What Batch does over time: nodes that come and go, heads whose time is up, jobs on several nodes."""

import os
import tempfile

import boto3

from harness import arn, bad, batch, check, until
from life import ended, keys, served

ON_DEMAND = {"type": "EC2", "minvCpus": 0, "maxvCpus": 8, "instanceTypes": ["g5.xlarge"], "subnets": ["subnet-1"]}
MESH = "clients-mesh"
ids = {}


def resources(name):
    (one,) = batch.describe_compute_environments(computeEnvironments=[name])["computeEnvironments"]
    return one["computeResources"]


def desired(name):
    return resources(name)["desiredvCpus"]


@check("CreateComputeEnvironment: it has its least vCPUs at once, more while jobs want them, and no more than its most")
def scales():
    batch.create_compute_environment(computeEnvironmentName="clients-scale", type="MANAGED",
                                     computeResources={**ON_DEMAND, "minvCpus": 4, "desiredvCpus": 4})
    assert [resources("clients-scale")[key] for key in ("minvCpus", "maxvCpus", "desiredvCpus")] == [4, 8, 4]
    batch.create_job_queue(jobQueueName="clients-scale", priority=1,
                           computeEnvironmentOrder=[{"order": 1, "computeEnvironment": "clients-scale"}])
    jobs = [batch.submit_job(jobName="wide", jobQueue="clients-scale", jobDefinition="shell", parameters={"script": "sleep 600"},
                             containerOverrides={"resourceRequirements": [{"type": "VCPU", "value": "4"}]})["jobId"]
            for _ in range(3)]
    until(lambda: [job["status"] for job in batch.describe_jobs(jobs=jobs)["jobs"]] == ["RUNNING", "RUNNING", "RUNNABLE"])
    assert desired("clients-scale") == 8
    batch.update_compute_environment(computeEnvironment="clients-scale", computeResources={"minvCpus": 0, "desiredvCpus": 0})
    batch.terminate_jobs(jobs=jobs, reason="enough")
    until(lambda: desired("clients-scale") == 0)
    assert [resources("clients-scale")[key] for key in ("minvCpus", "maxvCpus")] == [0, 8]


bad("CreateComputeEnvironment: fewer vCPUs at most than at least",
    lambda: batch.create_compute_environment(computeEnvironmentName="x", type="MANAGED", computeResources={**ON_DEMAND, "minvCpus": 9}),
    "ClientException", "between minvCpus 9 and maxvCpus 8", kind=batch.exceptions.ClientException)
bad("UpdateComputeEnvironment: more vCPUs than there may be",
    lambda: batch.update_compute_environment(computeEnvironment="clients-scale", computeResources={"desiredvCpus": 12}),
    "ClientException", "desiredvCpus 12 must be between", kind=batch.exceptions.ClientException)
bad("UpdateComputeEnvironment: a time to stay up that is too short",
    lambda: batch.update_compute_environment(computeEnvironment="clients-scale", computeResources={"scalingPolicy": {"minScaleDownDelayMinutes": 5}}),
    "ClientException", "minScaleDownDelayMinutes must be between 20 and 10080", kind=batch.exceptions.ClientException)


@check("UpdateJobQueue: a head that no node is large enough for is cancelled when its time is up")
def time_is_up():
    with tempfile.TemporaryDirectory() as folder:
        # 600 s are the shortest that Batch allows: less than two seconds here.
        server, said = served(os.path.join(folder, "state"), "--speed", "400")
        try:
            own = boto3.Session(*keys(said), region_name="us-east-1").client("batch", endpoint_url=said["endpoint"])
            own.create_compute_environment(computeEnvironmentName="one", type="MANAGED", computeResources=ON_DEMAND)
            order = [{"order": 1, "computeEnvironment": "one"}]
            own.create_job_queue(jobQueueName="one", priority=1, computeEnvironmentOrder=order)
            limit = {"reason": "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT", "state": "RUNNABLE", "maxTimeSeconds": 600, "action": "CANCEL"}
            own.update_job_queue(jobQueue="one", jobStateTimeLimitActions=[limit])
            (queue,) = own.describe_job_queues(jobQueues=["one"])["jobQueues"]
            assert queue["jobStateTimeLimitActions"] == [limit], queue
            needs = [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "256"}, {"type": "GPU", "value": "9"}]
            own.register_job_definition(jobDefinitionName="large", type="container", containerProperties={"image": "busybox", "resourceRequirements": needs})
            job = own.submit_job(jobName="large", jobQueue="one", jobDefinition="large")["jobId"]

            def seen(status):
                (one,) = own.describe_jobs(jobs=[job])["jobs"]
                return one if one["status"] == status else None

            waits = until(lambda: (one := seen("RUNNABLE")) and "statusReason" in one and one)
            assert waits["statusReason"].startswith("MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT"), waits
            gone = until(lambda: seen("FAILED"), seconds=20)
            assert gone["statusReason"].startswith("Canceled by JobStateTimeLimit action due to reason: MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT"), gone
            assert gone["attempts"] == [], gone
        finally:
            ended(server)


@check("SubmitJob: on two nodes at once, each knowing its place")
def on_two_nodes():
    batch.create_compute_environment(computeEnvironmentName=MESH, type="MANAGED", computeResources=ON_DEMAND)
    batch.create_job_queue(jobQueueName=MESH, priority=1, computeEnvironmentOrder=[{"order": 1, "computeEnvironment": MESH}])
    needs = [{"type": "GPU", "value": "1"}, {"type": "VCPU", "value": "4"}, {"type": "MEMORY", "value": "256"}]
    container = {"image": "busybox", "command": ["sleep", "600"], "resourceRequirements": needs}
    batch.register_job_definition(jobDefinitionName=MESH, type="multinode", nodeProperties={
        "numNodes": 2, "mainNode": 0, "nodeRangeProperties": [{"targetNodes": "0:1", "container": container}]})
    ids["mesh"] = batch.submit_job(jobName="mesh", jobQueue=MESH, jobDefinition=MESH)["jobId"]
    until(lambda: batch.describe_jobs(jobs=[ids["mesh"]])["jobs"][0]["status"] == "RUNNING")
    until(lambda: len(batch.list_jobs(multiNodeJobId=ids["mesh"])["jobSummaryList"]) == 2)


@check("ListJobs: the nodes of a multi-node job")
def nodes():
    (job,) = batch.describe_jobs(jobs=[ids["mesh"]])["jobs"]
    assert (job["nodeProperties"]["numNodes"], job["nodeProperties"]["mainNode"]) == (2, 0), job
    rows = batch.list_jobs(multiNodeJobId=ids["mesh"])["jobSummaryList"]
    shown = sorted((row["jobId"], row["nodeProperties"]["nodeIndex"], row["nodeProperties"]["isMainNode"]) for row in rows)
    assert shown == [(f"{ids['mesh']}#0", 0, True), (f"{ids['mesh']}#1", 1, False)], rows
    (node,) = batch.describe_jobs(jobs=[f"{ids['mesh']}#1"])["jobs"]
    assert (node["nodeDetails"], node["jobArn"]) == ({"nodeIndex": 1, "isMainNode": False}, arn(f"job/{ids['mesh']}#1")), node


bad("ListJobs: an array and a multi-node job", lambda: batch.list_jobs(arrayJobId="x", multiNodeJobId="y"), "ClientException", "Exactly one of")
bad("TerminateJob: one node of a multi-node job", lambda: batch.terminate_job(jobId=f"{ids['mesh']}#1", reason="r"),
    "ClientException", "can't be stopped on its own", kind=batch.exceptions.ClientException)


@check("TerminateJob: a multi-node job with all its nodes")
def mesh_stopped():
    batch.terminate_job(jobId=ids["mesh"], reason="enough")
    until(lambda: batch.describe_jobs(jobs=[ids["mesh"]])["jobs"][0]["status"] == "FAILED")
    rows = until(lambda: len(rows := batch.list_jobs(multiNodeJobId=ids["mesh"], jobStatus="FAILED")["jobSummaryList"]) == 2 and rows)
    assert {row["jobId"] for row in rows} == {f"{ids['mesh']}#0", f"{ids['mesh']}#1"}, rows
