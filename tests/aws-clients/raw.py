"""What no well-meaning client sends: signed and unsigned bytes straight to the port."""

import http.client
import json
import socket
import urllib.parse

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from harness import ACCOUNT, ENDPOINT, ENV, REGION, batch, check

ADDRESS = urllib.parse.urlsplit(ENDPOINT).netloc
HOST, PORT = ADDRESS.split(":")
KEY = Credentials(ENV["AWS_ACCESS_KEY_ID"], ENV["AWS_SECRET_ACCESS_KEY"])
BODY_BYTES_MAX = 10 * 1024 * 1024


def signed(service, method, path, body, target=None):
    headers = {"content-type": "application/x-amz-json-1.0" if target else "application/json"}
    if target:
        headers["x-amz-target"] = target
    request = AWSRequest(method=method, url=ENDPOINT + path, data=body, headers=headers)
    SigV4Auth(KEY, service, REGION).add_auth(request)
    return dict(request.headers.items())


def sent(service, method, path, body=b"", target=None):
    """A signed request with this body; answers status, error and sentence."""
    connection = http.client.HTTPConnection(HOST, int(PORT), timeout=30)
    connection.request(method, path, body, signed(service, method, path, body, target))
    answer = connection.getresponse()
    text = json.loads(answer.read() or b"{}")
    connection.close()
    kind = answer.headers.get("x-amzn-errortype") or text.get("__type", "").rsplit("#")[-1]
    return answer.status, kind, text.get("message", "")


def alive():
    assert batch.describe_job_queues()["jobQueues"]


def batch_call(body):
    return sent("batch", "POST", "/v1/listjobs", body)


def sqs_call(body, action="SendMessage"):
    return sent("sqs", "POST", "/", body, target=f"AmazonSQS.{action}")


for name, call, want in [
    ("ListJobs: a body that breaks off", lambda: batch_call(b'{"jobQueue":'), (400, "SerializationException")),
    ("ListJobs: a body that is no text", lambda: batch_call(b"\xff\xfe\x00"), (400, "SerializationException")),
    ("ListJobs: a list in place of a request", lambda: batch_call(b"[]"), (400, "SerializationException")),
    ("ListJobs: no body at all", lambda: batch_call(b""), (400, "ClientException")),
    ("ListJobs: one nested 100,000 times", lambda: batch_call(b"[" * 100_000), (400, "SerializationException")),
    ("ListJobs: by GET", lambda: sent("batch", "GET", "/v1/listjobs"), (403, "MissingAuthenticationTokenException")),
    ("ListJobs: by DELETE", lambda: sent("batch", "DELETE", "/v1/listjobs"), (403, "MissingAuthenticationTokenException")),
    ("a path that is none", lambda: sent("batch", "POST", "/v1/nothing", b"{}"), (403, "MissingAuthenticationTokenException")),
    ("a path that climbs", lambda: sent("batch", "POST", "/v1/../../etc/passwd", b"{}"), (403, "InvalidSignatureException")),
    ("SendMessage: a body that breaks off", lambda: sqs_call(b'{"QueueUrl":'), (400, "SerializationException")),
    ("SendMessage: an operation that is none", lambda: sqs_call(b"{}", "SendNothing"), (400, "UnknownOperationException")),
    ("SendMessage: the URL of another host's queue",
     lambda: sqs_call(json.dumps({"QueueUrl": "https://sqs.us-east-1.amazonaws.com/1/../../x", "MessageBody": "x"}).encode()), (400, "QueueDoesNotExist")),
]:
    def run(call=call, want=want):
        got = call()
        assert got[:2] == want, got
        assert got[2] or want[0] == 403, "a sentence was to be there"
        alive()

    check(name)(run)


@check("SubmitJob: a body of 10 MiB is read and refused, one byte more isn't read")
def large():
    message = json.dumps({"jobName": "x" * (BODY_BYTES_MAX - 100), "jobQueue": "q", "jobDefinition": "d"}).encode()
    body = message + b" " * (BODY_BYTES_MAX - len(message))
    status, kind, sentence = sent("batch", "POST", "/v1/submitjob", body)
    assert (status, kind) == (400, "ClientException") and "30 KiB" in sentence, (status, kind, sentence[:200])
    headers = signed("batch", "POST", "/v1/submitjob", body + b" ")
    lines = [f"{name}: {value}" for name, value in {**headers, "host": ADDRESS, "content-length": len(body) + 1}.items()]
    with socket.create_connection((HOST, int(PORT)), timeout=30) as stream:
        # Nothing of the body is sent.
        stream.sendall(("POST /v1/submitjob HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n").encode())
        assert b"413" in stream.recv(4096).split(b"\r\n")[0]
    alive()


@check("SendMessage: 10 MiB are refused with SQS's limit")
def large_message():
    url = f"{ENDPOINT}/{ACCOUNT}/osprey-submissions"
    body = json.dumps({"QueueUrl": url, "MessageBody": ""})
    body = body[:-2] + "x" * (BODY_BYTES_MAX - len(body)) + '"}'
    status, kind, sentence = sqs_call(body.encode())
    assert (status, kind) == (400, "InvalidParameterValueException") and "1048576" in sentence, (status, kind, sentence[:200])
    alive()
