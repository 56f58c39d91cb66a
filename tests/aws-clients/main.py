"""Runs every check, or those whose names contain one of the words given, and counts."""

import sys
import time
import traceback

import batch_table
import cli_smoke
import events_table
import life
import pipeline
import raw
import scaling
import sqs_table
from harness import CHECKS

del batch_table, cli_smoke, events_table, life, pipeline, raw, scaling, sqs_table

# What the table of single calls has to have at least.
CALLS_MIN = 80


def main():
    words = sys.argv[1:]
    chosen = [(name, run) for name, run in CHECKS if not words or any(word in name for word in words)]
    passed, failed = 0, []
    for name, run in chosen:
        began = time.monotonic()
        try:
            run()
            passed += 1
        except Exception:  # noqa: BLE001 - whatever went wrong is the report
            failed.append(name)
            print(f"FAILED {name} ({time.monotonic() - began:.1f} s)")
            traceback.print_exc(limit=-2, file=sys.stdout)
    calls = sum(": " in name for name, _ in CHECKS)
    if calls < CALLS_MIN:
        failed.append(f"the table has {calls} calls of at least {CALLS_MIN}")
    print(f"{calls} calls in the table")
    print(f"{passed} passed, {len(failed)} failed")
    sys.exit(bool(failed) or not passed)


main()
