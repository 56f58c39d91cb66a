#!/usr/bin/env bash
# The live view in a terminal that is emulated: it draws at three sizes, answers keys, and gives the terminal back as it
# was, whether a key ends it or a signal does.
#
#   tests/watch/run.sh
#
# Pictures go to TARGET/watch, drawn by headless Chromium where it is installed. OSPREY names a program to test in place
# of a release build. Python 3 is needed, and pyte, which is installed into TARGET/watch/venv.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-target}
out=$target/watch
mkdir -p "$out"
if ! "$out/venv/bin/python" -c 'import pyte' 2>/dev/null; then
    python3 -m venv "$out/venv"
    "$out/venv/bin/pip" install --quiet pyte==0.8.2
fi
if [[ -z ${OSPREY:-} ]]; then
    cargo build --release --quiet -p osprey
    OSPREY=$target/release/osprey
fi
OSPREY=$(realpath "$OSPREY") PYTHONDONTWRITEBYTECODE=1 "$out/venv/bin/python" tests/watch/check.py "$out"
