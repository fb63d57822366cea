"""The id that a record of before has today: its policy has another name, and its commits were not compressed. Pure.

Until 2026-11-22 a scale divided no lag, so policy ``lag-4500`` was a file ``lag-150`` whose 150 messages were applied as they
are. The same 150 are applied today at quick, so the record is still one of that policy. It committed every 250 ms, a trial of
today every 167 ms. That is close enough to test a measure, and it is no evidence on today's trial. No record is
changed: each keeps its name, its content and its checksums, and is looked up by the id that it has today.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.inputs.inputs import Inputs
from lab.inputs.workload import Workload
from lab.record import store
from lab.record.seal import FILE

NAMES = {
    "lag-1500": "lag-45000",
    "lag-500": "lag-15000",
    "lag-150": "lag-4500",
    "lag-5": "lag-noise",
    "lasting-150": "lasting-4500",
    "controller-150": "controller-4500",
}
COMMITTED_MS = 250  # between commits, at every scale


def renamed(name: str) -> str:
    """The name that the policy ``name`` has today."""
    for old, new in NAMES.items():
        if name == old or name.startswith(f"{old}-"):
            return new + name.removeprefix(old)
    return name


def inputs_today(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The plain inputs of today's trial that stands where one with these ``stored`` inputs stood."""
    content = copy.deepcopy(dict(stored))
    content["policy_name"] = renamed(content["policy_name"])
    if content["policy"]["kind"] == "LagController":
        content["policy"]["metadata"]["name"] = renamed(content["policy"]["metadata"]["name"])
    if content["workload"]["commit_interval_ms"] == COMMITTED_MS:
        content["workload"]["commit_interval_ms"] = Workload().commit_interval_ms
    return content


def names_today(records: Path) -> dict[str, str]:
    """The names of those records under ``records`` that are of before, by the ids that they have today."""
    found = {}
    for name, folder in store.stored(records).items():
        trial = json.loads((folder / FILE).read_text())
        if "policy_lags" not in trial:
            found[Inputs.from_dict(inputs_today(trial["inputs"]), folder).id] = name
    return found
