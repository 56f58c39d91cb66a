"""Whether a list of components names every crate of a lock file, with its version, and nothing else."""

import json
import sys
import tomllib

lock, sbom = sys.argv[1:]
with open(lock, "rb") as file:
    wanted = {(package["name"], package["version"]) for package in tomllib.load(file)["package"]}
with open(sbom, encoding="utf-8") as file:
    document = json.load(file)
listed = {(component["name"], component["version"]) for component in document["components"] if component["type"] == "library"}
if wanted != listed:
    sys.exit(f"{sbom}: missing {sorted(wanted - listed)}, too many {sorted(listed - wanted)}")
print(f"{sbom}: {document['bomFormat']} {document['specVersion']}, {len(listed)} crates, as in {lock}")
