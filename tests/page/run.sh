#!/usr/bin/env bash
# The page of `osprey simulate --html` in headless Chromium: no errors, nothing missing, nothing too wide, pictures kept.
#
#   tests/page/run.sh
#
# Pictures go to TARGET/page. OSPREY names a program to test in place of a release build. Chromium and ChromeDriver are
# Debian's packages, which are installed where they are missing; Python 3 is needed, and nothing else.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-target}
if ! command -v chromium >/dev/null || ! command -v chromedriver >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver fonts-dejavu-core
fi
if [[ -z ${OSPREY:-} ]]; then
    cargo build --release --quiet -p osprey
    OSPREY=$target/release/osprey
fi
OSPREY=$(realpath "$OSPREY") PYTHONDONTWRITEBYTECODE=1 python3 tests/page/check.py "$target/page"
