#!/usr/bin/env bash
# The stack on emulators: builds the functions as docs/deploying.md says, deploys the template with them, sends jobs.
#
#   tests/aws/run.sh [NAME...]     all checks, or those whose names contain one of these words
#
# FUNCTIONS=debug takes the functions as `cargo build` makes them, which is what a check before a merge has built anyway;
# FUNCTIONS=there takes the zips below target/lambda as they are; FUNCTIONS=none deploys the template with programs that
# end at once, and runs the checks that need no function. OSPREY_LONG=1 runs the long checks too, and the others with
# more jobs. OSPREY names the program whose local Batch is used in place of a release build, OSPREY_KEEP_LOGS a folder
# for the logs. Everything is started and ended here, on loopback; Python 3 with venv is needed, and its package index.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/aws/venv.sh
. tests/aws/venv.sh

FUNCTIONS=${FUNCTIONS:-built}
case $FUNCTIONS in
built)
    tests/aws/zips.sh
    ;;
there)
    tests/aws/zips.sh there
    ;;
debug)
    # The whole workspace, so that nothing is built a second time with other features.
    cargo build --quiet --workspace --bins --locked
    FUNCTIONS_DIR=$(realpath "${CARGO_TARGET_DIR:-target}/debug")
    export FUNCTIONS_DIR
    ;;
none) ;;
*)
    echo "FUNCTIONS is built, debug, there or none; '$FUNCTIONS' was given" >&2
    exit 2
    ;;
esac
if [[ -z ${OSPREY:-} ]]; then
    cargo build --release --quiet -p osprey
    OSPREY=${CARGO_TARGET_DIR:-target}/release/osprey
fi
# The adapters' own tests, which run against the emulator too; as the whole workspace builds them, so that nothing is built twice.
cargo test --quiet --no-run --workspace --test aws
venv build
PATH=$PWD/$venv/bin:$PATH
venv lint
SAM=$PWD/$venv/bin/sam
venv emulators
export FUNCTIONS SAM EMULATORS=$PWD/$venv/bin OSPREY PYTHONDONTWRITEBYTECODE=1
OSPREY=$(realpath "$OSPREY")
PATH=$EMULATORS:$PATH "$venv/bin/python" tests/aws/main.py "$@"
