#!/usr/bin/env bash
# Every linter that knows the template: sam, cfn-lint on what is written and on what SAM makes of it, checkov.
# Python 3 with venv is needed; the packages go into folders below target. No account is asked, and nothing is built.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/aws/venv.sh
. tests/aws/venv.sh
export SAM_CLI_TELEMETRY=0 AWS_DEFAULT_REGION=us-east-1 AWS_EC2_METADATA_DISABLED=true PYTHONDONTWRITEBYTECODE=1

venv lint
PATH=$PWD/$venv/bin:$PATH
sam validate --lint --template template.yaml
cfn-lint --template template.yaml
expanded=$(mktemp)
trap 'rm -f "$expanded"' EXIT
"$venv/bin/python" tests/aws/expand.py template.yaml >"$expanded"
cfn-lint --template "$expanded"
venv checkov
"$venv/bin/checkov" --config-file tests/aws/checkov.yaml --file template.yaml
echo "template.yaml: no findings that tests/aws/checkov.yaml doesn't explain"
