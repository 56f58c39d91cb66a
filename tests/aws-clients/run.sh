#!/usr/bin/env bash
# AWS's own clients against `osprey local serve`: boto3 and the AWS CLI, pinned in requirements.txt.
#
#   tests/aws-clients/run.sh [NAME...]     all checks, or those whose names contain one of these words
#
# OSPREY names a program to test in place of a release build. Python 3 with venv is needed, and nothing else.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-target}
venv=$target/aws-clients
here=tests/aws-clients
if ! cmp -s "$here/requirements.txt" "$venv/requirements.txt"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$venv/requirements.txt"
fi
if [[ -z ${OSPREY:-} ]]; then
    cargo build --release --quiet -p osprey
    OSPREY=$target/release/osprey
fi
"$venv/bin/python" "$here/shapes.py" --check

work=$(mktemp -d)
server=
# The server is ended by its number, whatever happened.
clean() {
    if [[ -n $server ]]; then
        kill -TERM "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM

"$OSPREY" local serve --output json --state "$work/state" --port 0 --speed 10 --nodes 3 --gpus-per-node 2 \
    --spot-nodes 1 --event-target sqs:state-changes >"$work/said" 2>"$work/complained" &
server=$!
for _ in $(seq 200); do
    [[ -s $work/said ]] && break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.05
done
if ! [[ -s $work/said ]]; then
    echo "the server did not start:" >&2
    cat "$work/complained" >&2
    exit 1
fi
export PATH="$PWD/$venv/bin:$PATH" PYTHONDONTWRITEBYTECODE=1
OSPREY=$(realpath "$OSPREY") STATE=$work/state "$venv/bin/python" "$here/main.py" "$@"
