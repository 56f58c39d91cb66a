"""The runtime loop of a Python function, as small as it can be: it favours the peer."""

import json
import os
import urllib.request

from handler import handle

API = f"http://{os.environ['AWS_LAMBDA_RUNTIME_API']}/2018-06-01/runtime/invocation"

while True:
    with urllib.request.urlopen(f"{API}/next") as answer:
        request, event = answer.headers["Lambda-Runtime-Aws-Request-Id"], json.loads(answer.read())
    body = json.dumps(handle(event)).encode()
    urllib.request.urlopen(urllib.request.Request(f"{API}/{request}/response", data=body, method="POST")).read()
