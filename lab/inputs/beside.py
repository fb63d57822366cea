"""The objects of a manifest that a trial has beside its group; what decides replicas is compressed like the trial's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab import yamlfile
from lab.errors import InputError
from lab.inputs import anchor, fidelity, manifests
from lab.inputs import policy as policies
from lab.inputs import scale as scales
from lab.inputs.policy import Policy
from lab.inputs.scale import Scale


def read(file: Path, scale: Scale) -> list[dict[str, Any]]:
    """The objects in ``file``; what decides replicas is compressed. Raises :class:`InputError` for one that can't be used."""
    return [
        _compressed(policies.parse(item, file), scale, file)
        if item.get("kind") in policies.KINDS
        else manifests.with_programs(item, file)
        for item in yamlfile.documents(file)
    ]


def _compressed(policy: Policy, scale: Scale, file: Path) -> dict[str, Any]:
    if anchor.crons(policy):
        raise InputError(
            file, "spec.triggers", "cron", "any other trigger beside a trial: only the trial's own policy is anchored"
        )
    fidelity.check(policy, scale, file, scales.declared())
    return policy.compressed(scale).content
