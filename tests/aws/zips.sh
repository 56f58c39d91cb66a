#!/usr/bin/env bash
# Builds the functions' zips below target/lambda, as docs/deploying.md says, and holds them against their largest size.
#
#   tests/aws/zips.sh          builds them
#   tests/aws/zips.sh there    only looks at those that are there
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/aws/venv.sh
. tests/aws/venv.sh

# Largest zip of a function, in bytes: five megabytes.
zip_max=5000000
functions=(submit schedule requeue dead-letter watch)

if [[ ${1:-} != there ]]; then
    venv build
    flags=()
    for name in "${functions[@]}"; do
        flags+=(-p "osprey-$name")
    done
    PATH=$PWD/$venv/bin:$PATH cargo lambda build --profile lambda --output-format zip --locked --lambda-dir target/lambda "${flags[@]}"
fi
for name in "${functions[@]}"; do
    size=$(stat -c %s "target/lambda/$name/bootstrap.zip")
    printf '%s: %d bytes zipped\n' "$name" "$size"
    if ((size > zip_max)); then
        echo "$name is larger than $zip_max bytes" >&2
        exit 1
    fi
done
