#!/bin/sh
# A job of a round: writes its start and, when it succeeds, its end into the ledger, each in one write at the end of it.
#
#   job.sh LEDGER NAME SECONDS CODE
#
# A child of an array adds its index to the name, and so does a node of a multi-node job.
set -eu

name=$2${AWS_BATCH_JOB_ARRAY_INDEX:+.$AWS_BATCH_JOB_ARRAY_INDEX}${AWS_BATCH_JOB_NODE_INDEX:+@$AWS_BATCH_JOB_NODE_INDEX}
line="$name $AWS_BATCH_JOB_ID/$AWS_BATCH_JOB_ATTEMPT $CUDA_VISIBLE_DEVICES"
echo "start $line" >>"$1"
sleep "$3"
if [ "$4" -ne 0 ]; then
    echo "fail $line" >>"$1"
    exit "$4"
fi
echo "done $line" >>"$1"
