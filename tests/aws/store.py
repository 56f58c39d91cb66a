"""The adapters' own tests that need an emulator: the store keeps every rule of its ports, and the tokens keep their rate."""

import os
import subprocess

from checks import check


@check("the store keeps every rule of its ports, and four processes keep one rate", functions=False)
def adapters(stack):
    environment = {**os.environ, "OSPREY_TEST_DYNAMODB_ENDPOINT": stack.emulator}
    # One at a time: the rate is measured.
    command = ["cargo", "test", "--quiet", "--workspace", "--test", "aws", "--", "--test-threads=1", "--nocapture", "dynamodb", "tokens"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, env=environment, cwd=stack.root)
    assert done.returncode == 0 and "skipped:" not in done.stderr, f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
    print("\n".join(line for line in done.stderr.splitlines() if "a second" in line))
