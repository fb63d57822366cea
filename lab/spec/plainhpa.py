"""A plain HorizontalPodAutoscaler's YAML (autoscaling/v2) as a policy: what teams without KEDA write."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab import yamlfile
from lab.errors import InputError
from lab.spec import hpa_spec
from lab.spec.scale import Scale


@dataclass(frozen=True)
class PlainHpa:
    """An HPA on the CPU of the consumers, in percent of what they request."""

    name: str
    min_replicas: int
    max_replicas: int
    utilization: int
    content: dict[str, Any]

    lag_threshold = None  # it scales on CPU

    @property
    def start(self) -> int:
        """Replicas a trial begins with."""
        return self.min_replicas

    @property
    def hpa(self) -> str:
        """The HPA's own name."""
        return self.name

    def compressed(self, scale: Scale) -> PlainHpa:
        """The same policy with its times divided as ``scale`` declares."""
        content = copy.deepcopy(self.content)
        content["spec"]["behavior"] = hpa_spec.compressed_behavior(content["spec"].get("behavior"), scale)
        return parse(content, f"{self.name} at scale {scale.name}")


def parse(content: Mapping[str, Any], where: object) -> PlainHpa:
    """The HPA in ``content``; ``where`` names its source. Raises :class:`InputError` naming the field that can't be used."""
    spec = hpa_spec.parse(content, where)
    metric = spec.metrics[0]
    if len(spec.metrics) > 1 or metric.target != "Utilization":
        raise InputError(where, "spec.metrics", content["spec"]["metrics"], "one metric, Resource cpu by Utilization")
    return PlainHpa(
        name=str(yamlfile.mapping(content, "metadata", where).get("name", "")),
        min_replicas=spec.min_replicas,
        max_replicas=spec.max_replicas,
        utilization=metric.amount,
        content=copy.deepcopy(dict(content)),
    )
