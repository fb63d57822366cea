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

    ``name``, ``image`` and ``command`` are of kind. Raises :class:`LabFault`. pytest-kind's default name is not taken: it may
    be another's.
    """
    if access is not None:
        return existing.up(access)
    if runtime == "binary":
        return binary.up(scale)
    return kind.up(scale, kind.NAME if name == _PYTEST_KINDS_OWN else name, image, command)
