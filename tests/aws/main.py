"""Starts the stack, runs every check or those whose names contain one of the words given, and counts."""

import os
import shutil
import signal
import sys
import tempfile
import time
import traceback

import burst
import cli
import deployed
import faulty
import held
import plumbing
import samples
import store
from checks import CHECKS
from stack import Stack

del burst, cli, deployed, faulty, held, plumbing, samples, store


def choose(words, is_long, with_functions):
    for name, long, functions, run in CHECKS:
        named = not words or any(word in name for word in words)
        if named and (is_long or not long) and (with_functions or not functions):
            yield name, run


def main():
    # Ended from outside, what was started here is ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    functions = os.environ.get("FUNCTIONS", "there")
    with_functions = functions != "none"
    chosen = list(choose(sys.argv[1:], bool(os.environ.get("OSPREY_LONG")), with_functions))
    passed, failed = 0, []
    with tempfile.TemporaryDirectory() as work:
        stack = Stack(work, os.getcwd(), os.environ["OSPREY"], os.environ["EMULATORS"], os.environ["SAM"])
        try:
            began = time.monotonic()
            stack.up()
            stack.batch.register_job_definition(
                jobDefinitionName="shell",
                type="container",
                containerProperties={"image": "shell", "command": ["true"], "resourceRequirements": [
                    {"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "512"}]},
            )  # fmt: skip
            folder = {"none": stack.without_functions, "debug": stack.with_debug_builds}.get(functions, os.getcwd)
            stack.deploy(folder())
            print(f"deployed in {time.monotonic() - began:.0f} s", flush=True)
            for name, run in chosen:
                began = time.monotonic()
                try:
                    run(stack)
                    passed += 1
                    print(f"ok {name} ({time.monotonic() - began:.1f} s)", flush=True)
                except Exception:  # noqa: BLE001 - whatever went wrong is the report
                    failed.append(name)
                    print(f"FAILED {name} ({time.monotonic() - began:.1f} s)")
                    traceback.print_exc(limit=-3, file=sys.stdout)
        finally:
            stack.close()
            keep = os.environ.get("OSPREY_KEEP_LOGS")
            if keep:
                shutil.copytree(work, keep, ignore=lambda _, names: [n for n in names if not n.endswith(".log")], dirs_exist_ok=True)
    print(f"{passed} passed, {len(failed)} failed")
    sys.exit(bool(failed) or not passed)


main()
