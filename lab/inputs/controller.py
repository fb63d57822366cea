"""The policy of the lab's own controller; :func:`lab.model.hpa.decide_on_lag` is its decision. Pure.

Windows, policies and the arithmetic are the HPA's (:mod:`lab.model.hpa`), which is proved against Kubernetes' own code.
What is the controller's own is its hysteresis. With ratio = lag / (lagThreshold x replicas asked for) it asks for

    ceil(lag / lagThreshold)    above upAt, or below downAt
    what there is               from downAt to upAt: neither more nor fewer

so a downAt far below the HPA's 0.9 keeps pods that have work and no backlog, and counts as asking for them in the window. The
HPA's ratio counts the replicas that exist; those asked for don't lag behind the controller's own last step.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lab import yamlfile
from lab.errors import InputError
from lab.inputs import hpa_spec
from lab.inputs.hpa_spec import HpaSpec
from lab.inputs.scale import Scale

UP_AT, DOWN_AT = 1.1, 0.9  # the HPA's tolerance of 0.1, as ratios
SYNC_S, LEAST_SYNC_S = 15.0, 0.1  # the HPA's period; reading lag and scale takes some 10 ms
MOST_LAG = 10**9
_SPEC = ("scaleTargetRef", "lagThreshold", "minReplicas", "maxReplicas", "syncSeconds", "upAt", "downAt", "behavior")


@dataclass(frozen=True)
class LagController:
    """Scale the Deployment ``target`` on its group's lag, every ``sync_s`` seconds; ``lag_threshold`` in messages a replica."""

    name: str
    target: str
    lag_threshold: int
    sync_s: float
    spec: HpaSpec
    content: dict[str, Any]

    hpa = None  # it patches the Deployment itself

    @property
    def min_replicas(self) -> int:
        """The fewest replicas it asks for."""
        return self.spec.min_replicas

    @property
    def max_replicas(self) -> int:
        """The most replicas it asks for."""
        return self.spec.max_replicas

    @property
    def start(self) -> int:
        """Replicas a trial begins with."""
        return self.min_replicas

    def compressed(self, scale: Scale) -> LagController:
        """The same policy with its times and its lagThreshold compressed as ``scale`` declares."""
        content = copy.deepcopy(self.content)
        spec = content["spec"]
        spec["syncSeconds"] = max(LEAST_SYNC_S, self.sync_s / scale.time)
        spec["lagThreshold"] = scale.messages(self.lag_threshold)
        spec["behavior"] = hpa_spec.compressed_behavior(spec.get("behavior"), scale)
        return parse(content, f"{self.name} at scale {scale.name}")


def parse(content: Mapping[str, Any], where: object) -> LagController:
    """The policy in ``content``; ``where`` names its source. Raises :class:`InputError` naming the field that can't be used."""
    yamlfile.known(content, ("kind", "metadata", "spec"), where)
    if content.get("kind") != "LagController":
        raise InputError(where, "kind", content.get("kind"), "LagController")
    spec = yamlfile.mapping(content, "spec", where)
    yamlfile.known(spec, _SPEC, where, "spec.")
    threshold = yamlfile.whole(spec, "lagThreshold", where, 1, MOST_LAG, prefix="spec.")
    least = yamlfile.whole(spec, "minReplicas", where, 1, hpa_spec.MAX_REPLICAS, 1, "spec.")
    most = yamlfile.whole(spec, "maxReplicas", where, 1, hpa_spec.MAX_REPLICAS, prefix="spec.")
    if least > most:
        raise InputError(where, "spec.minReplicas", least, f"at most maxReplicas, {most}")
    lag = hpa_spec.Metric("External", "lag", "AverageValue", threshold * 1000)
    return LagController(
        name=str(yamlfile.mapping(content, "metadata", where).get("name", "")),
        target=_target(spec, where),
        lag_threshold=threshold,
        sync_s=yamlfile.number(spec, "syncSeconds", where, LEAST_SYNC_S, 3600, SYNC_S, "spec."),
        spec=HpaSpec(least, most, (lag,), _rules(spec, where)),
        content=copy.deepcopy(dict(content)),
    )


def _target(spec: Mapping[str, Any], where: object) -> str:
    reference = spec.get("scaleTargetRef")
    if not isinstance(reference, dict) or not isinstance(reference.get("name"), str) or not reference["name"]:
        raise InputError(where, "spec.scaleTargetRef", reference, "{name: the Deployment that is scaled}")
    yamlfile.known(reference, ("name",), where, "spec.scaleTargetRef.")
    return str(reference["name"])


def _rules(spec: Mapping[str, Any], where: object) -> hpa_spec.Behavior:
    """The behavior, with the hysteresis as the tolerance of each direction."""
    up_at = yamlfile.number(spec, "upAt", where, 1, 1000, UP_AT, "spec.")
    down_at = yamlfile.number(spec, "downAt", where, 0, 1, DOWN_AT, "spec.")
    given = spec.get("behavior")
    written = hpa_spec.behavior_of({"behavior": {} if given is None else given}, where, "spec.")
    assert written is not None, "there is a behavior, if only an empty one"
    for direction, rules, field in (("scaleUp", written.up, "upAt"), ("scaleDown", written.down, "downAt")):
        if rules.tolerance is not None:
            raise InputError(where, f"spec.behavior.{direction}.tolerance", rules.tolerance, f"none: {field} says it")
    return hpa_spec.Behavior(
        replace(written.up, tolerance=round(up_at - 1, 9)), replace(written.down, tolerance=round(1 - down_at, 9))
    )
