"""Writes, or with --check compares, the shapes of requests that the local server reads.

The shapes are those of the API models in the pinned botocore: one line a shape, `!` after a member that is required.
Scalars are one letter: s text, i whole number of 32 bits, l of 64, d number, b boolean, x base64.
"""

import gzip
import json
import os
import sys

import botocore

HERE = os.path.dirname(os.path.abspath(__file__))
CRATE = os.path.join(HERE, "..", "..", "shared", "local-server", "src")
SCALARS = {"string": "s", "integer": "i", "long": "l", "double": "d", "float": "d", "boolean": "b", "blob": "x"}
BATCH = """SubmitJob DescribeJobs ListJobs CancelJob TerminateJob CancelJobs TerminateJobs RegisterJobDefinition
DescribeJobDefinitions DeregisterJobDefinition CreateJobQueue DescribeJobQueues UpdateJobQueue
CreateComputeEnvironment DescribeComputeEnvironments UpdateComputeEnvironment CreateSchedulingPolicy
DescribeSchedulingPolicies ListSchedulingPolicies UpdateSchedulingPolicy GetJobQueueSnapshot TagResource
UntagResource ListTagsForResource""".split()
SQS = """SendMessage SendMessageBatch ReceiveMessage DeleteMessage DeleteMessageBatch ChangeMessageVisibility
ChangeMessageVisibilityBatch GetQueueUrl GetQueueAttributes SetQueueAttributes ListQueues CreateQueue DeleteQueue
PurgeQueue StartMessageMoveTask ListMessageMoveTasks CancelMessageMoveTask ListDeadLetterSourceQueues""".split()


def model(service, version):
    path = os.path.join(os.path.dirname(botocore.__file__), "data", service, version, "service-2.json.gz")
    with gzip.open(path) as file:
        return json.load(file)


def lines(model, operations):
    shapes, out = model["shapes"], {}

    def reference(name):
        shape = shapes[name]
        if shape["type"] in SCALARS:
            return SCALARS[shape["type"]]
        visit(name, shape)
        return name

    def visit(name, shape):
        if name in out:
            return
        out[name] = None
        if shape["type"] == "list":
            out[name] = f"{name} list {reference(shape['member']['shape'])}"
        elif shape["type"] == "map":
            out[name] = f"{name} map {reference(shape['value']['shape'])}"
        else:
            required = shape.get("required", [])
            mark = lambda member: "!" if member in required else ""
            members = [f"{m}{mark(m)}:{reference(v['shape'])}" for m, v in shape["members"].items()]
            out[name] = " ".join([name, "struct", *members])

    for operation in operations:
        name = model["operations"][operation].get("input", {}).get("shape")
        if name:
            visit(name, shapes[name])
    return "\n".join(sorted(out.values())) + "\n"


def main():
    files = {
        "batch/shapes.txt": lines(model("batch", "2016-08-10"), BATCH),
        "sqs/shapes.txt": lines(model("sqs", "2012-11-05"), SQS),
    }
    for name, text in files.items():
        path = os.path.join(CRATE, name)
        if "--check" in sys.argv:
            with open(path) as file:
                if file.read() != text:
                    sys.exit(f"{name} is not what botocore {botocore.__version__} says: run tests/aws-clients/shapes.py")
        else:
            with open(path, "w") as file:
                file.write(text)


if __name__ == "__main__":
    main()
