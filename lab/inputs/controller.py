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

from lab.inputs import hpa_spec
from lab.inputs.hpa_spec import HpaSpec
from lab.inputs.scale import Scale
from lab.yamlfile import Fields

UP_AT, DOWN_AT = 1.1, 0.9  # the HPA's tolerance of 0.1, as ratios
SYNC_S, LEAST_SYNC_S = 15.0, 0.1  # the HPA's period; reading lag and scale takes some 10 ms
MOST_LAG = 10**9
_SPEC = ("scaleTargetRef", "lagThreshold", "minReplicas", "maxReplicas", "syncSeconds", "upAt", "downAt", "behavior")


@dataclass(frozen=True)
class LagController:
    """Scale the Deployment ``target`` on its group's lag, every ``sync_s`` seconds; ``lag_threshold`` in messages a replica. A
    trial with it begins with ``start`` replicas."""

    name: str
    target: str
    lag_threshold: int
    sync_s: float
    spec: HpaSpec
    min_replicas: int
    max_replicas: int
    start: int
    content: dict[str, Any]

    hpa = None  # it patches the Deployment itself

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
    given = Fields(content, where)
    given.known("kind", "metadata", "spec")
    given.choice("kind", "LagController")
    spec = given.under("spec", *_SPEC)
    threshold = spec.whole("lagThreshold", 1, MOST_LAG)
    least, most = hpa_spec.bounds(spec, 1)
    lag = hpa_spec.Metric("External", "lag", "AverageValue", threshold * 1000)
    return LagController(
        name=str(given.under("metadata").content.get("name", "")),
        target=spec.under("scaleTargetRef", "name").text("name", "the name of the Deployment that is scaled"),
        lag_threshold=threshold,
        sync_s=spec.number("syncSeconds", LEAST_SYNC_S, 3600, SYNC_S),
        spec=HpaSpec(least, most, (lag,), _rules(spec)),
        min_replicas=least,
        max_replicas=most,
        start=least,
        content=copy.deepcopy(dict(content)),
    )


def _rules(spec: Fields) -> hpa_spec.Behavior:
    """The behavior, with the hysteresis as the tolerance of each direction."""
    up_at, down_at = spec.number("upAt", 1, 1000, UP_AT), spec.number("downAt", 0, 1, DOWN_AT)
    written = hpa_spec.behavior_of(replace(spec, content={"behavior": {}, **spec.content}))
    assert written is not None, "there is a behavior, if only an empty one"
    for direction, rules, field in (("scaleUp", written.up, "upAt"), ("scaleDown", written.down, "downAt")):
        if rules.tolerance is not None:
            raise spec.under("behavior").under(direction).error("tolerance", f"none: {field} says it")
    return hpa_spec.Behavior(
        replace(written.up, tolerance=round(up_at - 1, 9)), replace(written.down, tolerance=round(1 - down_at, 9))
    )
