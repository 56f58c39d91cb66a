#!/bin/sh
# Fails until its third attempt.
#
#   flaky.sh SECONDS
set -eu

sleep "${1:?how many seconds}"
attempt=${OSPREY_ATTEMPT:-1}
if [ "$attempt" -lt 3 ]; then
    echo "attempt $attempt fails" >&2
    exit 1
fi
echo "attempt $attempt passes"
