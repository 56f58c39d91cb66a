#!/bin/sh
# Takes more memory than it asked for, until it was given NEED MiB: it waits to be killed for it.
#
#   hungry.sh NEED SECONDS
set -eu

need=${1:?how many MiB it needs}
seconds=${2:?how many seconds}
have=${OSPREY_MEMORY_MIB:-0}
if [ "$have" -lt "$need" ]; then
    echo "attempt ${OSPREY_ATTEMPT:-1} has $have MiB and needs $need" >&2
    seconds=60
fi
# The shell and its tools take a part of the need themselves. `tail` keeps what it is to print until its input ends.
take=$((need - need / 8))M
{ head -c "$take" /dev/zero; sleep "$seconds"; } | tail -c "$take" >/dev/null
if [ "$have" -lt "$need" ]; then
    echo "nobody minds that it takes more than $have MiB" >&2
    exit 1
fi
echo "$have MiB are enough"
