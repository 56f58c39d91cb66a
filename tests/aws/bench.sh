#!/usr/bin/env bash
# Speed of the functions: zips, spawn to first answer and memory of `submit`, beside a handler on boto3 in the same run.
# It takes the zips below target/lambda, which tests/aws/run.sh or docs/deploying.md makes.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/aws/venv.sh
. tests/aws/venv.sh
venv emulators
"$venv/bin/python" tests/aws/bench.py "${CARGO_TARGET_DIR:-target}/lambda"
