"""How long pods take to start: quantiles in place of one number, and the nodes that must come first. Pure.

A pod starts in seconds on a node that has its image, in tens of seconds where the image is pulled, and in minutes where a node
must come. Cluster Autoscaler looks for pods without a place every 10 s (``--scan-interval``) and asks for a node within 30 s;
"on GCE it usually takes 3 to 4 minutes" until pods are scheduled there, and a node unneeded for 10 minutes goes
(``--scale-down-unneeded-time``; FAQ.md of kubernetes/autoscaler, "How fast is Cluster Autoscaler?"). Karpenter gathers pods
for 1 to 10 s (``--batch-idle-duration``, ``--batch-max-duration``; karpenter.sh, Settings), and asks for a node at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lab.yamlfile import Fields

NAMES = {f"p{percent}": percent / 100 for percent in (0, 10, 25, 50, 75, 90, 95, 99, 100)}
MOST_S, MOST_PODS = 3600, 100_000
UNNEEDED_S = 600.0  # Cluster Autoscaler's default
NODES = ("room", "pods", "arrives_s", "unneeded_s")


@dataclass(frozen=True)
class Quantiles:
    """Times in s by the share of pods (0 to 1) that take no longer: rising, straight in between, and constant beyond."""

    points: tuple[tuple[float, float], ...]

    @property
    def median(self) -> float:
        """The time that half of the pods take at most, s."""
        return self.at(0.5)

    @property
    def vary(self) -> bool:
        """Whether not all times are the same."""
        return self.points[0][1] < self.points[-1][1]

    def at(self, share: float) -> float:
        """The time that this ``share`` of the pods takes at most, s."""
        return float(np.interp(share, [one for one, _ in self.points], [seconds for _, seconds in self.points]))

    def compressed(self, time: float, more_s: float = 0.0) -> Quantiles:
        """These times divided by ``time``, and ``more_s``."""
        return Quantiles(tuple((share, more_s + seconds / time) for share, seconds in self.points))

    def __str__(self) -> str:
        return ", ".join(f"p{share * 100:g} {seconds:g} s" for share, seconds in self.points)


@dataclass(frozen=True)
class Nodes:
    """Where the pods of a group find room: for so many (``room``) on the nodes that are there, for ``pods`` on each that comes.

    A node ``arrives`` so long after a pod without a place is created, with the image; an empty one goes after ``unneeded_s``.
    """

    room: int
    pods: int
    arrives: Quantiles
    unneeded_s: float = UNNEEDED_S

    def compressed(self, time: float) -> Nodes:
        """The same with all times divided by ``time``."""
        return Nodes(self.room, self.pods, self.arrives.compressed(time), self.unneeded_s / time)

    def __str__(self) -> str:
        took = str(self.arrives) if self.arrives.vary else f"{self.arrives.median:g} s"
        return f"{self.room:,} pods have room; each further node takes {self.pods:,}, and arrives {took} after it is needed"


def quantiles(given: Fields, field: str) -> Quantiles:
    """The times in ``field``, a number or quantiles. Reports an :class:`InputError` for each that can't be used."""
    if not isinstance(given.content.get(field), dict):
        return Quantiles(((0.5, given.number(field, 0, MOST_S, unit="s")),))
    inner = given.under(field, *NAMES)
    names = [name for name in NAMES if name in inner.content]
    if not inner.content:
        given.refuse(field, "a number, or quantiles as {p50: 8, p90: 45}, in s")
    points = [(NAMES[name], inner.number(name, 0, MOST_S, unit="s")) for name in names]
    for (_, before), (_, after), earlier, name in zip(points, points[1:], names, names[1:], strict=False):
        if after < before:
            inner.refuse(name, f"at least {before:g} s, which {earlier} is")
    return Quantiles(tuple(points) or ((0.5, 0.0),))


def nodes(given: Fields) -> Nodes | None:
    """The field ``nodes``; None where it is not written. Reports an :class:`InputError` for each part that can't be used."""
    if given.content.get("nodes") is None:
        return None
    inner = given.under("nodes", *NODES)
    return Nodes(
        inner.whole("room", 0, MOST_PODS),
        inner.whole("pods", 1, MOST_PODS),
        quantiles(inner, "arrives_s"),
        inner.number("unneeded_s", 0, 86_400, UNNEEDED_S, unit="s"),
    )


def json_schema() -> dict[str, Any]:
    """What a time is, in a JSON Schema: a number, or quantiles."""
    seconds = {"minimum": 0, "maximum": MOST_S}
    inner = {"propertyNames": {"enum": list(NAMES)}, "additionalProperties": {"type": "number", **seconds}}
    return {"type": ["number", "object"], **seconds, "minProperties": 1, **inner}


def nodes_schema() -> dict[str, Any]:
    """The JSON Schema of ``nodes``."""
    count = {"type": "integer", "maximum": MOST_PODS}
    properties = {
        "room": {**count, "minimum": 0, "description": "pods of the group that fit on the nodes that are there"},
        "pods": {**count, "minimum": 1, "description": "pods that fit on each node that comes"},
        "arrives_s": {**json_schema(), "description": "from a pod without a place until its node is there with the image, s"},
        "unneeded_s": {
            "type": "number",
            "minimum": 0,
            "maximum": 86_400,
            "default": UNNEEDED_S,
            "description": "until an empty node goes, s",
        },
    }
    required = [name for name in NODES if name != "unneeded_s"]
    return {
        "description": "where pods find room, for simulate and tune; without it there is room for all",
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": properties,
    }
