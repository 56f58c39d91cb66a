#!/bin/sh
# Needs more memory than it asked for: ends as a job that ran out of memory does (137) until it was given NEED MiB.
#
#   hungry.sh NEED SECONDS
set -eu

need=${1:?how many MiB it needs}
sleep "${2:?how many seconds}"
have=${OSPREY_MEMORY_MIB:-0}
if [ "$have" -lt "$need" ]; then
    echo "attempt ${OSPREY_ATTEMPT:-1} has $have MiB and needs $need" >&2
    exit 137
fi
echo "$have MiB are enough"
