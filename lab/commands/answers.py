"""What each command prints with ``--json``. ``answers.schema.json`` beside this module is the JSON Schema of them all.

Times are in s, lag in messages; None is no data. ``schema`` grows when a field goes or changes its meaning.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from lab import validation
from lab.audit.findings import Audit
from lab.commands.text import SCHEMA
from lab.foresee.choice import Reason
from lab.foresee.curve import Change
from lab.foresee.estimate import Estimate
from lab.foresee.explain import Explained
from lab.foresee.shadow import Shadow
from lab.foresee.sync import Sync
from lab.foresee.traffic import Errors, Phase
from lab.judge.claim import Verdict
from lab.validation import Strict

Number = float | None


@dataclass(frozen=True)
class Question(Strict):
    """What ``simulate``, ``tune`` and ``plane`` were asked."""

    scaledobject: str
    scale: str
    profile: str
    duration_s: float
    tail_s: float
    backlog: float
    partitions: int
    topics: int
    objective_s: float
    sync_s: float
    known: str
    in_flight: str
    remarks: tuple[str, ...]
    consumers: dict[str, float | str]
    starts: str
    nodes: str


@dataclass(frozen=True)
class Simulated(Question):
    """The answer of ``simulate``: each figure, why one is missing, the verdicts, notes, and each change of the replicas.

    Where starts are drawn, ``figures`` are medians over the draws, ``worst`` the greatest, and the log is of the first draw.
    ``elsewhere`` has a line for each objective that is breached at some points of the HPA's sync and not at others.
    """

    figures: dict[str, Number]
    worst: dict[str, Number]
    missing: dict[str, str]
    objectives: tuple[Verdict, ...]
    notes: tuple[str, ...]
    elsewhere: tuple[str, ...]
    log: tuple[Change, ...]


@dataclass(frozen=True)
class Outcome(Strict):
    """What a variant changes, and its figures."""

    changes: dict[str, str]
    pod_minutes: float
    late_s: float
    worst_age_s: float
    flips: int
    peak_lag: float
    most_replicas: int
    scale_events: int


@dataclass(frozen=True)
class Recommended(Outcome):
    """The variant to take, and why: as a whole and by change."""

    why: str
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Tuned(Question):
    """The answer of ``tune``: ``notes`` are on what is given, ``yaml`` is the ScaledObject to take.

    Figures, and ``objectives`` of what is recommended, are the worst over the points of the HPA's sync; its first comes at each
    of ``points_s``.
    """

    candidates: int
    points_s: tuple[float, ...]
    given: Outcome
    recommended: Recommended
    objectives: tuple[Verdict, ...]
    front: tuple[Outcome, ...]
    yaml: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Cell(Strict):
    """A combination of ``plane``; ``given`` marks the values in force."""

    tolerance: float
    window_s: float
    lag_threshold: float
    flips: int
    late_s: float
    worst_age_s: float
    pod_minutes: float
    most_replicas: int
    given: bool


@dataclass(frozen=True)
class Plane(Question):
    """The answer of ``plane``."""

    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Profiled(Strict):
    """The answer of ``profile``: it begins at ``begin`` (epoch s), and has so many ``steps`` of what so many ``series`` show.

    ``kept`` and ``phases`` are of rates times ``factor``; ``yaml`` is the profile.
    """

    source: str
    begin: float
    duration_s: float
    sample_s: float
    series: int
    factor: float
    steps: int
    kept: Errors
    phases: tuple[Phase, ...]
    notes: tuple[str, ...]
    yaml: str


@dataclass(frozen=True)
class Threshold(Strict):
    """The answer of ``threshold``: ``rate`` in messages/s."""

    lagThreshold: int
    rate: float
    slo_s: float
    behind_at_rest_s: float


@dataclass(frozen=True)
class Record(Strict):
    """What ``judge`` says of a record; ``missing`` has the reason for each finding that it lacks."""

    record: str
    ended: str
    measures: dict[str, Any]
    overview: dict[str, Any]
    agreement: dict[str, Any] | None
    prediction: dict[str, Any] | None
    missing: dict[str, str]


@dataclass(frozen=True)
class Judged(Strict):
    """The answer of ``judge``."""

    records: tuple[Record, ...]


KINDS: dict[str, Any] = {
    "audit": Audit, "estimate": Estimate, "explain": Explained, "judge": Judged, "plane": Plane, "profile": Profiled,
    "shadow": Shadow, "simulate": Simulated, "sync": Sync, "threshold": Threshold, "tune": Tuned,
}  # fmt: skip


def json_schema() -> dict[str, Any]:
    """The JSON Schema, which takes the answer of any command; under ``$defs`` is that of each."""
    found, made = TypeAdapter.json_schemas([(name, "validation", validation.adapter(kind)) for name, kind in KINDS.items()])
    for reference in found.values():
        answer = made["$defs"][str(reference["$ref"]).rpartition("/")[2]]
        answer["properties"] = {"schema": {"const": SCHEMA}} | answer["properties"]
        answer["required"] = ["schema", *answer["required"]]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "anyOf": list(found.values()), "$defs": made["$defs"]}


if __name__ == "__main__":  # python -m lab.commands.answers > lab/commands/answers.schema.json
    print(json.dumps(json_schema(), indent=1))
