"""``python -m lab.inputs.editors``: write the JSON Schemas by which editors complete a profile and a workload.

A file names its own in its first line: ``# yaml-language-server: $schema=profile.schema.json``.
"""

from __future__ import annotations

import json

from lab import paths
from lab.inputs import profile, workload

SCHEMAS = {
    paths.PROFILES / "profile.schema.json": profile.json_schema,
    paths.PROFILES / "workload.schema.json": workload.json_schema,
}


def write() -> None:
    """Write the files."""
    for file, schema in SCHEMAS.items():
        file.write_text(json.dumps(schema(), indent=1) + "\n")


if __name__ == "__main__":
    write()
