#!/usr/bin/env bash
# The stack on emulators: builds the functions as docs/deploying.md says, deploys the template with them, sends jobs.
#
#   tests/aws/run.sh [NAME...]     all checks, or those whose names contain one of these words
#
# FUNCTIONS=none deploys the template with programs that end at once, and runs the checks that need no function;
# FUNCTIONS=there takes the zips below target/lambda as they are. OSPREY_LONG=1 runs the long checks too, and the others
# with more jobs. OSPREY names the program whose local Batch is used in place of a release build, OSPREY_KEEP_LOGS a folder
# for the logs. Everything is started and ended here, on loopback; Python 3 with venv is needed, and its package index.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/aws/venv.sh
. tests/aws/venv.sh

# Largest zip of a function, in bytes: five megabytes.
zip_max=5000000
functions=(submit requeue dead-letter watch)

build() {
    local flags=() name size
    for name in "${functions[@]}"; do
        flags+=(-p "osprey-$name")
    done
    if [[ ${FUNCTIONS:-} != there ]]; then
        cargo lambda build --profile lambda --output-format zip --locked "${flags[@]}"
    fi
    for name in "${functions[@]}"; do
        size=$(stat -c %s "target/lambda/$name/bootstrap.zip")
        printf '%s: %d bytes zipped\n' "$name" "$size"
        if ((size > zip_max)); then
            echo "$name is larger than $zip_max bytes" >&2
            exit 1
        fi
    done
}

if [[ ${FUNCTIONS:-} != none ]]; then
    venv build
    PATH=$PWD/$venv/bin:$PATH
    build
fi
if [[ -z ${OSPREY:-} ]]; then
    cargo build --release --quiet -p osprey
    OSPREY=${CARGO_TARGET_DIR:-target}/release/osprey
fi
venv lint
SAM=$PWD/$venv/bin/sam
venv emulators
export SAM EMULATORS=$PWD/$venv/bin OSPREY PYTHONDONTWRITEBYTECODE=1
OSPREY=$(realpath "$OSPREY")
PATH=$EMULATORS:$PATH "$venv/bin/python" tests/aws/main.py "$@"
