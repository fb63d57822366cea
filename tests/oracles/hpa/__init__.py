"""The real HPA controller as an oracle for the model: its own Go files, run on cases under a fake clock.

``reconcileAutoscaler`` of the pinned Kubernetes runs whole, with everything that it calls but the clients, behind the API
server's own defaulting and validation of the HPA.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.oracles.harness import Oracle, Program
from tests.oracles.hpa.cases import Case, Step, Sync, read, written

__all__ = ["HPA", "Case", "Controller", "Refused", "Step", "Sync", "running"]

HPA = Oracle(
    name="podautoscaler",
    module="k8s.io/kubernetes",
    folder=Path("pkg", "controller", "podautoscaler"),
    files=("horizontal.go", "replica_calculator.go", "rate_limiters.go"),
    drivers=Path(__file__).parent,
)


class Refused(ValueError):
    """The API server's validation refuses an HPA of the case; the text is its own."""


class Controller:
    """The real controller, running; :func:`running` starts one."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def syncs(self, case: Case) -> list[Sync]:
        """The controller's decision at each step of ``case``. Raises :class:`Refused` when an HPA is not valid."""
        ((answer,),) = self._program.answers([[written(case)]])
        if answer["refused"]:
            raise Refused(answer["refused"])
        return read(answer["syncs"])


@contextmanager
def running() -> Iterator[Controller]:
    """The real controller for as long as the context lasts, built first if need be."""
    with HPA.running() as program:
        yield Controller(program)
