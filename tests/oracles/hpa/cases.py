"""Cases for the oracle, in the model's own types, and how they are written for the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lab.model.hpa import Controller, Observed, Pod, Usage
from lab.model.hpa_limits import nanoseconds


@dataclass(frozen=True)
class Step:
    """One sync, ``advance`` (s) after the one before.

    ``hpa`` is the index of the HPA that is in force. ``replicas`` is what someone else made of the scale, None for no one;
    ``status_replicas`` and ``pods`` are as :func:`lab.model.hpa.decide` takes them.
    """

    advance: float
    observed: Sequence[Observed]
    hpa: int = 0
    replicas: int | None = None
    status_replicas: int | None = None
    pods: Sequence[Pod] | None = None


@dataclass(frozen=True)
class Case:
    """The syncs of one HPA, whose YAML may change on the way, on a target that begins with ``replicas``."""

    hpas: Sequence[Mapping[str, Any]]
    replicas: int
    steps: Sequence[Step]
    controller: Controller = field(default_factory=Controller)


@dataclass(frozen=True)
class Sync:
    """What the real controller did: the replicas of the scale afterwards, its error ("" for none), and the HPA's conditions.

    ``conditions`` maps a type to its status ("True" or "False") and reason.
    """

    desired: int
    error: str
    conditions: dict[str, tuple[str, str]]


def written(case: Case) -> dict[str, Any]:
    """``case`` as the driver reads it."""
    settings = case.controller
    return {
        "hpas": list(case.hpas),
        "replicas": case.replicas,
        "controller": {
            "tolerance": settings.tolerance,
            "downscale_stabilization": nanoseconds(settings.downscale_stabilization_s),
            "cpu_initialization": nanoseconds(settings.cpu_initialization_s),
            "initial_readiness": nanoseconds(settings.initial_readiness_s),
        },
        "steps": [_step(step) for step in case.steps],
    }


def read(syncs: Sequence[Mapping[str, Any]]) -> list[Sync]:
    """The driver's answer to one case."""
    return [
        Sync(sync["desired"], sync["error"], {kind: (status, reason) for kind, status, reason in sync["conditions"] or ()})
        for sync in syncs
    ]


def _step(step: Step) -> dict[str, Any]:
    return {
        "advance": nanoseconds(step.advance),
        "hpa": step.hpa,
        "replicas": step.replicas,
        "status": step.status_replicas,
        "pods": None if step.pods is None else [_on_its_clock(pod, "started", "ready_changed") for pod in step.pods],
        "observed": [_observation(value) for value in step.observed],
    }


def _observation(value: Observed) -> dict[str, Any] | None:
    if value is None or isinstance(value, tuple):
        return None if value is None else {"external": value}
    return {"usage": {name: _on_its_clock(sample, "at", "window") for name, sample in value.items()}}


def _on_its_clock(one: Pod | Usage, *times: str) -> dict[str, Any]:
    """``one`` as plain data, its ``times`` in ns."""
    plain = asdict(one)
    return plain | {name: nanoseconds(plain[name]) for name in times if plain[name] is not None}
