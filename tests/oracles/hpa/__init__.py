"""The real HPA controller as an oracle for the model: its own Go files, run on cases under a fake clock.

``reconcileAutoscaler`` of the pinned Kubernetes runs whole, with everything that it calls but the clients, behind the API
server's own defaulting and validation of the HPA.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lab.model import hpa
from lab.model.hpa import Observed, Pod, Usage
from lab.model.hpa_limits import nanoseconds
from tests.oracles.harness import Oracle, Program

HPA = Oracle(
    name="podautoscaler",
    module="k8s.io/kubernetes",
    folder=Path("pkg", "controller", "podautoscaler"),
    files=("horizontal.go", "replica_calculator.go", "rate_limiters.go"),
    drivers=Path(__file__).parent,
)


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
    controller: hpa.Controller = field(default_factory=hpa.Controller)


@dataclass(frozen=True)
class Sync:
    """What the real controller did: the replicas of the scale afterwards, its error ("" for none), and the HPA's conditions.

    ``conditions`` maps a type to its status ("True" or "False") and reason.
    """

    desired: int
    error: str
    conditions: dict[str, tuple[str, str]]


class Refused(ValueError):
    """The API server's validation refuses an HPA of the case; the text is its own."""


class Controller:
    """The real controller, running; :func:`running` starts one."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def syncs(self, case: Case) -> list[Sync]:
        """The controller's decision at each step of ``case``. Raises :class:`Refused` when an HPA is not valid."""
        ((answer,),) = self._program.answers([[_written(case)]])
        if answer["refused"]:
            raise Refused(answer["refused"])
        return _read(answer["syncs"])


@contextmanager
def running() -> Iterator[Controller]:
    """The real controller for as long as the context lasts, built first if need be."""
    with HPA.running() as program:
        yield Controller(program)


def _written(case: Case) -> dict[str, Any]:
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


def _read(syncs: Sequence[Mapping[str, Any]]) -> list[Sync]:
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
