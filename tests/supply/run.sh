#!/usr/bin/env bash
# What Osprey is built from: cargo-deny's checks, and a list of every crate in CycloneDX's form, in target/sbom.
#
#   tests/supply/run.sh              licences, bans and registries, and the list
#   tests/supply/run.sh advisories   known vulnerabilities too; fetches RustSec's database from GitHub
#
# Python 3 with venv is needed; the pinned tools go into a folder below target.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/aws/venv.sh
. tests/aws/venv.sh
# No question whether a newer version of the tool is out.
export SYFT_CHECK_FOR_APP_UPDATE=false

venv supply
PATH=$PWD/$venv/bin:$PATH
# Crates of other systems too: it looks at all that the lock file names.
cargo fetch --quiet --locked
cargo-deny --offline --log-level error check licenses bans sources
if [[ ${1:-} == advisories ]]; then
    cargo-deny --log-level error check advisories
fi

sbom=${CARGO_TARGET_DIR:-target}/sbom
mkdir -p "$sbom"
# Without the machine's folder, and the same for the same lock file but for a serial number and the time.
syft scan file:Cargo.lock --quiet --source-name osprey --output "cyclonedx-json=$sbom/osprey.cdx.json"
"$venv/bin/python" tests/supply/complete.py Cargo.lock "$sbom/osprey.cdx.json"
