# shellcheck shell=bash
# Sourced. venv NAME: makes sure that target/aws-NAME holds what tests/aws/NAME-requirements.txt pins, and sets `venv`.
venv() {
    local wanted=tests/aws/$1-requirements.txt
    venv=$(realpath -m --relative-to=. "${CARGO_TARGET_DIR:-target}/aws-$1")
    if ! cmp -s "$wanted" "$venv/requirements.txt"; then
        rm -rf "$venv"
        python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$wanted"
        cp "$wanted" "$venv/requirements.txt"
    fi
}
