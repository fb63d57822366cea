"""Replicas by decree: steps the lab itself takes on the Deployment, for trials that measure what a step costs.

It is not a Kubernetes object. Nothing decides, so every step has the same size and comes when the group has settled after
the one before; times are what a rebalance takes, so no scale compresses them.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.errors import InputError
from lab.inputs.events import MOST_PODS, Event
from lab.inputs.scale import Scale
from lab.yamlfile import Fields


@dataclass(frozen=True)
class Step:
    """Scale the group to ``replicas``; or, with ``bystanders``, start that many pods that never join it, and stop them."""

    replicas: int | None
    bystanders: int


@dataclass(frozen=True)
class Decree(Event):
    """A step as it is taken: from ``before`` to ``after`` replicas, or ``bystanders`` beside them; observed for ``hold_s``."""

    asks = True

    before: int
    after: int
    bystanders: int
    hold_s: float

    @property
    def kind(self) -> str:
        """``control``, ``up`` or ``down``."""
        if self.bystanders:
            return "control"
        return "up" if self.after > self.before else "down"


@dataclass(frozen=True)
class ReplicaSteps:
    """A group of ``start`` replicas that is taken through ``steps``, each observed for ``hold_s`` once it has settled."""

    name: str
    start: int
    hold_s: float
    steps: tuple[Step, ...]
    content: dict[str, Any]

    hpa = None  # nothing decides
    lag_threshold = None

    @property
    def min_replicas(self) -> int:
        """The fewest replicas of any step."""
        return min([self.start, *(step.replicas for step in self.steps if step.replicas is not None)])

    @property
    def max_replicas(self) -> int:
        """The most replicas of any step."""
        return max([self.start, *(step.replicas for step in self.steps if step.replicas is not None)])

    @property
    def decrees(self) -> tuple[Decree, ...]:
        """The steps in order, each from where the one before it left the group."""
        found: list[Decree] = []
        held = self.start
        for step in self.steps:
            after = held if step.replicas is None else step.replicas
            found.append(Decree(held, after, step.bystanders, self.hold_s))
            held = after
        return tuple(found)

    def compressed(self, scale: Scale) -> ReplicaSteps:
        """Itself: a rebalance takes the time it takes."""
        return self


def parse(content: Mapping[str, Any], where: object) -> ReplicaSteps:
    """The steps in ``content``; ``where`` names its source. Raises :class:`InputError` naming the field that can't be used."""
    given = Fields(content, where)
    spec = given.under("spec", "replicas", "holdSeconds", "steps")
    return ReplicaSteps(
        name=str(given.under("metadata").content.get("name", "")),
        start=spec.whole("replicas", 1, MOST_PODS),
        hold_s=spec.number("holdSeconds", 0.5, 600),
        steps=tuple(_step(row, where, f"spec.steps[{n}]") for n, row in enumerate(spec.value("steps", list))),
        content=copy.deepcopy(dict(content)),
    )


def _step(row: object, where: object, place: str) -> Step:
    if not isinstance(row, dict) or len(row) != 1:
        raise InputError(where, place, row, "one of {replicas: N} or {bystanders: N}")
    given = Fields(row, where, f"{place}.")
    given.known("replicas", "bystanders")
    if "replicas" in row:
        return Step(given.whole("replicas", 1, MOST_PODS), 0)
    return Step(None, given.whole("bystanders", 1, MOST_PODS))
