"""Objectives: named bounds on measures. A verdict carries the number, the bound and the unit."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

HELD, BREACHED, NO_DATA = "held", "breached", "no data"
_HOLDS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}


@dataclass(frozen=True)
class Verdict:
    """What an objective says of one number; ``measured`` is None when there was none."""

    objective: str
    measured: float | None
    operator: str
    bound: float
    unit: str
    verdict: str
    why: str
    note: str = ""

    def __str__(self) -> str:
        if self.measured is None:
            return f"{self.objective}: no data ({self.note}); wanted {self.operator} {self.bound:g} {self.unit}"
        wanted = f"wanted {self.operator} {self.bound:g} {self.unit}"
        return f"{self.objective}: {self.measured:g} {self.unit}, {wanted}: {self.verdict}"


@dataclass(frozen=True)
class Objective:
    """A bound: the measured number must stand in ``operator`` to ``bound``, in ``unit``; ``why`` is for the reader."""

    name: str
    operator: str
    bound: float
    unit: str
    why: str

    def judge(self, measured: float | None, note: str = "") -> Verdict:
        """The verdict on ``measured``. None is "no data", which is never a pass; ``note`` says what was missing."""
        if measured is None:
            verdict = NO_DATA
        else:
            verdict = HELD if _HOLDS[self.operator](measured, self.bound) else BREACHED
        return Verdict(self.name, measured, self.operator, self.bound, self.unit, verdict, self.why, note)


REACTION = Objective(
    "reaction", "<", 90, "s", "spike start to the first receipt of the first new pod, as it was seen at this scale"
)
REACTION_REAL = Objective(
    "reaction at real time", "<", 90, "s", "the same with the wait for KEDA and the HPA stretched back to real time"
)
DRAINED = Objective(
    "drain time over the best the hottest partition allows",
    "<=",
    1.5,
    "x",
    "one pod alone serves a partition, so skew and not the number of pods bounds the drain",
)
MONOTONE = Objective(
    "rise of lag while draining at full parallelism", "<=", 1, "lagThreshold", "largest rise above the lowest lag so far"
)
BASELINE = Objective("replicas above the floor at baseline", "==", 0, "pods", "no pod is scaled on lag noise")
FLOOR = Objective("replicas above the floor at the end", "==", 0, "pods", "the group gives back what it took")
FLIPS = Objective("flips", "==", 0, "flips", "a flip is a scale-down followed by a scale-up")
BACKLOG = Objective("peak lag", ">=", 100_000, "messages", "a backlog worth draining was built")
UNPROCESSED = Objective("produced but not processed", "==", 0, "messages", "processed == produced, from below")
DOUBLED = Objective("processed more than once", "==", 0, "messages", "processed == produced, from above")
MISMATCHED = Objective("receipts that disagree with the events", "==", 0, "receipts", "the same messages, not just as many")
UNKNOWN = Objective("events of unknown or failed fate", "==", 0, "events", "produced = acknowledged")
