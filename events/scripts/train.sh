#!/bin/sh
# A training run that checkpoints: STEPS steps of STEP_SECONDS each.
#
#   train.sh STEPS STEP_SECONDS
#
# It saves the number of the last finished step once a second and when it is told to stop (SIGTERM), and goes on
# from there the next time. The checkpoint is at OSPREY_CHECKPOINT_URI (a path, or file://PATH) when that is set, else
# in a folder named after OSPREY_JOB_ID, which stays the same across the attempts of a job.
set -eu

steps=${1:?how many steps}
step_seconds=${2:?how many seconds a step}

job=${OSPREY_JOB_ID:-train-$$}
folder=${OSPREY_CHECKPOINT_URI:-${OSPREY_LOCAL_SCRATCH:-${TMPDIR:-/tmp}}/osprey-checkpoints/$job}
case $folder in
file://*) folder=${folder#file://} ;;
*://*)
    echo "this script reads checkpoints from a folder, not from $folder" >&2
    exit 2
    ;;
esac
file=$folder/step
mkdir -p "$folder"

step=0
if [ -s "$file" ]; then
    step=$(cat "$file")
    echo "attempt ${OSPREY_ATTEMPT:-1} resumes after step $step of $steps"
fi

# Renaming is atomic, so a run that dies while it saves leaves the checkpoint before.
save() {
    echo "$step" >"$file.new"
    mv "$file.new" "$file"
}

stop() {
    save
    echo "told to stop: saved step $step of $steps"
    exit 143
}
trap stop TERM

saved_at=$(date +%s)
while [ "$step" -lt "$steps" ]; do
    # Waiting, not sleeping: a shell runs its trap only after the command in the foreground has ended.
    sleep "$step_seconds" &
    wait $!
    step=$((step + 1))
    now=$(date +%s)
    if [ "$now" -ne "$saved_at" ]; then
        save
        saved_at=$now
    fi
done

rm -rf "$folder"
echo "trained $steps steps"
