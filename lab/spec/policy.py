"""A policy is what decides the number of replicas: a ScaledObject, a plain HPA, the lab's controller, or steps by decree."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lab import yamlfile
from lab.errors import InputError
from lab.spec import controller, hpa_spec, scaledobject, steps
from lab.spec.hpa_spec import Behavior
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
        return parse_hpa(content, f"{self.name} at scale {scale.name}")


def parse_hpa(content: Mapping[str, Any], where: object) -> PlainHpa:
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


class Policy(Protocol):
    """What runner and measures need of any policy.

    ``content`` is its YAML, and ``hpa`` the name of the HPA that acts for it, if any. ``lag_threshold`` is the lag per replica
    that it scales on, in messages; None for a policy that does not scale on lag.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def start(self) -> int: ...  # noqa: D102
    @property
    def min_replicas(self) -> int: ...  # noqa: D102
    @property
    def max_replicas(self) -> int: ...  # noqa: D102
    @property
    def hpa(self) -> str | None: ...  # noqa: D102
    @property
    def lag_threshold(self) -> int | None: ...  # noqa: D102
    @property
    def content(self) -> dict[str, Any]: ...  # noqa: D102
    def compressed(self, scale: Scale) -> Policy: ...  # noqa: D102


KINDS: dict[str, Callable[[Mapping[str, Any], object], Policy]] = {
    "ScaledObject": scaledobject.parse,
    "HorizontalPodAutoscaler": parse_hpa,
    "LagController": controller.parse,
    "ReplicaSteps": steps.parse,
}


def behavior(policy: Policy) -> Behavior | None:
    """The ``behavior`` of the HPA or controller that acts for ``policy``, None where its YAML has none."""
    if isinstance(policy, controller.LagController):
        return policy.spec.behavior
    if isinstance(policy, PlainHpa):
        return hpa_spec.parse(policy.content, policy.name).behavior
    if isinstance(policy, scaledobject.ScaledObject):
        advanced = policy.content["spec"].get("advanced") or {}
        return hpa_spec.behavior_of(advanced.get("horizontalPodAutoscalerConfig") or {}, policy.where, "")
    return None


def load(path: Path) -> Policy:
    """The policy in the file at ``path``, of whichever kind. Raises :class:`InputError` naming the field that can't be used."""
    return parse(yamlfile.read(path), path)


def parse(content: Mapping[str, Any], where: object) -> Policy:
    """The policy in ``content``, whose source ``where`` names. Raises :class:`InputError` like :func:`load`."""
    kind = content.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(where, "kind", kind, f"one of {', '.join(KINDS)}")
    return KINDS[kind](content, where)
