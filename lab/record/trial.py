"""The content of trial.json: what a trial was a function of, where and with what it ran, and how it ended.

``trial.schema.json`` beside this module is its JSON Schema. Times are in epoch seconds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PlainSerializer, PlainValidator, ValidationInfo

from lab import validation, wholefile
from lab.host.machine import Machine
from lab.inputs.anchor import Schedule
from lab.inputs.faults import CONSUMER, Injection
from lab.inputs.fidelity import Compressed, CompressedLag
from lab.inputs.inputs import Inputs, PlainInputs
from lab.model.baseline import Baseline
from lab.record.seal import FILE, checksums, complete
from lab.validation import Strict

SCHEMA = 2
RUNNING = "running"  # how a trial ended that no session has said the end of
COMPLETE = "complete"
FINISHED = (COMPLETE, "deadline")  # how a trial ends that went to its end


@dataclass(frozen=True)
class Offsets(Strict):
    """Of a partition at the end of the trial: the end of its log, and the group's committed offset, None without a commit."""

    end: int
    committed: int | None

    @property
    def lag(self) -> int:
        """Messages that are not committed."""
        return self.end - (self.committed or 0)


@dataclass(frozen=True)
class Step(Strict):
    """A decreed step from ``before`` to ``after`` replicas: when it began, had settled, and was no longer observed."""

    t: float
    kind: Literal["up", "down", "control"]
    before: int
    after: int
    settled: float
    until: float


@dataclass(frozen=True)
class Fault(Strict):
    """A ``fault`` and when it struck ``component``; of a pod its name, its process and the partitions that it owned.

    Of one that the trial's schedule injected, ``injection`` is what was planned. It was over at ``until``, None for a kill that
    the lab does not take back. ``in_flight`` are the messages that the consumer had taken and not processed just before.
    ``skipped`` says why nothing was struck.
    """

    t: float
    fault: str
    pod: str | None = None
    pid: int | None = None
    owned: int | None = None
    component: str = CONSUMER
    until: float | None = None
    in_flight: int | None = None
    skipped: str = ""
    injection: Injection | None = None


@dataclass(frozen=True)
class WatchGap(Strict):
    """From when until when a watch of ``kind`` saw nothing: of what happened in between only the outcome is known."""

    kind: str
    begin: Annotated[float, Field(alias="from")]
    until: float


@dataclass(frozen=True)
class Deadlines(Strict):
    """Seconds: until the baseline has settled, the profile is replayed, the group is at rest, and the ledger is settled.

    ``replay_s`` is counted from when the producer started, ``end_s`` from its last event.
    """

    settle_s: float
    replay_s: float
    end_s: float
    ledger_s: float


@dataclass(frozen=True)
class Turn(Strict):
    """When the turn of a trial came: in ``block``, from 1, it was the ``place``-th of ``of``; ``seed`` is that of the order."""

    seed: int
    block: int
    place: int
    of: int


@dataclass(frozen=True)
class Duet(Strict):
    """Of one side of a duet: the folder of the ``other`` side's record, and whether this side was put up ``first``."""

    other: str
    first: bool


@dataclass(frozen=True)
class Anchor(Strict):
    """The wall clock of a trial whose policy has a time of day.

    The profile, which says that it begins at ``begins_at``, began at ``start``. That was ``waited_s`` seconds after the group
    was up, of ``deadline_s`` at most. ``schedules`` has each schedule of the policy as it was written and as it was applied.
    """

    begins_at: str
    start: float
    waited_s: float
    deadline_s: float
    schedules: tuple[Schedule, ...]


def _inputs(content: Any, info: ValidationInfo) -> Inputs:
    return content if isinstance(content, Inputs) else Inputs.from_dict(content, info.context)


Plain = Annotated[Inputs, PlainValidator(_inputs, json_schema_input_type=PlainInputs), PlainSerializer(Inputs.to_dict)]


@dataclass(frozen=True)
class Trial(Strict):
    """A trial: ``id`` to ``begun`` are known as it begins, what follows ``ended`` as it is closed.

    ``scale`` is the scale in words. ``times`` has when each phase of the trial began; ``ended`` in it is when the trial was
    over or given up. ``events`` has what the lab did to the group, as :func:`lab.trial.events.happen` describes each;
    ``steps`` and ``faults`` are the decreed steps and the kills among them; ``faults`` has what its schedule injected, too,
    and ``faults_from`` where that schedule is from.
    ``missing`` has the reason for each part of the record that could not be closed. ``files`` has the SHA-256 of each file; it
    is None in a record that was never closed.
    ``topic_ids`` has the id of the trial's topic, or the ids of its topics with commas, when it was made and when the trial was
    over; none where they were not read. ``lag_unanswered`` counts how often Kafka did not answer when it was asked for the lag.
    ``ledger_s`` is how long settling the ledger took, ``clock_moved_s`` how far the wall clock moved. ``policy_times`` and
    ``policy_lags`` have each time and each lag of the policy as written and as applied. ``turn`` is its place in the order of
    the session. ``duet`` names the other side, None of a trial by itself. ``anchor`` is where on the wall clock its profile
    began, None where the policy has no time of day.
    """

    id: str
    inputs: Plain
    baseline: Baseline
    scale: str
    versions: dict[str, str]
    machine: Machine
    begun: float
    ended: str = RUNNING
    missing: dict[str, str] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    ledger_s: float | None = None
    offsets: dict[int, Offsets] = field(default_factory=dict)
    topic_ids: tuple[str, ...] = ()
    events: tuple[dict[str, Any], ...] = ()
    steps: tuple[Step, ...] = ()
    faults: tuple[Fault, ...] = ()
    deadlines: Deadlines | None = None
    lag_unanswered: int = 0
    watch_gaps: tuple[WatchGap, ...] = ()
    finished: float | None = None
    clock_moved_s: float | None = None
    faults_from: str = ""
    policy_times: tuple[Compressed, ...] = ()
    policy_lags: tuple[CompressedLag, ...] = ()
    turn: Turn | None = None
    duet: Duet | None = None
    anchor: Anchor | None = None
    files: dict[str, str] | None = None
    schema: Literal[2] = 2

    @property
    def complete(self) -> bool:
        """Whether the trial went to its end."""
        return self.ended.startswith(FINISHED)

    def to_json(self) -> dict[str, Any]:
        """The content of trial.json, the version of the schema first."""
        content: dict[str, Any] = validation.adapter(Trial).dump_python(self, mode="json", by_alias=True)
        return {"schema": content.pop("schema"), **content}

    def write(self, folder: Path) -> None:
        """Write trial.json into the record in ``folder``, whole or not at all; a sealed one is on the disk by then."""
        sealed = self.files is not None
        content = complete(self.to_json()) if sealed else self.to_json()
        wholefile.write(folder / FILE, json.dumps(content, indent=1) + "\n", durable=sealed)

    def sealed(self, folder: Path) -> Trial:
        """The trial with the checksums of the files that are in ``folder`` now."""
        return replace(self, files=checksums(folder))


def json_schema() -> dict[str, Any]:
    """The JSON Schema of trial.json."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **validation.adapter(Trial).json_schema()}


def read(folder: Path) -> Trial:
    """The trial of the record in ``folder``. Raises :class:`InputError` for a trial.json that is not what a trial writes."""
    return validation.read_file(Trial, folder / FILE, SCHEMA, "this record is of another version")


if __name__ == "__main__":  # python -m lab.record.trial > lab/record/trial.schema.json
    print(json.dumps(json_schema(), indent=1))
