"""What a manifest declares for the lab in annotations of its Deployments and Jobs.

``elastic-lab/pythonpath``: the folder that its pods import their programs from, seen from the manifest's own folder. Only
processes see such a folder, so the object runs on the binary runtime alone.
``elastic-lab/metrics``: names of metrics, separated by commas. A trial with the object records them beside the usual ones.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import yamlfile
from lab.errors import InputError

PREFIX = "elastic-lab/"
PYTHONPATH, METRICS = f"{PREFIX}pythonpath", f"{PREFIX}metrics"
_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@dataclass(frozen=True)
class Declarations:
    """The folder of an object's own ``programs``, None when the lab's are all it runs, and the ``metrics`` it adds."""

    programs: Path | None = None
    metrics: tuple[str, ...] = ()


def read(item: Mapping[str, Any], file: Path) -> Declarations:
    """What ``item`` of ``file`` declares. Raises :class:`InputError` for an annotation of the lab's that can't be used."""
    where = "metadata.annotations."
    given = item.get("metadata", {}).get("annotations") or {}
    ours = {name: value for name, value in given.items() if name.startswith(PREFIX)}
    yamlfile.known(ours, (PYTHONPATH, METRICS), file, where)
    programs = None
    if PYTHONPATH in ours:
        programs = (file.parent / ours[PYTHONPATH]).resolve()
        if not programs.is_dir():
            raise InputError(file, where + PYTHONPATH, ours[PYTHONPATH], "a folder, seen from that of the file")
    metrics = tuple(name.strip() for name in ours[METRICS].split(",")) if METRICS in ours else ()
    for name in metrics:
        if not _METRIC.fullmatch(name):
            raise InputError(file, where + METRICS, name, "names of metrics, separated by commas")
    return Declarations(programs, metrics)


def with_programs(item: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """``item`` of ``file``, each of whose containers imports from the folder that it declares. Raises like :func:`read`."""
    placed, programs = copy.deepcopy(dict(item)), read(item, file).programs
    if programs is not None:
        for container in placed["spec"]["template"]["spec"]["containers"]:
            container["env"] = [*container.get("env", ()), {"name": "PYTHONPATH", "value": str(programs)}]
    return placed
