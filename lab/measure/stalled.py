"""Stalled: a partition whose head never succeeds, what the group did about it, and what that was worth."""

from __future__ import annotations

from dataclasses import dataclass

from lab.errors import NoData
from lab.measure.cost import cost
from lab.record.store import Record
from lab.spec.failures import Place


@dataclass(frozen=True)
class Stalled:
    """The poisoned ``partition``: ``waiting`` messages behind it at the end; ``others``, those of all other partitions.

    ``progress`` counts messages of the partition committed at or after the poison's ``offset``; 0 is a stall. ``most`` is the
    largest number of replicas wanted, ``useless`` pod-minutes beyond the floor's.
    """

    partition: int
    offset: int
    progress: int
    waiting: int
    others: int
    most: int
    scale_ups: int
    pod_minutes: float
    useless: float


def stalled(record: Record) -> Stalled:
    """Measure the partition of the trial's poison. Raises :class:`NoData` without one, or without offsets."""
    place = Place.parse(record.inputs.workload.poison)
    if place is None:
        raise NoData("the workload has no poison")
    partition, offset = place.partition, place.offset
    offsets = record.trial.offsets
    if partition not in offsets:
        raise NoData(f"no offsets of partition {partition} at the end of the trial")
    waiting = {number: one.lag for number, one in offsets.items()}
    found, floor = cost(record), record.policy.min_replicas
    begun, ended = record.profile_start, record.end
    changes = record.scalings
    return Stalled(
        partition=partition,
        offset=offset,
        progress=max(0, (offsets[partition].committed or 0) - offset),
        waiting=waiting[partition],
        others=sum(waiting.values()) - waiting[partition],
        most=int(record.replicas["desired"].max()),
        scale_ups=sum(change.after > change.before and change.t >= begun for change in changes),
        pod_minutes=found.pod_minutes,
        useless=_above(record, floor, begun, ended) / 60,
    )


def _above(record: Record, floor: int, start: float, end: float) -> float:
    """Pod-seconds wanted above ``floor`` from ``start`` to ``end``."""
    curve = record.replicas
    times = [*curve["t"].tolist()[1:], end]
    spans = zip(curve["t"].tolist(), times, curve["desired"].tolist(), strict=True)
    return float(sum(max(0.0, min(until, end) - max(t, start)) * max(0, wanted - floor) for t, until, wanted in spans))
