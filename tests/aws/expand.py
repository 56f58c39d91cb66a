"""Writes the template as SAM expands it, offline: expand.py TEMPLATE.

Some mistakes show only there: a visibility time-out below a function's, an unknown runtime, a concurrency of 1, wrong
response types.
"""

import json
import sys

from samcli.yamlhelper import yaml_parse
from samtranslator.parser.parser import Parser
from samtranslator.translator.transform import transform


class NoManagedPolicies:
    """The template names no managed policy of SAM's, so none has to be looked up."""

    def load(self):
        return {}


def expanded(text):
    template = yaml_parse(text)
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            # What `sam package` would have put there.
            resource["Properties"]["CodeUri"] = "s3://bucket/key"
    return transform(template, {}, NoManagedPolicies())


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        json.dump(expanded(file.read()), sys.stdout, indent=2)
