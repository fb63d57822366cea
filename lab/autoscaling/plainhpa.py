"""A typed, strict view of a plain HorizontalPodAutoscaler's YAML (autoscaling/v2), as teams without KEDA write it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab import yamlfile
from lab.autoscaling import behavior
from lab.errors import InputError
from lab.scale import Scale


@dataclass(frozen=True)
class PlainHpa:
    """An HPA on the CPU of the consumers, in percent of what they request."""

    name: str
    min_replicas: int
    max_replicas: int
    utilization: int
    content: dict[str, Any]

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
        behavior.compress(content["spec"].setdefault("behavior", {}), scale)
        return parse(content, f"{self.name} at scale {scale.name}")


def parse(content: Mapping[str, Any], where: object) -> PlainHpa:
    """The HPA in ``content``; ``where`` names its source. Raises :class:`InputError` naming the field that can't be used."""
    if content.get("apiVersion") != "autoscaling/v2":
        raise InputError(where, "apiVersion", content.get("apiVersion"), "autoscaling/v2")
    spec = yamlfile.mapping(content, "spec", where)
    yamlfile.known(spec, ("scaleTargetRef", "minReplicas", "maxReplicas", "metrics", "behavior"), where, "spec.")
    least = yamlfile.whole(spec, "minReplicas", where, 1, 100_000, 1, "spec.")
    most = yamlfile.whole(spec, "maxReplicas", where, 1, 100_000, prefix="spec.")
    if least > most:
        raise InputError(where, "spec.minReplicas", least, f"at most maxReplicas, {most}")
    behavior.check(spec.get("behavior") or {}, where, "spec.behavior.")
    return PlainHpa(
        name=str(yamlfile.mapping(content, "metadata", where).get("name", "")),
        min_replicas=least,
        max_replicas=most,
        utilization=_utilization(spec.get("metrics"), where),
        content=copy.deepcopy(dict(content)),
    )


def _utilization(metrics: object, where: object) -> int:
    """The target of the one metric this view knows: Resource cpu, by Utilization."""
    prefix = "spec.metrics[0]."
    if not isinstance(metrics, list) or len(metrics) != 1 or not isinstance(metrics[0], dict):
        raise InputError(where, "spec.metrics", metrics, "a list of one metric")
    resource = metrics[0].get("resource")
    if metrics[0].get("type") != "Resource" or not isinstance(resource, dict) or resource.get("name") != "cpu":
        raise InputError(where, f"{prefix}resource.name", resource, "Resource cpu")
    target = resource.get("target")
    if not isinstance(target, dict) or target.get("type") != "Utilization":
        raise InputError(where, f"{prefix}resource.target", target, "type Utilization with averageUtilization")
    return yamlfile.whole(target, "averageUtilization", where, 1, 1000, prefix=f"{prefix}resource.target.")
