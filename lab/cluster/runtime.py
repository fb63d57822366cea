"""The runtimes of a cluster by name."""

from __future__ import annotations

from pathlib import Path

from lab.cluster import Cluster, binary, existing, kind
from lab.cluster.existing import Access
from lab.inputs.scale import Scale

_PYTEST_KINDS_OWN = "pytest-kind"


def up(
    runtime: str,
    scale: Scale,
    name: str = kind.NAME,
    image: str | None = None,
    command: Path | None = None,
    access: Access | None = None,
) -> Cluster:
    """Start a cluster on ``runtime``, ``binary`` or ``kind``, or use the one of ``access``; returns when every API answers.

    ``name``, ``image`` (of the nodes) and ``command`` (kind's program) are those of a kind cluster. pytest-kind's default name
    is not taken, because that cluster may be another project's. Raises :class:`lab.errors.LabFault` when it does not come up.
    """
    if access is not None:
        return existing.up(access)
    if runtime == "binary":
        return binary.up(scale)
    return kind.up(scale, kind.NAME if name == _PYTEST_KINDS_OWN else name, image, command)
