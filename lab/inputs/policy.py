"""A policy is what decides the number of replicas: a ScaledObject, a plain HPA, the lab's controller, or steps by decree."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import yamlfile
from lab.errors import InputError, closest, together
from lab.inputs import controller, hpa_spec, lag_metric, scaledobject, steps
from lab.inputs.controller import LagController
from lab.inputs.hpa_spec import Behavior, Metric
from lab.inputs.scale import Scale
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.steps import ReplicaSteps
from lab.yamlfile import Fields

_ONE_METRIC = (
    f"one metric: Resource cpu by Utilization, or External {lag_metric.METRIC} with the selector {lag_metric.NAME} by an "
    "AverageValue in whole messages"
)


@dataclass(frozen=True)
class PlainHpa:
    """An HPA on CPU, percent of what pods request (``utilization``), or on lag, messages per replica; the other is None."""

    name: str
    min_replicas: int
    max_replicas: int
    utilization: int | None
    lag_threshold: int | None
    content: dict[str, Any]

    @property
    def start(self) -> int:
        """Replicas a trial begins with: one for a floor of 0, since an HPA wakes only what it has put to sleep itself."""
        return max(1, self.min_replicas)

    @property
    def hpa(self) -> str:
        """The HPA's own name."""
        return self.name

    def compressed(self, scale: Scale) -> PlainHpa:
        """The same policy with its times and its lag compressed as ``scale`` declares."""
        content = copy.deepcopy(self.content)
        content["spec"]["behavior"] = hpa_spec.compressed_behavior(content["spec"].get("behavior"), scale)
        if self.lag_threshold is not None:
            content["spec"]["metrics"][0]["external"]["target"]["averageValue"] = str(scale.messages(self.lag_threshold))
        return parse_hpa(content, f"{self.name} at scale {scale.name}")


def parse_hpa(content: Mapping[str, Any], where: object) -> PlainHpa:
    """The HPA in ``content``; ``where`` names its source. Raises :class:`InputError` naming the field that can't be used."""
    spec = hpa_spec.parse(content, where)
    metric = spec.metrics[0]
    on_lag = metric.source == "External"
    known = _is_lag(content, metric) if on_lag else (metric.name, metric.target) == ("cpu", "Utilization")
    if len(spec.metrics) > 1 or not known:
        raise InputError(where, "spec.metrics", content["spec"]["metrics"], _ONE_METRIC)
    return PlainHpa(
        name=str(Fields(content, where).under("metadata").content.get("name", "")),
        min_replicas=spec.min_replicas,
        max_replicas=spec.max_replicas,
        utilization=None if on_lag else metric.amount,
        lag_threshold=metric.amount // 1000 if on_lag else None,
        content=copy.deepcopy(dict(content)),
    )


def _is_lag(content: Mapping[str, Any], metric: Metric) -> bool:
    """Whether the first ``metric`` of the HPA in ``content`` is the group's lag, by an average of whole messages."""
    named = content["spec"]["metrics"][0]["external"]["metric"] == {"name": lag_metric.METRIC, "selector": lag_metric.SELECTOR}
    return named and metric.target == "AverageValue" and metric.amount % 1000 == 0


# What runner and measures need of any: ``content`` is its YAML, ``hpa`` the name of the HPA that acts for it, if any, and
# ``lag_threshold`` the lag per replica that it scales on, messages; None for one that does not scale on lag.
Policy = ScaledObject | PlainHpa | LagController | ReplicaSteps
KINDS: dict[str, Callable[[Mapping[str, Any], object], Policy]] = {
    "ScaledObject": scaledobject.parse,
    "HorizontalPodAutoscaler": parse_hpa,
    "LagController": controller.parse,
    "ReplicaSteps": steps.parse,
}


def behavior(policy: Policy) -> Behavior | None:
    """The ``behavior`` of the HPA or controller that acts for ``policy``, None where its YAML has none."""
    if isinstance(policy, LagController):
        return policy.spec.behavior
    if isinstance(policy, PlainHpa):
        return hpa_spec.parse(policy.content, policy.name).behavior
    if isinstance(policy, ScaledObject):
        advanced = Fields(policy.content["spec"], policy.where, "spec.").under("advanced", optional=True)
        return hpa_spec.behavior_of(advanced.under("horizontalPodAutoscalerConfig", optional=True), keda=True)
    return None


def load(path: Path) -> Policy:
    """The policy in the file at ``path``, of whichever kind. Raises :class:`InputError` for each wrong field."""
    found = yamlfile.document(path)
    return parse(found.content, found.where)


def parse(content: Mapping[str, Any], where: object) -> Policy:
    """The policy in ``content``, whose source ``where`` names. Raises :class:`InputError` like :func:`load`."""
    kind = content.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(where, "kind", kind, f"one of {', '.join(KINDS)}", closest(kind, KINDS))
    with together():
        return KINDS[kind](content, where)
